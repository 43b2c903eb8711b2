"""The kernel and the parser of single lines agree on every block: rows, letters and counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headgate.events import EventBatch, json_columns, parse_json_lines, plain_rows, read_events
from headgate.events.json_columns import parse_json_block
from headgate.events.line_blocks import PADDING, LineBlock, join_lines
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
from tests.scale import at_least, case_count, seed

SHARDS = range(4)
BLOCK_LINES = 100

TYPES: tuple[Type, ...] = (
    BOOLEAN,
    INT,
    BIGINT,
    DOUBLE,
    STRING,
    DATE,
    TIMESTAMP,
    Timestamp("Europe/Berlin"),
    DecimalType(4, 2),
    DecimalType(18, 0),
    DecimalType(18, 18),
    DecimalType(38, 10),
)
NAMES = ("a", "b", "ab", "Qty", "bid.size", "bid.by", "x_1", "straße", "long_name_of_a_column", "")
NUMBERS = (
    "0 -0 1 -1 7 12 -45 100 2147483647 2147483648 -2147483648 -2147483649 9007199254740991 "
    "9007199254740992 9007199254740993 999999999999999999 1000000000000000000 9223372036854775807 "
    "-9223372036854775808 9223372036854775808 123456789012345678901234567890 007 -01 00 1.5 -0.0 "
    "0.10 99.99 100.00 12.345 3.0 -7.25 1e5 1E5 1e+2 1e-2 1.5e1 1e22 1e23 1e-22 1e-23 1e400 -1e400 "
    "1e999999999999999999999 0e0 0.000000000000000001 123456789.123456789 9007199254740993.0 1. .5 "
    "- + +1 1e 1e+ 0x10 1_000 NaN Infinity -Infinity 0.1 0.3 2.675 179769313486231570000 4.35 "
    "0.30000000000000004 5e-324 12345678901234567.8 1.7976931348623157e308"
).split()
TEXTS = (
    "",
    "a",
    "EWR",
    "plain text",
    "NaN",
    "Infinity",
    "2013-01-31",
    "2012-02-29",
    "2013-02-29",
    "1900-02-29",
    "2000-02-29",
    "0001-01-01",
    "0000-01-01",
    "9999-12-31",
    "2013-13-01",
    "2013-00-10",
    "2013-04-31",
    "2013-1-1",
    "2013-01-31T10:00:00Z",
    "2013-01-31 10:00:00Z",
    "2013-01-31t10:00:00z",
    "2013-01-31T10:00",
    "2013-01-31T10:00Z",
    "2013-01-31T24:00:00Z",
    "2013-01-31T10:60:00Z",
    "2013-01-31T10:00:60Z",
    "2013-01-31T10:00:00",
    "2013-03-31T02:30:00",
    "2013-01-31T10:00:00.5Z",
    "2013-01-31T10:00:00.123456Z",
    "2013-01-31T10:00:00.1234560Z",
    "2013-01-31T10:00:00.1234567Z",
    "2013-01-31T10:00:00.Z",
    "2013-01-31T10:00:00+01:00",
    "2013-01-31T10:00:00-23:59",
    "2013-01-31T10:00:00+24:00",
    "2013-01-31T10:00:00+0100",
    "2013-01-31T10:00:00+01",
    "2013-01-31T10:00:00+01:60",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59.999999-01:00",
    "1969-12-31T23:59:59.999999Z",
    "2013-01-31T10:00:00ZZ",
    "2013-01-31T10",
    "2013-01-31T1a:00:00Z",
    "straße",
    "日本",
    "\x7f",
    r"\n",
    r"\u0041",
    r"\ud800",
    r"\"",
    "\\",
    "tab\there",
    "nul\0",
)
OTHERS = ("null", "true", "false", "nul", "tru", "fals", "True", "None", "[]", "[1]", "{}", "", '"')
OTHERS_NESTED = ('{"size": 3}', '{"size": 3, "by": "x"}', '{"a": 1}', "[" * 300, "{" * 3)
SPACES = ("", "", "", " ", "\t", "  ", "\r", "\n", "\x0b", "\u00a0", "\ufeff")
BLANKS = (b"", b" ", b"\t \r", b"\x0b", b"\x0c ", b"\0", b"\xef\xbb\xbf")


def draw_stream(rng: random.Random) -> Stream:
    """A stream of any types, some of them with a CHECK or NOT NULL."""
    names = rng.sample(NAMES, rng.randint(1, 7))
    return Stream("s", tuple(draw_attribute(rng, name) for name in names))


def draw_attribute(rng: random.Random, name: str) -> Attribute:
    type_ = rng.choice(TYPES)
    domain = ValueSet.of(Interval(None, None))
    if rng.random() < 0.2:
        domain = draw_domain(rng, type_)
    return Attribute(name, type_, domain, nullable=rng.random() < 0.8)


def draw_domain(rng: random.Random, type_: Type) -> ValueSet:
    """A range, a half-line, some points, or all but a range."""
    low: Ordinal
    high: Ordinal
    if type_ == STRING:
        low, high = sorted(rng.sample(["", "EWR", "a", "b", "straße", "zz"], 2))
        points = ValueSet.points(type_, ["EWR", "a", "straße"])
    else:
        base = 1 if type_ == BOOLEAN else type_.ordinal(1.0) if type_ == DOUBLE else 15_000
        spread = rng.choice((1, 5, 10**4, 10**15))
        low, high = base - rng.randint(0, spread), base + rng.randint(1, spread)
        points = ValueSet.points(type_, [0, 1, 7, 12, base, 15_736])
    one = ValueSet.of(Interval(low, high))
    return rng.choice(
        (one, ValueSet.of(Interval(low, None)), ValueSet.of(Interval(None, high)), points)
        + ((one.complement(),) if type_ != BOOLEAN else ())
    )


def draw_value(rng: random.Random, type_: Type) -> str:
    """A value that mostly fits a type, and sometimes is anything."""
    if rng.random() < 0.8:
        return draw_calm_value(rng, type_)
    if rng.random() < 0.15:
        return rng.choice((rng.choice(OTHERS), rng.choice(OTHERS_NESTED), rng.choice(NUMBERS)))
    if rng.random() < 0.1:
        return "null"
    if type_ == BOOLEAN:
        return rng.choice(("true", "false"))
    if type_.numeric:
        return draw_number(rng, type_)
    if type_ == STRING or rng.random() < 0.02:
        return f'"{rng.choice(TEXTS)}"'
    return f'"{draw_moment(rng, with_clock=type_ != DATE)}"'


def draw_calm_value(rng: random.Random, type_: Type) -> str:
    """A value that fits a type, in a usual form."""
    if type_ == BOOLEAN:
        return rng.choice(("true", "false"))
    if type_ == STRING:
        return rng.choice(('"EWR"', '"a"', '"plain text"', '"straße"', '""', "null"))
    if type_.numeric:
        has_fraction = type_ == DOUBLE or (isinstance(type_, DecimalType) and type_.scale > 1)
        number = rng.randint(0, 99)
        return f"{rng.choice(('', '-'))}0.{number:02}" if has_fraction else str(number)
    day = f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return f'"{day}"' if type_ == DATE else f'"{day}T{rng.randint(0, 23):02}:30:00Z"'


def draw_number(rng: random.Random, type_: Type) -> str:
    if rng.random() < 0.1:
        return rng.choice(NUMBERS)
    whole = str(rng.randint(-(10 ** rng.randint(0, 19)), 10 ** rng.randint(0, 19)))
    if type_ in (INT, BIGINT):
        return str(rng.randint(-(10**4), 10**4)) if rng.random() < 0.8 else whole
    fraction = "".join(rng.choices("0123456789", k=rng.randint(1, 12)))
    exponent = rng.choice(("", "", "", f"e{rng.randint(-30, 30)}", f"E+{rng.randint(0, 25)}"))
    short = str(rng.randint(-20, 20))
    return rng.choice((short, whole, f"{short}.{fraction[:2]}", f"{whole}.{fraction}{exponent}"))


def draw_moment(rng: random.Random, *, with_clock: bool) -> str:
    if rng.random() < 0.1:
        return rng.choice(TEXTS)
    day = f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 31):02}"
    if not with_clock:
        return day
    clock = f"{rng.randint(0, 24):02}:{rng.randint(0, 60):02}"
    seconds = rng.choice(("", f":{rng.randint(0, 60):02}", f":{rng.randint(0, 59):02}.25"))
    zone = rng.choice(("Z", "Z", "", "+02:00", f"-{rng.randint(0, 24):02}:{rng.randint(0, 60):02}"))
    return f"{day}{rng.choice('TT ')}{clock}{seconds}{zone}"


def draw_line(rng: random.Random, stream: Stream) -> bytes:
    """An object of the stream, in its order or not, with spaces where JSON has them."""
    attributes = [a for a in stream if rng.random() < 0.95]
    if rng.random() < 0.3:
        rng.shuffle(attributes)
    if attributes and rng.random() < 0.04:
        attributes.append(rng.choice(attributes))
    space: Callable[[], str] = lambda: " "  # noqa: E731
    if rng.random() < 0.2:
        space = lambda: rng.choice(SPACES)  # noqa: E731
    members = []
    for attribute in attributes:
        key = attribute.name
        if rng.random() < 0.02:
            key = rng.choice((key.upper(), "unknown", "bid", key + "\\u0041", key + "x", key[1:]))
        value = draw_value(rng, attribute.type)
        members.append(f'{space()}"{key}"{space()}:{space()}{value}{space()}')
    return f"{space()}{{{','.join(members)}}}{space()}".encode("utf-8", "surrogatepass")


def mutate(rng: random.Random, line: bytes) -> bytes:
    """A byte deleted, changed, doubled or moved, or the line cut."""
    text = bytearray(line)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                del text[at : at + rng.randint(1, 4)]
            case 1 if at < len(text):
                text[at] = rng.choice((rng.randrange(256), *b'"{}:,\\ \0-.e0'))
            case 2:
                text[at:at] = bytes([rng.choice(b'"{}[]:,\\ \0\t\r-.e0129\xc3\xff')])
            case 3:
                text[at:at] = text[at : at + rng.randint(1, 20)]
            case _:
                del text[at:]
    return bytes(text)


def draw_block(rng: random.Random, stream: Stream, lines: int) -> list[bytes]:
    """Lines with their endings, as a file has them: only the last may lack its newline."""
    wildness = rng.choice((0.0, 0.02, 0.2))
    block = []
    for _ in range(lines):
        line = draw_line(rng, stream)
        if rng.random() < wildness:
            line = rng.choice((mutate(rng, line), mutate(rng, line), rng.choice(BLANKS)))
        block.append(line.replace(b"\n", b" ") + rng.choice((b"\n", b"\n", b"\n", b"\r\n")))
    if rng.random() < 0.1:
        block[0] = b"\xef\xbb\xbf" + block[0]
    if rng.random() < 0.3:
        # a file that is cut anywhere
        block[-1] = block[-1][: rng.randrange(len(block[-1])) + 1].rstrip(b"\n")
        block = block if block[-1] else block[:-1]
    return block


def assert_same(actual: EventBatch, expected: EventBatch) -> None:
    """All that a batch has is the same, and −0.0 is not 0.0."""
    assert actual.table.schema == expected.table.schema
    actual.table.validate(full=True)
    for name, column in zip(actual.table.schema.names, actual.table.columns, strict=True):
        assert exact(column.to_pylist()) == exact(expected.table.column(name).to_pylist()), name
    assert actual.events.tolist() == expected.events.tolist()
    assert actual.lines.tolist() == expected.lines.tolist()
    assert actual.dead == expected.dead
    assert (actual.blank, dict(actual.unknown)) == (expected.blank, dict(expected.unknown))


def poison(block: LineBlock) -> LineBlock:
    """The same lines in a larger memory, where text follows the padding."""
    bait = np.frombuffer(b'0123"}\n{"a": 1, "b": 2}\n' * 8, np.uint8)
    return LineBlock(np.concatenate((block.data[: block.size + PADDING], bait)), block.ends)


@pytest.fixture(autouse=True)
def every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks go through the kernel, too."""
    monkeypatch.setattr(plain_rows, "MIN_LINES", 1)
    monkeypatch.setattr(plain_rows, "MIN_LINES_TO_LOAD", 1)


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_on_blocks(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both give the same batch, for any stream, columns and offsets; a fair part is plain."""
    rng = random.Random(seed(shard))
    left: list[int] = []

    def parse_and_count(lines: list[bytes], *args: object, **options: object) -> EventBatch:
        left.append(len(lines))
        return parse_json_lines(lines, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(json_columns, "parse_json_lines", parse_and_count)
    total = 0
    for _ in range(case_count(150)):
        stream = draw_stream(rng)
        lines = draw_block(rng, stream, rng.choice((1, 3, BLOCK_LINES, BLOCK_LINES)))
        names = rng.sample(stream.names, rng.randint(0, len(stream.names)))
        columns = rng.choice((None, names))
        first_line, first_event = rng.choice(((1, 0), (1, 5), (2, 0), (70, 60)))
        expected = parse_json_lines(
            lines,
            stream,
            source="x",
            columns=columns,
            first_line=first_line,
            first_event=first_event,
        )
        actual = parse_json_block(
            poison(join_lines(lines)),
            stream,
            source="x",
            columns=columns,
            first_line=first_line,
            first_event=first_event,
        )
        assert_same(actual, expected)
        total += len(lines)
    assert total - sum(left) > at_least(1_500)


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_on_cut_buffers(shard: int) -> None:
    """A buffer may end at any byte of a line."""
    rng = random.Random(seed(shard))
    for _ in range(case_count(40)):
        stream = draw_stream(rng)
        line = draw_line(rng, stream).replace(b"\n", b" ")
        for end in range(1, len(line) + 1):
            block = poison(join_lines([line + b"\n", line[:end]]))
            expected = parse_json_lines([line + b"\n", line[:end]], stream, source="x")
            assert_same(parse_json_block(block, stream, source="x"), expected)


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_on_files(shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is read in blocks, with small reads and lines that are too long, is the same."""
    rng = random.Random(seed(shard))
    for module in ("file_access", "json_lines", "json_columns"):
        monkeypatch.setattr(f"headgate.events.{module}.MAX_RECORD", 400)
    monkeypatch.setattr("headgate.events.line_blocks.MIN_READ", 16)
    path = tmp_path / "e.jsonl"
    for _ in range(case_count(60)):
        stream = draw_stream(rng)
        lines = draw_block(rng, stream, rng.choice((1, 20)))
        if rng.random() < 0.5:
            lines.insert(0, b'{"a": "' + b"x" * rng.choice((300, 391, 392, 393, 5_000)) + b'"}\n')
        path.write_bytes(b"".join(lines))
        monkeypatch.setattr("headgate.events.files.MAX_BLOCK", rng.choice((500, 3_000, 1 << 26)))
        batch_rows = rng.choice((1, 3, 50))
        batches = list(read_events(path, stream, batch_rows=batch_rows))
        whole = parse_json_lines([line[:402] for line in lines], stream, source=str(path))
        assert max(batch.total for batch in batches) <= batch_rows
        rows = [row for batch in batches for row in batch.table.to_pylist()]
        assert repr(rows) == repr(whole.table.to_pylist())
        assert [n for batch in batches for n in batch.lines.tolist()] == whole.lines.tolist()
        assert [n for batch in batches for n in batch.events.tolist()] == whole.events.tolist()
        assert [letter for batch in batches for letter in batch.dead] == list(whole.dead)
        assert sum(batch.blank for batch in batches) == whole.blank


@pytest.mark.parametrize("bound", [-(10**30), -(10**18), 10**18, 10**30])
@pytest.mark.parametrize("is_upper", [True, False])
def test_a_domain_beyond_64_bits(bound: int, is_upper: bool, tmp_path: Path) -> None:
    """What the kernel cannot express is left to the other parser."""
    interval = Interval(None, bound) if is_upper else Interval(bound, None)
    attribute = Attribute("a", DecimalType(38, 0), domain=ValueSet.of(interval))
    stream = Stream("s", (attribute,))
    numbers = [bound - 1, bound, bound + 1, 0, 7] * plain_rows.MIN_LINES
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f'{{"a": {number}}}\n' for number in numbers))
    (batch,) = read_events(path, stream)
    assert batch.table.column("a").to_pylist() == [
        number for number in numbers if (number < bound) == is_upper
    ]
    assert len(batch.dead) == len(numbers) - len(batch.events)
