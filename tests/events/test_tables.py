"""Rows that are typed already: Arrow tables, DataFrames, lists of dicts."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from headgate.errors import EventError
from headgate.events import arrow_casts, batch_from_rows
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Attribute,
    DecimalType,
    Interval,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)
from tests.events.helpers import exact, reasons, rows, stream, values

PRICE = DecimalType(10, 2)
NEW_YORK = Timestamp("America/New_York")
NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)

VECTORISED: list[tuple[Type, pa.Array[Any], list[Any]]] = [
    (BIGINT, pa.array([1, None], pa.int32()), [1, None]),
    (INT, pa.array([1, None], pa.int64()), [1, None]),
    (INT, pa.array([1], pa.uint64()), [1]),
    (INT, pa.array([3.0, None]), [3, None]),
    (INT, pa.array([Decimal("3.00")]), [3]),
    (INT, pa.array([5]).dictionary_encode(), [5]),
    (INT, pa.nulls(2), [None, None]),
    (BOOLEAN, pa.array([True, None]), [True, None]),
    (PRICE, pa.array([Decimal("1.2")]), [Decimal("1.20")]),
    (PRICE, pa.array([Decimal("1.200")]), [Decimal("1.20")]),
    (PRICE, pa.array([Decimal("1.2")], pa.decimal256(60, 1)), [Decimal("1.20")]),
    (PRICE, pa.array([5], pa.int64()), [Decimal("5.00")]),
    (DOUBLE, pa.array([0.1, math.nan, -0.0, None]), [0.1, math.nan, -0.0, None]),
    (DOUBLE, pa.array([1.5], pa.float32()), [1.5]),
    (DOUBLE, pa.array([2**53], pa.int64()), [2.0**53]),
    (STRING, pa.array(["é", None], pa.large_string()), ["é", None]),
    (STRING, pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    (DATE, pa.array([date(2024, 1, 2)], pa.date64()), [date(2024, 1, 2)]),
    (DATE, pa.array([datetime(2024, 1, 2)], pa.timestamp("ns")), [date(2024, 1, 2)]),
    (TIMESTAMP, pa.array([NOON], pa.timestamp("s", tz="Asia/Tokyo")), [NOON]),
    (TIMESTAMP, pa.array([NOON], pa.timestamp("ns", tz="UTC")), [NOON]),
    (TIMESTAMP, pa.array([NOON.replace(tzinfo=None)], pa.timestamp("ms")), [NOON]),
]

ROW_BY_ROW: list[tuple[Type, pa.Array[Any], list[Any], list[str]]] = [
    (INT, pa.array([1, 5_000_000_000]), [1], ["`v` is 5000000000, outside INT"]),
    (INT, pa.array([3.0, 3.5]), [3], ["`v` is 3.5, which is not an INT"]),
    (INT, pa.array([3.0, math.nan]), [3], ["`v` is NaN, which is not an INT"]),
    (INT, pa.array([Decimal("3.0"), Decimal("3.5")]), [3], ["`v` is 3.5, which is not an INT"]),
    (BIGINT, pa.array([2**63], pa.uint64()), [], ["`v` is 9223372036854775808, outside BIGINT"]),
    (
        PRICE,
        pa.array([Decimal("1.230"), Decimal("1.239")]),
        [Decimal("1.23")],
        ["`v` is 1.239, which a DECIMAL(10, 2) cannot hold exactly"],
    ),
    (PRICE, pa.array([10**8]), [], ["`v` is 100000000, outside DECIMAL(10, 2)"]),
    (
        PRICE,
        pa.array([9.99, 0.1 + 0.2]),
        [Decimal("9.99")],
        ["`v` is 0.30000000000000004, which a DECIMAL(10, 2) cannot hold exactly"],
    ),
    (DecimalType(38, 30), pa.array([5]), [Decimal(5)], []),
    (DOUBLE, pa.array([2**53 + 2]), [2.0**53 + 2], []),
    (
        DOUBLE,
        pa.array([1, 2**53 + 1]),
        [1.0],
        ["`v` is 9007199254740993, which a DOUBLE cannot hold exactly"],
    ),
    (DOUBLE, pa.array([Decimal("0.1")]), [0.1], []),
    (
        DATE,
        pa.array(["2024-01-02", None, "x"]),
        [date(2024, 1, 2), None],
        ["`v` is 'x', which is not a DATE"],
    ),
    (
        DATE,
        pa.array([datetime(2024, 1, 2), datetime(2024, 1, 2, 1)], pa.timestamp("s")),
        [date(2024, 1, 2)],
        ["`v` is 1,704,157,200 as timestamp[s], which is not a DATE"],
    ),
    (
        DATE,
        pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32()),
        [date(1970, 1, 1)],
        ["`v` is 2,147,483,647 as date32[day], outside DATE"],
    ),
    (TIMESTAMP, pa.array(["2024-07-01T12:00Z"]), [NOON], []),
    (
        TIMESTAMP,
        pa.array([1_000, 1_001], pa.timestamp("ns")),
        [datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)],
        ["`v` is 1,001 as timestamp[ns], finer than a microsecond"],
    ),
    (
        TIMESTAMP,
        pa.array([0, 2**62], pa.timestamp("us", tz="UTC")),
        [datetime(1970, 1, 1, tzinfo=UTC)],
        ["`v` is 4,611,686,018,427,387,904 as timestamp[us, tz=UTC], outside TIMESTAMP"],
    ),
    (
        TIMESTAMP,
        pa.array([2**60], pa.timestamp("s")),
        [],
        ["`v` is 1,152,921,504,606,846,976 as timestamp[s], outside TIMESTAMP"],
    ),
    (NEW_YORK, pa.array([datetime(2024, 7, 1, 8)], pa.timestamp("us")), [NOON], []),
    (
        NEW_YORK,
        pa.array([datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30)]),
        [datetime(2024, 3, 10, 7, 30, tzinfo=UTC), datetime(2024, 11, 3, 5, 30, tzinfo=UTC)],
        [],
    ),
    (NEW_YORK, pa.array([NOON]), [NOON], []),
]

NEVER: list[tuple[Type, pa.Array[Any]]] = [
    (INT, pa.array(["7"])),
    (INT, pa.array([True])),
    (INT, pa.array([[7]])),
    (DOUBLE, pa.array(["NaN"])),
    (BOOLEAN, pa.array([1])),
    (STRING, pa.array([7])),
    (STRING, pa.array([b"x"])),
    (DATE, pa.array([7])),
    (DATE, pa.array([NOON])),
    (TIMESTAMP, pa.array([date(2024, 1, 2)])),
    (TIMESTAMP, pa.array([7])),
]


@pytest.mark.parametrize(("type_", "array", "expected"), VECTORISED)
def test_arrow_column_is_cast_as_a_whole(
    type_: Type, array: pa.Array[Any], expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column whose values all fit is never looked at row by row."""
    monkeypatch.setattr(arrow_casts, "_convert_rows", None)
    batch = batch_from_rows(pa.table({"v": array}), stream(v=type_))
    assert exact(values(batch)) == exact(expected)
    assert batch.table.schema.field("v").type == type_.arrow


