"""Which values of an attribute need not be told apart: its line of values, cut into cells.

"Characterizing Memory Requirements …", section 7.1: below all constants, each value between them,
above them all. Here a value is a cell of its own where an attribute takes finitely many, and a gap
between two constants is one cell where it takes infinitely many. Where such a gap is shared with
others that take finitely many values in it, those values cut it too, as constants do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal
from zoneinfo import ZoneInfo

from headgate.schema import (
    EVERYTHING,
    DecimalType,
    Double,
    Interval,
    Ordinal,
    String,
    Timestamp,
    Type,
    ValueSet,
    successor,
    union,
)
from headgate.schema.values import precedes
from headgate.stateful.analysis.case import Case
from headgate.stateful.analysis.lines import NumberAxis, TextAxis, TimeAxis

Cell = tuple[str, Any]
NULL_CELL: Cell = ("null", None)

MAX_LISTED_TEXTS = 1_000_000  # that are spelt out


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of ordinals that is cut in one way.

    `values`: each value is a cell. `gap`: all of them are one. `grid`: the values of a coarser type
    are cells, and so, where `between`, is what lies between two neighbours of them. Gaps with the
    same `mark` are one cell together.
    """

    span: Interval
    kind: Literal["values", "gap", "grid"]
    grid: Type | None = None
    between: bool = False
    mark: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of an attribute: what can take part at all, in ascending pieces."""

    type: Type
    possible: ValueSet
    pieces: tuple[Piece, ...]

    def cell(self, ordinal: Ordinal) -> Cell | None:
        """Return the cell of a value; None where no row with it can take part."""
        piece = _find_piece(self.pieces, ordinal)
        if piece is None or ordinal not in piece.span or ordinal not in self.possible:
            return None
        if piece.kind == "values":
            return "value", ordinal
        if piece.grid is None:
            return "gap", (piece if piece.mark is None else piece.mark, None)
        # Equal cuts say that the coarser type has no such value: it lies between two of the grid.
        low, above = piece.grid.place(_to_moment(self.type, ordinal))
        if low != above:
            return "value", ordinal
        return ("gap", (piece, low)) if piece.between else None

    def span(self, cell: Cell) -> ValueSet:
        """Return the values of a cell, as a condition would give them."""
        kind, at = cell
        if kind == "value":
            return ValueSet.of(Interval(at, successor(at)))
        piece, low = at
        if piece.grid is None:
            return ValueSet.of(piece.span)
        # `low` is the first grid value above the gap, and the gap begins behind the one before it.
        before = place(self.type, piece.grid, low - 1)[1]
        after = place(self.type, piece.grid, low)[0]
        return ValueSet.of(piece.span.intersection(Interval(before, after)))

    @property
    def values(self) -> int:
        """How many cells are single values."""
        return sum(self._count_cells(*each)[0] for each in self._clip())

    @property
    def gaps(self) -> int:
        """How many cells are gaps."""
        pieces = list(self._clip())
        marks = {piece.mark for piece, _ in pieces if piece.mark is not None}
        unmarked = (each for each in pieces if each[0].mark is None)
        return len(marks) + sum(self._count_cells(*each)[1] for each in unmarked)

    def find_longest(self) -> int | None:
        """Return the bytes of the longest text; None where texts are not finitely many."""
        texts = self.possible.finite_ordinals(MAX_LISTED_TEXTS)
        return None if texts is None else max((len(str(t).encode()) for t in texts), default=0)

    def clip_pieces(self, layer: int) -> list[Piece]:
        """Return the pieces without what is not possible, with marks that tell them apart."""
        return [
            replace(piece, span=interval, mark=(layer, piece.span))
            for piece, inside in self._clip()
            for interval in inside
        ]

    def _clip(self) -> Iterator[tuple[Piece, list[Interval]]]:
        """Yield every piece with what is possible in it; both ascend, and are walked together."""
        intervals = self.possible.intervals
        first = 0
        for piece in self.pieces:
            # Two pointers: neither goes back, as pieces and intervals ascend.
            while first < len(intervals) and _is_before(intervals[first], piece.span):
                first += 1
            last = first
            while last < len(intervals) and intervals[last].overlaps(piece.span):
                last += 1
            if first < last:
                yield piece, [piece.span.intersection(i) for i in intervals[first:last]]

    def _count_cells(self, piece: Piece, inside: list[Interval]) -> tuple[int, int]:
        inside = [_close_interval(interval, self.type) for interval in inside]
        if piece.kind == "values":
            return count_values(inside), 0
        if piece.grid is None:
            return 0, 1
        low, high = inside[0].low, inside[-1].high
        assert isinstance(low, int)
        assert isinstance(high, int)
        # Number of grid values in the range; between and around n of them lie n + 1 gaps.
        first = int(piece.grid.place(_to_moment(self.type, low))[0])
        past = int(piece.grid.place(_to_moment(self.type, high - 1))[1])
        return past - first, past - first + 1 if piece.between else 0


def _close_interval(interval: Interval, type_: Type) -> Interval:
    """Give an interval an end at the limit of its type where it has none."""
    last = type_.maximum
    low = type_.minimum if interval.low is None else interval.low
    return Interval(
        low, successor(last) if interval.high is None and last is not None else interval.high
    )


def _is_before(first: Interval, second: Interval) -> bool:
    """Return whether an interval ends before another begins."""
    high, low = first.high, second.low
    return high is not None and low is not None and not precedes(low, high)


def count_values(intervals: Iterable[Interval]) -> int:
    """Return how many values there are in intervals that hold finitely many."""
    total = 0
    for interval in intervals:
        if isinstance(interval.low, int) and isinstance(interval.high, int):
            total += interval.high - interval.low
        else:
            total += len(ValueSet.of(interval).finite_ordinals(MAX_LISTED_TEXTS) or ())
    return total


def make_single_cell(type_: Type) -> Cells:
    """Return one cell: an attribute of which nothing is asked."""
    return Cells(type_, EVERYTHING, (Piece(Interval(None, None), "gap"),))


def overlay_cells(type_: Type, layers: Iterable[Cells]) -> Cells:
    """Return cells so fine that each lies within a cell, or outside, of every layer."""
    all_layers = tuple(layers)
    possible = union(layer.possible for layer in all_layers)
    pieces = [layer.clip_pieces(number) for number, layer in enumerate(all_layers)]
    return Cells(type_, possible, tuple(overlay(pieces)))


def overlay(layers: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Cut pieces wherever one of a layer begins or ends; the finest way of cutting wins.

    The pieces of a layer are ascending and do not overlap.
    """
    # No piece begins or ends between two neighbouring ends, so one look at `low` is enough.
    spans = [piece.span for layer in layers for piece in layer]
    ends: set[Any] = {end for span in spans for end in (span.low, span.high) if end is not None}
    overlaid: list[Piece] = []
    for low, high in pairwise([None, *sorted(ends), None]):
        span = Interval(low, high)
        nearest = (_find_piece(layer, low) for layer in layers)
        over = [piece for piece in nearest if piece is not None and piece.span.covers(span)]
        if over:
            overlaid.append(_choose_finest(span, over))
    return overlaid


