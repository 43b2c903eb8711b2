"""Queries as arrays, and back again exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import UsageError
from headgate.predicate import TRUE, Column, IsNull, iter_atoms
from headgate.queries import Query, Source
from headgate.schema import INT, STRING, Attribute, Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries, encode_queries, find_flaw
from headgate.snapshot.files import assemble_arrays, flatten_arrays
from headgate.sql import Rejected, Script
from tests.snapshot.arrays.objects import SCHEMA, queries

DECLARED = """
SET TIME ZONE 'Europe/Berlin';
CREATE STREAM trades (
    ok BOOLEAN, qty INT NOT NULL, big BIGINT, price DECIMAL(10, 2), wide DECIMAL(38, 2),
    ratio DOUBLE, side STRING CHECK (side IN ('buy', 'sell')), client.name STRING,
    day DATE, seen TIMESTAMP
);
CREATE STREAM quotes (qty STRING, price DOUBLE);
"""
WRITTEN = r"""
SELECT * FROM trades
SELECT * FROM trades WHERE qty > 3 AND qty <= 2147483647 AND NOT big = -9223372036854775808
SELECT * FROM trades WHERE big < 9223372036854775807 OR big > 9223372036854775806
SELECT * FROM trades WHERE wide IN (999999999999999999999999999999999999.99, -1, 0.01)
SELECT * FROM trades WHERE wide > -999999999999999999999999999999999999.98
SELECT * FROM trades WHERE ratio = CAST('NaN' AS DOUBLE) OR ratio < CAST('-Infinity' AS DOUBLE)
SELECT * FROM trades WHERE ratio > -0.0 AND ratio <= 5e-324 OR NULL
SELECT * FROM trades WHERE side = 'a\0' OR side > 'ünï' OR side NOT IN ('𝄞', '', '\uffff', NULL)
SELECT * FROM trades WHERE client.name LIKE 'a|%%' ESCAPE '|' AND side NOT ILIKE '_é%'
SELECT * FROM trades WHERE side RLIKE '^[a-c]+$' AND ok AND NOT ok IS NULL
SELECT * FROM trades WHERE COALESCE(qty = 3 OR side IS NULL, TRUE) AND (qty < price) IS NOT FALSE
SELECT * FROM trades WHERE NOT (day = seen OR day <> '0001-01-01') AND seen < '2024-03-31 02:30'
SELECT * FROM trades AS t WHERE t.qty = 1
SELECT side, qty AS many FROM trades WHERE TRUE
SELECT DISTINCT side FROM trades WHERE FALSE
SELECT x.side, y.price FROM trades AS x, quotes AS y WHERE x.side = y.qty AND x.price > y.price
SELECT * FROM trades, quotes WHERE trades.qty = 3 AND quotes.qty = '3'
SELECT side, COUNT(*), COUNT(DISTINCT qty) AS `how many`, MAX(wide) FROM trades GROUP BY side
"""


def declared() -> Script:
    script = Script(Schema())
    list(script.read(DECLARED))
    return script


def written(script: Script) -> list[Query]:
    """A query of every sort that the SQL front end can produce."""
    collected: list[Query] = []
    for number, select in enumerate(WRITTEN.strip().splitlines()):
        (query,) = script.read(f"CREATE QUERY q{number} AS {select}")
        assert not isinstance(query, Rejected), query.error
        assert isinstance(query, Query)
        metadata = [None, "", "{}", '{"to": "ünï"}'][number % 4]
        collected.append(replace(query, metadata=metadata))
    return collected


def test_what_sql_says_comes_back_exactly() -> None:
    script = declared()
    result = written(script)
    encoded = encode_queries(result, script.schema)
    assert find_flaw(encoded, script.schema) is None
    assert list(decode_queries(encoded, script.schema)) == result


@given(st.lists(queries(), max_size=4, unique_by=lambda query: query.id))
def test_any_query_comes_back_exactly_and_encodes_the_same_again(result: list[Query]) -> None:
    encoded = encode_queries(result, SCHEMA)
    assert find_flaw(encoded, SCHEMA) is None
    decoded = list(decode_queries(encoded, SCHEMA))
    assert decoded == result
    again = flatten_arrays(encode_queries(decoded, SCHEMA))
    for name, values in flatten_arrays(encoded).items():
        assert np.array_equal(values, again[name]), name


def test_no_queries_are_an_encoding_too() -> None:
    encoded = encode_queries((), Schema())
    assert len(encoded) == 0
    assert list(decode_queries(encoded, Schema())) == []


@pytest.mark.parametrize("chunk", [1, 2, 7])
def test_more_queries_than_a_chunk_come_back_in_order(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.snapshot.arrays.queries._QUERIES_PER_CHUNK", chunk)
    script = declared()
    encoded = encode_queries(written(script), script.schema)
    assert list(decode_queries(encoded, script.schema)) == written(script)


def test_an_atom_is_stored_once_and_decoded_as_one_object() -> None:
    script = declared()
    texts = ("qty > 3", "qty >= 4 AND ok", "NOT qty <= 3")
    listed = [
        query
        for number, text in enumerate(texts)
        for query in script.read(f"CREATE QUERY q{number} AS SELECT * FROM trades WHERE {text}")
        if isinstance(query, Query)
    ]
    encoded = encode_queries(listed, script.schema)
    assert len(encoded.atoms) == 2
    first, second, third = decode_queries(encoded, script.schema)
    assert first.where is next(iter_atoms(second.where)) is third.where


def test_atoms_of_a_generator_are_not_confused_when_their_addresses_are_reused() -> None:
    stream = Stream("s", tuple(Attribute(f"a{number}", INT) for number in range(300)))
    schema = Schema((stream,))

    def made() -> Iterator[Query]:
        for number in range(300):
            where = IsNull(Column(f"a{number}", INT))
            yield Query(str(number), (Source(stream, "s"),), where)

    decoded = decode_queries(encode_queries(made(), schema), schema)
    assert list(decoded) == list(made())


def test_equal_names_in_two_streams_are_two_columns() -> None:
    schema = Schema((Stream("s", (Attribute("a", INT),)), Stream("t", (Attribute("a", INT),))))
    where = IsNull(Column("a", INT))
    listed = [Query(stream.name, (Source(stream, stream.name),), where) for stream in schema]
    encoded = encode_queries(listed, schema)
    assert encoded.atoms.columns.stream.tolist() == [0, 1]
    assert encoded.atoms.column.tolist() == [0, 1]
    assert list(decode_queries(encoded, schema)) == listed


def test_an_encoding_is_arrays_and_nothing_else() -> None:
    script = declared()
    encoded = encode_queries(written(script), script.schema)
    for name, values in flatten_arrays(encoded).items():
        assert values.dtype.kind in "iu", name
        assert values.ndim == 1, name
    again = assemble_arrays(encode_queries((), Schema()), flatten_arrays(encoded))
    assert list(decode_queries(again, script.schema)) == written(script)
    assert is_dataclass(EncodedQueries)
    assert {field.name for field in fields(EncodedQueries)} == set(EncodedQueries.__slots__)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            Query("q", (Source(Stream("t", ()), "t"),), TRUE),
            "query `q`: the schema has no stream `t`",
        ),
        (
            Query("q", (Source(Stream("s", ()), "s"),), IsNull(Column("b", INT))),
            "query `q`: stream s has no attribute `b INT`",
        ),
        (
            Query("q", (Source(Stream("s", ()), "s"),), IsNull(Column("a", STRING))),
            "query `q`: stream s has no attribute `a STRING`",
        ),
        (
            Query("q", (Source(Stream("s", ()), "s"),), IsNull(Column("a", INT, "x"))),
            "query `q`: `x.a` is not a column of s",
        ),
        (
            Query("q", (Source(Stream("s", ()), "s"), Source(Stream("s", ()), "S")), TRUE),
            "query `q`: `SELECT * FROM s, s AS S` cannot be stored: ",
        ),
        (
            Query("q", (Source(Stream("s", ()), "s"),), TRUE, group_by=(Column("a", INT),)),
            "query `q`: `SELECT * FROM s GROUP BY a` cannot be stored: ",
        ),
    ],
)
def test_a_query_that_the_schema_cannot_bring_back_is_refused(query: Query, message: str) -> None:
    schema = Schema((Stream("s", (Attribute("a", INT),)),))
    with pytest.raises(UsageError) as caught:
        encode_queries([query], schema)
    assert str(caught.value).startswith(message)
