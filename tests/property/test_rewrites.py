"""Rewrites keep the truth value that they promise to keep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from headgate.predicate import (
    And,
    Atom,
    IsNull,
    Not,
    Or,
    Predicate,
    Truth,
    evaluate,
    push_negations,
    simplify,
    to_monotone,
)
from headgate.predicate.tree import children
from headgate.sql import parse_where
from tests.boundaries import STREAM, Row
from tests.corpus import SHARDS, cases
from tests.strategies import rows, wheres


def nodes(predicate: Predicate) -> Iterator[Predicate]:
    yield predicate
    for child in children(predicate):
        yield from nodes(child)


def check(predicate: Predicate, row: Row) -> None:
    """All four rewrites on one row."""
    truth = evaluate(predicate, row)
    assert evaluate(push_negations(predicate), row) is truth
    assert evaluate(simplify(predicate), row) is truth
    only_true = evaluate(simplify(predicate, only_true=True), row)
    assert (only_true is True) == (truth is True)
    assert (evaluate(to_monotone(predicate), row) is True) == (truth is True)


@given(wheres(), rows())
def test_rewrites_shrinking(text: str, row: Row) -> None:
    """No rewrite changes a truth value; those for TRUE alone keep exactly the TRUE rows."""
    check(parse_where(text, STREAM), row)


@pytest.mark.parametrize("shard", SHARDS)
def test_simplify_keeps_truth(shard: int) -> None:
    """`push_negations` and `simplify` never change a truth value, NULL included."""
    for case in cases(shard):
        pushed, simple = push_negations(case.predicate), simplify(case.predicate)
        for row in case.rows:
            truth = evaluate(case.predicate, row)
            assert evaluate(pushed, row) is truth, (case.text, row)
            assert evaluate(simple, row) is truth, (case.text, row)


@pytest.mark.parametrize("shard", SHARDS)
def test_true_rows_are_kept(shard: int) -> None:
    """`simplify(only_true=True)` and `to_monotone` are TRUE for exactly the same rows."""
    for case in cases(shard):
        simple = simplify(case.predicate, only_true=True)
        held = to_monotone(case.predicate)
        for row in case.rows:
            truth = evaluate(case.predicate, row) is True
            assert (evaluate(simple, row) is True) == truth, (case.text, row)
            assert (evaluate(held, row) is True) == truth, (case.text, row)


def test_forms() -> None:
    """`push_negations` leaves no NOT; `to_monotone` leaves AND, OR, and atoms on values or NULL."""
    for case in cases(0):
        assert not any(isinstance(node, Not) for node in nodes(push_negations(case.predicate)))
        for node in nodes(to_monotone(case.predicate)):
            assert isinstance(node, And | Or | Atom)
            assert not isinstance(node, Not | Truth)
            assert not (isinstance(node, IsNull) and node.negated)


def test_simplify_is_idempotent() -> None:
    """What is simple stays as it is."""
    for case in cases(1):
        simple = simplify(case.predicate)
        assert simplify(simple) == simple, case.text
        held = to_monotone(case.predicate)
        assert to_monotone(held) == held, case.text
