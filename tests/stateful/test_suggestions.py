"""Cures: each makes the query bounded, none holds more than it needs, and all read well."""

from __future__ import annotations

import re
import time

import pytest

from headgate.sql import render_query
from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.analysis.suggestions import Suggestion, find_suggestions
from headgate.stateful.analysis.verdict import check_memory
from tests.stateful.sql import PAPER, TABLE_1, TYPED, bound, distinct

UNBOUNDED = [
    *((PAPER, select) for select, answer, _ in TABLE_1.values() if answer == "no"),
    *((PAPER, distinct(select)) for select, _, answer in TABLE_1.values() if answer == "no"),
    (PAPER, "SELECT A, B FROM S, T WHERE A = 3 AND B > 0"),
    (PAPER, "SELECT * FROM S, T WHERE A = D AND B = 1"),
    (PAPER, "SELECT A, COUNT(*), MEDIAN(B) FROM S GROUP BY A"),
    (PAPER, "SELECT MAX(S.A) FROM S, T WHERE S.B < T.D"),
    (PAPER, "SELECT S.C FROM S, T WHERE C = 3 AND (A = D OR B = E)"),
    (PAPER, "SELECT x.A FROM S x, S y WHERE x.A = 10 AND x.B = y.B"),
    (TYPED, "SELECT DISTINCT A, N FROM S"),
    (TYPED, "SELECT DISTINCT D FROM S WHERE D > DATE '9999-01-01'"),
    (TYPED, "SELECT DISTINCT D FROM S WHERE D < DATE '0001-02-01'"),
    (TYPED, "SELECT DISTINCT U FROM S WHERE U > TIMESTAMP '9999-12-30 00:00:00'"),
    (TYPED, "SELECT DISTINCT K FROM S WHERE K >= 2147483640"),
    (TYPED, "SELECT DISTINCT P FROM S WHERE P > 99999990"),
    (TYPED, "SELECT q FROM S, T WHERE U < V AND D = W"),
    (TYPED, "SELECT P FROM S, T WHERE P = R AND side = kind"),
]


def list_suggestions(streams: str, select: str) -> tuple[Suggestion, ...]:
    query = bound(select, streams)
    analysis = analyse(query)
    assert analysis.bounded != "yes"
    assert analysis.case is not None
    assert analysis.fault is not None
    return find_suggestions(query, analysis.case, analysis.fault)


@pytest.mark.parametrize(("streams", "select"), UNBOUNDED)
def test_every_suggestion_helps(streams: str, select: str) -> None:
    """The changed query is read back from its SQL and checked again, as a user would."""
    every = list_suggestions(streams, select)
    assert every
    for suggestion in every:
        query = bound(suggestion.sql, streams)
        analysis = analyse(query)
        assert analysis.bounded == "yes", suggestion
        assert not analysis.is_contradiction
        assert render_query(query) == render_query(suggestion.query).replace(
            suggestion.query.id, "q", 1
        )


@pytest.mark.parametrize(("streams", "select"), UNBOUNDED)
def test_suggestions_are_minimal(streams: str, select: str) -> None:
    """No suggestion of two additions holds one that would do alone."""
    every = [set(suggestion.additions) for suggestion in list_suggestions(streams, select)]
    assert all(len(additions) <= 2 for additions in every)
    assert not any(one < two for one in every for two in every)
    assert len(every) == len({frozenset(additions) for additions in every})


@pytest.mark.parametrize(
    "select",
    [
        "SELECT DISTINCT U FROM S",
        "SELECT COUNT(*) FROM S, T WHERE U < V",
        "SELECT U FROM S, T WHERE U = V",
        "SELECT DISTINCT D, K, P FROM S",
        "SELECT D, W FROM S, T",
        "SELECT MEDIAN(K), D, U FROM S GROUP BY D, U",
    ],
)
def test_suggestions_lead_to_bounds_that_a_machine_holds(select: str) -> None:
    """And no range that they name ends before it is written."""
    every = list_suggestions(TYPED, select)
    assert every
    for suggestion in every:
        assert check_memory(suggestion.query).is_holdable, suggestion
        for addition in suggestion.additions:
            assert all(year >= "2099" for year in re.findall(r"AND \w+ '(\d{4})", addition))


def test_a_bound_that_no_machine_holds_has_suggestions() -> None:
    """As an unbounded query has: what is bounded in theory only is of no use."""
    select = "SELECT DISTINCT K, P FROM S WHERE K > 0 AND K < 2000000000 AND P > 0 AND P < 9000000"
    verdict = check_memory(bound(select, TYPED))
    assert verdict.bounded == "yes"
    assert not verdict.is_holdable
    every = verdict.find_suggestions()
    assert every
    assert all(check_memory(suggestion.query).is_holdable for suggestion in every)


def test_a_large_query_takes_seconds() -> None:
    """Sixty-four streams in a row: not all pairs of additions are tried."""
    streams = "".join(f"CREATE STREAM s{n} (a INT, b INT);" for n in range(64))
    joins = " AND ".join(f"s{n}.a < s{n + 1}.a" for n in range(63))
    sources = ", ".join(f"s{n}" for n in range(64))
    begun = time.process_time()
    list_suggestions(streams, f"SELECT DISTINCT s0.b FROM {sources} WHERE s0.b = 1 AND {joins}")
    assert time.process_time() - begun < 10


def test_the_words_of_suggestions() -> None:
    """A bound near what is known, DISTINCT, a column less, a window."""
    select = "SELECT A, B FROM S, T WHERE A = 3 AND B > 0 AND C < 9 AND C = D"
    words = [" + ".join(suggestion.additions) for suggestion in list_suggestions(PAPER, select)]
    assert "bound `S.B`, such as S.B BETWEEN 1 AND 1000 + bound `S.C`" in words[0]
    assert any(
        "drop the column `S.B` + bound" in w or "+ drop the column `S.B`" in w for w in words
    )
    windows = "a row window, last_rows(S, 100) + a row window, last_rows(T, 100)"
    assert windows in words
    assert any(
        "SELECT DISTINCT" in w for w in (c.additions[0] for c in list_suggestions(*UNBOUNDED[1]))
    )
