"""Compaction: many directories of batches become one, while a job runs.

Law: the rows in every folder are the same before and after, and at every moment between each batch
is there. A reader that lists the folder at the very moment of the swap may see a batch in two
directories, of which the wider covers the narrower (`output.list_spans`).

A merged directory appears by a rename, and only then are those that it covers removed. A compaction
that dies in between leaves covered directories, which the next one, or the next start of the job,
removes.

Merging is in tiers, as in a log-structured merge tree: `every` small neighbours become one. So each
row is rewritten about once per tier, and there are never more than some `every` small directories
in each of the few tiers, however long the job runs.

Batches follow each other, so all before the newest directory are finished. The newest is never
merged: its batch may still be written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import JobError
from headgate.snapshot.files import checksum, sync
from headgate.spark.job.commit.claim import hold_lock
from headgate.spark.job.commit.output import (
    COMPACTING,
    HIDDEN,
    Part,
    Span,
    StagedFile,
    list_covered,
    list_folders,
    list_spans,
    list_unbounded_folders,
    name_parts,
    new_stage,
    place_parts,
    remove_directory,
)
from headgate.spark.job.commit.parts import (
    PartList,
    check_before_merging,
    describe_merged,
    remove_descriptions,
)

DEFAULT_COMPACT_EVERY = 100
FULL_BYTES = 128 << 20  # a directory of this size is merged no more
ROW_GROUP_ROWS = 1 << 20
COPIED_BYTES = 1 << 20  # of text, at a time


def compact(root: Path, every: int = DEFAULT_COMPACT_EVERY, logged: PartList | None = None) -> int:
    """Merge what can be merged in a job's output, and return by how many directories it shrank.

    Raises a JobError while another compaction runs there, and for a part that is not what it was:
    the job passes the parts of its log, by which it can tell. Elsewhere the checksums inside
    Parquet files do, and the descriptions of merged directories.
    """
    stages = root / COMPACTING
    with hold_lock(stages, ".lock", "another compaction"):
        # what a killed compaction has staged is of no use to anybody
        for leftover in stages.iterdir():
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
        remove_descriptions(root)
        # folders whose batches are numbered together share one newest batch
        groups = [list_folders(root), *([folder] for folder in list_unbounded_folders(root))]
        return sum(_compact_folders(names, root, every, logged or {}) for names in groups)


def remove_leftovers(root: Path) -> None:
    """Remove what a killed compaction had already merged; called under the compaction's lock."""
    for folder in (*list_folders(root), *list_unbounded_folders(root)):
        _sweep(root / folder, root / COMPACTING)


def _compact_folders(names: Sequence[str], root: Path, every: int, logged: PartList) -> int:
    """Compact folders whose batches are numbered together."""
    parents = [root / name for name in names]
    # one newest batch for all of them: an empty folder has no directory for it
    newest = max((span.last for parent in parents for span in list_spans(parent)), default=0)
    return sum(_compact_folder(parent, root, newest, every, logged) for parent in parents)


def _compact_folder(parent: Path, root: Path, newest: int, every: int, logged: PartList) -> int:
    stages = root / COMPACTING
    removed = _sweep(parent, stages)
    while True:
        # listed again in each round, as merged directories may be merged once more
        finished = [span for span in list_spans(parent) if span.last < newest]
        groups = _find_mergeable(finished, every)
        if not groups:
            return removed
        for group in groups:
            _merge(group, root, logged)
            # those that were covered are gone, and one was added
            removed += _sweep(parent, stages) - 1


def _sweep(parent: Path, stages: Path) -> int:
    """Remove the covered directories of a folder, and return how many there were."""
    directories = list_covered(parent)
    for directory in directories:
        remove_directory(directory, stages)
    return len(directories)


