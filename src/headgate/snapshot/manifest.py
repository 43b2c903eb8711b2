"""Read and write the manifest, which says what a snapshot holds and how to verify each file.

It is JSON, and the same set gives the same bytes: there is no time in it.

    {
      "format": 1,
      "written_by": "headgate 0.1.0",
      "version": 7,                      the publisher's number, or the hash of the set
      "queries": 20000,
      "schema": "CREATE STREAM …",
      "segments": [
        {"kind": "base", "file": "0-base.arrow", "count": 20000, "size": 4711, "blake2b": "…"},
        {"kind": "tombstones", "file": "1-tombstones.arrow", …},
        {"kind": "delta", "file": "2-delta.arrow", …}
      ],
      "checksum": "…"                    of all the above
    }
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any, TypeVar

from headgate.errors import SnapshotError, UsageError
from headgate.schema import Schema
from headgate.snapshot.segments import KINDS
from headgate.sql import Rejected, Script, render_schema

MANIFEST_NAME = "manifest.json"
FORMAT_VERSION = 1
MAX_MANIFEST_BYTES = 1 << 26

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A segment as the manifest lists it; `count` is of queries, or of ids for tombstones."""

    kind: str
    file: str
    count: int
    size: int
    blake2b: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a snapshot: version, number of queries, schema and segments."""

    version: int | str
    queries: int
    schema: str
    segments: tuple[Entry, ...]


def file_name(place: int, kind: str) -> str:
    """Return the name of the segment at a place of the list; no other name is accepted.

    >>> file_name(0, "base")
    '0-base.arrow'
    """
    return f"{place}-{kind}.arrow"


def render_manifest(manifest: Manifest) -> str:
    """Return the manifest as JSON."""
    content = {
        "format": FORMAT_VERSION,
        "written_by": f"headgate {package_version('headgate')}",
        **asdict(manifest),
    }
    return json.dumps(content | {"checksum": _compute_checksum(content)}, indent=1) + "\n"


def _compute_checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a snapshot; raise SnapshotError if anything in it is wrong."""
    path = directory / MANIFEST_NAME
    try:
        return _parse_manifest(_read_content(path))
    except FileNotFoundError:
        raise SnapshotError(f"{path}: is missing; there is no snapshot here") from None
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read ({error.strerror})") from None
    except _ManifestError as wrong:
        raise SnapshotError(f"{path}: {wrong}") from None


def fingerprint(directory: Path) -> str:
    """Return a hash that tells a snapshot from any other, at the price of one small file."""
    try:
        return hashlib.blake2b((directory / MANIFEST_NAME).read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise SnapshotError(
            f"{directory / MANIFEST_NAME}: cannot be read ({error.strerror})"
        ) from None


class _ManifestError(ValueError):
    """An error in a manifest, without the name of its file."""


def _read_content(path: Path) -> dict[str, Any]:
    # before it is read, as anybody may have put the file there
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise _ManifestError(f"larger than {MAX_MANIFEST_BYTES:,} bytes")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _ManifestError(f"not JSON ({error})") from None
    if not isinstance(content, dict):
        raise _ManifestError("not a JSON object")
    return content


def _parse_manifest(content: dict[str, Any]) -> Manifest:
    format_ = _get_field(content, "format", int)
    if format_ != FORMAT_VERSION:
        hint = "update Headgate" if format_ > FORMAT_VERSION else "publish the queries again"
        raise _ManifestError(f"format {format_} is not known here, only {FORMAT_VERSION}; {hint}")
    # after the format: another format may compute its checksum in another way
    expected = content.pop("checksum", None)
    if expected != _compute_checksum(content):
        raise _ManifestError("its checksum is another; it was changed or damaged")
    version = content.get("version")
    if type(version) is not int and type(version) is not str:
        raise _ManifestError("`version` is neither a number nor a hash")
    # in order: a base, then tombstones and deltas
    entries = _get_field(content, "segments", list)
    segments = tuple(_parse_entry(place, entry) for place, entry in enumerate(entries))
    if [entry.kind for entry in segments].count("base") != 1 or segments[0].kind != "base":
        raise _ManifestError("its segments do not begin with their only base")
    schema = _get_field(content, "schema", str)
    return Manifest(version, _get_count(content, "queries"), schema, segments)


def _parse_entry(place: int, entry: object) -> Entry:
    if not isinstance(entry, dict):
        raise _ManifestError(f"segment {place} is not an object")
    kind, file = _get_field(entry, "kind", str), _get_field(entry, "file", str)
    if kind not in KINDS:
        raise _ManifestError(f"`{kind}` is not a kind of segment")
    # so that no manifest can name a file outside of its directory
    if file != file_name(place, kind):
        raise _ManifestError(
            f"`{file}` is not a file of this snapshot; it should be {place}-{kind}.arrow"
        )
    count, size = _get_count(entry, "count"), _get_count(entry, "size")
    return Entry(kind, file, count, size, _get_field(entry, "blake2b", str))


def _get_count(content: dict[str, Any], key: str) -> int:
    value = _get_field(content, key, int)
    if not 0 <= value < 1 << 62:
        raise _ManifestError(f"`{key}` is {value}, which cannot be")
    return value


def _get_field(content: dict[str, Any], key: str, kind: type[T]) -> T:
    value = content.get(key)
    # not `isinstance`, by which True would be a number
    if type(value) is not kind:
        raise _ManifestError(f"`{key}` is missing or not of type {kind.__name__}")
    return value


def schema_to_sql(schema: Schema) -> str:
    """Return a schema as SQL; raise if it would be read back differently."""
    text = render_schema(schema)
    # a schema that was made by hand may say what SQL cannot
    if read_schema(text) != schema:
        raise UsageError("this schema cannot be stored: it would be read back differently")
    return text


@lru_cache(maxsize=100)
def read_schema(text: str) -> Schema:
    """Return the schema that statements declare; raise SqlError if they are wrong."""
    script = Script(Schema())
    for statement in script.read(text):
        if isinstance(statement, Rejected):
            raise statement.error
    return script.schema
