"""Which queries of one stream imply which, without looking at all pairs.

Queries that hold for the same rows are one class, and a class is a union of products. A class lies
inside another if each product of it lies in one of the other's, which bitmaps find (`supersets`),
or in several together (`cover`). What conditions say of each other is settled before (`closure`).
What is reported is the transitive reduction (`parents`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from headgate.implication.decision import decide_implication
from headgate.implication.order.arrays import ClassArrays, build_arrays
from headgate.implication.order.classes import QueryClass, group_into_classes
from headgate.implication.order.closure import Closure
from headgate.implication.order.definition import Order
from headgate.implication.order.kernels.cover import COVERED
from headgate.implication.order.kernels.parents import (
    JointContainers,
    find_containing,
    find_direct_parents,
    find_joint_containers,
)
from headgate.implication.order.products import Numbers
from headgate.implication.pair import Constraints
from headgate.jit import warn_before_compiling
from headgate.predicate import Predicate
from headgate.predicate.answer import Answer
from headgate.schema import Stream

MAX_PAIRS = 20_000_000  # of a query and a direct parent
MIN_PAIR_PROOFS = 300  # pairs of unions with conditions that are asked one by one, at least
PAIR_PROOFS_PER_CLASS = 0.02  # for each class, where that is more
CLASSES_PER_BLOCK = 512  # queries


def find_implications(
    held: Sequence[Predicate], stream: Stream, progress: Callable[[int], None] | None = None
) -> Order:
    """The order of conditions on one stream, each in the form that `to_monotone` gives.

    It is that of `order_by_definition`, except past the budgets, which `Order` then says. Of a
    condition that is never TRUE it may not be noticed; it is the caller who leaves such out.
    """
    warn_before_compiling(__package__)
    found = group_into_classes(held, stream)
    closure = Closure(found, stream)
    known = build_arrays(found, closure)
    also, unknown, is_complete = _joint(known, stream)
    same, pairs, lists_all = _parents(known, also, progress)
    merged = _merged(known.classes, same)
    firsts = np.array([places[0] if places else -1 for places in merged], np.int64)
    order = Order(
        _first_of_each(merged, len(held)),
        _lists(pairs, firsts, len(held)),
        {},
        is_complete and lists_all,
        _not_looked_at(known, found.too_large),
    )
    unknown += _doubtful(known, also)
    order.undecided.update(_open(unknown, firsts[same], order))
    return order


def _not_looked_at(known: ClassArrays, too_large: list[int]) -> set[int]:
    """Queries of too many parts, and those of which no row is known."""
    unseen = [known.classes[at] for at in known.unseen.tolist()]
    return {*too_large, *(place for one in unseen if one is not None for place in one.places)}


def _joint(
    known: ClassArrays, stream: Stream
) -> tuple[JointContainers, list[tuple[int, int]], bool]:
    """Which unions contain what by several parts; which pairs stay open; and is that all?"""
    layout, count = known.layout, len(known.classes)
    none = JointContainers(np.zeros(count + 1, np.int64), np.zeros(0, np.int64))
    unknown: list[tuple[int, int]] = []
    if layout.unions == layout.words:
        return none, unknown, True
    first, second = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    left, budget = MAX_PAIRS, max(MIN_PAIR_PROOFS, round(PAIR_PROOFS_PER_CLASS * count))
    arguments = (
        *(known.table, layout, none),
        *(known.corners, known.sources, known.pinned, known.tied),
    )
    for _, (inner, outer, answers, _) in _blocks(find_joint_containers, arguments, count, left):
        holds = answers == COVERED
        for at in np.flatnonzero(~holds).tolist():
            p, q = known.classes[inner[at]], known.classes[outer[at]]
            assert p is not None
            assert q is not None
            budget -= 1
            answer = Answer.UNKNOWN if budget < 0 else _implied(p, q, stream)
            holds[at] = answer is Answer.YES
            if answer is Answer.UNKNOWN:
                unknown.append((int(inner[at]), int(outer[at])))
        first.append(inner[holds])
        second.append(outer[holds])
        left -= len(inner)
        if left < 0:
            break
    inner, outer = np.concatenate(first), np.concatenate(second)
    order = np.argsort(inner, kind="stable")
    offsets = np.searchsorted(inner[order], np.arange(count + 1))
    return JointContainers(offsets, outer[order].astype(np.int64)), unknown, left >= 0


def _implied(p: QueryClass, q: QueryClass, stream: Stream) -> Answer:
    return decide_implication(
        p.condition, q.condition, Constraints.of(stream, (p.condition, q.condition))
    ).answer


def _blocks(
    function: Any, arguments: tuple[Any, ...], count: int, most: int
) -> Iterator[tuple[int, Any]]:
    """What a kernel says of each block of classes, by as many threads as there are processors."""
    starts = range(0, count, CLASSES_PER_BLOCK)

    def of_block(start: int) -> Any:
        return function(*arguments, start, min(start + CLASSES_PER_BLOCK, count), most)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            yield from zip(starts, pool.map(of_block, starts), strict=True)
        finally:
            pool.shutdown(cancel_futures=True)


def _parents(
    known: ClassArrays, also: JointContainers, progress: Callable[[int], None] | None
) -> tuple[Numbers, list[tuple[Numbers, Numbers]], bool]:
    """The first class that is the same as each, pairs of children and parents, and are they all?"""
    count = len(known.classes)
    same = np.arange(count)
    found = []
    left = MAX_PAIRS
    arguments = (known.table, known.layout, also)
    for start, (children, parents, firsts, reached) in _blocks(
        find_direct_parents, arguments, count, MAX_PAIRS
    ):
        stop = start + len(firsts)
        same[start:stop] = firsts
        found.append((children, parents))
        left -= len(children)
        if progress is not None:
            here = known.classes[start:stop]
            progress(sum(len(one.places) for one in here if one is not None))
        if left < 0 or reached < stop:
            return same, found, False
    return same, found, True


def _doubtful(known: ClassArrays, also: JointContainers) -> list[tuple[int, int]]:
    """Pairs that only what is unknown of their conditions keeps apart."""
    found = []
    layout = known.layout
    bits = np.zeros(len(layout.class_word), np.uint64)
    out = np.zeros(layout.words, np.uint64)
    for i in known.doubtful.tolist():
        maybe = []
        for one in (layout, known.possible):
            find_containing(known.table, one, also, i, out, bits, 0, layout.real[: layout.words])
            maybe.append(out.copy())
        rest = np.unpackbits((maybe[1] & ~maybe[0]).view(np.uint8), bitorder="little")
        found += [(i, int(j)) for j in np.flatnonzero(rest)]
    return found


def _merged(everything: list[QueryClass | None], same: Numbers) -> list[list[int]]:
    """The places of the queries of each class, ascending; none for what is the same as another."""
    merged = [[] if one is None else list(one.places) for one in everything]
    for at in np.flatnonzero(same != np.arange(len(same))).tolist():
        merged[same[at]] = sorted(merged[same[at]] + merged[at])
        merged[at] = []
    return merged


def _first_of_each(merged: list[list[int]], count: int) -> list[int]:
    """Of each query the first that holds for the same rows."""
    same_as = list(range(count))
    for places in merged:
        for place in places:
            same_as[place] = places[0]
    return same_as


def _lists(pairs: list[tuple[Numbers, Numbers]], firsts: Numbers, count: int) -> list[Numbers]:
    """The children of each parent, ascending."""
    keys = [np.zeros(0, np.int64)]
    keys += [firsts[parents] << 32 | firsts[children] for children, parents in pairs]
    every = np.concatenate(keys)
    every.sort()
    ends = np.searchsorted(every, np.arange(1, count) << 32)
    return np.split(every & 0xFFFFFFFF, ends)


def _open(unknown: list[tuple[int, int]], firsts: Numbers, order: Order) -> dict[int, list[int]]:
    """The pairs that stay open, by the outer one; not those that follow from others."""
    above: dict[int, list[int]] = {}
    if unknown:
        for parent, children in enumerate(order.implied_by):
            for child in children:
                above.setdefault(int(child), []).append(parent)
    reached: dict[int, set[int]] = {}
    found: dict[int, list[int]] = {}
    for i, j in unknown:
        p, q = int(firsts[i]), int(firsts[j])
        if p not in reached:
            reached[p] = _reachable(p, above)
        if p != q and q not in reached[p]:
            found.setdefault(q, []).append(p)
    return {q: sorted(set(ps)) for q, ps in found.items()}


def _reachable(start: int, above: dict[int, list[int]]) -> set[int]:
    found, pending = {start}, [start]
    while pending:
        for parent in above.get(pending.pop(), ()):
            if parent not in found:
                found.add(parent)
                pending.append(parent)
    return found
