"""Comparisons between columns that contradict each other: `a < b`, `b <= c`, `c <= a`."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.predicate.atoms import MIRROR, Column, Compare


def comparisons_contradict(comparisons: Sequence[Compare]) -> bool:
    """Does `a < b <= … <= a` follow, or `a <= b <= a` beside `a <> b`?

    By Warshall's closure, where a row of the relation is the bits of a whole number.
    """
    number: dict[Column, int] = {}
    for comparison in comparisons:
        for column in (comparison.left, comparison.right):
            number.setdefault(column, len(number))
    at_most = [0] * len(number)  # bit b of a: a <= b follows
    below = [0] * len(number)  # bit b of a: a < b does
    for comparison in comparisons:
        left, op, right = comparison.left, comparison.operator, comparison.right
        if op in (">", ">="):
            left, op, right = right, MIRROR[op], left
        if op in ("<", "<=", "="):
            at_most[number[left]] |= 1 << number[right]
            below[number[left]] |= (op == "<") << number[right]
        if op == "=":
            at_most[number[right]] |= 1 << number[left]
    for middle in range(len(number)):
        for first in range(len(number)):
            if at_most[first] >> middle & 1:
                below[first] |= below[middle]
                if below[first] >> middle & 1:
                    below[first] |= at_most[middle]
                at_most[first] |= at_most[middle]
    unequal = [(number[c.left], number[c.right]) for c in comparisons if c.operator == "<>"]
    return any(below[a] >> a & 1 for a in range(len(number))) or any(
        a == b or (at_most[a] >> b & 1 and at_most[b] >> a & 1) for a, b in unequal
    )
