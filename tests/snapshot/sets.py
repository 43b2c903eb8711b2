"""Query sets that are quick to make and easy to recognise."""

from __future__ import annotations

from headgate.queries import Query, QuerySet, Source
from headgate.schema import Schema
from headgate.sql import Script, WhereReader

DECLARED = """
SET TIME ZONE 'Europe/Berlin';
CREATE STREAM trades (
    qty INT CHECK (qty > 0), price DECIMAL(10, 2), wide DECIMAL(38, 2), side STRING NOT NULL,
    client.name STRING, seen TIMESTAMP
);
SET TIME ZONE 'Asia/Tokyo';
CREATE STREAM quotes (price DOUBLE, seen TIMESTAMP, day DATE);
"""


def schema() -> Schema:
    script = Script(Schema())
    assert all(not hasattr(result, "error") for result in script.read(DECLARED))
    return script.schema


SCHEMA = schema()
_READER = WhereReader(SCHEMA.stream("trades"))
_SOURCES = (Source(SCHEMA.stream("trades"), "trades"),)


def query(name: str, where: str, metadata: str | None = None) -> Query:
    """A filter of `trades`."""
    return Query(name, _SOURCES, _READER.read(where), metadata=metadata)


def query_set(*queries: Query) -> QuerySet:
    return QuerySet(SCHEMA, queries)


def numbered(count: int, limit: int = 0) -> list[Query]:
    """Queries `q0`, `q1`, …; `limit` is in the condition of each of them."""
    return [query(f"q{n}", f"qty > {limit} AND price < {n}.5") for n in range(count)]


def varied() -> QuerySet:
    """One query of each sort."""
    script = Script(SCHEMA, "Asia/Tokyo")
    listed = [q for q in script.read(_VARIED) if isinstance(q, Query)]
    assert len(listed) == 5
    return query_set(*listed, query("metadata", "side = 'ünï\\0'", '{"to": "𝄞"}'))


_VARIED = """
CREATE QUERY plain AS SELECT * FROM trades WHERE wide > 12345678901234567890.5 AND side LIKE 'a%';
CREATE QUERY `two words` AS SELECT * FROM quotes WHERE price = CAST('NaN' AS DOUBLE) OR day IS NULL;
CREATE QUERY early AS SELECT * FROM quotes WHERE seen < '2024-01-01 00:00';
CREATE QUERY pairs AS SELECT t.qty, q.day FROM trades t, quotes q WHERE t.seen > q.seen;
CREATE QUERY counts AS SELECT side, COUNT(*) AS n FROM trades GROUP BY side;
"""
