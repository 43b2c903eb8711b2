"""The golden files hold, and both of their sides mean the same."""

from __future__ import annotations

import pytest

from headgate.errors import SqlError
from headgate.predicate import evaluate
from headgate.schema import Schema
from headgate.sql import Rejected, Scope, Script, parse_where, render_predicate
from headgate.sql.binder import parse_condition
from headgate.sql.fast_path import FastPath
from tests.boundaries import STREAM, TYPES
from tests.oracles.naive import meaning
from tests.sql.golden import golden
from tests.strategies import Seeded, row

WHERE = golden("golden_where.txt")
WRONG = golden("golden_errors.txt")
STATEMENTS = golden("golden_statements.txt")


@pytest.mark.parametrize("text, rendered", WHERE)
def test_rendering(text: str, rendered: str) -> None:
    """A clause is written in one way, and what is written reads as the same predicate."""
    predicate = parse_where(text, STREAM)
    assert render_predicate(predicate) == rendered
    assert parse_where(rendered, STREAM) == predicate
    assert render_predicate(parse_where(rendered, STREAM)) == rendered


@pytest.mark.parametrize("text, rendered", WHERE)
def test_both_sides_mean_the_same(text: str, rendered: str) -> None:
    """Input and output have one truth value on every row, the one that the oracle gives them."""
    dice = Seeded(1)
    predicate, before, after = (
        parse_where(text, STREAM),
        meaning(text, TYPES),
        meaning(rendered, TYPES),
    )
    for _ in range(200):
        event = row(dice)
        assert evaluate(predicate, event) is before(event) is after(event), event


@pytest.mark.parametrize("text, rendered", WHERE)
def test_fast_reads_what_sqlglot_reads(text: str, rendered: str) -> None:
    """The fast parser gives up, or agrees, on both sides."""
    scope = Scope.of(STREAM)
    for each in (text, rendered):
        assert FastPath(scope).parse(each) in (None, parse_condition(each, scope))


@pytest.mark.parametrize("text, expected", WRONG)
def test_errors_of_clauses(text: str, expected: str) -> None:
    """A clause that is refused is refused in these words, at this place."""
    with pytest.raises(SqlError) as caught:
        parse_where(text, STREAM)
    kind, _, message = expected.partition(" ")
    assert f"{type(caught.value).__name__} {caught.value}" == f"{kind} <text>:{message}"


@pytest.mark.parametrize("text, expected", STATEMENTS)
def test_errors_of_statements(text: str, expected: str) -> None:
    """A statement that is refused is refused in these words, at this place of its file."""
    (actual,) = Script(Schema((STREAM,))).read(text, "x.sql")
    assert isinstance(actual, Rejected)
    assert f"{type(actual.error).__name__} {actual.error}" == expected.replace(" ", " x.sql:", 1)
