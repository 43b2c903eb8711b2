"""A conjunctive query, reduced to what decides its memory: variables on number lines, compared.

A variable is an attribute of one occurrence of a stream. Only variables of one line are compared
with each other. On a *whole* line all values are whole numbers. On any other line only the order
counts: its constants are numbered in their order, and between any two of them lie values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Comparator = Literal["<", "<=", "="]
BoundComparator = Literal["<", "<=", "=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class Line:
    """An ordered domain: whole numbers, or values of which nothing but the order counts."""

    whole: bool = True


@dataclass(frozen=True, slots=True)
class Variable:
    """An attribute of an occurrence (`source`) of a stream.

    `dense`: between any two constants it can take infinitely many values; else only beyond all of
    them. `finite`: it is pinned to finitely many values, whose ends are given as bounds. Constants
    from `beyond` on are above all that its type can hold, and those up to `before` below it: to it
    they are no ends.
    """

    source: int
    name: str
    line: int = 0
    dense: bool = False
    finite: bool = False
    before: int | None = None
    beyond: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left` is below, at most or equal to `right`; both are numbers of variables."""

    left: int
    operator: Comparator
    right: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable compared with a constant of its line."""

    variable: int
    operator: BoundComparator
    constant: int


@dataclass(frozen=True, slots=True)
class Conjunctive:
    """SELECT [DISTINCT] outputs FROM streams WHERE every comparison and every bound holds.

    `streams` names the stream of each occurrence; a name that stands twice is a self-join.
    `windowed` occurrences count only with their last rows, so that their own state is bounded.
    `marks` are constants of lines (line, constant) that bound nothing, but cut the line as well.
    `extra_filters` are pairs of occurrences of which the first has conditions that are not here,
    and that need not hold of the second.
    """

    streams: tuple[str, ...]
    variables: tuple[Variable, ...]
    comparisons: tuple[Comparison, ...] = ()
    bounds: tuple[Bound, ...] = ()
    outputs: tuple[int, ...] = ()
    distinct: bool = False
    windowed: frozenset[int] = frozenset()
    lines: tuple[Line, ...] = (Line(),)
    marks: tuple[tuple[int, int], ...] = ()
    extra_filters: frozenset[tuple[int, int]] = frozenset()

    @property
    def has_self_joins(self) -> bool:
        return len(set(self.streams)) < len(self.streams)

    def variables_of(self, source: int) -> Iterator[int]:
        """Return the numbers of an occurrence's variables."""
        return (v for v, variable in enumerate(self.variables) if variable.source == source)

    def constants(self, line: int) -> list[int]:
        """Return the constants that a line is compared with or marked by, ascending."""
        bounding = (b.constant for b in self.bounds if self.variables[b.variable].line == line)
        marking = (constant for marked, constant in self.marks if marked == line)
        return sorted({*bounding, *marking})
