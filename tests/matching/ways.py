"""The ways in which `keyed` can match conjunctions of ranges, whatever it would choose itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headgate.matching.keyed import build

# What costs so much is never chosen, and what competes with it always.
WAYS: dict[str, dict[str, float]] = {
    "chosen": {},
    "grid": {"CANDIDATE_NS": 1e300},
    "clusters": {"GRID_COLUMN_NS": 1e300},
}


@contextmanager
def forced_way(way: str) -> Iterator[None]:
    """From now on indexes are built in that way."""
    with pytest.MonkeyPatch.context() as patch:
        for name, cost in WAYS[way].items():
            patch.setattr(build, name, cost)
        yield
