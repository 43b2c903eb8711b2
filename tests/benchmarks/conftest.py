"""What all tests of the benchmarks share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is collected before turns so that none pays for it; here time is not measured."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
