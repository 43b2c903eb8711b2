"""Divide filters among shards, each with a guard that says which events it must see.

One worker holds as many filters as its memory does. More are divided: every shard is an ordinary
set of filters, and an event goes to those shards whose guards hold for it. A guard is the OR of
what the shard's filters need, relaxed to one range for each attribute. It may hold for an event
that no filter wants, but never fails for one that some filter wants.

A filter is divided by its key (`keyed.kernels.keys`): the rarest conditions of which one must hold.
Filters with keys on the same attribute and on neighbouring values come into the same shard, so that
guards are narrow: with a tenant in every filter, an event goes to the shard of its tenant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.matching.encoding.code_book import CodeBook, Intervals, Regions, build_code_book
from headgate.matching.keyed.arrays import TRUE
from headgate.matching.keyed.build import NEVER, UNKNOWN, Keys, estimate_costs
from headgate.matching.keyed.kernels.keys import choose_keys
from headgate.matching.matches import Numbers
from headgate.predicate import FALSE, IsNull, Predicate, Within, disjunction
from headgate.predicate import TRUE as ALWAYS
from headgate.schema import Schema, ValueSet
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.atoms import IS_NULL, WITHIN


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The filters at some places of a set, ascending, and what must hold for one to match."""

    places: Numbers
    guard: Predicate


def divide_filters(encoded: EncodedQueries, schema: Schema, count: int) -> list[Shard]:
    """Divide filters on one stream among so many shards of equal size, fewer if there are fewer.

    >>> from headgate.queries import Query, Source
    >>> from headgate.schema import INT, Attribute, Stream
    >>> from headgate.snapshot.arrays import encode_queries
    >>> from headgate.sql import parse_where, render_predicate
    >>> s = Stream("s", (Attribute("tenant", INT), Attribute("x", INT)))
    >>> texts = [f"tenant = {n % 4} AND x > {n % 2}" for n in range(8)]
    >>> filters = [Query(text, (Source(s, "s"),), parse_where(text, s)) for text in texts]
    >>> shards = divide_filters(encode_queries(filters, Schema((s,))), Schema((s,)), 2)
    >>> for shard in shards:
    ...     print(shard.places.tolist(), render_predicate(shard.guard))
    [0, 1, 4, 5] tenant BETWEEN 0 AND 1
    [2, 3, 6, 7] tenant BETWEEN 2 AND 3
    """
    book, intervals = build_code_book(encoded.atoms, schema)
    keys, is_guarded = _choose_keys(encoded, book, intervals)
    literals = _describe_literals(encoded, keys, intervals)
    parts = np.array_split(_order_by_key(keys, is_guarded, literals), max(1, count))
    return [
        Shard(np.sort(places), _build_guard(places, keys, is_guarded, literals, book))
        for places in parts
        if len(places)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Literals:
    """By literal of a key: its column, and the least and the greatest code for which it holds."""

    column: Numbers
    low: Numbers
    high: Numbers


def _choose_keys(
    encoded: EncodedQueries, book: CodeBook, intervals: Intervals
) -> tuple[Keys, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the key of each filter, and whether it is nothing but conditions on single values."""
    greatest = np.array([regions.greatest for regions in book.regions], np.int64)
    costs = estimate_costs(encoded, intervals, greatest)
    # copies: arrays that cannot be written to would be another type to the kernel
    offsets, program = encoded.trees.offsets.copy(), encoded.trees.program.copy()
    start, atom, target, weight = choose_keys(offsets, program, costs)
    keys = Keys(start, atom, target)
    kind = encoded.atoms.kind[atom]
    is_range = ((kind == WITHIN) | (kind == IS_NULL)) & (target == TRUE)
    # literals that are no ranges, counted up to each, so that those of a filter are a difference
    others = np.concatenate(([0], np.cumsum(~is_range)))
    is_guarded = (others[start[1:]] == others[start[:-1]]) & (weight != UNKNOWN)
    # a filter that is never TRUE has no literal, and nothing leads to it
    return keys, is_guarded | (weight == NEVER)


def _describe_literals(encoded: EncodedQueries, keys: Keys, intervals: Intervals) -> _Literals:
    starts, ends = intervals.start[keys.atom], intervals.start[keys.atom + 1]
    # an atom without intervals holds for no code, or is none on single values
    is_empty = starts == ends
    first, last = np.where(is_empty, 0, starts), np.where(is_empty, 0, ends - 1)
    low = np.append(intervals.low, 0)[first].astype(np.int64)
    high = np.append(intervals.high, 0)[last].astype(np.int64)
    column = encoded.atoms.column[keys.atom].astype(np.int64)
    return _Literals(column, np.where(is_empty, 1, low), np.where(is_empty, 0, high))


def _order_by_key(
    keys: Keys, is_guarded: np.ndarray[tuple[int], np.dtype[np.bool_]], literals: _Literals
) -> Numbers:
    """Return the places of all filters: by column and code of their first literal, others last."""
    has_key = is_guarded & (np.diff(keys.start) > 0)
    first = np.where(has_key, keys.start[:-1], 0)
    # an item more, for sets in which no filter has a key
    column, low = np.append(literals.column, 0)[first], np.append(literals.low, 0)[first]
    return np.lexsort((low, column, ~has_key))


def _build_guard(
    places: Numbers,
    keys: Keys,
    is_guarded: np.ndarray[tuple[int], np.dtype[np.bool_]],
    literals: _Literals,
    book: CodeBook,
) -> Predicate:
    if not is_guarded[places].all():
        return ALWAYS
    is_inside = np.zeros(len(is_guarded), np.bool_)
    is_inside[places] = True
    chosen = np.repeat(is_inside, np.diff(keys.start)) & (literals.low <= literals.high)
    columns = literals.column[chosen]
    # from the least to the greatest code of each column
    low = np.full(len(book.regions), np.iinfo(np.int64).max)
    high = np.full(len(book.regions), -1)
    np.minimum.at(low, columns, literals.low[chosen])
    np.maximum.at(high, columns, literals.high[chosen])
    parts: list[Predicate] = []
    for number in np.unique(columns).tolist():
        parts += _to_conditions(book.regions[number], int(low[number]), int(high[number]))
    return disjunction(parts) if parts else FALSE


def _to_conditions(regions: Regions, low: int, high: int) -> Sequence[Predicate]:
    """Return conditions of which one holds for the codes from `low` to `high`."""
    conditions: list[Predicate] = [IsNull(regions.column)] if low == 0 else []
    if high > 0:
        # code c + 2 begins at cut c: the first region has no begin, and the last no end
        places = [low - 2] if low >= 2 else []
        places += [high - 1] if high < regions.greatest else []
        cuts = tuple(_to_ordinal(regions.cuts[place]) for place in places)
        conditions.append(Within(regions.column, ValueSet(cuts, low < 2)))
    return conditions


def _to_ordinal(cut: object) -> object:
    return int(cut) if isinstance(cut, np.integer) else cut
