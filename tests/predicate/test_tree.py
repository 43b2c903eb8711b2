"""Trees: flat, ordered, and readable."""

from __future__ import annotations

import pytest

from headgate.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Column,
    IsNull,
    Not,
    Or,
    Truth,
    collect_columns,
    conjunction,
    decide_satisfiability,
    disjunction,
    iter_atoms,
    simplify,
    to_monotone,
)
from headgate.schema import INT, Attribute, Stream
from headgate.sql import parse_where, render_predicate

STREAM = Stream("s", tuple(Attribute(name, INT) for name in "abc"))
A, B, C = (IsNull(Column(name, INT)) for name in "abc")


def test_joins_are_flat() -> None:
    """AND of AND has all the parts; of one part it is that part, of none TRUE; so for OR."""
    assert conjunction([A, conjunction([B, C])]) == And((A, B, C))
    assert disjunction([disjunction([A, B]), C]) == Or((A, B, C))
    assert conjunction([A]) == disjunction([A]) == A
    assert (conjunction([]), disjunction([])) == (TRUE, FALSE)
    assert conjunction([A, disjunction([B, C])]) == And((A, Or((B, C))))


def test_atoms_and_columns() -> None:
    """Atoms come from left to right, as often as they occur; columns once."""
    tree = And((A, Not(Or((B, A))), Truth(C, frozenset({True}))))
    assert list(iter_atoms(tree)) == [A, B, A, C]
    assert [column.name for column in collect_columns(tree)] == ["a", "b", "c"]
    assert list(iter_atoms(UNKNOWN)) == [UNKNOWN]
    assert collect_columns(UNKNOWN) == ()


@pytest.mark.parametrize(
    "before, after",
    [
        ("a > 3 AND a > 5", "a >= 6"),
        ("a < 3 OR a >= 3", "a = a"),
        ("a > 3 AND a < 2", "a <> a"),
        ("b = 1 AND (b = 1 OR c = 2)", "b = 1"),
        ("b = 1 OR (b = 1 AND c = 2)", "b = 1"),
        ("a > 5 AND (a > 3 OR c = 2)", "a >= 6"),
        ("a > 3 AND FALSE", "FALSE"),
        ("a > 3 AND TRUE", "a >= 4"),
        ("a > 3 OR TRUE", "TRUE"),
        ("a > 3 OR FALSE", "a >= 4"),
        ("a > 3 AND NULL", "a >= 4 AND NULL"),
        ("NOT (a > 3 AND b = 1)", "a <= 3 OR b <> 1"),
        ("(a IS NULL) IS NULL", "FALSE"),
        ("(a IS NULL) IS TRUE", "a IS NULL"),
        ("((a > 3) IS TRUE) IS FALSE", "(a >= 4) IS NOT TRUE"),
        ("a = 1 AND a = 1", "a = 1"),
        ("a < b AND a < b", "a < b"),
        ("a < b OR b > a", "a < b"),
    ],
)
def test_simplify(before: str, after: str) -> None:
    """The laws of simplification, each by an example."""
    assert render_predicate(simplify(parse_where(before, STREAM))) == after


@pytest.mark.parametrize(
    "before, after",
    [
        ("a > 3 AND a < 2", "FALSE"),
        ("a IS NULL AND a > 3", "FALSE"),
        ("a > 3 AND NULL", "FALSE"),
        ("a > 3 OR NULL", "a >= 4"),
        ("NOT COALESCE(a > 3, TRUE)", "a <= 3"),
        ("(a > 3) IS NULL", "a IS NULL"),
        ("a IS NOT NULL", "a = a"),
        ("(a < b) IS NULL", "a IS NULL OR b IS NULL"),
        ("(a > 3 AND b = 1) IS NOT TRUE", "a <= 3 OR a IS NULL OR b <> 1 OR b IS NULL"),
        ("a IS NULL OR a = a", "TRUE"),
    ],
)
def test_holding(before: str, after: str) -> None:
    """Where only TRUE matters, what remains is AND and OR of atoms."""
    assert render_predicate(to_monotone(parse_where(before, STREAM))) == after


@pytest.mark.parametrize(
    "text, words",
    [
        ("a > 3 AND a < 2", "`a`"),
        ("a < b AND b < a", "contradict each other"),
        ("a < b AND b < c AND c <= a", "contradict each other"),
        ("a IS NULL AND a > b", "`a`"),
        ("a > b AND b > 2147483646", "`a`"),
    ],
)
def test_no_has_a_reason(text: str, words: str) -> None:
    """A "no" says which attribute or comparison is at fault."""
    satisfiability = decide_satisfiability(parse_where(text, STREAM))
    assert satisfiability.answer == "no"
    assert words in satisfiability.reason
