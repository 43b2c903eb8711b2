"""Tables that are read in place, and single dicts, give what the path through columns gives."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.errors import EventError
from headgate.events import EventBatch, batch_from_rows
from headgate.events.dict_reader import DictReader
from headgate.events.typed_tables import TypedTable, read_typed_batch, read_typed_table
from headgate.matching.encoding.code_book import CodeBook, Regions, build_look_up_table
from headgate.matching.encoding.event_columns import EventColumns
from headgate.predicate import Column
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
    Ordinal,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)
from tests.events.helpers import exact
from tests.oracles.event_codes import RowCodes, encode_by_value
from tests.scale import at_least, case_count, seed

SHARDS = range(4)
MAX_ROWS = 150
BERLIN = Timestamp("Europe/Berlin")
DAY, MOMENT = date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 1)

# By type: the values that are drawn, and the types of Arrow in which they may come. Not all of
# these fit the attribute.
INTEGERS = [0, 1, -1, 2, 7, 40, 100, 127, -128, 255, 2**15 - 1, 2**31 - 1, -(2**31), 2**31, 2**32]
WIDE_INTEGERS = [*INTEGERS, 2**53 + 1, 2**63 - 1, -(2**63)]
INTEGER_TYPES: list[Any] = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16()]
INTEGER_TYPES += [pa.uint32(), pa.uint64(), pa.float64(), pa.decimal128(20, 0), pa.null()]
DOUBLES = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 5e-324, -1e308, 3.0]
TEXTS = ["", "a", "ab", "é", "x", "2024-02-29"]
DAYS = [date(1, 1, 1), date(1970, 1, 1), DAY, date(9999, 12, 31)]
MOMENTS = [datetime(1, 1, 2), datetime(1970, 1, 1), MOMENT, datetime(9999, 12, 30), MOMENT.min]
PRICES = [Decimal(text) for text in ("0.00", "-1.00", "0.01", "99.99", "12345678.90")]
SOURCES: dict[Type, tuple[list[Any], list[Any]]] = {
    BOOLEAN: ([True, False], [pa.bool_(), pa.bool_(), pa.int8(), pa.null()]),
    INT: (INTEGERS, INTEGER_TYPES),
    BIGINT: (WIDE_INTEGERS, INTEGER_TYPES),
    DOUBLE: (DOUBLES, [pa.float64(), pa.float64(), pa.float32(), pa.int32()]),
    DecimalType(10, 2): (PRICES, [pa.decimal128(10, 2), pa.decimal128(4, 2), pa.decimal128(12, 3)]),
    DecimalType(38, 2): (PRICES, [pa.decimal128(38, 2), pa.decimal128(10, 2)]),
    STRING: (TEXTS, [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]),
    DATE: (DAYS, [pa.date32(), pa.date32(), pa.date64(), pa.timestamp("s"), pa.string()]),
    TIMESTAMP: (
        MOMENTS,
        [pa.timestamp("us", tz="UTC"), pa.timestamp("us", tz="Asia/Tokyo"), pa.timestamp("us")],
    ),
    BERLIN: (MOMENTS, [pa.timestamp("us", tz="UTC"), pa.timestamp("ms"), pa.timestamp("us")]),
}


def draw_stream(rng: random.Random) -> Stream:
    """Attributes of every type; some with a CHECK, some NOT NULL, one inside a struct."""
    attributes = []
    for number, (type_, (values, _)) in enumerate(SOURCES.items()):
        domain = ValueSet.of(Interval(None, None))
        if rng.random() < 0.2:
            domain = draw_domain(rng, type_, values)
        attributes.append(Attribute(f"a{number}", type_, domain, rng.random() < 0.9))
    attributes.append(Attribute("in.side", INT))
    rng.shuffle(attributes)
    return Stream("s", tuple(attributes))


def draw_domain(rng: random.Random, type_: Type, values: list[Any]) -> ValueSet:
    """One or two intervals that most of the values are in."""
    ordinals = sorted(find_ordinals(type_, values))
    low = rng.choice([None, ordinals[0], *ordinals[:2]])
    if rng.random() < 0.5:
        return ValueSet.of(Interval(low, rng.choice([None, ordinals[-1]])))
    return ValueSet.of(Interval(low, ordinals[-1])).union(ValueSet.of(Interval(ordinals[-1], None)))


def find_ordinals(type_: Type, values: list[Any]) -> set[Ordinal]:
    return {type_.ordinal(value) for value in values}


def draw_table(rng: random.Random, stream: Stream) -> pa.Table:
    """A table of rows that mostly fit, in types, slices, chunks and names of any kind."""
    rows = rng.choice([0, 1, 2, 63, 64, 65, rng.randrange(MAX_ROWS)])
    columns: dict[str, pa.Array[Any]] = {}
    for attribute in stream:
        if rng.random() < 0.15:
            continue
        column = draw_column(rng, attribute, rows)
        name = attribute.name.upper() if rng.random() < 0.1 else attribute.name
        if "." in name and rng.random() < 0.7:
            outer, inner = name.split(".")
            name, column = outer, pa.StructArray.from_arrays([column], names=[inner])
        columns[name] = column
    if rng.random() < 0.3:
        columns["undeclared"] = pa.array(range(rows), pa.int64())
    names = list(columns)
    rng.shuffle(names)
    if not names:
        names, columns = ["undeclared"], {"undeclared": pa.nulls(rows)}
    return pa.Table.from_arrays([columns[name] for name in names], names=names)


def draw_column(rng: random.Random, attribute: Attribute, rows: int) -> pa.Array[Any]:
    values, types = SOURCES[attribute.type]
    # the type of the attribute most often: else no table could be read in place
    source = rng.choice(types) if rng.random() < 0.25 else attribute.type.arrow
    if pa.types.is_null(source):
        return pa.nulls(rows)
    fitting = [value for value in values if fits(attribute, source, value)] or [None]
    share = rng.choice([0.0, 0.0, 0.3, 0.95, 1.0]) if attribute.nullable else 0.0
    skipped = rng.choice([0, 0, 1, 7, 8, 64, 65])
    drawn = [
        None if rng.random() < share else rng.choice(fitting) for _ in range(skipped + rows + 3)
    ]
    if rng.random() < 0.05 and rows:
        drawn[skipped + rng.randrange(rows)] = rng.choice([None, *values])
    try:
        column: Any = pa.array(drawn, source)
    except (pa.ArrowException, OverflowError, TypeError):
        column = pa.array(drawn).cast(source, safe=False)
    if isinstance(column.type, pa.TimestampType) and rng.random() < 0.03:
        column = pa.array(np.full(len(column), 2**62), pa.int64()).cast(column.type)
    return unpad(column).slice(skipped, rows)


def fits(attribute: Attribute, source: Any, value: Any) -> bool:
    """Return whether a value is one of the attribute, and can be written in a type of Arrow."""
    try:
        written = pa.array([value]).cast(source)
    except (pa.ArrowException, OverflowError):
        return False
    try:
        batch = batch_from_rows(pa.table({attribute.name: written}), Stream("s", (attribute,)))
    except EventError:  # whatever the values, the column will be refused
        return True
    return not batch.dead


def unpad(column: Any) -> pa.Array[Any]:
    """Return the same array in buffers that end with its last byte, and begin anywhere."""
    if isinstance(column, pa.DictionaryArray) or column.type.num_fields:
        return column  # type: ignore[no-any-return]
    buffers = []
    for place, buffer in enumerate(column.buffers()):
        size = buffer.size if buffer else 0
        if place == 0:
            size = -(-len(column) // 8)
        elif isinstance(column.type, pa.DataType) and place == 1:
            width = 8 if pa.types.is_large_string(column.type) else 4
            is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            size = width * (len(column) + 1) if is_text else -(-len(column) * bits(column) // 8)
        # a buffer that is one byte off no word
        content = None if buffer is None else b"?" + buffer.to_pybytes()[:size]
        buffers.append(None if content is None else pa.py_buffer(content).slice(1))
    whole: pa.Array[Any] = pa.Array.from_buffers(
        column.type, len(column), buffers, column.null_count
    )
    return whole


def bits(column: Any) -> int:
    return int(column.type.bit_width)


def draw_book(rng: random.Random, stream: Stream) -> CodeBook:
    """Cuts at some of the values, close together or far apart."""
    regions = []
    for attribute in stream:
        values = [value for value in SOURCES[attribute.type][0] if rng.random() < 0.5]
        is_near = attribute.type in (INT, BIGINT) and rng.random() < 0.5
        values = [value for value in values if abs(value) < 1000] if is_near else values
        cuts = sorted(find_ordinals(attribute.type, values))
        column = Column(attribute.name, attribute.type)
        if attribute.type in (STRING, DecimalType(38, 2)):
            regions.append(Regions(column, cuts, None))
        else:
            numbers = np.array(cuts, np.int64)
            regions.append(Regions(column, numbers, build_look_up_table(numbers)))
    return CodeBook(tuple(regions))


def read_codes(book: CodeBook, table: TypedTable, first: int, rows: int) -> RowCodes:
    start, column, code = book.codes(EventColumns(table, rows, first=first))
    assert start[0] == 0
    assert len(column) == len(code) == start[-1]
    codes = [
        dict(zip(column[begin:end].tolist(), code[begin:end].tolist(), strict=True))
        for begin, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    ]
    assert sum(map(len, codes)) == len(code)
    return codes


def assert_same_codes(
    rng: random.Random, book: CodeBook, table: TypedTable, batch: EventBatch
) -> None:
    rows = len(batch.events)
    first = rng.choice([0, 0, rng.randrange(rows + 1)])
    count = rng.choice([rows - first, rng.randrange(rows - first + 1)])
    expected = encode_by_value(book, batch.table, first, count)
    assert read_codes(book, table, first, count) == expected


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_tables(shard: int) -> None:
    rng, outcomes = random.Random(seed(shard)), Counter[str]()
    for _ in range(case_count(500)):
        stream = draw_stream(rng)
        used = tuple(a for a in stream if rng.random() < 0.8)
        drawn, book = draw_table(rng, stream), draw_book(rng, stream)
        cut = rng.randrange(drawn.num_rows + 1)
        chunked = pa.concat_tables([drawn.slice(0, cut), drawn.slice(cut)])
        form: Any = rng.choice([drawn, chunked, *drawn.to_batches()])
        try:
            batch = batch_from_rows(form, stream, columns=[a.name for a in used])
        except EventError:
            assert read_typed_table(form, stream, used) is None
            outcomes["refused"] += 1
            continue
        # the batch of columns gives the same codes, whether or not it has dead letters
        assert_same_codes(rng, book, read_typed_batch(batch.table, len(batch.events)), batch)
        table = read_typed_table(form, stream, used)
        if batch.dead or not drawn.num_rows:
            assert table is None
            outcomes["dead letters"] += 1
            continue
        assert table is not None
        assert table.rows == len(batch.events)
        for attribute in used:
            column = table.column(attribute.name, attribute.type, 0, table.rows)
            expected = batch.table.column(attribute.name)
            assert column.type == expected.type
            assert exact(column.to_pylist()) == exact(expected.to_pylist())
        assert_same_codes(rng, book, table, batch)
        outcomes["in place"] += 1
    assert outcomes["in place"] >= at_least(100), outcomes
    assert outcomes["dead letters"] >= at_least(40), outcomes
    assert outcomes["refused"] >= at_least(5), outcomes


ODD_VALUES: list[Any] = [
    *(np.int32(7), np.float64(1.5), np.bool_(True), 3.0, 3.5, 2**31, 2**63, 10**30, 1e30, "x", ""),
    *(Decimal("1.10"), Decimal("1.105"), Decimal("NaN"), b"x", [], {}, True, False, math.nan, -0.0),
    *("2024-02-29", "2024-02-30", "2024-02-29T12:30:00Z", "NaN", "\ud800", DAY, MOMENT),
    *(MOMENT.replace(tzinfo=UTC), MOMENT - timedelta(days=1), float("inf"), 2**53 + 1, None),
]


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_dicts(shard: int) -> None:
    rng, outcomes = random.Random(seed(shard)), Counter[str]()
    for _ in range(case_count(400)):
        stream = draw_stream(rng)
        used = tuple(a for a in stream if rng.random() < 0.8)
        book, reader = draw_book(rng, stream), DictReader(stream, used)
        for _ in range(10):
            event = draw_dict(rng, stream)
            batch = batch_from_rows([event], stream, columns=[a.name for a in used])
            ordinals = reader.read(event)
            if ordinals is None:
                outcomes["left"] += 1
                continue
            assert not batch.dead, event
            start, column, code = book.codes_of_one(ordinals)
            assert start.tolist() == [0, len(column)] == [0, len(code)]
            codes = dict(zip(column.tolist(), code.tolist(), strict=True))
            assert [codes] == encode_by_value(book, batch.table, 0, 1), event
            outcomes["read"] += 1
    assert outcomes["read"] >= at_least(500), outcomes
    assert outcomes["left"] >= at_least(200), outcomes


def test_plain_dicts_are_read() -> None:
    """Events whose values are of their types are never left to the other path."""
    rng = random.Random(seed())
    for _ in range(case_count(500)):
        stream = Stream("s", tuple(Attribute(a.name, a.type) for a in draw_stream(rng)))
        event = draw_dict(rng, stream, odd=0.0)
        batch = batch_from_rows([event], stream)
        is_left = DictReader(stream, stream.attributes).read(event) is None
        assert is_left == (bool(batch.dead) or "in" in event), event


def draw_dict(rng: random.Random, stream: Stream, odd: float = 0.08) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for attribute in stream:
        chance = rng.random()
        if chance < odd:
            event[attribute.name] = rng.choice(ODD_VALUES)
        elif chance < 0.5 or not attribute.nullable:
            event[attribute.name] = rng.choice([*SOURCES[attribute.type][0], None])
    if rng.random() < odd:
        event[rng.choice([stream.attributes[0].name.upper(), "in", "IN.SIDE", "new"])] = 1
    if rng.random() < 0.1:
        event["in"] = {"side": 3}
    return event
