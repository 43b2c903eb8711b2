"""The groups of an aggregate query as rows of its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import Overflow, UsageError
from headgate.events.columns import encode_column
from headgate.predicate import Column
from headgate.queries import Aggregate, Query
from headgate.schema import DecimalType, Double, Integer
from headgate.stateful.analysis.synopses.plan import needs_values
from headgate.stateful.analysis.synopses.totals import of_values
from headgate.stateful.runtime.answer_state import Remembered, grouping
from headgate.stateful.runtime.exact_sums import Sums, regrouped, total_value
from headgate.stateful.runtime.grouping import Numbers
from headgate.stateful.runtime.weighted_rows import Weighted, added

MULTIPLICITY = "multiplicity"
MOST_EXPANDED = 100_000_000


def rows_of(query: Query, columns: Sequence[Column], rows: Weighted, *, expand: bool) -> pa.Table:
    """The rows; those of a join with how often each is there, or each as often as it is there."""
    expressions = [o.expression for o in query.outputs] or list(columns)
    arrays: list[pa.Array[Any]] = [rows.values[c] for c in expressions if isinstance(c, Column)]
    names = output_names(query, columns)
    if query.distinct:
        return pa.Table.from_arrays(arrays, names)
    if expand:
        if int(rows.count.sum(dtype=object)) > MOST_EXPANDED:
            raise Overflow(
                f"`{query.id}` gives more than {MOST_EXPANDED:,} rows at once; "
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


def output_names(query: Query, columns: Sequence[Column]) -> list[str]:
    """A name for each column; of `*`, with its stream where two have the same."""
    if query.outputs:
        return [output.name for output in query.outputs]
    times = Counter(column.name.lower() for column in columns)
    return [c.key if times[c.name.lower()] > 1 else c.name for c in columns]


Parts = Sequence[tuple[Remembered, Weighted]]


def group_rows(query: Query, parts: Parts, changed: Sequence[Weighted] | None) -> pa.Table:
    """The groups with their aggregates: all of them, or those that some rows belong to."""
    by = parts[0][0].by
    tables = [state for _, state in parts]
    every = [*tables, *(changed or ())]
    values = {c: pa.concat_arrays([table.values[c] for table in every]) for c in by}
    ends = np.cumsum([len(table) for table in every]).tolist()
    groups = grouping(values, by, ends[-1] if ends else 0)
    size = groups.size if by else 1
    own = [groups.of[end - len(t) : end] for end, t in zip(ends, every, strict=True)]
    shown = np.arange(size)
    if changed is not None:
        shown = np.unique(np.concatenate([np.empty(0, np.int64), *own[len(tables) :]]))
    found: dict[Column | Aggregate, pa.Array[Any]] = {
        c: values[c].take(groups.first[shown]) for c in by
    }
    place = np.full(size, -1)
    place[shown] = np.arange(len(shown))
    for (remembered, state), of in zip(parts, own, strict=False):
        rows = np.flatnonzero(place[of] >= 0)
        mine, at = state.at(rows), place[of[rows]]
        for aggregate in remembered.part.aggregates:
            results = _results(query, remembered, aggregate, mine, at, len(shown))
            found[aggregate] = pa.array(results, aggregate.type.arrow)
    outputs = [(o.name, found[o.expression]) for o in query.outputs]
    return pa.Table.from_arrays([a for _, a in outputs], [name for name, _ in outputs])


def _results(
    query: Query,
    remembered: Remembered,
    aggregate: Aggregate,
    rows: Weighted,
    groups: Numbers,
    size: int,
) -> list[Any]:
    column = aggregate.argument
    if column is None:
        return list(added(rows.count, groups, size).tolist())
    if aggregate == remembered.part.extremum or needs_values(query, aggregate):
        return [_shown(aggregate, each) for each in _by_values(aggregate, rows, groups, size)]
    sums = regrouped(rows.sums[column], groups, size)
    return [_shown(aggregate, _total(aggregate, sums, at)) for at in range(size)]


def _by_values(aggregate: Aggregate, rows: Weighted, groups: Numbers, size: int) -> list[Hashable]:
    """From the values of a group and how often each occurs."""
    column = aggregate.argument
    assert column is not None
    coded = encode_column(rows.values[column], column.type)
    valid = np.ones(len(rows), np.bool_) if coded.valid is None else coded.valid
    ordinals = coded.codes.tolist() if coded.ranked is None else coded.decode_ranks(coded.codes)
    values: list[Counter[Any]] = [Counter() for _ in range(size)]
    for at in np.flatnonzero(valid).tolist():
        values[groups[at]][ordinals[at]] += int(rows.count[at])
    return [of_values(aggregate, column, each) for each in values]


def _total(aggregate: Aggregate, sums: Sums, at: int) -> Hashable:
    assert aggregate.argument is not None
    if aggregate.function == "COUNT":
        return int(sums.count[at])
    total = total_value(sums, at, aggregate.argument.type)
    if total is None or aggregate.function == "SUM" or isinstance(total, float):
        return total
    return total / int(sums.count[at])


def _shown(aggregate: Aggregate, result: Any) -> Any:
    """A result as its type has it; an Overflow where the type cannot."""
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
        return _nearest(result)
    assert isinstance(type_, DecimalType)
    return _rounded(aggregate, type_, Fraction(result))


def _nearest(result: Fraction | float | str) -> float:
    """The nearest double; beyond them all, an infinity."""
    try:
        return float(result)
    except OverflowError:
        return float("inf") if result > 0 else float("-inf")  # type: ignore[operator]


def _rounded(aggregate: Aggregate, type_: DecimalType, result: Fraction) -> Decimal:
    """As Spark rounds: half away from zero."""
    unscaled = abs(result) * 10**type_.scale
    whole, rest = divmod(unscaled.numerator, unscaled.denominator)
    whole += 2 * rest >= unscaled.denominator
    if not type_.minimum <= whole <= type_.maximum:
        raise Overflow(f"{aggregate.function} is {float(result):.6g}, beyond a {type_}")
    return type_.value(whole if result >= 0 else -whole)