@pytest.mark.parametrize(("type_", "array", "expected", "why"), ROW_BY_ROW)
def test_arrow_column_row_by_row(
    type_: Type, array: pa.Array[Any], expected: list[Any], why: list[str]
) -> None:
    """Where a cast of the whole is refused, each value is judged by the rules for text."""
    batch = batch_from_rows(pa.record_batch({"v": array}), stream(v=type_))
    assert values(batch) == expected
    assert reasons(batch) == why


@pytest.mark.parametrize(("type_", "array"), NEVER)
def test_arrow_column_that_can_never_fit(type_: Type, array: pa.Array[Any]) -> None:
    """A column of the wrong kind is refused by name, with both types."""
    with pytest.raises(EventError, match=r"column `v` is .*, and the stream declares .*; cast"):
        batch_from_rows(pa.table({"v": array}), stream(v=type_))


def test_dead_letter_of_a_table() -> None:
    """It shows the row as compact JSON; source and numbers are those of the table."""
    table = pa.table({"V": [1, 2**40], "name": ["é", "x"], "t": [NOON, NOON]})
    (letter,) = batch_from_rows(table, stream(v=INT)).dead
    assert (letter.source, letter.line, letter.event) == ("<table>", 2, 1)
    assert json.loads(letter.raw)["V"] == 2**40
    assert letter.raw.startswith('{"V":1099511627776,"name":"x","t":"2024-07-01 12:00')


