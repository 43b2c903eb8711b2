"""What Spark's checkpoint says: how far Spark planned, and which files belong to which batch.

A batch's frame lists only the files that exist when it is evaluated, and silently skips one that
was deleted in the meantime. So the files are read from the checkpoint itself:

    offsets/7            after two lines, one for each source: {"logOffset": 9}
    commits/7            the batch has returned
    sources/0/9          {"path": "file:///…", "batchId": 9}, a line for each file
    sources/0/9.compact  the same for all batches up to 9

A source that has had no file yet has `-` in the place of an offset.

On a local file system Hadoop writes checksums next to each file, `.9.crc`. Spark does not refuse a
log of its own that no longer fits them: with a changed path it reads the file a second time. So
they are checked here. The newest files may lack theirs after a crash, so that our own log has the
digests of those that a batch began with.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from headgate.errors import JobError
from headgate.spark.job.commit.records import START_AFRESH

_CRC_HEADER = struct.Struct(">4sI")  # a magic word, and how many bytes each checksum is for
_CRC_MAGIC = b"crc\0"
_NEW_CRC = _CRC_HEADER.pack(_CRC_MAGIC, 512)  # as Hadoop writes it: 512 bytes per checksum
_LOG_NAME = re.compile(r"\d+(\.compact)?")


def find_last_planned(checkpoint: Path) -> int | None:
    """Return the newest batch that Spark has planned; None before the first."""
    return _find_last(checkpoint / "offsets")


def find_last_committed(checkpoint: Path) -> int | None:
    """Return the newest batch that has returned to Spark; None before the first."""
    return _find_last(checkpoint / "commits")


def _find_last(folder: Path) -> int | None:
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=None)


def check_checkpoint(checkpoint: Path) -> None:
    """Raise a JobError for a file of offsets, commits or sources that is not what Spark wrote."""
    # Spark keeps a hundred batches, and deletes what a compacted log replaces
    folders = [checkpoint / "offsets", checkpoint / "commits", *checkpoint.glob("sources/*")]
    has_checksums = _locate_crc(checkpoint / "metadata").exists()
    for folder in folders:
        paths = _list_entries(folder)
        for path in paths:
            read_checked(path)
            # a crash between two renames leaves the newest file without its checksums
            if has_checksums and not _locate_crc(path).exists():
                if path != paths[-1]:
                    raise JobError(
                        f"{_locate_crc(path)}: Hadoop's checksum of {path.name} is gone; restore "
                        f"Spark's checkpoint and the log together, or {START_AFRESH}"
                    )
                _locate_crc(path).write_bytes(_compute_crc_file(path.read_bytes(), _NEW_CRC))


def fingerprint_newest(checkpoint: Path) -> dict[str, str]:
    """Return the digests of the newest offsets and of the newest entry of each source.

    While a batch runs, these are what it was planned by. Names begin with that of the checkpoint:
    a query that is changed continues in another one.
    """
    folders = [checkpoint / "offsets", *sorted(checkpoint.glob("sources/*"))]
    newest = [entries[-1] for folder in folders if (entries := _list_entries(folder))]
    return {
        path.relative_to(checkpoint.parent).as_posix(): _compute_digest(path) for path in newest
    }


def check_fingerprints(checkpoint: Path, digests: Mapping[str, str]) -> None:
    """Raise a JobError if a file of a checkpoint is not what it was when its digest was taken."""
    for name, digest in digests.items():
        path = checkpoint.parent / name
        if not path.is_relative_to(checkpoint):
            continue
        if not path.exists():
            # Spark deletes old files, long after it has written newer ones
            entries = _list_entries(path.parent)
            is_old = bool(entries) and _get_number(entries[-1]) > _get_number(path)
            problem = "" if is_old else "is gone"
        else:
            problem = "" if _compute_digest(path) == digest else "was changed or damaged"
        if problem:
            raise JobError(
                f"{path}: {problem}: the log has another digest of it; restore Spark's checkpoint "
                f"and the log together, or {START_AFRESH}"
            )


def _list_entries(folder: Path) -> list[Path]:
    """Return the files of a log of Spark's, by their numbers."""
    paths = [path for path in folder.glob("[0-9]*") if _LOG_NAME.fullmatch(path.name)]
    return sorted(paths, key=_get_number)


def _get_number(path: Path) -> int:
    return int(path.name.partition(".")[0])


def _compute_digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def list_planned_files(checkpoint: Path, source: int, batch: int) -> list[str]:
    """Return the paths of the files that a source has in a batch, sorted."""
    # a source's log has entries only for batches with new files, so it counts otherwise than Spark
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
        offset = read_checked(path).splitlines()[2 + source]  # after a version and metadata
        return -1 if offset in ("-", "null") else int(json.loads(offset)["logOffset"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise JobError(f"{path}: Spark's checkpoint cannot be read ({error})") from None


def _read_entries(folder: Path, number: int) -> list[dict[str, Any]]:
    """Return the files of one entry in a source's log; a compacted one holds earlier ones too."""
    for path in (folder / str(number), folder / f"{number}.compact"):
        try:
            # the first line is the version of the format
            lines = read_checked(path).splitlines()[1:]
        except FileNotFoundError:
            continue
        try:
            entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
            return [entry for entry in entries if entry["batchId"] == number]
        except (ValueError, LookupError, TypeError) as error:
            raise JobError(f"{path}: Spark's checkpoint cannot be read ({error})") from None
    raise JobError(f"{folder / str(number)}: is missing from Spark's checkpoint")


def read_checked(path: Path) -> str:
    """Return the text of a file of Spark, or raise a JobError if it does not fit its checksums."""
    content = path.read_bytes()
    try:
        checksums = _locate_crc(path).read_bytes()
    except FileNotFoundError:
        checksums = b""
    # none after a crash between two renames, and on file systems that keep them elsewhere
    if checksums and checksums != _compute_crc_file(content, checksums):
        raise JobError(
            f"{path}: was changed or damaged: Hadoop's checksum of it is another; restore Spark's "
            f"checkpoint and the log together, or {START_AFRESH}"
        )
    return content.decode("utf-8")


def _locate_crc(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _compute_crc_file(content: bytes, written: bytes) -> bytes:
    """Return what Hadoop writes next to a file, with as many bytes per checksum as were written."""
    _, size = _CRC_HEADER.unpack_from(written.ljust(_CRC_HEADER.size, b"\0"))
    step = size or len(content) or 1
    chunks = (content[start : start + step] for start in range(0, len(content), step))
    sums = b"".join(zlib.crc32(chunk).to_bytes(4, "big") for chunk in chunks)
    return _CRC_HEADER.pack(_CRC_MAGIC, size) + sums


def _parse_uri(uri: str) -> str:
    """Return the path in a URI, in which Spark escapes what URIs do not allow.

    >>> _parse_uri("file:///a%20b/c%25.jsonl")
    '/a b/c%.jsonl'
    """
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
