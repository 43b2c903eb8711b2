"""The kernel of CSV and the parser of records agree on every file: rows, letters and counts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from headgate.errors import EventError
from headgate.events import EventBatch, csv_columns, parse_csv_records, plain_rows, split_csv
from headgate.events.csv_columns import CsvFile, parse_csv_block
from headgate.events.csv_records import CsvRecord
from headgate.events.file_access import open_lines
from headgate.events.files import read_events
from headgate.events.line_blocks import PADDING, LineBlock
from headgate.schema import STRING, Stream, Type
from tests.events.helpers import exact
from tests.property.test_json_columns import (
    NUMBERS,
    TEXTS,
    assert_same,
    draw_attribute,
    draw_calm_value,
    draw_value,
)
from tests.scale import at_least, case_count, seed

SHARDS = range(4)
NAMES = ("a", "Qty", "bid.size", "straße", "x y", "c")
SPACES = ("", "", "", " ", "\t", "  ", "\r", "\x0b", "\u00a0", "\0")
BLANKS = (b"", b" ", b"\t \r", b"\x0b", b"\r", b"  \r\r")
ODD = ('"', '""', '"a"b', 'a"', ' "a"', '"a', "+3", "+0.5", "-0", "TRUE", "fAlSe", "truE ", ".5")


def draw_stream(rng: random.Random) -> Stream:
    names = rng.sample(NAMES, rng.randint(1, 5))
    return Stream("s", tuple(draw_attribute(rng, name) for name in names))


def draw_header(rng: random.Random, stream: Stream, separator: str) -> list[str]:
    """Most of the attributes, in any case, among columns that nobody declares."""
    names = [rng.choice((name, name, name.upper())) for name in stream.names]
    names = [name for name in names if rng.random() < 0.95 and separator not in name] or names[:1]
    # "STRASSE" is not "straße" in another case, and a header must name some attribute
    names = names if any(map(stream.get, names)) else list(stream.names[:1])
    names += rng.choice(([], [], ["other"], ["", "other"]))
    rng.shuffle(names)
    return names


def draw_field(rng: random.Random, type_: Type, wildness: float) -> str:
    """A value that mostly fits the type; bare or in quotes, with spaces or none."""
    if rng.random() < wildness:
        text = rng.choice((*ODD, rng.choice(TEXTS), rng.choice(NUMBERS), "two\nlines", "a,b"))
    else:
        is_calm = rng.random() < 0.9
        text = draw_calm_value(rng, type_) if is_calm else draw_value(rng, type_)
        text = "" if text == "null" else text.strip('"')
    if rng.random() < 0.1:
        text = f"{rng.choice(SPACES)}{text}{rng.choice(SPACES)}"
    if rng.random() < (0.3 if type_ == STRING else 0.05):
        text = f'"{text}"' if rng.random() < wildness else '"' + text.replace('"', '""') + '"'
    return text


def draw_lines(
    rng: random.Random, stream: Stream, header: list[str], separator: str
) -> list[bytes]:
    """Records of a file, cut into lines; only the last may lack its newline."""
    wildness = rng.choice((0.0, 0.0, 0.02, 0.1))
    text = b""
    for _ in range(rng.choice((1, 3, 60, 60))):
        types = [getattr(stream.get(name), "type", STRING) for name in header]
        fields = [draw_field(rng, type_, wildness) for type_ in types]
        if rng.random() < wildness:
            fields = fields[:-1] if rng.random() < 0.5 else [*fields, ""]
        line = separator.join(fields).encode("utf-8", "surrogatepass")
        if rng.random() < wildness:
            line = rng.choice((line[: rng.randrange(len(line) + 1)], rng.choice(BLANKS)))
            line = rng.choice((line, line + b"\xff", line + b'"'))
        text += line + rng.choice((b"\n", b"\n", b"\n", b"\r\n"))
    if rng.random() < 0.3:
        text = text.removesuffix(b"\n") or b"x"
    parts = text.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] or not lines else lines


def parse(lines: list[bytes], file: CsvFile, first_line: int, first_event: int) -> EventBatch:
    """All of these lines by the parser of records."""
    records = split_csv(lines, separator=file.separator, first_line=first_line)
    return parse_csv_records(
        records,
        file.stream,
        header=file.header,
        source=file.source,
        columns=file.columns,
        first_event=first_event,
    )


@pytest.fixture(autouse=True)
def every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks go through the kernel, too."""
    monkeypatch.setattr(plain_rows, "MIN_LINES", 1)
    monkeypatch.setattr(plain_rows, "MIN_LINES_TO_LOAD", 1)


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_on_blocks(shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both give the same batch, also of a block that ends in a record; a fair part is plain."""
    rng = random.Random(seed(shard))
    left: list[CsvRecord] = []

    def parse_and_count(records: list[CsvRecord], *args: object, **options: object) -> EventBatch:
        left.extend(records)
        return parse_csv_records(records, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(csv_columns, "parse_csv_records", parse_and_count)
    path, total = tmp_path / "e.csv", 0
    for _ in range(case_count(250)):
        stream, separator = draw_stream(rng), rng.choice(",,\t")
        header = draw_header(rng, stream, separator)
        lines = draw_lines(rng, stream, header, separator)
        columns = rng.choice((None, rng.sample(stream.names, rng.randint(0, len(stream.names)))))
        first_line, first_event = rng.choice(((2, 0), (2, 5), (70, 60)))
        # the block has the first of the lines, and the file goes on with the others
        cut = rng.choice((len(lines), rng.randint(1, len(lines))))
        path.write_bytes(b"".join(lines[cut:]))
        ends = np.cumsum([len(line) for line in lines[:cut]])
        bait = b'0123"\n1,2,3,4,5\n' * 8
        data = np.frombuffer(b"".join(lines[:cut]) + bytes(PADDING) + bait, np.uint8)
        with open_lines(path, first_line=first_line + cut) as behind:
            file = CsvFile("x", header, separator, behind, stream, columns)
            actual = parse_csv_block(
                LineBlock(data, ends), file, first_line=first_line, first_event=first_event
            )
            taken = behind.number - first_line
        assert_same(actual, parse(lines[:taken], file, first_line, first_event))
        total += cut
    assert total - len(left) > at_least(2_000), (total, len(left))


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_on_files(shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is read in blocks, with records over several of them, is the same."""
    rng = random.Random(seed(shard))
    for module in ("file_access", "csv_records", "csv_columns"):
        monkeypatch.setattr(f"headgate.events.{module}.MAX_RECORD", 400)
    monkeypatch.setattr("headgate.events.line_blocks.MIN_READ", 16)
    path = tmp_path / "e.csv"
    for _ in range(case_count(150)):
        stream = draw_stream(rng)
        header = draw_header(rng, stream, ",")
        lines = draw_lines(rng, stream, header, ",")
        if rng.random() < 0.3:
            quote = rng.choice((b"", b'"'))
            size = rng.choice((300, 398, 399, 400, 401, 402, 5_000))
            lines.insert(rng.randrange(len(lines)), quote + b"x" * size + quote + b"\n")
        first = ",".join(header).encode() + b"\n"
        blanks = rng.choice(([], [], [b"\n", b" \n"]))
        whole = [*blanks, first, *(line[:402] for line in lines)]
        path.write_bytes(b"".join([*blanks, first, *lines]))
        monkeypatch.setattr("headgate.events.files.MAX_BLOCK", rng.choice((500, 3_000, 1 << 26)))
        batch_rows = rng.choice((1, 3, 50))
        with open_lines(path) as behind:
            file = CsvFile(str(path), header, ",", behind, stream)
        try:
            expected = parse(whole[len(blanks) + 1 :], file, len(blanks) + 2, 0)
        except EventError:
            with pytest.raises(EventError):
                list(read_events(path, stream))
            continue
        batches = list(read_events(path, stream, batch_rows=batch_rows))
        assert all(len(batch.events) + len(batch.dead) <= batch_rows for batch in batches)
        rows = [row for batch in batches for row in batch.table.to_pylist()]
        assert exact(rows) == exact(expected.table.to_pylist())
        assert [n for batch in batches for n in batch.lines.tolist()] == expected.lines.tolist()
        assert [n for batch in batches for n in batch.events.tolist()] == expected.events.tolist()
        assert [letter for batch in batches for letter in batch.dead] == list(expected.dead)
        assert sum(batch.blank for batch in batches) == expected.blank + len(blanks)
        unknown = [dict(batch.unknown) for batch in batches]
        for name, count in expected.unknown.items():
            assert sum(counts.get(name, 0) for counts in unknown) == count
