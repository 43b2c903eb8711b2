"""Expressions and records under new numbers of predicates, in good order, and without gaps."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.pools import (
    BEGIN,
    BUCKETS,
    EQUALITY,
    NONE,
    USED,
    Expressions,
    filled_up,
    header,
)


@kernel
def renumber_records(tree, expressions, new, count, bloom):
    """Give the predicates of expressions and records their new numbers."""
    for e in range(count):
        if expressions.leaf[e] != NONE:
            for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
                expressions.predicate[k] = new[expressions.predicate[k]]
    head = header(bloom)
    for b in range(tree.state[BUCKETS]):
        place = tree.bucket[b, BEGIN]
        end = place + tree.bucket[b, USED]
        while place < end:
            size = tree.records[place]
            for i in range(place + head, place + size):
                tree.records[i] = new[tree.records[i]]
            place += size


@kernel
def in_order(expressions, predicates, numbers):
    """Put the predicates of expressions in the order in which they are best tested: what accepts
    one value first, and what accepts the most last."""
    for e in numbers:
        start = expressions.start[e]
        for i in range(start + 1, start + expressions.count[e]):
            p = expressions.predicate[i]
            k = i
            while k > start and weight(predicates, p) < weight(
                predicates, expressions.predicate[k - 1]
            ):
                expressions.predicate[k] = expressions.predicate[k - 1]
                k -= 1
            expressions.predicate[k] = p


@kernel
def weight(predicates, p):
    """The less it is, the fewer values a predicate accepts, as a guess."""
    if predicates.flags[p] & EQUALITY:
        return 0.0
    return 1.0 + np.float64(predicates.most[p]) - np.float64(predicates.least[p])


@kernel
def _copied(expressions, count, predicate):
    used = 0
    for e in range(count):
        if expressions.leaf[e] != NONE:
            start = expressions.start[e]
            expressions.start[e] = used
            for k in range(start, start + filled_up(expressions.count[e])):
                predicate[used] = expressions.predicate[k]
                used += 1
    return used


def compacted(expressions: Expressions, count: int) -> tuple[Expressions, int]:
    """The same without the predicates of expressions that are gone, and how many there are."""
    predicate = np.zeros(len(expressions.predicate), np.int32)
    used = _copied(expressions, count, predicate)
    return expressions._replace(predicate=predicate), used
