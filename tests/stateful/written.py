"""Conjunctive queries as one would write them down."""

from __future__ import annotations

from typing import get_args

from headgate.stateful.analysis.theory.conjunctive import (
    Bound,
    BoundComparator,
    Comparator,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)

_MIRRORED = {">": "<", ">=": "<="}


def written(
    streams: dict[str, str],
    condition: str,
    outputs: str = "",
    *,
    distinct: bool = False,
    windowed: str = "",
    whole: bool = True,
    sparse: str = "",
    finite: str = "",
) -> Conjunctive:
    """`written({"S": "A B", "T": "C"}, "A = 10, B < C", "A", distinct=True)`.

    Occurrences S1 and S2 are of one stream S; their attributes are written S1.A. Where `whole` is
    False, attributes are dense unless they are named in `sparse`.
    """
    places = [(alias, name) for alias, names in streams.items() for name in names.split()]
    aliases = list(streams)
    variables = tuple(
        Variable(
            aliases.index(alias),
            name,
            dense=not whole and name not in sparse.split(),
            finite=name in finite.split(),
        )
        for alias, name in places
    )
    comparisons: list[Comparison] = []
    bounds: list[Bound] = []
    for text in filter(None, condition.split(", ")):
        left, operator, right = text.split()
        if right.lstrip("-").isdigit():
            assert operator in get_args(BoundComparator)
            bounds.append(Bound(_number(places, left), operator, int(right)))  # type: ignore[arg-type]
            continue
        if operator in _MIRRORED:
            left, operator, right = right, _MIRRORED[operator], left
        assert operator in get_args(Comparator)
        ends = _number(places, left), _number(places, right)
        comparisons.append(Comparison(ends[0], operator, ends[1]))  # type: ignore[arg-type]
    return Conjunctive(
        tuple(alias.rstrip("0123456789") for alias in aliases),
        variables,
        tuple(comparisons),
        tuple(bounds),
        tuple(_number(places, output) for output in outputs.split()),
        distinct,
        frozenset(aliases.index(alias) for alias in windowed.split()),
        (Line(whole),),
    )


def names(query: Conjunctive, mask: int) -> set[str]:
    """The names of variables that are given as bits."""
    return {v.name for number, v in enumerate(query.variables) if mask >> number & 1}


def _number(places: list[tuple[str, str]], text: str) -> int:
    alias, _, name = text.rpartition(".")
    (result,) = [n for n, place in enumerate(places) if place == (alias or place[0], name)]
    return result
