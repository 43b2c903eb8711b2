"""The log of a job remembers all that it said it would, whatever moment a crash comes at."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import JobError, UsageError
from headgate.spark.job.commit import log as log_module
from headgate.spark.job.commit import records
from headgate.spark.job.commit.log import BatchLog, Counts
from headgate.spark.job.commit.output import Part
from headgate.spark.job.commit.retention import Forgotten, forget_removed


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


def write_history(path: Path, batches: int) -> tuple[list[bytes], list[bytes]]:
    """Return the lines of a log, and the head before the first and after each of them."""
    log = BatchLog(path)
    heads = [b""]
    for batch in range(batches):
        log.begin(batch, version=batch // 3 + 1)
        heads.append(path.with_suffix(".head").read_bytes())
        log.finish(batch, Counts(rows=batch, dead=1, matches=2), [a_part(batch)])
        heads.append(path.with_suffix(".head").read_bytes())
    return path.read_bytes().splitlines(keepends=True), heads


def a_part(batch: int) -> Part:
    return Part(f"matches/batches={batch:010}-{batch:010}/part-0000.jsonl", 2, 20, "ab")


def put(path: Path, content: bytes, head: bytes) -> Path:
    path.unlink(missing_ok=True)
    path.with_suffix(".head").unlink(missing_ok=True)
    path.write_bytes(content)
    if head:
        path.with_suffix(".head").write_bytes(head)
    return path


def test_a_crash_at_any_byte_forgets_at_most_the_line_being_written(tmp_path: Path) -> None:
    """The head still names the line before; a whole line counts, whether it is named or not."""
    lines, heads = write_history(tmp_path / "whole", 3)
    for number, line in enumerate(lines):
        for size in range(len(line) + 1):
            content = b"".join(lines[:number]) + line[:size]
            log = BatchLog(put(tmp_path / "log", content, heads[number]))
            whole = number + (size == len(line))
            assert log.last_batch == (whole // 2 - 1 if whole >= 2 else None)
            assert (log.version_of(whole // 2) is not None) == (whole % 2 == 1)
            # and it goes on from there
            log.begin(whole // 2, version=9)
            log.finish(whole // 2, Counts(rows=7))
            again = BatchLog(tmp_path / "log")
            assert (again.last_batch, again.totals) == (whole // 2, log.totals)


def test_a_hole_in_the_line_that_was_being_written_is_no_damage(tmp_path: Path) -> None:
    """After a power failure the last page may be there, and one before it not."""
    lines, heads = write_history(tmp_path / "whole", 2)
    content = b"".join(lines[:3]) + bytes(40) + lines[3][40:]
    assert BatchLog(put(tmp_path / "log", content, heads[3])).last_batch == 0
    with pytest.raises(JobError, match="log:4: was changed or damaged: its checksum is another"):
        BatchLog(put(tmp_path / "log", content, heads[4]))


def test_no_changed_byte_goes_unnoticed(tmp_path: Path) -> None:
    lines, heads = write_history(tmp_path / "whole", 2)
    content, head = b"".join(lines), heads[-1]
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises(JobError, match="restore it, or start afresh"):
            BatchLog(put(tmp_path / "log", bytes(damaged), head))
    for place in range(len(head)):
        damaged = bytearray(head)
        damaged[place] ^= 1
        if damaged.strip() != head.strip():
            with pytest.raises(JobError, match="restore it, or start afresh"):
                BatchLog(put(tmp_path / "log", content, bytes(damaged)))


def test_no_lost_doubled_or_moved_line_goes_unnoticed(tmp_path: Path) -> None:
    lines, heads = write_history(tmp_path / "whole", 3)
    changed = [
        *(lines[:i] + lines[i + 1 :] for i in range(6)),
        *([*lines[:i], lines[i], *lines[i:]] for i in range(6)),
        *([*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]] for i in range(5)),
        *(lines[:i] for i in range(6)),
    ]
    for others in changed:
        with pytest.raises(JobError, match="restore it, or start afresh"):
            BatchLog(put(tmp_path / "log", b"".join(others), heads[-1]))
    # nor an older head, unless it is the one before
    for head in heads[:-2]:
        with pytest.raises(JobError, match=r"log: ends with record 6, and log\.head"):
            BatchLog(put(tmp_path / "log", b"".join(lines), head))


def test_parts_are_remembered(tmp_path: Path) -> None:
    write_history(tmp_path / "log", 3)
    parts = BatchLog(tmp_path / "log").parts
    assert [part for group in parts.values() for part in group] == [a_part(i) for i in range(3)]
    assert list(parts)[2] == "matches/batches=0000000002-0000000002"


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


@pytest.mark.parametrize("point", ["write_atomically", "_write_head"])
def test_a_crash_while_a_log_is_folded_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the new file is in place, and before the head names it."""
    write_history(tmp_path / "log", 3)
    log = BatchLog(tmp_path / "log")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(records if point == "write_atomically" else records.RecordFile, point, crash)
        with pytest.raises(KeyboardInterrupt):
            log._fold()
    again = BatchLog(tmp_path / "log")
    assert (again.last_batch, again.totals, again.parts) == (2, log.totals, log.parts)
    again.begin(3, 1)
    assert BatchLog(tmp_path / "log").version_of(3) == 1


@pytest.mark.parametrize("damage", [b"{}\n", b"nonsense\n", b'{"batch": 1}\n', b"[1]\n", b"\xff\n"])
def test_a_damaged_log_is_refused_by_line(tmp_path: Path, damage: bytes) -> None:
    a_history(BatchLog(tmp_path / "log"), 2)
    with (tmp_path / "log").open("ab") as file:
        file.write(damage + damage)
    with pytest.raises(JobError, match=r"log:5: was changed or damaged"):
        BatchLog(tmp_path / "log")


def test_a_log_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"batch": 0, "version": 1}\n{"batch": 0, "version": 1}\n')
    with pytest.raises(JobError, match=r"log:1: .* from an earlier version of Headgate; .* afresh"):
        BatchLog(tmp_path / "log")


def test_an_unbounded_query_forgets_batches_of_its_own(tmp_path: Path) -> None:
    """It numbers them by itself, so only its folder is meant, and the job's log stays."""
    state, out = tmp_path / "state", tmp_path / "out"
    out.mkdir()
    (state / "unbounded" / "u").mkdir(parents=True)
    logs = {"matches": state / "log.jsonl", "unbounded/u": state / "unbounded" / "u" / "log.jsonl"}
    for folder, path in logs.items():
        log = BatchLog(path, out)
        for batch in range(2):
            name = f"{folder}/batches={batch:010}-{batch:010}/part-0000.jsonl"
            log.begin(batch, 1)
            log.finish(batch, Counts(rows=3), [Part(name, 3, 9, "ab")])
    assert forget_removed(state, out, 0, ["unbounded/u"]) == [Forgotten("unbounded/u", 1, 3)]
    assert len(BatchLog(logs["unbounded/u"], out).parts) == 1
    assert len(BatchLog(logs["matches"], out).parts) == 2
    assert forget_removed(state, out, 1) == [Forgotten("matches", 2, 6)]
    assert len(BatchLog(logs["unbounded/u"], out).parts) == 1
    with pytest.raises(UsageError, match="`unbounded/v` is no folder of batches"):
        forget_removed(state, out, 1, ["unbounded/v"])
