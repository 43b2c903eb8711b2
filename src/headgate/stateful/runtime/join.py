"""The join of few rows: new ones of one stream with what is kept of the others.

Every comparison between two streams is a range of the sorted other side, so candidates are counted
before they are spelt out, the comparison that leaves the fewest goes first, and what would be too
many at once is taken in halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events.columns import CodedColumn, Mask, encode_column, rank_doubles
from headgate.predicate import Column, Compare, Operator
from headgate.predicate.atoms import MIRROR
from headgate.predicate.comparison import OPERATOR_TESTS
from headgate.schema import Double, Integer, Timestamp, Type
from headgate.stateful.analysis.synopses.extremes import position
from headgate.stateful.runtime.grouping import Numbers


@dataclass(frozen=True, slots=True, eq=False)
class OrderCodes:
    """The codes of a column's values, in the order of the values; those of NULLs mean nothing."""

    codes: Numbers
    valid: Mask | None


def encode_in_one_order(
    columns: Sequence[tuple[Column, pa.Array[Any]]], zone: Timestamp
) -> list[OrderCodes]:
    """Encode columns by the one order of all their values, compared exactly.

    Values of different types are ranked one by one, so these should be few; INT with DOUBLE, and
    columns of one type, are coded as arrays.
    """
    types = {column.type for column, _ in columns}
    if len(types) == 1:
        return _encode_one_type([array for _, array in columns], columns[0][0].type)
    if all(isinstance(each, Double) or each == Integer(32) for each in types):
        return [_encode_as_double(array, column.type) for column, array in columns]
    return _rank_values([encode_column(array, column.type) for column, array in columns], zone)


