"""What Spark's checkpoint says: how far it planned, and which files belong to which batch.

A batch's frame lists only the files that exist when it is evaluated, and silently skips one that
was deleted in the meantime. So the files are read from the checkpoint itself:

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


def find_last_planned(checkpoint: Path) -> int | None:
    """Return the newest batch that Spark has planned; None before the first."""
    try:
        names = [path.name for path in (checkpoint / "offsets").iterdir()]
    except FileNotFoundError:
        return None
    return max((int(name) for name in names if name.isdigit()), default=None)


def list_planned_files(checkpoint: Path, source: int, batch: int) -> list[str]:
    """Return the paths of the files that a source has in a batch, sorted."""
    first = 0 if batch == 0 else _read_log_offset(checkpoint, source, batch - 1) + 1
    last = _read_log_offset(checkpoint, source, batch)
    if last < first:
        return []
    folder = checkpoint / "sources" / str(source)
    entries = [
        entry for number in range(first, last + 1) for entry in _read_entries(folder, number)
    ]
    return sorted({_parse_uri(entry["path"]) for entry in entries})


def _read_log_offset(checkpoint: Path, source: int, batch: int) -> int:
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        offset = lines[2 + source]  # after a version and metadata
        return -1 if offset in ("-", "null") else int(json.loads(offset)["logOffset"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise JobError(f"{path}: Spark's checkpoint cannot be read ({error})") from None


def _read_entries(folder: Path, number: int) -> list[dict[str, Any]]:
    """Return the files of one entry in a source's log; a compacted one holds earlier ones too."""
    for path in (folder / str(number), folder / f"{number}.compact"):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
        except FileNotFoundError:
            continue
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [entry for entry in entries if entry["batchId"] == number]
    raise JobError(f"{folder / str(number)}: is missing from Spark's checkpoint")


def _parse_uri(uri: str) -> str:
    """Return the path in a URI, in which Spark escapes what URIs do not allow.

    >>> _parse_uri("file:///a%20b/c%25.jsonl")
    '/a b/c%.jsonl'
    """
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
