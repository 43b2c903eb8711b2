"""Which queries of one stream imply which, without looking at all pairs.

Queries that hold for the same rows are one class. Products are ordered by bitmaps (`supersets`),
unions by rows that an index matches (`candidates`) and by exact answers for what these leave open
(`unions`). What is reported is the transitive reduction (`parents`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from headgate.implication.order.classes import Class, Classes, classes
from headgate.implication.order.definition import Order
from headgate.implication.order.found import Found
from headgate.implication.order.inside import same_as
from headgate.implication.order.parents import direct_parents
from headgate.implication.order.products import Numbers, Products, products
from headgate.implication.order.supersets import Supersets, supersets
from headgate.implication.order.unions import ASKED, Answers, Search, Split
from headgate.predicate import Predicate
from headgate.schema import Stream

MOST_PAIRS = 20_000_000  # of a query and a direct parent
BLOCK = 512  # queries


def implications(
    held: Sequence[Predicate], stream: Stream, progress: Callable[[int], None] | None = None
) -> Order:
    """The order of conditions on one stream, each in the form that `holding` gives.

    It is that of `order_by_definition`, except past the budgets, which `Order` then says. Of a
    condition that is never TRUE it may not be noticed; it is the caller who leaves such out.
    """
    found = classes(held, stream)
    everything, size = found.all, len(found.products)
    hulls, split = _hulls(found)
    answers = Answers(stream, ASKED * (len(everything) // 10_000 + 1))
    search = Search(found, hulls, split, answers)
    also = search.run()
    same = same_as(hulls, size, also)
    _take_out(same, also)
    table = supersets(hulls, size)
    table.begin[: len(everything)][[not one.hull.is_tight for one in everything]] = 0
    merged = _merged(everything, same)
    pairs, is_complete = _pairs(table, also, merged, progress)
    return Order(
        _firsts(merged, len(held)),
        _lists(pairs, len(held)),
        answers.open,
        is_complete and search.is_complete,
    )


def _hulls(found: Classes) -> tuple[Products, Split]:
    """The hulls of all classes, and after them those of the parts of unions."""
    everything = found.all
    hulls = [one.hull for one in everything]
    places = []
    for inner in (False, True):
        offsets, numbers = [0], []
        for own, one in enumerate(everything):
            if one.is_product:
                numbers.append(own)
            for part in one.parts:
                chosen = part.inner if inner else part.outer
                if chosen is not None:
                    numbers.append(len(hulls))
                    hulls.append(chosen)
            offsets.append(len(numbers))
        places += [np.array(offsets, np.int64), np.array(numbers, np.int64)]
    return products(hulls, found.attributes), Split(*places)


def _take_out(same: Numbers, also: Found) -> None:
    """Unions that are the same as another class contain nothing any more."""
    for union in np.flatnonzero(same >= 0).tolist():
        also.unions[:, union >> 6] &= ~(np.uint64(1) << np.uint64(union & 63))


def _merged(everything: list[Class], same: Numbers) -> list[list[int]]:
    """The places of the queries of each class, ascending; none for what is the same as another."""
    merged = [list(one.places) for one in everything]
    for union, other in enumerate(same.tolist(), len(everything) - len(same)):
        if other >= 0:
            merged[other] = sorted(merged[other] + merged[union])
            merged[union] = []
    return merged


def _pairs(
    table: Supersets, also: Found, merged: list[list[int]], progress: Callable[[int], None] | None
) -> tuple[list[Numbers], bool]:
    """Pairs of a parent and a child as one number, by the first places of their classes."""
    firsts = np.array([places[0] if places else -1 for places in merged], np.int64)
    found: list[Numbers] = []
    total = 0

    def parents(start: int) -> tuple[Numbers, int]:
        stop = min(start + BLOCK, len(merged))
        children, containing, reached = direct_parents(table, also, start, stop, MOST_PAIRS - total)
        children, containing = firsts[children], firsts[containing]
        return (containing << 32 | children)[children >= 0], stop - reached

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start, (pairs, left) in zip(
            range(0, len(merged), BLOCK),
            pool.map(parents, range(0, len(merged), BLOCK)),
            strict=True,
        ):
            found.append(pairs)
            total += len(pairs)
            if progress is not None:
                progress(sum(len(places) for places in merged[start : start + BLOCK]))
            if left:
                total = MOST_PAIRS
    return found, total < MOST_PAIRS


def _firsts(merged: list[list[int]], count: int) -> list[int]:
    """Of each query the first that holds for the same rows."""
    same_as = list(range(count))
    for places in merged:
        for place in places:
            same_as[place] = places[0]
    return same_as


def _lists(pairs: list[Numbers], count: int) -> list[Numbers]:
    """The children of each parent, ascending."""
    keys = np.concatenate([np.zeros(0, np.int64), *pairs])
    keys.sort()
    ends = np.searchsorted(keys, np.arange(1, count) << 32)
    return np.split(keys & 0xFFFFFFFF, ends)