def _find_piece(pieces: Sequence[Piece], low: Ordinal | None) -> Piece | None:
    """Return the last piece that begins at an ordinal or before it."""
    start = _make_sort_key(low)
    following = bisect_right(pieces, start, key=lambda piece: _make_sort_key(piece.span.low))
    return pieces[following - 1] if following else None


def _choose_finest(span: Interval, over: list[Piece]) -> Piece:
    # Single values are finest, then the finest grid, then gaps.
    if any(piece.kind == "values" for piece in over):
        return Piece(span, "values")
    grids = [piece.grid for piece in over if piece.grid is not None]
    if not grids:
        # The marks of all layers together: gaps are one cell only if they are in every layer.
        marks = tuple(piece.mark for piece in over)
        return Piece(span, "gap", mark=None if None in marks else marks)
    between = any(piece.kind == "gap" or piece.between for piece in over)
    return Piece(span, "grid", max(grids, key=lambda grid: count_digits(grid) or 0), between)


def count_digits(type_: Type) -> int | None:
    """Return how fine the grid of a type is, within its family; None where it is dense."""
    if isinstance(type_, Double | String):
        return None
    if isinstance(type_, DecimalType):
        return type_.scale
    return int(isinstance(type_, Timestamp))


def place(type_: Type, other: Type, ordinal: Ordinal) -> tuple[Any, Any]:
    """Return where a value of another type lies among the ordinals of this one (`Type.place`)."""
    return type_.place(_to_moment(other, ordinal))


def get_line(case: Case, number: int) -> int:
    """Return the line of a case's variable."""
    return case.query.variables[number].line


def find_cut(case: Case, number: int, constant: int) -> tuple[Ordinal, Ordinal]:
    """Return where a constant of a line cuts the ordinals of a column on it."""
    type_ = case.columns[number].type
    axis = case.axes[get_line(case, number)]
    if isinstance(axis, NumberAxis):
        return type_.place(axis.constants[constant])
    if isinstance(axis, TimeAxis):
        return place(type_, axis.zone, axis.constants[constant])
    if isinstance(axis, TextAxis):
        return type_.place(axis.constants[constant])
    return constant, constant + 1


def _to_moment(type_: Type, ordinal: Ordinal) -> Any:
    """Return the value of an ordinal, a moment by the clock of its zone: there its date begins."""
    value = type_.value(ordinal)
    if isinstance(value, datetime) and isinstance(type_, Timestamp) and type_.zone != "UTC":
        return value.astimezone(ZoneInfo(type_.zone))
    return value


def _make_sort_key(ordinal: Ordinal | None) -> tuple[bool, Any]:
    return ordinal is not None, ordinal
