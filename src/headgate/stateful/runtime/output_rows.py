"""The rows that a running query gives: those of a join or DISTINCT, and groups with aggregates.

Aggregates come from sums and counts, or from values and how often each occurs. Sums are exact: the
order in which doubles arrive does not matter. Infinities and NaN, once seen, decide the sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import Overflow, UsageError
from headgate.events.columns import encode_column
from headgate.predicate import Column
from headgate.queries import Aggregate, Query
from headgate.schema import DecimalType, Double, Integer
from headgate.stateful.analysis.synopses.plan import needs_values
from headgate.stateful.runtime.answer_state import AnswerState, group_by_values
from headgate.stateful.runtime.exact_sums import Sums, get_total, regroup
from headgate.stateful.runtime.grouping import Numbers
from headgate.stateful.runtime.weighted_rows import WeightedRows, add_counts

MULTIPLICITY = "multiplicity"
MAX_EXPANDED_ROWS = 100_000_000


@dataclass(slots=True)
class Total:
    """The exact sum of the values that are not NULL, and their number."""

    finite: Fraction = Fraction()
    special: float | None = None
    count: int = 0

    def add(self, value: Any, times: int = 1) -> None:
        if value is None:
            return
        self.count += times
        if isinstance(value, float) and not isfinite(value):
            self.special = value if self.special is None else self.special + value
        elif hasattr(value, "as_integer_ratio"):
            self.finite += Fraction(value) * times


def aggregate_total(aggregate: Aggregate, total: Total) -> Hashable:
    """Return COUNT, SUM or AVG from a total; NaN as a text, since it is not equal to itself."""
    if aggregate.function == "COUNT":
        return total.count
    if not total.count:
        return None
    if total.special is not None:
        return "NaN" if total.special != total.special else total.special
    return total.finite / total.count if aggregate.function == "AVG" else total.finite


def aggregate_values(aggregate: Aggregate, column: Column, values: Counter[Any]) -> Hashable:
    """Return an aggregate from values, by ordinal, and how often each occurs."""
    if aggregate.function == "COUNT":
        return len(values) if aggregate.distinct else sum(values.values())
    if not values:
        return None
    if aggregate.function in ("MIN", "MAX"):
        least: Hashable = min(values) if aggregate.function == "MIN" else max(values)
        return least
    total = Total()
    if aggregate.function == "MEDIAN":
        count = len(values) if aggregate.distinct else sum(values.values())
        ordered = sorted(values)
        # The two middle places, which are one where the count is odd.
        for place in ((count - 1) // 2, count // 2):
            total.add(column.type.value(_value_at(ordered, values, place, each=aggregate.distinct)))
        return aggregate_total(Aggregate("AVG"), total)
    for ordinal, times in values.items():
        total.add(column.type.value(ordinal), 1 if aggregate.distinct else times)
    return aggregate_total(aggregate, total)


def _value_at(ordered: list[Any], values: Counter[Any], place: int, *, each: bool) -> Any:
    """Return the value at a place of the sorted bag, or set, of values."""
    for ordinal in ordered:
        place -= 1 if each else values[ordinal]
        if place < 0:
            return ordinal
    raise IndexError(place)


def make_output_rows(
    query: Query, columns: Sequence[Column], rows: WeightedRows, *, expand: bool
) -> pa.Table:
    """Make the table of a join, with multiplicities or expanded, or of DISTINCT."""
    expressions = [o.expression for o in query.outputs] or list(columns)
    arrays: list[pa.Array[Any]] = [rows.values[c] for c in expressions if isinstance(c, Column)]
    names = list_output_names(query, columns)
    if query.distinct:
        return pa.Table.from_arrays(arrays, names)
    if expand:
        # Summed as Python's integers, since the sum of counts may exceed 64 bits.
        if int(rows.count.sum(dtype=object)) > MAX_EXPANDED_ROWS:
            raise Overflow(
                f"`{query.id}` gives more than {MAX_EXPANDED_ROWS:,} rows at once; "
                "take them with their multiplicity, or push less at once"
            )
        times = np.repeat(np.arange(len(rows)), rows.count)
        return pa.Table.from_arrays([array.take(times) for array in arrays], names)
    if MULTIPLICITY in map(str.lower, names):
        raise UsageError(
            f"`{query.id}` has a column `{MULTIPLICITY}`, which is how often a row is there; "
            "give it another name with AS, or expand rows"
        )
    return pa.Table.from_arrays([*arrays, pa.array(rows.count)], [*names, MULTIPLICITY])


def list_output_names(query: Query, columns: Sequence[Column]) -> list[str]:
    """Name each column; of `*`, with its stream where two have the same name."""
    if query.outputs:
        return [output.name for output in query.outputs]
    times = Counter(column.name.lower() for column in columns)
    return [c.key if times[c.name.lower()] > 1 else c.name for c in columns]


Parts = Sequence[tuple[AnswerState, WeightedRows]]


def make_group_rows(query: Query, parts: Parts, changed: Sequence[WeightedRows] | None) -> pa.Table:
    """Make the table of groups with their aggregates: all groups, or those that changed."""
    by = parts[0][0].by
    tables = [state for _, state in parts]
    # States and changes are grouped together, so that a group has one number in all of them.
    every = [*tables, *(changed or ())]
    values = {c: pa.concat_arrays([table.values[c] for table in every]) for c in by}
    ends = np.cumsum([len(table) for table in every]).tolist()
    groups = group_by_values(values, by, ends[-1] if ends else 0)
    # Without GROUP BY there is one group, even when there are no rows.
    size = groups.size if by else 1
    own = [groups.of[end - len(t) : end] for end, t in zip(ends, every, strict=True)]
    # `own[t]` has the group of each row of table t; `shown` are the groups to give, in order.
    shown = np.arange(size)
    if changed is not None:
        shown = np.unique(np.concatenate([np.empty(0, np.int64), *own[len(tables) :]]))
    arrays: dict[Column | Aggregate, pa.Array[Any]] = {
        c: values[c].take(groups.first[shown]) for c in by
    }
    # `place[g]` is the row of group g in the output, -1 for a group that is not given.
    place = np.full(size, -1)
    place[shown] = np.arange(len(shown))
    # `own` goes on with the changes behind the states, which is why the lengths may differ.
    for (remembered, state), of in zip(parts, own, strict=False):
        rows = np.flatnonzero(place[of] >= 0)
        chosen, at = state.at(rows), place[of[rows]]
        for aggregate in remembered.part.aggregates:
            results = _compute_results(query, remembered, aggregate, chosen, at, len(shown))
            arrays[aggregate] = pa.array(results, aggregate.type.arrow)
    outputs = [(o.name, arrays[o.expression]) for o in query.outputs]
    return pa.Table.from_arrays([a for _, a in outputs], [name for name, _ in outputs])


def _compute_results(
    query: Query,
    remembered: AnswerState,
    aggregate: Aggregate,
    rows: WeightedRows,
    groups: Numbers,
    size: int,
) -> list[Any]:
    column = aggregate.argument
    if column is None:
        return list(add_counts(rows.count, groups, size).tolist())
    if aggregate == remembered.part.extremum or needs_values(query, aggregate):
        return [
            _to_type(aggregate, each) for each in _aggregate_values(aggregate, rows, groups, size)
        ]
    sums = regroup(rows.sums[column], groups, size)
    return [_to_type(aggregate, _read_total(aggregate, sums, at)) for at in range(size)]


def _aggregate_values(
    aggregate: Aggregate, rows: WeightedRows, groups: Numbers, size: int
) -> list[Hashable]:
    """Aggregate the values of each group by how often each occurs."""
    column = aggregate.argument
    assert column is not None
    coded = encode_column(rows.values[column], column.type)
    valid = np.ones(len(rows), np.bool_) if coded.valid is None else coded.valid
    ordinals = coded.codes.tolist() if coded.ranked is None else coded.decode_ranks(coded.codes)
    # For each group, how often each ordinal occurs in it.
    values: list[Counter[Any]] = [Counter() for _ in range(size)]
    for at in np.flatnonzero(valid).tolist():
        values[groups[at]][ordinals[at]] += int(rows.count[at])
    return [aggregate_values(aggregate, column, each) for each in values]


def _read_total(aggregate: Aggregate, sums: Sums, at: int) -> Hashable:
    assert aggregate.argument is not None
    if aggregate.function == "COUNT":
        return int(sums.count[at])
    total = get_total(sums, at, aggregate.argument.type)
    if total is None or aggregate.function == "SUM" or isinstance(total, float):
        return total
    return total / int(sums.count[at])


def _to_type(aggregate: Aggregate, result: Any) -> Any:
    """Convert a result to its type; an Overflow where the type cannot hold it."""
    if result is None:
        return None
    type_ = aggregate.type
    if aggregate.function in ("MIN", "MAX"):
        return type_.value(result)
    if isinstance(type_, Integer):
        if not type_.fits(int(result)):
            raise Overflow(f"{aggregate.function} is {int(result)}, beyond a {type_}")
        return int(result)
    if isinstance(type_, Double):
        return _to_double(result)
    assert isinstance(type_, DecimalType)
    return _round_half_up(aggregate, type_, Fraction(result))


def _to_double(result: Fraction | float | str) -> float:
    """Return the nearest double; beyond them all, an infinity."""
    try:
        return float(result)
    except OverflowError:
        return float("inf") if result > 0 else float("-inf")  # type: ignore[operator]


def _round_half_up(aggregate: Aggregate, type_: DecimalType, result: Fraction) -> Decimal:
    """Round as Spark does: half away from zero."""
    unscaled = abs(result) * 10**type_.scale
    whole, remainder = divmod(unscaled.numerator, unscaled.denominator)
    whole += 2 * remainder >= unscaled.denominator
    if not type_.minimum <= whole <= type_.maximum:
        raise Overflow(f"{aggregate.function} is {float(result):.6g}, beyond a {type_}")
    return type_.value(whole if result >= 0 else -whole)
