"""Laws that hold for all events, tried on random ones."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.events import (
    EventBatch,
    batch_from_rows,
    infer_stream,
    parse_csv_records,
    parse_json_lines,
    read_events,
    split_csv,
)
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Attribute,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Stream,
    String,
    Timestamp,
    Type,
)
from headgate.sql.literals import parse_date, parse_timestamp
from tests.events.helpers import exact
from tests.events.oracle import DeadError, read_line
from tests.scale import case_count

TYPES: dict[str, Type] = {
    "flag": BOOLEAN,
    "qty": INT,
    "id": BIGINT,
    "price": DecimalType(10, 2),
    "Wide": DecimalType(38, 10),
    "x": DOUBLE,
    "name": STRING,
    "day": DATE,
    "moment": TIMESTAMP,
    "in.side": INT,
}
ALL = Stream("s", tuple(Attribute(name, type_) for name, type_ in TYPES.items()))

Row = dict[str, Any]


def of_type(type_: Type) -> st.SearchStrategy[Any]:
    match type_:
        case Boolean():
            return st.booleans()
        case Integer():
            return st.integers(type_.minimum, type_.maximum)
        case DecimalType():
            return st.integers(type_.minimum, type_.maximum).map(type_.value)
        case Double():
            edges = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 2.0**53 + 2]
            return st.floats() | st.sampled_from(edges)
        case String():
            awkward = st.text('",\n\r \té😀\0\\')
            return st.text(st.characters(exclude_categories=["Cs"])) | awkward
        case Date():
            return st.dates()
        case Timestamp():
            return st.datetimes(timezones=st.just(UTC))
    raise AssertionError("no such kind")


def typed_rows() -> st.SearchStrategy[list[Row]]:
    values = {name: st.none() | of_type(type_) for name, type_ in TYPES.items()}
    return st.lists(st.fixed_dictionaries(values), max_size=8)


def as_json(row: Mapping[str, Any]) -> bytes:
    """The row as a careful writer would write it, nested, without going through a float."""
    flat = ", ".join(f'"{n}": {json_text(v)}' for n, v in row.items() if "." not in n)
    return f'{{{flat}, "in": {{"side": {json_text(row["in.side"])}}}}}\n'.encode()


def json_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):  # a datetime is one
        return json.dumps(value.isoformat())
    return json.dumps(value, ensure_ascii=False)


def as_csv(row: Mapping[str, Any]) -> bytes:
    return (",".join(csv_text(row[name]) for name in TYPES) + "\r\n").encode()


def csv_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return json_text(value).strip('"')


def as_table(rows: list[Row]) -> pa.Table:
    return pa.table({n: pa.array([row[n] for row in rows], t.arrow) for n, t in TYPES.items()})


def cells(batch: EventBatch) -> list[list[str]]:
    return [exact(list(row.values())) for row in batch.table.to_pylist()]


def expected(rows: list[Row]) -> list[list[str]]:
    return [exact([row[name] for name in TYPES]) for row in rows]


@given(typed_rows())
def test_round_trip_through_json(rows: list[Row]) -> None:
    """Rows written as JSON lines come back as they were, to the bit."""
    batch = parse_json_lines([as_json(row) for row in rows], ALL, source="x")
    assert batch.dead == ()
    assert cells(batch) == expected(rows)


@given(typed_rows())
def test_round_trip_through_csv(rows: list[Row]) -> None:
    """Rows written as CSV come back as they were, NULL and the empty string included."""
    text = io.BytesIO(b"".join(as_csv(row) for row in rows))
    batch = parse_csv_records(split_csv(text, first_line=2), ALL, header=list(TYPES), source="x")
    assert batch.dead == ()
    assert cells(batch) == expected(rows)


@given(typed_rows())
def test_round_trip_through_rows(rows: list[Row]) -> None:
    """Rows given as dicts or as an Arrow table are as they were."""
    for data in (rows, as_table(rows), as_table(rows).combine_chunks()):
        batch = batch_from_rows(data, ALL)
        assert batch.dead == ()
        assert cells(batch) == expected(rows)


@settings(max_examples=case_count(25))
@given(typed_rows(), st.integers(1, 4))
def test_files_agree(rows: list[Row], batch_rows: int) -> None:
    """JSON lines, CSV and Parquet files of the same rows give the same batches."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "e.jsonl").write_bytes(b"".join(as_json(row) for row in rows))
        header = ",".join(TYPES).encode() + b"\n"
        (folder / "e.csv").write_bytes(header + b"".join(as_csv(row) for row in rows))
        pq.write_table(as_table(rows), folder / "e.parquet")
        for path in folder.iterdir():
            batches = list(read_events(path, ALL, batch_rows=batch_rows))
            assert [cell for batch in batches for cell in cells(batch)] == expected(rows)
            numbers = [number for batch in batches for number in batch.events.tolist()]
            assert numbers == list(range(len(rows)))


