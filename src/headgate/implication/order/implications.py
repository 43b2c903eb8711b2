"""Find which queries of one stream imply which, without looking at all pairs.

Queries that hold for the same rows are one class, and a class is a union of products. A class lies
inside another if each product of it lies in one of the other's, which bitmaps find (`arrays`),
or in several together (`kernels.cover`). What conditions say of each other is settled before
(`closure`). What is reported is the transitive reduction (`kernels.parents`).
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
# Pairs of unions with conditions are decided one by one, as many as the larger of these says.
MIN_PAIR_PROOFS = 300
PAIR_PROOFS_PER_CLASS = 0.02
CLASSES_PER_BLOCK = 512


def find_implications(
    conditions: Sequence[Predicate], stream: Stream, progress: Callable[[int], None] | None = None
) -> Order:
    """Return how conditions on one stream, in monotone form, imply one another.

    The order is that of `order_by_definition`, except past the budgets, which `Order` then says.
    That a condition is never TRUE may stay unnoticed: leave such out before.
    """
    warn_before_compiling(__package__)
    classes = group_into_classes(conditions, stream)
    closure = Closure(classes, stream)
    known = build_arrays(classes, closure)
    # Unions that contain a class by several parts come first: the reduction needs them.
    also, unknown, is_complete = _find_joint_containers(known, stream)
    same, pairs, lists_all = _find_parents(known, also, progress)
    # Classes that turned out to be the same are merged, and bits become places of queries.
    merged = _merge_places(known.classes, same)
    firsts = np.array([places[0] if places else -1 for places in merged], np.int64)
    order = Order(
        _find_firsts(merged, len(conditions)),
        _list_children(pairs, firsts, len(conditions)),
        {},
        is_complete and lists_all,
        _list_skipped(known, classes.too_large),
    )
    unknown += _list_doubtful(known, also)
    order.undecided.update(_list_undecided(unknown, firsts[same], order))
    return order


def _list_skipped(known: ClassArrays, too_large: list[int]) -> set[int]:
    """Return queries of too many parts, and those of which no row is known."""
    unseen = [known.classes[at] for at in known.unseen.tolist()]
    return {*too_large, *(place for c in unseen if c is not None for place in c.places)}


def _find_joint_containers(
    known: ClassArrays, stream: Stream
) -> tuple[JointContainers, list[tuple[int, int]], bool]:
    """Return the unions that contain a class jointly, undecided pairs, and whether that is all."""
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
    for _, (inner, outer, answers, _) in _run_blocks(find_joint_containers, arguments, count, left):
        holds = answers == COVERED
        # The kernel leaves pairs undecided that have conditions: these are decided one by one.
        for at in np.flatnonzero(~holds).tolist():
            p, q = known.classes[inner[at]], known.classes[outer[at]]
            assert p is not None
            assert q is not None
            budget -= 1
            answer = Answer.UNKNOWN if budget < 0 else _decide_pair(p, q, stream)
            holds[at] = answer is Answer.YES
            if answer is Answer.UNKNOWN:
                unknown.append((int(inner[at]), int(outer[at])))
        first.append(inner[holds])
        second.append(outer[holds])
        left -= len(inner)
        if left < 0:
            break
    inner, outer = np.concatenate(first), np.concatenate(second)
    # Pairs by their inner class, as offsets and classes.
    order = np.argsort(inner, kind="stable")
    offsets = np.searchsorted(inner[order], np.arange(count + 1))
    return JointContainers(offsets, outer[order].astype(np.int64)), unknown, left >= 0


def _decide_pair(p: QueryClass, q: QueryClass, stream: Stream) -> Answer:
    return decide_implication(
        p.condition, q.condition, Constraints.of(stream, (p.condition, q.condition))
    ).answer


def _run_blocks(
    function: Any, arguments: tuple[Any, ...], count: int, max_pairs: int
) -> Iterator[tuple[int, Any]]:
    """Run a kernel on blocks of classes, in as many threads as there are processors."""
    starts = range(0, count, CLASSES_PER_BLOCK)

    def run_block(start: int) -> Any:
        return function(*arguments, start, min(start + CLASSES_PER_BLOCK, count), max_pairs)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # A caller that stops early cancels the blocks that have not begun.
        try:
            yield from zip(starts, pool.map(run_block, starts), strict=True)
        finally:
            pool.shutdown(cancel_futures=True)


def _find_parents(
    known: ClassArrays, also: JointContainers, progress: Callable[[int], None] | None
) -> tuple[Numbers, list[tuple[Numbers, Numbers]], bool]:
    """Return the first equal class of each, child-parent pairs, and whether these are all."""
    count = len(known.classes)
    same = np.arange(count)
    pairs = []
    left = MAX_PAIRS
    arguments = (known.table, known.layout, also)
    for start, (children, parents, firsts, reached) in _run_blocks(
        find_direct_parents, arguments, count, MAX_PAIRS
    ):
        stop = start + len(firsts)
        same[start:stop] = firsts
        pairs.append((children, parents))
        left -= len(children)
        if progress is not None:
            classes = known.classes[start:stop]
            progress(sum(len(c.places) for c in classes if c is not None))
        # Past the budget of pairs the order is incomplete, which is reported.
        if left < 0 or reached < stop:
            return same, pairs, False
    return same, pairs, True


def _list_doubtful(known: ClassArrays, also: JointContainers) -> list[tuple[int, int]]:
    """Return pairs that are apart only because something about their conditions is unknown."""
    pairs = []
    layout = known.layout
    bits = np.zeros(len(layout.class_word), np.uint64)
    out = np.zeros(layout.words, np.uint64)
    for i in known.doubtful.tolist():
        # What contains the class with the sure hulls, then with the smallest possible ones.
        maybe = []
        for hulls in (layout, known.possible):
            find_containing(known.table, hulls, also, i, out, bits, 0, layout.real[: layout.words])
            maybe.append(out.copy())
        only_possible = np.unpackbits((maybe[1] & ~maybe[0]).view(np.uint8), bitorder="little")
        pairs += [(i, int(j)) for j in np.flatnonzero(only_possible)]
    return pairs


def _merge_places(classes: list[QueryClass | None], same: Numbers) -> list[list[int]]:
    """Return the places of each class's queries, ascending; none for a later equal class."""
    merged = [[] if c is None else list(c.places) for c in classes]
    # Classes that equal an earlier one hand their places over to it.
    for at in np.flatnonzero(same != np.arange(len(same))).tolist():
        merged[same[at]] = sorted(merged[same[at]] + merged[at])
        merged[at] = []
    return merged