def test_string_that_is_not_utf8() -> None:
    """Arrow does not look into strings when it reads them; we do."""
    bad = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    batch = batch_from_rows(pa.table({"v": bad}), stream(v=STRING))
    assert values(batch) == ["a", None]
    assert reasons(batch) == ["`v` is '\\udcff', which has no UTF-8 form"]
    assert batch.dead[0].raw == '{"v":"<string>"}'


def test_structs_names_and_missing_columns() -> None:
    """Structs are reached by path and names in any case; what is not there is NULL."""
    inner = pa.StructArray.from_arrays(
        [pa.array([1, 2]), pa.array([{"D": 3}, None])], ["b", "C"], mask=pa.array([False, True])
    )
    table = pa.table({"A": inner, "e.f": [5, 6], "x": [0, 0]})
    batch = batch_from_rows(table, stream(a__B=INT, a__c__d=INT, e__f=INT, gone=STRING))
    assert [tuple(row.values()) for row in rows(batch)] == [(1, 3, 5, None), (None, None, 6, None)]
    assert batch.table.schema.names == ["a.B", "a.c.d", "e.f", "gone"]


def test_tables_in_doubt() -> None:
    """Two columns for one attribute, or no struct where a path needs one, are refused."""
    with pytest.raises(EventError, match="attribute `v` has two columns"):
        batch_from_rows(pa.table({"v": [1], "V": [2]}), stream(v=INT))
    with pytest.raises(EventError, match=r"attribute `a\.b` has two columns"):
        batch_from_rows(pa.table({"a": [{"b": 1}], "a.b": [2]}), stream(a__b=INT))
    with pytest.raises(EventError, match="column `a` is int64, and the stream declares"):
        batch_from_rows(pa.table({"a": [1]}), stream(a__b=INT))
    by_column: Any = {"v": [1]}
    with pytest.raises(EventError, match="cannot be read from dict; give a pyarrow Table"):
        batch_from_rows(by_column, stream(v=INT))


def test_unused_columns_of_a_table_are_not_checked() -> None:
    """A list column, or one given twice, does no harm when nobody uses it."""
    table = pa.table({"v": [1], "w": [[1]], "W": [2]})
    assert values(batch_from_rows(table, stream(v=INT, w=INT), columns=["v"])) == [1]


def test_check_and_not_null_of_tables() -> None:
    """Tables are checked as text is."""
    declared = Stream("s", (Attribute("v", INT, ValueSet.of(Interval(1, 9)), nullable=False),))
    batch = batch_from_rows(pa.table({"v": [0, 5, None]}), declared)
    assert reasons(batch) == ["`v` is 0, outside its CHECK", "`v` is NULL, against its NOT NULL"]
    assert batch.events.tolist() == [1]


def test_chunked_and_empty_tables() -> None:
    """Chunks are one table; no rows and no columns are fine."""
    chunked = pa.chunked_array([pa.array(["a"]), pa.array(["b", "a"])]).dictionary_encode()
    assert values(batch_from_rows(pa.table([chunked], names=["v"]), stream(v=STRING))) == [
        "a",
        "b",
        "a",
    ]
    assert batch_from_rows(pa.table({"v": pa.array([], pa.int64())}), stream(v=INT)).total == 0
    assert batch_from_rows(pa.table({"v": [1, 2]}), stream(v=INT), columns=[]).total == 2
    assert batch_from_rows([], stream(v=INT)).total == 0