OFFSETS = ["Z", "+02:00", "-0330", "+23", "+24:00", "+01:60", "+01:00:01", "z", " +01:00", "UTC"]
KEYS = [*TYPES, "QTY", "X", "wide", "in", "IN", "In.Side", "other", "ſide"]
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda d: f"{d:f}"),
    st.tuples(st.integers(-999, 999), st.integers(-330, 330)).map(lambda p: f"{p[0]}e{p[1]}"),
    st.sampled_from(["9007199254740993", "9007199254740993.0", "1.239", "1e400", "-0", "0e999"]),
)
STRINGS = st.one_of(
    st.text().map(json.dumps),
    st.dates().map(lambda d: json.dumps(d.isoformat())),
    st.datetimes().map(lambda d: json.dumps(d.isoformat())),
    st.tuples(st.datetimes(), st.sampled_from(OFFSETS)).map(
        lambda pair: json.dumps(f"{pair[0].isoformat(' ')}{pair[1]}")
    ),
    st.from_regex(r"\A[012][0-9]{3}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9])?\Z").map(
        json.dumps
    ),
    st.sampled_from(
        ['"NaN"', '"-Infinity"', '"inf"', '"\\ud800"', '"2024-01-02T00:00:00.1234560"']
    ),
)
SCALARS = NUMBERS | STRINGS | st.sampled_from(["null", "true", "false", "NaN", "-Infinity"])


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(st.sampled_from([*KEYS, "side", "SIDE"]), inner)
    return st.lists(pair, max_size=5).map(
        lambda pairs: "{" + ", ".join(f'"{key}": {value}' for key, value in pairs) + "}"
    )


JSON_VALUES = st.recursive(SCALARS, lambda inner: objects(inner) | inner.map(lambda v: f"[{v}]"))
LINES = st.one_of(
    objects(SCALARS | objects(SCALARS)),
    JSON_VALUES,
    st.tuples(objects(SCALARS), objects(SCALARS)).map(" ".join),
    st.text(' \t{}[]",:0123456789eE.-+nulltrue\\'),
)


