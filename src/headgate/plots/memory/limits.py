"""The constants between which the values of an attribute lie, in the words of the query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, cast

from headgate.predicate import Column, Within
from headgate.schema import Boolean, Interval, Ordinal, Type, ValueSet, successor
from headgate.sql import render_literal, render_predicate

LISTED = 4  # values of an IN list
LimitOperator = Literal["<", "<=", "=", ">=", ">", "IN"]


class Constant(NamedTuple):
    """What an attribute is compared with; for IN, a list."""

    operator: LimitOperator
    text: str


def limits(values: ValueSet, type_: Type, written: str = "") -> Iterator[Constant]:
    """The ends of a set, if it has any; as they are written, where a text is given.

    >>> from headgate.schema import INT
    >>> [*map(tuple, limits(ValueSet.of(Interval(13, 20)), INT))]
    [('>=', '13'), ('<', '20')]
    >>> [*map(tuple, limits(ValueSet.of(Interval(13, 20)), INT, "12 < a AND a <= 19"))]
    [('>', '12'), ('<=', '19')]
    """
    intervals = values.intervals
    low, high = intervals[0].low, intervals[-1].high
    if len(intervals) > 1 and all(interval.is_point for interval in intervals):
        listed = [_constant(type_, interval.low) for interval in intervals[:LISTED]]
        yield Constant("IN", ", ".join(listed + ["…"] * (len(intervals) > LISTED)))
    elif low is not None or high is not None:
        only = _rendered(Interval(low, high), type_)
        if only.operator == "=":
            yield only
        elif not isinstance(type_, Boolean):
            yield from _ends(low, high, type_, written)


def _ends(
    low: Ordinal | None, high: Ordinal | None, type_: Type, written: str
) -> Iterator[Constant]:
    if low is not None:
        yield _as_written(Interval(low, None), type_, (">=", ">"), low, written)
    if high is not None:
        yield _as_written(Interval(None, high), type_, ("<", "<="), high, written)


def _as_written(
    side: Interval, type_: Type, operators: tuple[str, str], cut: Ordinal, written: str
) -> Constant:
    """`a >= 13` is `a > 12` too, and so on: the one whose constant stands in the text."""
    before = cut - 1 if isinstance(cut, int) else cut.removesuffix("\0")
    for operator, ordinal in zip(operators, (cut, before), strict=True):
        if isinstance(cut, str) and (operator == operators[1]) != (successor(before) == cut):
            continue
        text = _constant(type_, ordinal)
        if re.search(rf"(?<![\w.]){re.escape(text)}(?![\w.])", written):
            return Constant(cast("LimitOperator", operator), text)
    return _rendered(side, type_)


def _rendered(interval: Interval, type_: Type) -> Constant:
    """A set as SQL says it, without the type of a constant."""
    text = render_predicate(Within(Column("x", type_), ValueSet.of(interval)))
    _, operator, constant = text.split(" ", 2)
    return Constant(cast("LimitOperator", operator), _bare(constant))


def _constant(type_: Type, ordinal: Ordinal | None) -> str:
    return _bare(render_literal(type_.value(ordinal)))


def _bare(constant: str) -> str:
    return re.sub(r"^(?:DATE |TIMESTAMP |CAST\()'(.*)'(?: AS DOUBLE\))?$", r"\1", constant)
