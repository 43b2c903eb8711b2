"""Golden files: lines of `input -> expected`; `#` begins a comment."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def golden(name: str) -> list[tuple[str, str]]:
    """The pairs of a golden file."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    pairs = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            given, _, expected = line.partition(" -> ")
            pairs.append((given.strip(), expected.strip()))
    return pairs
