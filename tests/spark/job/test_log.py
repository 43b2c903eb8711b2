"""The log of a job remembers all that it said it would, whatever moment a crash comes at."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import JobError
from headgate.spark.job.commit import log as log_module
from headgate.spark.job.commit.log import BatchLog, Counts


def a_history(log: BatchLog, batches: int) -> None:
    for batch in range(batches):
        log.begin(batch, version=batch // 3 + 1)
        log.finish(batch, Counts(rows=batch, dead=1, matches=2))


def test_a_new_log_knows_nothing(tmp_path: Path) -> None:
    log = BatchLog(tmp_path / "log")
    assert log.last_batch is None
    assert not log.is_finished(0)
    assert log.totals == Counts()


def test_a_log_is_opened_again(tmp_path: Path) -> None:
    a_history(BatchLog(tmp_path / "log"), 5)
    again = BatchLog(tmp_path / "log")
    assert again.last_batch == 4
    assert again.is_finished(4)
    assert not again.is_finished(5)
    assert again.totals == Counts(rows=10, dead=5, matches=10)


def test_a_batch_keeps_the_version_that_it_began_under(tmp_path: Path) -> None:
    BatchLog(tmp_path / "log").begin(0, version=3)
    again = BatchLog(tmp_path / "log")
    assert again.version_of(0) == 3
    assert again.begin(0, version=4) == 3
    assert BatchLog(tmp_path / "log").begin(0, version=5) == 3


def test_a_crash_at_any_byte_forgets_at_most_the_line_being_written(tmp_path: Path) -> None:
    a_history(BatchLog(tmp_path / "whole"), 4)
    content = (tmp_path / "whole").read_bytes()
    for size in range(len(content) + 1):
        path = tmp_path / f"cut-{size}"
        path.write_bytes(content[:size])
        log = BatchLog(path)
        lines = content[:size].count(b"\n")
        assert log.last_batch == (lines // 2 - 1 if lines >= 2 else None)
        begun = lines // 2
        assert (log.version_of(begun) is not None) == (lines % 2 == 1)
        log.begin(begun, version=9)
        log.finish(begun, Counts(rows=7))
        again = BatchLog(path)
        assert (again.last_batch, again.totals) == (begun, log.totals)


def test_a_long_log_is_folded_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_LOG_LINES", 10)
    log = BatchLog(tmp_path / "log")
    a_history(log, 50)
    assert (tmp_path / "log").read_bytes().count(b"\n") <= 11
    again = BatchLog(tmp_path / "log")
    assert (again.last_batch, again.totals) == (49, log.totals)
    assert log.totals == Counts(rows=sum(range(50)), dead=50, matches=100)


@pytest.mark.parametrize("damage", [b"{}\n", b"nonsense\n", b'{"batch": 1}\n', b"[1]\n", b"\xff\n"])
def test_a_damaged_log_is_refused_by_line(tmp_path: Path, damage: bytes) -> None:
    a_history(BatchLog(tmp_path / "log"), 2)
    with (tmp_path / "log").open("ab") as file:
        file.write(damage)
    with pytest.raises(JobError, match=r"log:5: not a line of a job's log"):
        BatchLog(tmp_path / "log")


def test_a_log_from_before_there_were_answers(tmp_path: Path) -> None:
    counts = '{"rows": 2, "dead": 0, "blank": 0, "matches": 5}'
    (tmp_path / "log").write_text(
        f'{{"up_to": 3, "counts": {counts}}}\n{{"batch": 4, "version": 1}}\n'
        f'{{"batch": 4, "version": 1, "counts": {counts}}}\n'
    )
    log = BatchLog(tmp_path / "log")
    assert (log.last_batch, log.totals, log.state_checksum) == (4, Counts(rows=4, matches=10), None)
