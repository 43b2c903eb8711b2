"""Whether the output holds just the parts that the log says: none lost, cut, changed or added.

The log names each part that a batch placed, with its rows, its size and its digest. A compaction
replaces the directories of many batches by one. It may run in a process of its own, which does not
write the log, so it describes the merged directory in a file next to the output:

    out/.merged/matches/batches=0000000000-0000000099.json

That file is there before the directory is. A merged directory must have the rows that the log
counts for its batches, and the parts that its description names. When the log is folded, it takes
over what was merged.

Who removes old batches on purpose says so (`retention`), and the log forgets their parts.

Checking the size of every part takes a look at each file. Digests are checked for the newest parts,
which a power failure may have hit, or for all if that is wanted.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from headgate.errors import JobError
from headgate.snapshot.files import checksum
from headgate.spark.job.commit.output import (
    HIDDEN,
    MERGED,
    Part,
    Span,
    list_spans,
    make_directory,
    parse_span,
    write_atomically,
)
from headgate.spark.job.commit.records import START_AFRESH, seal_record, unseal_record

FORGET = "`headgate forget PIPELINE --through N`"
MAX_VERIFIED_BYTES = 256 << 20  # of the newest parts, at a start

PartList = dict[str, tuple[Part, ...]]
"""The parts of each directory of batches, which is relative to the output."""


def group_parts(parts: Iterable[Part]) -> PartList:
    """Return parts by their directory; those of one directory must be neighbours."""
    groups = groupby(parts, key=lambda part: part.path.rpartition("/")[0])
    return {directory: tuple(group) for directory, group in groups}


def describe_merged(parts: Sequence[Part], span: Span, root: Path) -> None:
    """Write down the parts of a merged directory, before it appears."""
    path = _find_description(root, span)
    make_directory(path.parent)
    write_atomically(path, seal_record({"parts": [asdict(part) for part in parts]}))


def remove_descriptions(root: Path) -> None:
    """Remove the descriptions of directories that were merged once more, or never appeared."""
    for path in (root / MERGED).rglob("*.json"):
        if not (root / path.relative_to(root / MERGED)).with_suffix("").is_dir():
            path.unlink()


def adopt_merged(parts: PartList, root: Path) -> PartList:
    """Return the parts with those of merged directories in the place of what these replaced."""
    adopted = dict(parts)
    for folder, by_span in _group_by_folder(parts, root).items():
        ordered = sorted(by_span)
        for span in list_spans(root / folder):
            covered = [other for other in _select_covered(ordered, span) if other != span]
            # while one of them is still there, a crash might bring the others back
            if covered and not any(other.path.exists() for other in covered):
                # what does not fit stays for the next start to refuse
                with suppress(JobError):
                    merged = _read_merged(root, span, [by_span[other] for other in covered])
                    for other in covered:
                        del adopted[_relative(other, root)]
                    adopted[_relative(span, root)] = merged
    return adopted


def check_before_merging(span: Span, root: Path, logged: PartList) -> None:
    """Raise a JobError for a part that was changed: what is merged from it would look sound.

    A directory that `logged` does not have is checked if it was merged, and so is described.
    """
    parts = logged.get(_relative(span, root))
    if parts is None and _find_description(root, span).exists():
        parts = _read_description(root, span)
    if parts is not None:
        _check_sizes(span, parts)
        _check_digests(root, {span: parts}, None)


def check_output(
    root: Path,
    parts: PartList,
    folders: Iterable[str],
    last_batch: int | None,
    *,
    verify_all: bool = False,
) -> None:
    """Raise a JobError unless the folders hold the parts of a log, and nothing else.

    `folders` are those whose batches the log numbers. A batch after `last_batch` may be there: it
    was placed and not yet logged. With `verify_all` the digests of all parts are checked.
    """
    by_folder = _group_by_folder(parts, root)
    expected: dict[Span, tuple[Part, ...]] = {}
    for folder in sorted({*folders, *by_folder}):
        expected |= _match_spans(root / folder, by_folder.get(folder, {}), last_batch, root)
    for span, names in expected.items():
        _check_sizes(span, names)
    _check_digests(root, expected, None if verify_all else MAX_VERIFIED_BYTES)


def list_removed(root: Path, parts: PartList, folder: str) -> dict[Span, Span]:
    """Return the directories of a folder that the log names and that are gone.

    Each comes with the directory in which it was: itself, or a merged one.
    """
    logged = sorted(_group_by_folder(parts, root).get(folder, {}))
    present = list_spans(root / folder)
    kept = {span for each in present for span in _select_covered(logged, each)}
    removed = {span: span for span in logged if span not in kept}
    # the narrowest first, so that the widest stays
    described = [
        parse_span(root / folder / p.stem) for p in (root / MERGED / folder).glob("*.json")
    ]
    for merged in sorted(described, key=lambda span: span.last - span.first):
        if merged not in present:
            removed |= dict.fromkeys(set(_select_covered(logged, merged)) & removed.keys(), merged)
    return removed


def _match_spans(
    parent: Path, logged: Mapping[Span, tuple[Part, ...]], last_batch: int | None, root: Path
) -> dict[Span, tuple[Part, ...]]:
    """Return the directories of a folder with their parts, or raise if they do not fit the log."""
    unlogged = 0 if last_batch is None else last_batch + 1
    ordered = sorted(logged)
    expected: dict[Span, tuple[Part, ...]] = {}
    known: set[Span] = set()
    for span in list_spans(parent):
        # a merged directory comes in the place of all that it covers
        covered = _select_covered(ordered, span)
        known.update(covered)
        if span in logged:
            expected[span] = logged[span]
        elif covered:
            expected[span] = _read_merged(root, span, [logged[other] for other in covered])
        elif (span.first, span.last) != (unlogged, unlogged):
            raise _build_error(span.path, "is not in the log", "remove it")
    lost = [span for span in ordered if span not in known]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        problem = f"is gone{more}, and the log says that it was written"
        removed = f"if you removed it on purpose, tell the job: {FORGET}"
        raise _build_error(lost[0].path, problem, f"restore it; {removed}")
    return expected


def _select_covered(ordered: Sequence[Span], span: Span) -> list[Span]:
    """Return those of sorted spans that a span covers, without a look at all of them."""
    start = bisect_left(ordered, span.first, key=lambda other: other.first)
    end = bisect_right(ordered, span.last, key=lambda other: other.first)
    return [other for other in ordered[start:end] if span.covers(other)]


def _check_sizes(span: Span, parts: Sequence[Part]) -> None:
    """Raise unless a directory has just these files, of these sizes."""
    with os.scandir(span.path) as entries:
        # readers skip hidden files, so whoever left some does no harm
        sizes = {
            entry.name: entry.stat().st_size
            for entry in entries
            if not entry.name.startswith(HIDDEN)
        }
    for part in parts:
        name = part.path.rpartition("/")[2]
        size = sizes.pop(name, None)
        if size is None:
            raise _build_error(span.path / name, "is gone, and the log says that it was written")
        if size != part.size:
            raise _build_error(span.path / name, f"has {size} bytes, and the log says {part.size}")
    if sizes:
        raise _build_error(span.path / min(sizes), "is not in the log", "remove it")


def _check_digests(
    root: Path, expected: Mapping[Span, Sequence[Part]], max_bytes: int | None
) -> None:
    """Raise for a part that was changed, from the newest on until so many bytes were read."""
    total = 0
    for span in sorted(expected, key=lambda span: span.last, reverse=True):
        for part in expected[span]:
            total += part.size
            if max_bytes is not None and total > max_bytes:
                return
            if checksum(root / part.path) != part.digest:
                raise _build_error(root / part.path, "was changed or damaged (another digest)")


def _group_by_folder(parts: PartList, root: Path) -> dict[str, dict[Span, tuple[Part, ...]]]:
    """Return the parts by folder, and then by the batches that a directory there holds."""
    groups: dict[str, dict[Span, tuple[Part, ...]]] = {}
    for directory, names in parts.items():
        folder = directory.rpartition("/")[0]
        groups.setdefault(folder, {})[parse_span(root / directory)] = names
    return groups


def _relative(span: Span, root: Path) -> str:
    return span.path.relative_to(root).as_posix()


def _find_description(root: Path, span: Span) -> Path:
    return root / MERGED / f"{_relative(span, root)}.json"


def _read_merged(root: Path, span: Span, replaced: Iterable[Sequence[Part]]) -> tuple[Part, ...]:
    """Return the parts of a merged directory, or raise unless they have the rows of the others."""
    merged = _read_description(root, span)
    rows = sum(part.rows for parts in replaced for part in parts)
    actual = sum(part.rows for part in merged)
    if actual != rows:
        raise _build_error(span.path, f"has {actual} rows, and the log counts {rows}")
    return merged


def _read_description(root: Path, span: Span) -> tuple[Part, ...]:
    path = _find_description(root, span)
    try:
        record = unseal_record(path.read_bytes())
        return tuple(Part(**part) for part in record["parts"])
    except FileNotFoundError:
        raise _build_error(span.path, f"is not described by {path}, which is gone") from None
    except (OSError, ValueError) as error:
        raise _build_error(path, f"was changed or damaged: {error}") from None


def _build_error(path: Path, problem: str, cure: str = "restore it") -> JobError:
    return JobError(f"{path}: {problem}; {cure}, or {START_AFRESH}")
