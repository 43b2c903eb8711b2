"""Remember which segments were validated in this process, and how a validated one is known.

A segment is known by the checksum of its content, so what was validated once is right wherever it
lies. Other processes on the machine know it by the copy that was made of it (`machine_cache`).
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version as package_version
from importlib.resources import files

from headgate.snapshot.manifest import Entry

MAX_REMEMBERED = 1_000  # segments, in this process

_validated: dict[str, None] = {}


def was_validated(entry: Entry, schema: str) -> bool:
    """Return whether the arrays of a segment were validated against a schema before."""
    return make_validation_key(entry, schema) in _validated


def record_validation(entry: Entry, schema: str) -> None:
    """Remember that nothing is wrong with the arrays of a segment."""
    _validated[make_validation_key(entry, schema)] = None
    # the one that was validated first is forgotten first
    while len(_validated) > MAX_REMEMBERED:
        del _validated[next(iter(_validated))]


def make_validation_key(entry: Entry, schema: str) -> str:
    """Return what tells a segment and the rules that it keeps to from all others."""
    parts = (_describe_rules(), entry.kind, entry.blake2b, schema)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


@cache
def _describe_rules() -> str:
    """Return what tells the rules of this version from those of others."""
    digest = hashlib.blake2b(digest_size=16)
    for module in ("arrays/validate.py", "segments.py", "files.py"):
        digest.update(files("headgate.snapshot").joinpath(module).read_bytes())
    return f"{package_version('headgate')} {digest.hexdigest()}"
