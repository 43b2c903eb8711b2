"""Find which queries of one stream imply which, without looking at all pairs.

Queries that hold for the same rows are one class, and a class is a union of products. A class lies
inside another if each product of it lies in one of the other's, which bitmaps find (`arrays`),
or in several together (`kernels.cover`). Pairs with patterns or comparisons of attributes are
found by example rows (`examples`). What is reported is the transitive reduction
(`kernels.parents`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from headgate.implication.decision import decide_pair
from headgate.implication.order.arrays import ClassArrays, build_arrays
from headgate.implication.order.classes import QueryClass, group_into_classes
from headgate.implication.order.definition import Order, Row
from headgate.implication.order.examples import find_example, find_pairs_by_examples
from headgate.implication.order.kernels.cover import COVERED
from headgate.implication.order.kernels.parents import (
    JointContainers,
    find_direct_parents,
    find_joint_containers,
)
from headgate.implication.order.products import Numbers
from headgate.jit import warn_before_compiling
from headgate.predicate import Predicate
from headgate.predicate.answer import Answer
from headgate.schema import Stream

MAX_PAIRS = 20_000_000  # of a query and a direct parent
CLASSES_PER_BLOCK = 512


def find_implications(
    conditions: Sequence[Predicate],
    stream: Stream,
    progress: Callable[[int, str], None] | None = None,
    examples: Sequence[Row | None] | None = None,
    seconds: float = math.inf,
) -> Order:
    """Return how conditions on one stream, in monotone form, imply one another.

    The order is that of `order_by_definition`, except past the budgets, which `Order` then says.
    `examples` are rows for which each condition is TRUE; without them they are looked for.
    `seconds` of processor time may go into pairs of which one is opaque. That a condition is never
    TRUE may stay unnoticed: leave such out before.
    """
    warn_before_compiling(__package__)
    known = build_arrays(group_into_classes(conditions, stream))
    advance = progress or (lambda _count, _label: None)
    # What bitmaps do not see comes first, because the reduction needs it.
    opaque = _prove_opaque_pairs(known, stream, examples, seconds, advance)
    joint, undecided, is_complete = _find_joint_containers(known, stream)
    also = _merge_containers([*opaque.pairs, *joint], len(known.classes))
    same, pairs, lists_all = _find_parents(known, also, advance)
    # Classes that turned out to be the same are merged, and bits become places of queries.
    merged = _merge_places(known.classes, same)
    firsts = np.array([places[0] if places else -1 for places in merged], np.int64)
    order = Order(
        _find_firsts(merged, len(conditions)),
        _list_children(pairs, firsts, len(conditions)),
        {},
        opaque.is_complete and is_complete and lists_all,
        opaque.skipped,
    )
    undecided += opaque.undecided
    order.undecided.update(_list_undecided(undecided, firsts[same], order))
    return order


class _OpaquePairs(NamedTuple):
    """Pairs of a class and one that contains it, undecided pairs, and places without a row."""

    pairs: list[tuple[int, int]]
    undecided: list[tuple[int, int]]
    skipped: set[int]
    is_complete: bool


def _prove_opaque_pairs(
    known: ClassArrays,
    stream: Stream,
    examples: Sequence[Row | None] | None,
    seconds: float,
    advance: Callable[[int, str], None],
) -> _OpaquePairs:
    """Find all pairs of classes of which one is opaque."""
    used = [(at, c) for at, c in enumerate(known.classes) if c is not None]
    opaque = np.array([c.is_opaque for _, c in used], np.bool_)
    if not opaque.any():
        return _OpaquePairs([], [], set(), True)
    rows = [
        find_example(c.condition, stream) if examples is None else examples[c.places[0]]
        for _, c in used
    ]
    # The search numbers only the classes that there are.
    numbers = [at for at, _ in used]
    conditions = [c.condition for _, c in used]

    def show(done: int) -> None:
        advance(0, f"comparing patterns ({done:,} of {len(used):,})")

    proven = find_pairs_by_examples(conditions, opaque, stream, rows, seconds, show)
    return _OpaquePairs(
        [(numbers[p], numbers[q]) for p, outer in enumerate(proven.implied) for q in outer],
        [(numbers[p], numbers[q]) for p, q in proven.undecided],
        {place for p in proven.without_row if opaque[p] for place in used[p][1].places},
        proven.is_complete,
    )


def _merge_containers(pairs: list[tuple[int, int]], count: int) -> JointContainers:
    """Return pairs of a class and one that contains it by the inner one."""
    inner, outer = np.array(sorted(set(pairs)), np.int64).reshape(-1, 2).T
    return JointContainers(np.searchsorted(inner, np.arange(count + 1)), outer.copy())


def _find_joint_containers(
    known: ClassArrays, stream: Stream
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Return the unions that contain a class jointly, undecided pairs, and whether that is all."""
    layout, count = known.layout, len(known.classes)
    pairs: list[tuple[int, int]] = []
    undecided: list[tuple[int, int]] = []
    if layout.unions == layout.words:
        return pairs, undecided, True
    arguments = (known.table, layout, _merge_containers([], count), known.corners)
    left = MAX_PAIRS
    for _, (inner, outer, answers, _) in _run_blocks(find_joint_containers, arguments, count, left):
        for i, j, answer in zip(inner.tolist(), outer.tolist(), answers.tolist(), strict=True):
            # What is past the budget of the kernel is decided by itself.
            decided = Answer.YES if answer == COVERED else _decide_classes(known, i, j, stream)
            if decided is Answer.YES:
                pairs.append((i, j))
            elif decided is Answer.UNKNOWN:
                undecided.append((i, j))
        left -= len(inner)
        if left < 0:
            return pairs, undecided, False
    return pairs, undecided, True


def _decide_classes(known: ClassArrays, i: int, j: int, stream: Stream) -> Answer:
    p, q = known.classes[i], known.classes[j]
    assert p is not None
    assert q is not None
    return decide_pair(p.condition, q.condition, stream).answer


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
    known: ClassArrays, also: JointContainers, advance: Callable[[int, str], None]
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
        classes = known.classes[start:stop]
        advance(sum(len(c.places) for c in classes if c is not None), "comparing queries")
        # Past the budget of pairs the order is incomplete, which is reported.
        if left < 0 or reached < stop:
            return same, pairs, False
    return same, pairs, True


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
