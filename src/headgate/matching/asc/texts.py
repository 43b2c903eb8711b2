"""A construct of text patterns: it has no regions, and makes a row for each text that it meets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.kernels.fill import fill_text_rows
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.encoding.text_search import TextSearch
from headgate.predicate import Column, Matches, Pattern

Codes = npt.NDArray[np.int32]
Bits = npt.NDArray[np.uint64]


class _Uses(NamedTuple):
    """Pattern p is used by `slots[start[p]:start[p + 1]]`, and refused by some of these."""

    start: Any
    slots: Any
    refuses: Any


class _Texts(NamedTuple):
    """Text t matches the patterns `numbers[start[t]:start[t + 1]]`."""

    start: Any
    numbers: Any


class _Prepared(NamedTuple):
    """What a batch needs to know: which slots ask for a pattern, which need one to match, and how
    many each needs."""

    search: TextSearch
    uses: _Uses
    needed: npt.NDArray[np.int64]
    asking: Bits
    needing: Bits


@dataclass(slots=True, eq=False)
class TextsOf:
    """The patterns on a column, by the slot that asks for them."""

    column: Column
    asked: dict[int, list[Matches]] = field(default_factory=dict)
    _known: _Prepared | None = None

    @property
    def name(self) -> str:
        return f"{self.column.name} LIKE"

    def add(self, slot: int, atom: Matches) -> None:
        self.asked.setdefault(slot, []).append(atom)
        self._known = None

    def drop(self, slot: int) -> None:
        if self.asked.pop(slot, None) is not None:
            self._known = None

    def texts(self, columns: EventColumns) -> int:
        """How many distinct texts a batch has."""
        return len(columns.present(self.column)[1].ranked or ())

    def rows_of(self, columns: EventColumns, bits: Bits, first: int, alive: Bits) -> Codes:
        """The row of each event of a batch, in rows from `first` on: that of NULL, then texts."""
        prepared = self._prepared(len(alive))
        present, coded = columns.present(self.column)
        bits[first, : len(alive)] = alive & ~prepared.asking
        silent = alive & ~prepared.needing
        texts = _Texts(*prepared.search.matched(coded.ranked or []))
        uses, needed = prepared.uses, prepared.needed
        fill_text_rows(bits, first + 1, len(alive), silent, needed, texts, uses)
        rows = np.full(len(columns), first, np.int32)
        rows[present] = coded.codes + (first + 1)
        return rows

    def _prepared(self, words: int) -> _Prepared:
        if self._known is None or len(self._known.asking) != words:
            users: dict[Pattern, list[tuple[int, bool]]] = {}
            needed = np.zeros(64 * words, np.int64)
            asking = np.zeros(64 * words, np.bool_)
            for slot, atoms in self.asked.items():
                asking[slot] = True
                needed[slot] = sum(not atom.negated for atom in atoms)
                for atom in atoms:
                    users.setdefault(atom.pattern, []).append((slot, atom.negated))
            flat = [use for uses in users.values() for use in uses]
            self._known = _Prepared(
                TextSearch(list(users)),
                _Uses(
                    np.cumsum([0, *map(len, users.values())], dtype=np.int64),
                    np.array([slot for slot, _ in flat], np.int64),
                    np.array([refuses for _, refuses in flat], np.bool_),
                ),
                needed,
                np.packbits(asking, bitorder="little").view(np.uint64),
                np.packbits(needed > 0, bitorder="little").view(np.uint64),
            )
        return self._known