def _find_mergeable(spans: Sequence[Span], every: int) -> list[list[Span]]:
    """Return groups of neighbours to merge, from the lowest tier that has enough of them."""
    sizes = {span: _count_bytes(span) for span in spans}
    tiers = {span: compute_tier(span, every) for span in spans}
    # lower tiers first: they have the most and the smallest directories
    for highest in sorted(set(tiers.values())):
        run: list[Span] = []
        # a run is broken by a span of a higher tier, by a full one, and by the end (None)
        for span in [*spans, None]:
            if span is not None and tiers[span] <= highest and sizes[span] < FULL_BYTES:
                run.append(span)
                continue
            groups = _pack_groups(run, sizes) if len(run) >= every else []
            if groups:
                return groups
            run = []
    return []


def _pack_groups(run: Sequence[Span], sizes: dict[Span, int]) -> list[list[Span]]:
    """Split a run into groups with the same columns, each little more than full; none of one."""
    groups: list[list[Span]] = []
    filled = 0
    last: object = None
    for span in run:
        columns = _read_columns(span)
        # rows with other columns, after a change of the query, stay in other files
        if not groups or columns != last or filled + sizes[span] > 2 * FULL_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(span)
        filled += sizes[span]
        last = columns
    return [group for group in groups if len(group) > 1]


def compute_tier(span: Span, every: int) -> int:
    """Return how often a directory has been merged, judged by the number of its batches.

    >>> [compute_tier(Span(0, last, Path()), 100) for last in (0, 98, 99, 9_999)]
    [0, 0, 1, 2]
    """
    batches = span.last - span.first + 1
    levels = 0
    while batches >= every > 1:
        batches //= every
        levels += 1
    return levels


def _merge(group: Sequence[Span], root: Path, logged: PartList) -> None:
    for span in group:
        check_before_merging(span, root, logged)
    merged = Span(group[0].first, group[-1].last, group[0].parent)
    files = [file for span in group for file in _list_files(span)]
    stages = root / COMPACTING
    stage = new_stage(stages)
    # a folder has one format: the sink of a job cannot change
    if files[0].suffix == ".parquet":
        part = _merge_parquet(files, stage)
    else:
        part = _merge_text(files, stage)
    # described first: the next start must know what it will see
    describe_merged(name_parts([part], merged, root), merged, root)
    place_parts([part], merged, stages)
    stage.rmdir()


def _merge_parquet(files: Sequence[Path], stage: Path) -> Part:
    with StagedFile(stage, "merged", "parquet") as merged:
        for table in _read_large_tables(files):
            merged.write(table)
    assert merged.part is not None
    return merged.part


def _read_large_tables(files: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of all files in tables of about a row group."""
    pending: list[pa.Table] = []
    rows = 0
    for file in files:
        try:
            with pq.ParquetFile(file, page_checksum_verification=True) as opened:
                # small files become large row groups, which readers prefer
                for batch in opened.iter_batches(batch_size=ROW_GROUP_ROWS):
                    pending.append(pa.Table.from_batches([batch]))
                    rows += batch.num_rows
                    if rows >= ROW_GROUP_ROWS:
                        yield pa.concat_tables(pending)
                        pending, rows = [], 0
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"{file}: was changed or damaged ({error}); restore it") from None
    if pending:
        yield pa.concat_tables(pending)


def _merge_text(files: Sequence[Path], stage: Path) -> Part:
    # JSON lines need no parsing: every file ends in a newline
    path = stage / f"merged{files[0].suffix}"
    rows = 0
    with path.open("wb") as merged:
        for file in files:
            with file.open("rb") as part:
                while chunk := part.read(COPIED_BYTES):
                    rows += chunk.count(b"\n")
                    merged.write(chunk)
    sync(path)
    return Part(str(path), rows, path.stat().st_size, checksum(path))


def _list_files(span: Span) -> list[Path]:
    return sorted(file for file in span.path.iterdir() if not file.name.startswith(HIDDEN))


def _count_bytes(span: Span) -> int:
    return sum(file.stat().st_size for file in _list_files(span))


def _read_columns(span: Span) -> object:
    """Return what two directories must share to become one: the format and the columns."""
    first = _list_files(span)[0]
    return pq.read_schema(first) if first.suffix == ".parquet" else first.suffix
