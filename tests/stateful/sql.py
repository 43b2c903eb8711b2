"""Queries for the tests, from SQL."""

from __future__ import annotations

from headgate.queries import Query
from headgate.schema import Schema
from headgate.sql import Rejected, Script

PAPER = """CREATE STREAM S (A INT, B INT, C INT);
CREATE STREAM T (D INT, E INT);
"""

TYPED = """CREATE STREAM S (A DOUBLE, B DOUBLE, N STRING, K INT, P DECIMAL(10,2), D DATE,
    U TIMESTAMP, F BOOLEAN, side STRING CHECK (side IN ('buy', 'sell')),
    q INT CHECK (q BETWEEN 1 AND 5), e STRING CHECK (e > 'a'));
CREATE STREAM T (C DOUBLE, M STRING, L INT, R DECIMAL(12,3), W DATE, V TIMESTAMP, G BOOLEAN,
    kind STRING CHECK (kind IN ('buy', 'sell')), z BIGINT);
CREATE AGGREGATE spread (DOUBLE) RETURNS DOUBLE DISTRIBUTIVE DUPLICATE INSENSITIVE;
CREATE AGGREGATE mode_of (DOUBLE) RETURNS DOUBLE HOLISTIC;
"""

TABLE_1 = {  # the verdicts without and with DISTINCT
    "q1": ("SELECT A FROM S WHERE A > 10", "yes", "no"),
    "q2": ("SELECT A FROM S, T WHERE A = D", "no", "no"),
    "q3": ("SELECT A FROM S, T WHERE A = D AND A > 10 AND D < 20", "yes", "yes"),
    "q4": ("SELECT A FROM S, T WHERE B < D AND A = 10", "no", "yes"),
    "q5": ("SELECT A FROM S, T WHERE B < D AND C < E AND A = 10", "no", "no"),
    "q6": (
        "SELECT A FROM S, T WHERE B < D AND C < E AND B < E AND C < D AND A = 10",
        "no",
        "yes",
    ),
    "q7": ("SELECT A FROM S, T WHERE B < D AND D > 10 AND B < 20 AND A = 10", "yes", "yes"),
}


def bound(select: str, streams: str = PAPER, file: str | None = None) -> Query:
    """The query of a SELECT."""
    script = Script(Schema())
    for result in script.read(f"{streams}CREATE QUERY q AS {select};", file):
        assert not isinstance(result, Rejected), result.error
        if isinstance(result, Query):
            return result
    raise AssertionError(select)


def distinct(select: str) -> str:
    return select.replace("SELECT", "SELECT DISTINCT", 1)