def ordinals(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of the product in the units of the oracle."""

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        if isinstance(value, date):
            return (value - date(1970, 1, 1)).days
        return Fraction(value) if isinstance(value, Decimal) else value

    return {name: plain(value) for name, value in row.items()}


@settings(max_examples=case_count(500))
@given(LINES)
@example('{"in": {"side": 1, "x": 2}, "IN.SIDE": null}')
@example('{"qty": 1, "qty": 1}')
def test_agrees_with_the_oracle(line: str) -> None:
    """A line is a row or a dead letter as the naive reading says, with the same values."""
    raw = line.encode("utf-8", "surrogatepass")
    batch = parse_json_lines([raw], ALL, source="x")
    if not raw.strip():
        assert (batch.blank, batch.total) == (1, 1)
        return
    try:
        row = read_line(raw, {name: type_.sql for name, type_ in TYPES.items()})
    except DeadError:
        assert len(batch.dead) == 1
        return
    assert batch.dead == ()
    (actual,) = batch.table.to_pylist()
    assert {n: repr(v) for n, v in ordinals(actual).items()} == {n: repr(v) for n, v in row.items()}


@settings(max_examples=case_count(200))
@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda d: d.replace(fold=0)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]),
    st.sampled_from(["us", "ns"]),
)
@example(datetime(2024, 3, 31, 2, 30), "Europe/Berlin", "us")
@example(datetime(2024, 10, 27, 2, 30), "Europe/Berlin", "ns")
def test_local_times_agree(clock: datetime, zone: str, unit: str) -> None:
    """A clock time without offset is the same moment in text, in Arrow, in Python and by hand."""
    declared = Stream("s", (Attribute("t", Timestamp(zone)),))
    line = json.dumps({"t": clock.isoformat()}).encode()
    arrow = pa.array([clock], pa.timestamp("us")).cast(pa.timestamp(unit))
    moments = [
        parse_json_lines([line], declared, source="x"),
        batch_from_rows([{"t": clock}], declared),
        batch_from_rows(pa.table({"t": arrow}), declared),
    ]
    actual = {ordinals(batch.table.to_pylist()[0])["t"] for batch in moments}
    assert actual == {read_line(line, {"t": "TIMESTAMP"}, zone)["t"]}


@given(st.dates(), st.datetimes(timezones=st.none() | st.just(UTC)))
def test_forms_are_those_of_literals(day: date, clock: datetime) -> None:
    """What is a date or a time in an event means the same in a query."""
    declared = Stream("s", (Attribute("d", DATE), Attribute("t", TIMESTAMP)))
    row = {"d": day.isoformat(), "t": clock.isoformat()}
    (actual,) = batch_from_rows([row], declared).table.to_pylist()
    assert actual["d"] == parse_date(row["d"])
    assert actual["t"] == TIMESTAMP.moment(parse_timestamp(row["t"]))


@given(st.lists(LINES | st.just("") | st.just(" \t"), max_size=12))
def test_row_by_row_equals_all_at_once(lines: list[str]) -> None:
    """A block of lines gives what its lines give one by one."""
    raw = [line.encode("utf-8", "surrogatepass") for line in lines]
    whole = parse_json_lines(raw, ALL, source="x")
    single = [parse_json_lines([line], ALL, source="x", first_line=9) for line in raw]
    assert cells(whole) == [cell for batch in single for cell in cells(batch)]
    assert [d.reason for d in whole.dead] == [d.reason for batch in single for d in batch.dead]


def check_conservation(batches: list[EventBatch]) -> None:
    """Each event has one number, and is a row or a dead letter."""
    numbers = [number for batch in batches for number in batch.events.tolist()]
    numbers += [letter.event for batch in batches for letter in batch.dead]
    assert sorted(numbers) == list(range(len(numbers)))
    for batch in batches:
        assert batch.total == batch.table.num_rows + len(batch.dead) + batch.blank
        places = [letter.event for letter in batch.dead]
        assert places == sorted(places)
        for letter in batch.dead:
            assert letter.reason
            assert len(letter.raw) <= 1_000
            letter.raw.encode()


GARBAGE = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from([b"\n", b"\r\n", b'"', b",", b"{", b"}", b'{"qty": 1}', b'"x":', b"1e5"]),
        LINES.map(lambda line: line.encode("utf-8", "surrogatepass")),
    ),
    max_size=30,
).map(b"".join)


@given(GARBAGE, st.integers(1, 5))
def test_conservation_of_json_lines(garbage: bytes, batch_rows: int) -> None:
    """Every line of whatever bytes is a row, a dead letter or blank."""
    with TemporaryDirectory() as name:
        path = Path(name) / "e.jsonl"
        path.write_bytes(garbage)
        batches = list(read_events(path, ALL, batch_rows=batch_rows))
    check_conservation(batches)
    lines = garbage.count(b"\n") + (not garbage.endswith(b"\n") and garbage != b"")
    assert sum(batch.total for batch in batches) == lines


@given(GARBAGE, st.integers(1, 5))
def test_conservation_of_csv(garbage: bytes, batch_rows: int) -> None:
    """The records of whatever bytes put together are those bytes, and each is accounted for."""
    with TemporaryDirectory() as name:
        path = Path(name) / "e.csv"
        path.write_bytes(b"qty,name\n" + garbage)
        batches = list(read_events(path, ALL, columns=["qty", "name"], batch_rows=batch_rows))
    check_conservation(batches)
    records = list(split_csv(io.BytesIO(garbage), first_line=2))
    assert b"".join(record.raw for record in records) == garbage
    assert sum(batch.total for batch in batches) == len(records)
    lines = list(io.BytesIO(garbage))
    assert all(record.raw.startswith(lines[record.line - 2]) for record in records)


@given(
    st.lists(st.one_of(st.none(), st.integers(), st.text(), st.floats(), st.binary()), max_size=5)
)
def test_conservation_of_rows(values: list[Any]) -> None:
    """Every row of whatever objects is a row or a dead letter."""
    for attribute in ALL:
        declared = Stream("s", (Attribute("v", attribute.type),))
        batch = batch_from_rows([{"v": value} for value in values], declared)
        check_conservation([batch])
        assert batch.total == len(values)


SMALL_FLOATS = st.floats(-(2.0**53), 2.0**53) | st.sampled_from([math.nan, math.inf, -math.inf])


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(KEYS),
            st.none() | st.booleans() | st.integers() | st.text() | SMALL_FLOATS,
            max_size=4,
        ),
        max_size=5,
    )
)
def test_dicts_mean_what_their_json_means(rows: list[Row]) -> None:
    """A row means the same before `json.dumps` and after, up to where floats have gaps."""
    lines = [json.dumps(row).encode() for row in rows]
    text, direct = parse_json_lines(lines, ALL, source="x"), batch_from_rows(rows, ALL)
    assert cells(text) == cells(direct)
    assert text.events.tolist() == direct.events.tolist()


def decimal_arrays(precision: int, scale: int) -> st.SearchStrategy[tuple[list[Any], Any]]:
    value = DecimalType(precision, scale).value
    values = st.none() | st.integers(-9, 9) | st.integers(1 - 10**precision, 10**precision - 1)
    decimals = values.map(lambda unscaled: None if unscaled is None else value(unscaled))
    types = [pa.decimal128(precision, scale), pa.decimal256(precision + 38, scale)]
    return st.tuples(st.lists(decimals, max_size=4), st.sampled_from(types))


NUMBER_ARRAYS = st.one_of(
    st.tuples(
        st.lists(st.none() | st.integers(0, 127) | st.integers(0, 2**63 - 1), max_size=4),
        st.sampled_from([pa.int64(), pa.uint64()]),
    ),
    st.tuples(
        st.lists(st.none() | st.integers(-99, 99).map(float) | st.floats(), max_size=4),
        st.just(pa.float64()),
    ),
    st.tuples(st.lists(st.none() | st.floats(width=32), max_size=4), st.just(pa.float32())),
    st.tuples(st.integers(1, 38), st.integers(0, 38)).flatmap(
        lambda pair: decimal_arrays(max(pair), min(pair))
    ),
)


@settings(max_examples=case_count(300))
@given(NUMBER_ARRAYS)
def test_columns_of_numbers_mean_what_their_values_mean(given_: tuple[list[Any], Any]) -> None:
    """A column cast as a whole holds what its values give one by one, for every pair of types."""
    array = pa.array(*given_)
    numeric = [type_ for type_ in TYPES.values() if type_.numeric]
    for type_ in [*numeric, DecimalType(38, 38), DecimalType(5, 0)]:
        declared = Stream("s", (Attribute("v", type_),))
        whole = batch_from_rows(pa.table({"v": array}), declared)
        single = batch_from_rows([{"v": value} for value in array.to_pylist()], declared)
        assert cells(whole) == cells(single)
        assert [d.reason for d in whole.dead] == [d.reason for d in single.dead]


DAY = 86_400
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
YEARS = {"first": -62_135_596_800, "end": 253_402_300_800}  # seconds of the years 1 and 10000


@settings(max_examples=case_count(300))
@given(
    st.lists(
        st.integers(-(2**63), 2**63 - 1)
        | st.integers(-(2**40), 2**40).map(lambda n: n * 1_000)
        | st.integers(-(10**7), 10**7).map(lambda n: n * DAY * 1_000)
        | st.sampled_from([YEARS["first"], YEARS["first"] - 1, YEARS["end"], YEARS["end"] - 1]),
        max_size=4,
    ),
    st.sampled_from(sorted(TICKS)),
    st.sampled_from([None, "UTC", "Asia/Tokyo"]),
)
def test_columns_of_times_are_counted_exactly(
    ticks: list[int], unit: Any, zone: str | None
) -> None:
    """A time is the moment that its number says, or a dead letter; so is a date."""

    def counted(array: pa.Array[Any], type_: Type, per_second: int, step: int) -> None:
        """`step` is the number of its steps in a second, negative for seconds in a step."""
        seconds = [Fraction(n, per_second) for n in ticks]
        good = [s for s in seconds if YEARS["first"] <= s < YEARS["end"]]
        worth = [s * step if step > 0 else s / -step for s in good]
        batch = batch_from_rows(pa.table({"v": array}), Stream("s", (Attribute("v", type_),)))
        actual = [ordinals(row)["v"] for row in batch.table.to_pylist()]
        assert actual == [int(w) for w in worth if w.denominator == 1]
        assert batch.total == len(ticks)

    plain = pa.array(ticks, pa.int64())
    counted(plain.view(pa.timestamp(unit, zone)), TIMESTAMP, TICKS[unit], 10**6)
    counted(plain.view(pa.date64()), DATE, 1_000, -DAY)
    if zone is None:
        counted(plain.view(pa.timestamp(unit)), DATE, TICKS[unit], -DAY)


@settings(max_examples=case_count(200))
@given(st.lists(objects(JSON_VALUES), min_size=1, max_size=6))
def test_inferred_streams_take_their_file(lines: list[str]) -> None:
    """No event becomes a dead letter for the type of an attribute that was inferred from it."""
    with TemporaryDirectory() as name:
        path = Path(name) / "e.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        stream = infer_stream(path)
        batches = list(read_events(path, stream.stream))
    letters = [letter for batch in batches for letter in batch.dead]
    assert all("given twice" in letter.reason for letter in letters)
    assert stream.rows == sum(batch.total for batch in batches)


@settings(max_examples=case_count(200))
@given(st.lists(st.tuples(SCALARS, SCALARS), min_size=1, max_size=6))
def test_inferred_streams_take_their_csv(pairs: list[tuple[str, str]]) -> None:
    """So it is with CSV, where nothing at all becomes a dead letter."""
    with TemporaryDirectory() as name:
        path = Path(name) / "e.csv"
        body = "".join(f"{a.replace(chr(34), '')},{b.replace(chr(34), '')}\n" for a, b in pairs)
        path.write_bytes(b"a,b\n" + body.replace(", ", " ").encode())
        stream = infer_stream(path)
        batches = list(read_events(path, stream.stream))
    bad = {letter.reason for batch in batches for letter in batch.dead}
    assert all("fields, and the header" in reason for reason in bad)


@pytest.mark.parametrize("type_", TYPES.values(), ids=str)
def test_every_type_has_a_rule(type_: Type) -> None:
    """An empty column of each type has that type."""
    batch = parse_json_lines([b"{}"], Stream("s", (Attribute("v", type_),)), source="x")
    assert batch.table.schema.field("v").type == type_.arrow