def _encode_one_type(arrays: list[pa.Array[Any]], type_: Type) -> list[OrderCodes]:
    coded = encode_column(pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0], type_)
    # Codes of one encoding are comparable, so the arrays are encoded as one and cut apart again.
    ends = np.cumsum([len(array) for array in arrays]).tolist()
    starts = [0, *ends[:-1]]
    return [
        OrderCodes(coded.codes[start:end], None if coded.valid is None else coded.valid[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]


def _encode_as_double(array: pa.Array[Any], type_: Type) -> OrderCodes:
    coded = encode_column(array, type_)
    if isinstance(type_, Double):
        return OrderCodes(coded.codes, coded.valid)
    return OrderCodes(rank_doubles(coded.codes.astype(np.float64)), coded.valid)


def _rank_values(columns: list[CodedColumn], zone: Timestamp) -> list[OrderCodes]:
    # Exact comparison is slow, so each distinct value is ranked once.
    distinct = [np.unique(column.codes, return_inverse=True) for column in columns]
    keys = []
    for column, (codes, _) in zip(columns, distinct, strict=True):
        ordinals = codes.tolist() if column.ranked is None else column.decode_ranks(codes)
        keys.append([position(column.type.value(ordinal), zone) for ordinal in ordinals])
    # One order of all values of all columns: equal values of different types share a rank.
    order = sorted({key for each in keys for key in each})
    rank = {key: number for number, key in enumerate(order)}
    encoded = []
    for column, (codes, places), each in zip(columns, distinct, keys, strict=True):
        ranks = np.zeros(max(len(codes), 1), np.int64)
        ranks[: len(each)] = [rank[key] for key in each]
        encoded.append(OrderCodes(ranks[places], column.valid))
    return encoded


Combined = dict[int, Numbers]
"""For each source the row that it gives to each combination."""

MAX_COMBINATIONS_AT_ONCE = 1 << 22  # combinations


@dataclass(frozen=True, slots=True)
class Tie:
    """A comparison between two streams, seen from one of them."""

    source: int
    column: Column
    operator: Operator
    other: int
    other_column: Column

    def mirror(self) -> Tie:
        """Return the same comparison seen from the other stream."""
        mirrored = MIRROR[self.operator]
        return Tie(self.other, self.other_column, mirrored, self.source, self.column)


class ComparedColumns:
    """The values of all compared columns as codes; columns that are compared share one order."""

    def __init__(
        self,
        ties: Sequence[Compare],
        arrays: Mapping[Column, pa.Array[Any]],
        zone: Timestamp,
    ) -> None:
        self._of: dict[Column, OrderCodes] = {}
        for together in group_compared_columns(ties):
            columns = [(column, arrays[column]) for column in together]
            self._of |= dict(zip(together, encode_in_one_order(columns, zone), strict=True))

    def codes(self, column: Column) -> Numbers:
        """Return the codes of a column."""
        return self._of[column].codes

    def has_values(self, column: Column) -> Mask | None:
        """Return where a column is not NULL; None where it never is."""
        return self._of[column].valid


def group_compared_columns(ties: Sequence[Compare]) -> list[list[Column]]:
    """Group the columns that are compared with one another, be it through others."""
    groups: list[list[Column]] = []
    for tie in ties:
        # A comparison merges the groups of its two sides.
        met = [group for group in groups if tie.left in group or tie.right in group]
        merged = list(dict.fromkeys([*(c for group in met for c in group), tie.left, tie.right]))
        groups = [group for group in groups if group not in met] + [merged]
    return groups


def join_rows(
    first: int, rows: Mapping[int, Numbers], ties: Sequence[Tie], lines: ComparedColumns
) -> Iterator[Combined]:
    """Yield all combinations of a row of each source that fulfil the ties, from `first` on."""
    usable = {source: _drop_nulls(source, numbers, ties, lines) for source, numbers in rows.items()}
    yield from _extend_combinations({first: usable[first]}, usable, ties, lines)


def _drop_nulls(source: int, rows: Numbers, ties: Sequence[Tie], lines: ComparedColumns) -> Numbers:
    """Keep the rows that have a value wherever one is compared."""
    sides = (side for tie in ties for side in (tie, tie.mirror()) if side.source == source)
    for side in sides:
        valid = lines.has_values(side.column)
        if valid is not None:
            rows = rows[valid[rows]]
    return rows


def _extend_combinations(
    combined: Combined, rows: Mapping[int, Numbers], ties: Sequence[Tie], lines: ComparedColumns
) -> Iterator[Combined]:
    size = len(next(iter(combined.values())))
    left = [source for source in rows if source not in combined]
    if not left or not size:
        if size:
            yield combined
        return
    # Next comes a source with an equality to those combined, then one with any tie, then the rest.
    source = min(left, key=lambda each: _rank_source(each, combined, ties))
    leading = [t for t in _list_leading_ties(combined, ties) if t.other == source]
    best = _choose_ranges(combined, rows[source], leading, lines)
    # Too many candidates at once: each half of the combinations is extended by itself.
    if best.total > MAX_COMBINATIONS_AT_ONCE and size > 1:
        for half in (slice(0, size // 2), slice(size // 2, size)):
            part = {each: numbers[half] for each, numbers in combined.items()}
            yield from _extend_combinations(part, rows, ties, lines)
        return
    at, partners = best.pairs()
    longer = {each: numbers[at] for each, numbers in combined.items()} | {source: partners}
    # The chosen tie holds by construction; the others are tested on the candidates.
    keep = np.ones(len(partners), np.bool_)
    for tie in leading:
        if tie is not best.tie:
            keep &= _test_tie(tie, longer, lines)
    yield from _extend_combinations({s: n[keep] for s, n in longer.items()}, rows, ties, lines)


def _rank_source(source: int, combined: Combined, ties: Sequence[Tie]) -> int:
    operators = {t.operator for t in _list_leading_ties(combined, ties) if t.other == source}
    return 0 if "=" in operators else 1 if operators else 2


def _list_leading_ties(combined: Combined, ties: Sequence[Tie]) -> list[Tie]:
    """Return the ties that lead from what is combined to what is not."""
    both = (side for tie in ties for side in (tie, tie.mirror()))
    return [side for side in both if side.source in combined and side.other not in combined]


@dataclass(frozen=True, slots=True, eq=False)
class _Ranges:
    """A range of the other side's rows, in their order, for each combination."""

    tie: Tie | None
    order: Numbers
    start: Numbers
    stop: Numbers

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return int((self.stop - self.start).sum())

    def pairs(self) -> tuple[Numbers, Numbers]:
        """Return the combination and the row of the other side of every pair, as two arrays."""
        lengths = self.stop - self.start
        # `at[p]` is the combination of pair p; `before[p]` is how many pairs earlier ones have.
        at = np.repeat(np.arange(len(lengths)), lengths)
        before = np.repeat(np.cumsum(lengths) - lengths, lengths)
        return at, self.order[np.arange(len(at)) - before + np.repeat(self.start, lengths)]


def _choose_ranges(
    combined: Combined, rows: Numbers, leading: Sequence[Tie], lines: ComparedColumns
) -> _Ranges:
    size = len(next(iter(combined.values())))
    ranges = [_find_ranges(tie, combined, rows, lines) for tie in leading if tie.operator != "<>"]
    # `<>` is no range. Without any other tie, each combination meets all rows.
    everything = _Ranges(None, rows, np.zeros(size, np.int64), np.full(size, len(rows)))
    return min(ranges, key=lambda each: each.total, default=everything)


def _find_ranges(tie: Tie, combined: Combined, rows: Numbers, lines: ComparedColumns) -> _Ranges:
    """Return the rows of the other side that a tie lets each combination have."""
    left = lines.codes(tie.column)[combined[tie.source]]
    right = lines.codes(tie.other_column)[rows]
    order = np.argsort(right, kind="stable")
    ascending = right[order]
    # Combination i may have the rows order[start[i]:stop[i]].
    start, stop = np.zeros(len(left), np.int64), np.full(len(left), len(rows))
    if tie.operator in ("<", "=", "<="):
        start = np.searchsorted(ascending, left, "right" if tie.operator == "<" else "left")
    if tie.operator in (">", "=", ">="):
        stop = np.searchsorted(ascending, left, "left" if tie.operator == ">" else "right")
    return _Ranges(tie, rows[order], start, stop)


def _test_tie(tie: Tie, combined: Combined, lines: ComparedColumns) -> Mask:
    left = lines.codes(tie.column)[combined[tie.source]]
    right = lines.codes(tie.other_column)[combined[tie.other]]
    compare = OPERATOR_TESTS[tie.operator]
    fulfilled: Mask = compare(left, right)  # type: ignore[arg-type,assignment]
    return fulfilled


def match_ties(combined: Combined, ties: Sequence[Tie], lines: ComparedColumns) -> Mask:
    """Tell which combinations fulfil all ties."""
    size = len(next(iter(combined.values())))
    keep = np.ones(size, np.bool_)
    for tie in ties:
        keep &= _test_tie(tie, combined, lines)
        for side in (tie, tie.mirror()):
            valid = lines.has_values(side.column)
            if valid is not None:
                keep &= valid[combined[side.source]]
    return keep
