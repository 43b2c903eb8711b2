"""The stream that a file suggests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import EventError
from headgate.events import Inferred, infer_stream, inference, read_events


def types(result: Inferred) -> dict[str, str]:
    return {attribute.name: attribute.type.sql for attribute in result.stream}


def from_json(folder: Path, *lines: str) -> Inferred:
    path = folder / "trades-2024.jsonl"
    path.write_text("\n".join(lines))
    return infer_stream(path)


@pytest.mark.parametrize(
    ("values", "sql"),
    [
        (["true", "null", "false"], "BOOLEAN"),
        (["1", "-2147483648"], "INT"),
        (["1", "2147483648"], "BIGINT"),
        (["1", "9223372036854775808"], "DECIMAL(38, 0)"),
        (["1", "0.5"], "DOUBLE"),
        (["1.0", "2.0"], "DOUBLE"),
        (["0.5", '"NaN"', "NaN"], "DOUBLE"),
        (['"a"', '""'], "STRING"),
        (["null", "null"], "STRING"),
        (['"2024-01-02"', '"2024-02-29"'], "DATE"),
        (['"2024-01-02T03:04:05Z"', '"2024-01-02 03:04"'], "TIMESTAMP"),
        (['"2024-01-02"', '"2024-01-02T03:04"'], "STRING"),
        (['"2024-01-02"', '"x"'], "STRING"),
        (['"1"', '"2"'], "STRING"),
    ],
)
def test_types_of_json(tmp_path: Path, values: list[str], sql: str) -> None:
    """The type is the narrowest that takes every value."""
    assert types(from_json(tmp_path, *(f'{{"v": {value}}}' for value in values))) == {"v": sql}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["1", "[2]"], "an array"),
        (["1", '"x"'], "no type takes 'x' and the values before it"),
        (["0.5", "9007199254740993"], "no type takes 9007199254740993 and the values before it"),
        (["9" * 39], "no type takes " + "9" * 39 + " and the values before it"),
        (['{"a": 1}', "2"], "sometimes an object and sometimes not"),
        (["{}"], "an empty object"),
        (['{"a.b": 1, "": 2}'], None),
    ],
)
def test_skipped_in_json(tmp_path: Path, values: list[str], why: str | None) -> None:
    """What no type can hold is left out and listed."""
    loaded = from_json(tmp_path, *(f'{{"v": {value}, "w": 1}}' for value in values))
    assert types(loaded) == {"w": "INT"}
    key = "a step of its path is empty, or has a dot in it"
    assert loaded.skipped == ((("v", why),) if why else (("v.a.b", key), ("v.", key)))


def test_nested_names_and_case(tmp_path: Path) -> None:
    """Objects become paths, the first spelling of a name wins, and broken lines do not count."""
    loaded = from_json(
        tmp_path,
        '{"Id": 1, "quote": {"Bid": {"px": 1}}}',
        "oops",
        '{"ID": 5000000000, "QUOTE": {"bid": {"PX": 0.5, "n": "x"}, "ask": 2}, "flat.key": 1}',
    )
    assert types(loaded) == {
        "Id": "BIGINT",
        "quote.Bid.px": "DOUBLE",
        "quote.Bid.n": "STRING",
        "quote.ask": "INT",
        "flat.key": "INT",
    }
    assert (loaded.rows, loaded.skipped, loaded.stream.name) == (2, (), "trades_2024")


def test_maps_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object whose keys are data does not become a thousand attributes."""
    monkeypatch.setattr(inference, "MAX_KEYS", 10)
    lines = [f'{{"id": 1, "tags": {{"k{number}": 1}}}}' for number in range(20)]
    loaded = from_json(tmp_path, *lines)
    assert types(loaded) == {"id": "INT"}
    assert loaded.skipped == (("tags", "a map with more than 10 keys"),)
    with pytest.raises(EventError, match="each event is a map with more than 10 keys; put"):
        from_json(tmp_path, *(f'{{"k{number}": 1}}' for number in range(20)))


def test_csv(tmp_path: Path) -> None:
    """CSV columns take their types from the texts of their fields."""
    path = tmp_path / "t.csv"
    path.write_text(
        "b,i,n,x,s,d,t,zip,none,huge,\n"
        "true,1,1,1,a,2024-01-02,2024-01-02 03:04,01234,,1,\n"
        'FALSE,"2",5000000000,0.5,"",2024-01-03,2024-01-02T03:04Z,1234, ,' + "9" * 40 + ",\n"
        "too,few\n"
    )
    stream = infer_stream(path, "mine")
    assert types(stream) == {
        "b": "BOOLEAN",
        "i": "INT",
        "n": "BIGINT",
        "x": "DOUBLE",
        "s": "STRING",
        "d": "DATE",
        "t": "TIMESTAMP",
        "zip": "STRING",
        "none": "STRING",
        "huge": "STRING",
    }
    assert stream.skipped == (("column 11", "without a name in the header"),)
    assert (stream.rows, stream.stream.name) == (2, "mine")


def test_parquet(tmp_path: Path) -> None:
    """Parquet columns take their types from the schema alone."""
    columns: dict[str, pa.DataType] = {
        "b": pa.bool_(),
        "i": pa.int16(),
        "u": pa.uint32(),
        "w": pa.uint64(),
        "d": pa.decimal128(12, 3),
        "x": pa.float32(),
        "s": pa.large_string(),
        "c": pa.dictionary(pa.int32(), pa.string()),
        "day": pa.date32(),
        "t": pa.timestamp("ns", tz="Asia/Tokyo"),
        "none": pa.null(),
        "a": pa.struct([("b", pa.int64()), ("l", pa.list_(pa.int64())), ("x.y", pa.int64())]),
        "m": pa.map_(pa.string(), pa.int64()),
        "raw": pa.binary(),
        "raw.flat": pa.int64(),
        "k": pa.int32(),
        "K": pa.int32(),
    }
    schema = pa.schema(columns)
    path = tmp_path / "2024 trades.parquet"
    pq.write_table(schema.empty_table(), path)
    stream = infer_stream(path)
    assert types(stream) == {
        "b": "BOOLEAN",
        "i": "INT",
        "u": "BIGINT",
        "w": "DECIMAL(20, 0)",
        "d": "DECIMAL(12, 3)",
        "x": "DOUBLE",
        "s": "STRING",
        "c": "STRING",
        "day": "DATE",
        "t": "TIMESTAMP",
        "none": "STRING",
        "a.b": "BIGINT",
    }
    assert [name for name, _ in stream.skipped] == ["a.l", "a.x.y", "m", "raw", "K"]
    assert (stream.rows, stream.stream.name) == (0, "events_2024_trades")
    assert list(read_events(path, stream.stream)) == []


def test_nothing_to_infer_from(tmp_path: Path) -> None:
    """A file without events is refused; a header alone gives strings."""
    with pytest.raises(EventError, match="no line is a JSON object; write one event per line"):
        from_json(tmp_path, "[", "1", "]")
    (tmp_path / "t.csv").write_text("a,b\n")
    assert types(infer_stream(tmp_path / "t.csv")) == {"a": "STRING", "b": "STRING"}