DICTS: list[tuple[Type, Any, Any]] = [
    (INT, 3.0, 3),
    (INT, Decimal("3.0"), 3),
    (INT, np.int64(3), 3),
    (BIGINT, 2.0**60, 2**60),
    (PRICE, 9.99, Decimal("9.99")),
    (PRICE, Decimal("9.990"), Decimal("9.99")),
    (PRICE, 7, Decimal("7.00")),
    (DOUBLE, math.nan, math.nan),
    (DOUBLE, -0.0, -0.0),
    (DOUBLE, "Infinity", math.inf),
    (DOUBLE, Decimal("0.1"), 0.1),
    (DOUBLE, np.float32(0.5), 0.5),
    (STRING, "x", "x"),
    (BOOLEAN, np.bool_(True), True),
    (DATE, date(2024, 1, 2), date(2024, 1, 2)),
    (DATE, datetime(2024, 1, 2), date(2024, 1, 2)),
    (DATE, "2024-01-02", date(2024, 1, 2)),
    (TIMESTAMP, NOON, NOON),
    (TIMESTAMP, NOON.astimezone(timezone(timedelta(hours=5))), NOON),
    (NEW_YORK, datetime(2024, 7, 1, 8), NOON),
    (NEW_YORK, datetime(2024, 11, 3, 1, 30, fold=1), datetime(2024, 11, 3, 6, 30, tzinfo=UTC)),
    (NEW_YORK, pd.Timestamp("2024-03-10 02:30"), datetime(2024, 3, 10, 7, 30, tzinfo=UTC)),
    (TIMESTAMP, pd.NaT, None),
    (INT, pd.NA, None),
]

BAD_DICTS: list[tuple[Type, Any, str]] = [
    (INT, True, "`v` is true, which is not an INT"),
    (INT, b"7", "`v` is \"b'7'\", which is not an INT"),
    (INT, 1e300, "outside INT"),
    (STRING, b"x", "`v` is \"b'x'\", which is not a STRING"),
    (STRING, 7, "`v` is 7, which is not a STRING"),
    (DOUBLE, Decimal("NaN"), "`v` is NaN, which is not a DOUBLE"),
    (DOUBLE, 2**53 + 1, "`v` is 9007199254740993, which a DOUBLE cannot hold exactly"),
    (DATE, datetime(2024, 1, 2, 3), "`v` is 2024-01-02T03:00:00, which is not a DATE"),
    (DATE, NOON, "`v` is 2024-07-01T12:00:00+00:00, which is not a DATE"),
    (TIMESTAMP, date(2024, 1, 2), "`v` is 2024-01-02, which is not a TIMESTAMP"),
    (TIMESTAMP, 7, "`v` is 7, which is not a TIMESTAMP"),
    (TIMESTAMP, pd.Timestamp(1), "finer than a microsecond"),
    (BOOLEAN, 1, "`v` is 1, which is not a BOOLEAN"),
    (INT, object, "`v` is \"<class 'object'>\", which is not an INT"),
]


@pytest.mark.parametrize(("type_", "value", "expected"), DICTS)
def test_python_value_fits(type_: Type, value: Any, expected: Any) -> None:
    """Python's and NumPy's numbers and times are read by what they are worth."""
    assert exact(values(batch_from_rows([{"V": value}], stream(v=type_)))) == exact([expected])


@pytest.mark.parametrize(("type_", "value", "reason"), BAD_DICTS)
def test_python_value_is_unfit(type_: Type, value: Any, reason: str) -> None:
    """A Python value of the wrong kind makes a dead letter."""
    (result,) = reasons(batch_from_rows([{"v": value}], stream(v=type_)))
    assert result.endswith(reason)


def test_rows_that_are_no_dicts() -> None:
    """Each bad row is a dead letter; keys that are not strings are ignored."""
    given: list[Any] = [
        {"v": 1, 2: 3},
        7,
        None,
        {"v": {}},
        {"v": 1, "V": 1},
        {"w": "\ud800", "v": "x"},
    ]
    batch = batch_from_rows(given, stream(v=INT))
    assert values(batch) == [1]
    assert reasons(batch) == [
        "7, not an object",
        "null, not an object",
        "`v` is an object, which is not an INT",
        "attribute `v` given twice",
        "`v` is 'x', which is not an INT",
    ]
    assert [letter.raw for letter in batch.dead] == [
        "7",
        "null",
        '{"v":{}}',
        '{"v":1,"V":1}',
        '{"w":"\\ud800","v":"x"}',
    ]
    assert {letter.source for letter in batch.dead} == {"<rows>"}


def test_nested_dicts() -> None:
    """Dicts nest as JSON objects do."""
    batch = batch_from_rows([{"A": {"b": 1}}, {"a.b": 2}, {"a": None}], stream(a__b=INT))
    assert values(batch) == [1, 2, None]


