"""Compaction: many directories of batches become one, beside a running job.

Law: the rows in every folder are the same before and after, and at every moment between
each batch is there. A reader that lists the folder at the very moment of the swap may see a batch
in two directories, of which the wider covers the narrower (`output.spans`).

A merged directory appears by a rename, and only then do those that it covers go. A compaction that
dies in between leaves covered directories, which the next one, or the next start of the job,
removes. Merging is in tiers, as in a
log-structured merge tree: when `every` small neighbours stand side by side they become one. So each
row is rewritten about once per tier, and there are never more than some `every` small directories
in each of the few tiers, however long the job runs.

Batches follow each other, so all before the newest directory are finished. The newest is left
alone: its batch may be in the making.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import JobError
from headgate.snapshot.files import sync
from headgate.spark.job.commit.claim import held
from headgate.spark.job.commit.output import (
    COMPACTING,
    Span,
    StagedFile,
    covered,
    folders,
    new_stage,
    own_folders,
    place,
    remove,
    spans,
)

EVERY = 100
FULL = 128 << 20  # bytes; a directory of this size is merged no more
ROW_GROUP = 1 << 20  # rows


def compact(root: Path, every: int = EVERY) -> int:
    """Merge what can be merged in a job's output; by how many directories there are fewer."""
    stages = root / COMPACTING
    with held(stages, ".lock", "another compaction"):
        for leftover in stages.iterdir():
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
        together = [folders(root), *([folder] for folder in own_folders(root))]
        return sum(_compact_all([root / one for one in names], stages, every) for names in together)


def finish(root: Path) -> None:
    """Remove what a compaction that was killed had already merged; one that runs does it itself."""
    with suppress(JobError), held(root / COMPACTING, ".lock", "another compaction"):
        for folder in (*folders(root), *own_folders(root)):
            _sweep(root / folder, root / COMPACTING)


def _compact_all(parents: Sequence[Path], stages: Path, every: int) -> int:
    """Folders whose batches have the same numbers."""
    newest = max((span.last for parent in parents for span in spans(parent)), default=0)
    return sum(_compact(parent, stages, newest, every) for parent in parents)


def _compact(parent: Path, stages: Path, newest: int, every: int) -> int:
    gone = _sweep(parent, stages)
    while groups := _mergeable([span for span in spans(parent) if span.last < newest], every):
        for group in groups:
            _merge(group, stages)
            gone += _sweep(parent, stages) - 1
    return gone


def _sweep(parent: Path, stages: Path) -> int:
    directories = covered(parent)
    for directory in directories:
        remove(directory, stages)
    return len(directories)


def _mergeable(found: Sequence[Span], every: int) -> list[list[Span]]:
    """Groups of neighbours to make one of, from the lowest tier that has enough of them."""
    sizes = {span: _bytes(span) for span in found}
    tiers = {span: tier(span, every) for span in found}
    for highest in sorted(set(tiers.values())):
        run: list[Span] = []
        for span in [*found, None]:
            if span is not None and tiers[span] <= highest and sizes[span] < FULL:
                run.append(span)
                continue
            groups = _packed(run, sizes) if len(run) >= every else []
            if groups:
                return groups
            run = []
    return []


def _packed(run: Sequence[Span], sizes: dict[Span, int]) -> list[list[Span]]:
    """Neighbours with the same columns, together little more than full; no group of one."""
    groups: list[list[Span]] = []
    filled = 0
    last: object = None
    for span in run:
        columns = _columns(span)
        if not groups or columns != last or filled + sizes[span] > 2 * FULL:
            groups.append([])
            filled = 0
        groups[-1].append(span)
        filled += sizes[span]
        last = columns
    return [group for group in groups if len(group) > 1]


def tier(span: Span, every: int) -> int:
    """How often a directory has been merged, as told by the number of its batches.

    >>> [tier(Span(0, last, Path()), 100) for last in (0, 98, 99, 9_999)]
    [0, 0, 1, 2]
    """
    batches = span.last - span.first + 1
    levels = 0
    while batches >= every > 1:
        batches //= every
        levels += 1
    return levels


def _merge(group: Sequence[Span], stages: Path) -> None:
    merged = Span(group[0].first, group[-1].last, group[0].parent)
    files = [file for span in group for file in _files(span)]
    stage = new_stage(stages)
    if files[0].suffix == ".parquet":
        written = _merged_parquet(files, stage)
    else:
        written = _merged_text(files, stage)
    place([written], merged, stages)
    stage.rmdir()


def _merged_parquet(files: Sequence[Path], stage: Path) -> Path:
    with StagedFile(stage, "merged", "parquet") as merged:
        for table in _large_tables(files):
            merged.write(table)
    return stage / str(merged.name)


def _large_tables(files: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of all files in tables of about a row group."""
    held_back: list[pa.Table] = []
    rows = 0
    for file in files:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=ROW_GROUP):
                held_back.append(pa.Table.from_batches([batch]))
                rows += batch.num_rows
                if rows >= ROW_GROUP:
                    yield pa.concat_tables(held_back)
                    held_back, rows = [], 0
    if held_back:
        yield pa.concat_tables(held_back)


def _merged_text(files: Sequence[Path], stage: Path) -> Path:
    path = stage / f"merged{files[0].suffix}"
    with path.open("wb") as merged:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, merged)
    sync(path)
    return path


def _files(span: Span) -> list[Path]:
    return sorted(span.path.iterdir())


def _bytes(span: Span) -> int:
    return sum(file.stat().st_size for file in _files(span))


def _columns(span: Span) -> object:
    """What two directories must share to become one: the format and the columns."""
    first = _files(span)[0]
    return pq.read_schema(first) if first.suffix == ".parquet" else first.suffix
