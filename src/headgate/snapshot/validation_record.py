"""Remember which segments were validated, in this process and on this machine.

A segment is known by the checksum of its content, so what was validated once is right wherever it
lies. Large segments leave a mark in the user's cache, an empty file, so that other workers on the
machine need not validate them again. Only this user can write there: whoever can leave a mark could
also run code.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version as package_version
from importlib.resources import files
from pathlib import Path

from headgate.snapshot.manifest import Entry
from headgate.user_cache import is_unused, open_user_cache

MAX_REMEMBERED = 1_000  # segments, in this process
MIN_MARKED_BYTES = 1 << 20  # of a file; a smaller one is validated in no time
DIRECTORY = "validated"

_validated: dict[str, None] = {}


def was_validated(entry: Entry, schema: str) -> bool:
    """Return whether the arrays of a segment were validated against a schema before."""
    key = _make_key(entry, schema)
    if key in _validated:
        return True
    directory = open_user_cache(DIRECTORY) if entry.size >= MIN_MARKED_BYTES else None
    if directory is None or not (directory / key).exists():
        return False
    # marks it as used, for `_delete_unused`
    with suppress(OSError):
        (directory / key).touch()
    return True


def record_validation(entry: Entry, schema: str) -> None:
    """Remember that nothing is wrong with the arrays of a segment."""
    key = _make_key(entry, schema)
    _validated[key] = None
    # the one that was validated first is forgotten first
    while len(_validated) > MAX_REMEMBERED:
        del _validated[next(iter(_validated))]
    directory = open_user_cache(DIRECTORY) if entry.size >= MIN_MARKED_BYTES else None
    if directory is not None:
        # a full disk: then the next process validates again
        with suppress(OSError):
            (directory / key).touch()
        _delete_unused(directory)


def _make_key(entry: Entry, schema: str) -> str:
    parts = (_describe_rules(), entry.kind, entry.blake2b, schema)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


@cache
def _describe_rules() -> str:
    """Return what tells the rules of this version from those of others."""
    source = files("headgate.snapshot.arrays").joinpath("validate.py").read_bytes()
    return f"{package_version('headgate')} {hashlib.blake2b(source, digest_size=16).hexdigest()}"


@cache
def _delete_unused(directory: Path) -> None:
    """Delete the marks that were not used for a month, once in a process."""
    for mark in directory.iterdir():
        if is_unused(mark):
            mark.unlink(missing_ok=True)
