"""Compaction keeps every row, keeps the number of directories small, and survives a kill."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import JobError
from headgate.snapshot.files import checksum
from headgate.spark.job.commit import compaction
from headgate.spark.job.commit.claim import hold_lock
from headgate.spark.job.commit.compaction import compact, remove_leftovers
from headgate.spark.job.commit.output import (
    COMPACTING,
    MERGED,
    STAGING,
    Part,
    Span,
    StagedFile,
    list_spans,
    name_parts,
    place_parts,
)
from headgate.spark.job.commit.parts import PartList, adopt_merged, check_output, group_parts


def write_batch(
    root: Path, batch: int, rows: int, *, kind: str = "matches", **extra: int
) -> PartList:
    """The output of a batch, in two files, as a job places it; and what its log has of it."""
    stages = root / STAGING
    stages.mkdir(parents=True, exist_ok=True)
    parts = []
    for part in range(2):
        with StagedFile(stages, kind, "parquet") as file:
            numbers = list(range(part, rows, 2))
            columns = {"batch_id": [batch] * len(numbers), "n": numbers}
            columns |= {name: [value] * len(numbers) for name, value in extra.items()}
            file.write(pa.table(columns))
        if file.part:
            parts.append(file.part)
    span = Span(batch, batch, root / kind)
    if parts:
        place_parts(parts, span, stages)
    return group_parts(name_parts(parts, span, root))


def rows_in(root: Path, kind: str = "matches") -> Counter[tuple[int, int]]:
    """What a plain reader of the folder sees."""
    actual: Counter[tuple[int, int]] = Counter()
    for path in sorted((root / kind).glob("*/*.parquet")):
        table = pq.read_table(path, partitioning=None)
        actual.update((row["batch_id"], row["n"]) for row in table.to_pylist())
    return actual


def test_rows_are_the_same_and_directories_few(tmp_path: Path) -> None:
    random = Random(1)
    for batch in range(250):
        write_batch(tmp_path, batch, random.choice([0, 1, 3, 10]))
        write_batch(tmp_path, batch, random.choice([0, 0, 0, 1]), kind="dead")
        if batch % 10 == 0:
            before = [rows_in(tmp_path, kind) for kind in ("matches", "dead")]
            compact(tmp_path, every=5)
            assert [rows_in(tmp_path, kind) for kind in ("matches", "dead")] == before
        assert max(rows_in(tmp_path).values(), default=1) == 1
    assert len(list_spans(tmp_path / "matches")) <= 5 * 4
    assert len(list((tmp_path / "matches").iterdir())) == len(list_spans(tmp_path / "matches"))


def test_the_newest_batch_is_kept(tmp_path: Path) -> None:
    for batch in range(6):
        write_batch(tmp_path, batch, 2)
    compact(tmp_path, every=2)
    assert list_spans(tmp_path / "matches")[-1] == Span(5, 5, tmp_path / "matches")


def test_a_change_of_columns_is_a_border(tmp_path: Path) -> None:
    for batch in range(4):
        write_batch(tmp_path, batch, 3)
    for batch in range(4, 9):
        write_batch(tmp_path, batch, 3, later=1)
    before = rows_in(tmp_path)
    compact(tmp_path, every=3)
    assert rows_in(tmp_path) == before
    names = [(span.first, span.last) for span in list_spans(tmp_path / "matches")]
    assert names == [(0, 3), (4, 7), (8, 8)]


def test_a_full_directory_is_merged_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FULL_BYTES", 4_000)
    monkeypatch.setattr(
        compaction, "_count_bytes", lambda span: 1_000 * (span.last - span.first + 1)
    )
    for batch in range(40):
        write_batch(tmp_path, batch, 2)
    compact(tmp_path, every=2)
    widths = [span.last - span.first + 1 for span in list_spans(tmp_path / "matches")]
    assert all(4 <= width <= 8 for width in widths[:-2])


def test_text_is_joined(tmp_path: Path) -> None:
    stages = tmp_path / STAGING
    for batch in range(3):
        stages.mkdir(exist_ok=True)
        path = stages / f"{batch}.jsonl"
        path.write_text(f'{{"batch_id": {batch}}}\n')
        part = Part(str(path), 1, path.stat().st_size, checksum(path))
        place_parts([part], Span(batch, batch, tmp_path / "dead"), stages)
    assert compact(tmp_path, every=2) == 1
    merged = tmp_path / "dead" / "batches=0000000000-0000000001" / "part-0000.jsonl"
    assert merged.read_text() == '{"batch_id": 0}\n{"batch_id": 1}\n'


def test_a_log_takes_over_what_was_merged(tmp_path: Path) -> None:
    """So a folded log does not grow with the batches, and its next start sees the same output."""
    logged: PartList = {}
    for batch in range(60):
        logged |= write_batch(tmp_path, batch, 3)
        if batch % 10 == 0:
            compact(tmp_path, 5, logged)
            logged = adopt_merged(logged, tmp_path)
    assert len(logged) == len(list_spans(tmp_path / "matches")) < 20
    check_output(tmp_path, logged, ["matches"], 59, verify_all=True)
    descriptions = list((tmp_path / MERGED).rglob("*.json"))
    assert len(descriptions) < 20


def test_a_log_does_not_take_over_a_loss(tmp_path: Path) -> None:
    logged: PartList = {}
    for batch in range(6):
        logged |= write_batch(tmp_path, batch, 3)
    shutil.rmtree(tmp_path / "matches" / "batches=0000000002-0000000002")
    compact(tmp_path, 3, logged)
    assert adopt_merged(logged, tmp_path) == logged
    with pytest.raises(JobError, match="has 12 rows, and the log counts 15"):
        check_output(tmp_path, logged, ["matches"], 5)


@pytest.mark.parametrize("knows_log", [True, False])
def test_what_is_damaged_is_not_merged(tmp_path: Path, knows_log: bool) -> None:
    """By the digests in the log, or by the checksums in the file."""
    logged: PartList = {}
    for batch in range(6):
        logged |= write_batch(tmp_path, batch, 3_000)
    part = tmp_path / "matches" / "batches=0000000003-0000000003" / "part-0000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    before = list_spans(tmp_path / "matches")
    with pytest.raises(JobError, match=r"3-0000000003/part-0000.parquet: was changed or damaged"):
        compact(tmp_path, 3, logged if knows_log else None)
    assert list_spans(tmp_path / "matches") == before


def test_two_at_once_do_not_meet(tmp_path: Path) -> None:
    with (
        hold_lock(tmp_path / COMPACTING, ".lock", "another compaction"),
        pytest.raises(JobError, match="another compaction is at work there"),
    ):
        compact(tmp_path)


POINTS = ("describe_merged", "place_parts", "remove_directory", "_sweep", "_merge")


def _killed_at(root: Path, point: str, after: int) -> None:
    """Compacts, and kills itself at the n-th call of a function."""
    real = getattr(compaction, point)
    calls = 0

    def counted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls > after:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    setattr(compaction, point, counted)
    compact(root, every=3)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_compaction_loses_nothing(tmp_path: Path, point: str) -> None:
    for after in range(4):
        root = tmp_path / f"{after}"
        logged: PartList = {}
        for batch in range(13):
            logged |= write_batch(root, batch, 3)
        before = rows_in(root)
        process = multiprocessing.get_context("fork").Process(
            target=_killed_at, args=(root, point, after)
        )
        process.start()
        process.join()
        living = {span.path.name for span in list_spans(root / "matches")}
        seen = Counter[tuple[int, int]]()
        for name in living:
            for file in (root / "matches" / name).iterdir():
                table = pq.read_table(file, partitioning=None)
                seen.update((row["batch_id"], row["n"]) for row in table.to_pylist())
        assert seen == before, "the living directories hold each row once"
        check_output(root, logged, ["matches"], 12, verify_all=True)
        adopted = adopt_merged(logged, root)
        check_output(root, adopted, ["matches"], 12, verify_all=True)
        remove_leftovers(root)
        assert rows_in(root) == before, "the next start of the job clears up"
        compact(root, every=3, logged=logged)
        assert rows_in(root) == before
        for parts in (logged, adopted):
            check_output(root, parts, ["matches"], 12, verify_all=True)
        assert not [d for d in (root / COMPACTING).iterdir() if d.is_dir()]