def test_pandas_missing_values_are_null() -> None:
    """NaN, NaT, None and pd.NA are NULL in a DataFrame, whatever the column is made of."""
    frame = pd.DataFrame(
        {
            "x": [0.5, math.nan],
            "n": [1.0, math.nan],
            "t": [pd.Timestamp(NOON), pd.NaT],
            "s": ["a", None],
            "o": ["a", math.nan],
            "i": pd.array([2**53 + 1, None], dtype="Int64"),
            "b": pd.array([True, None], dtype="boolean"),
            "c": pd.Categorical(["u", None]),
            "f": pd.Series(pa.array([0.5, math.nan]), dtype=pd.ArrowDtype(pa.float64())),
        }
    )
    declared = stream(
        x=DOUBLE, n=INT, t=TIMESTAMP, s=STRING, o=STRING, i=BIGINT, b=BOOLEAN, c=STRING, f=DOUBLE
    )
    batch = batch_from_rows(frame, declared)
    first, second = rows(batch)
    assert list(first.values()) == [0.5, 1, NOON, "a", "a", 2**53 + 1, True, "u", 0.5]
    assert set(second.values()) == {None}


def test_pandas_columns_of_objects() -> None:
    """Objects of several types are read as those of dicts are, exactly."""
    frame = pd.DataFrame(
        {
            "n": pd.Series([2**53 + 1, 0.5, "x", None], dtype=object),
            "d": pd.Series([Decimal("1.20"), 9.99, 7, math.nan], dtype=object),
            "a": pd.Series([{"b": 1}, {"B": 2}, None, {"b": "x"}], dtype=object),
            "t": pd.to_datetime(["2024-07-01 08:00"] * 4),
        }
    )
    batch = batch_from_rows(frame, stream(n=BIGINT, d=PRICE, a__b=INT, t=NEW_YORK))
    assert rows(batch) == [{"n": 2**53 + 1, "d": Decimal("1.20"), "a.b": 1, "t": NOON}]
    assert reasons(batch) == [
        "`n` is 0.5, which is not a BIGINT",
        "`n` is 'x', which is not a BIGINT",
        "`a.b` is 'x', which is not an INT",
    ]
    assert {letter.source for letter in batch.dead} == {"<table>"}


def test_pandas_columns_that_can_never_fit() -> None:
    """A column of strings is no column of numbers, in pandas either."""
    with pytest.raises(EventError, match="column `v` is string, and the stream declares INT"):
        batch_from_rows(pd.DataFrame({"v": ["1", "2"]}), stream(v=INT))
    with pytest.raises(EventError, match="attribute `v` has two columns"):
        batch_from_rows(pd.DataFrame([[1, 2]], columns=["v", "V"]), stream(v=INT))


def test_pandas_with_odd_shapes() -> None:
    """Labels that are no strings, no rows, and no used columns lose no event."""
    assert rows(batch_from_rows(pd.DataFrame({0: [1], "v": [2]}), stream(v=INT))) == [{"v": 2}]
    assert batch_from_rows(pd.DataFrame({"w": [1, 2]}), stream(v=INT)).total == 2
    assert batch_from_rows(pd.DataFrame({"v": []}), stream(v=INT)).total == 0
    assert len(batch_from_rows(pd.DataFrame({"v": [1j]}), stream(v=INT)).dead) == 1


class ArrowStream:
    """A frame of a library that we do not know, such as Polars: all it offers is the protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        stream: Any = self._table.__arrow_c_stream__
        return stream(requested_schema)


def test_frames_of_other_libraries() -> None:
    """As Polars gives them out: views of strings, dictionaries, and NaN that is a value."""
    stream = Stream("s", (Attribute("qty", INT), Attribute("side", STRING), Attribute("x", DOUBLE)))
    columns: dict[str, Any] = {
        "QTY": pa.array([1, None], pa.int64()),
        "side": pa.array(["buy", None], pa.string_view()),
        "x": pa.array([math.nan, 1.5]),
        "other": [1, 2],
    }
    batch = batch_from_rows(ArrowStream(pa.table(columns)), stream)
    first, second = batch.table.to_pylist()
    assert (first["qty"], first["side"], math.isnan(first["x"])) == (1, "buy", True)
    assert second == {"qty": None, "side": None, "x": 1.5}
    assert batch.unknown == {"other": 2}
    letters = pa.table({"side": pa.array(["a", "b"]).dictionary_encode()})
    assert batch_from_rows(ArrowStream(letters), stream).table.column(1).to_pylist() == ["a", "b"]
