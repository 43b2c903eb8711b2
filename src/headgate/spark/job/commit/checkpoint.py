"""What Spark wrote down about its batches: how far it planned, and which files belong to which.

A batch's frame lists only the files that are there when it is asked, and passes over one that has
gone in the meantime without a word. The checkpoint knows better:

    offsets/7            after two lines, one for each source: {"logOffset": 9}
    sources/0/9          {"path": "file:///…", "batchId": 9}, a line for each file
    sources/0/9.compact  the same for all batches up to 9

A source that has had no file yet has `-` in the place of an offset.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from headgate.errors import JobError


def last_planned(checkpoint: Path) -> int | None:
    """The newest batch that Spark has planned; None before the first."""
    try:
        names = [path.name for path in (checkpoint / "offsets").iterdir()]
    except FileNotFoundError:
        return None
    return max((int(name) for name in names if name.isdigit()), default=None)


def planned_files(checkpoint: Path, source: int, batch: int) -> list[str]:
    """The paths of the files that a source has in a batch, in their order."""
    first = 0 if batch == 0 else _log_offset(checkpoint, source, batch - 1) + 1
    last = _log_offset(checkpoint, source, batch)
    if last < first:
        return []
    folder = checkpoint / "sources" / str(source)
    found = [entry for number in range(first, last + 1) for entry in _entries(folder, number)]
    return sorted({_path(entry["path"]) for entry in found})


def _log_offset(checkpoint: Path, source: int, batch: int) -> int:
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        told = lines[2 + source]
        return -1 if told in ("-", "null") else int(json.loads(told)["logOffset"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise JobError(f"{path}: Spark's checkpoint cannot be read ({error})") from None


def _entries(folder: Path, number: int) -> list[dict[str, Any]]:
    """The files of one entry in the log of the source; a compacted one holds earlier ones too."""
    for path in (folder / str(number), folder / f"{number}.compact"):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
        except FileNotFoundError:
            continue
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [entry for entry in entries if entry["batchId"] == number]
    raise JobError(f"{folder / str(number)}: is missing from Spark's checkpoint")


def _path(uri: str) -> str:
    """The path in an address, in which Spark escapes what URIs do not allow.

    >>> _path("file:///a%20b/c%25.jsonl")
    '/a b/c%.jsonl'
    """
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
