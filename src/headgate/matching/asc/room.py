"""How many rows conjunctions need, before any is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.matching.asc.subjects import sides
from headgate.predicate import Compare, Matches, Within
from headgate.predicate.normal_form import Conjunction

OTHERS = ("null", "below", "equal", "above")  # rows of a construct beside those of cuts, at most

Key = tuple[Any, ...]


class Room:
    """Counts rows: one for each place where a set of values changes, and a few for a construct."""

    def __init__(self) -> None:
        self._rows: dict[Key, set[Any]] = {}  # by construct
        self.rows = 0

    def note(self, conjunctions: Sequence[Conjunction]) -> None:
        """These will need theirs."""
        for key, rows in _needed(conjunctions).items():
            known = self._rows.setdefault(key, set())
            before = len(known)
            known |= rows
            self.rows += len(known) - before

    def more_for(self, conjunctions: Sequence[Conjunction]) -> int:
        """How many rows more these would need."""
        needed = _needed(conjunctions).items()
        return sum(len(rows - self._rows.get(key, set())) for key, rows in needed)


def key_of(atom: Any) -> Key:
    """What tells the construct of an atom from others."""
    if isinstance(atom, Compare):
        left, right, _ = sides(atom)
        return left.name, right.name
    return isinstance(atom, Matches), atom.column.name


def _needed(conjunctions: Sequence[Conjunction]) -> dict[Key, set[Any]]:
    needed: dict[Key, set[Any]] = {}
    for atom in (atom for one in conjunctions for atom in one):
        rows = needed.setdefault(key_of(atom), set(OTHERS))
        if isinstance(atom, Within):
            rows.update(atom.values.cuts)
    return needed