def _find_firsts(merged: list[list[int]], count: int) -> list[int]:
    """Return for each query the first that holds for the same rows."""
    same_as = list(range(count))
    for places in merged:
        for place in places:
            same_as[place] = places[0]
    return same_as


def _list_children(
    pairs: list[tuple[Numbers, Numbers]], firsts: Numbers, count: int
) -> list[Numbers]:
    """Return the children of each parent, ascending."""
    # Parent and child in one number, so that one sort does both.
    keys = [np.zeros(0, np.int64)]
    keys += [firsts[parents] << 32 | firsts[children] for children, parents in pairs]
    every = np.concatenate(keys)
    every.sort()
    ends = np.searchsorted(every, np.arange(1, count) << 32)
    return np.split(every & 0xFFFFFFFF, ends)


def _list_undecided(
    unknown: list[tuple[int, int]], firsts: Numbers, order: Order
) -> dict[int, list[int]]:
    """Return the undecided pairs by the outer one, without those that follow from others."""
    # By child: its direct parents, to leave out pairs that follow by transitivity.
    above: dict[int, list[int]] = {}
    if unknown:
        for parent, children in enumerate(order.implied_by):
            for child in children:
                above.setdefault(int(child), []).append(parent)
    reached: dict[int, set[int]] = {}
    undecided: dict[int, list[int]] = {}
    for i, j in unknown:
        p, q = int(firsts[i]), int(firsts[j])
        if p not in reached:
            reached[p] = _list_reachable(p, above)
        if p != q and q not in reached[p]:
            undecided.setdefault(q, []).append(p)
    return {q: sorted(set(ps)) for q, ps in undecided.items()}


def _list_reachable(start: int, above: dict[int, list[int]]) -> set[int]:
    reached, pending = {start}, [start]
    while pending:
        for parent in above.get(pending.pop(), ()):
            if parent not in reached:
                reached.add(parent)
                pending.append(parent)
    return reached
