"""The stream that a file suggests: for each attribute the narrowest type that takes all its values.

The types are tried by the rules that will read the events later, so no event of the file becomes a
dead letter for the type of an inferred attribute. Attributes that no type can take are listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import EventError
from headgate.events.attribute_paths import RepeatedKeys
from headgate.events.batch import BOM, UnfitValue, show_value
from headgate.events.conversion import Convert, make_field_reader, make_json_rule
from headgate.events.csv_records import read_column_names, read_header, split_csv
from headgate.events.file_access import SEPARATORS, find_file_kind, open_lines, translate_errors
from headgate.events.json_lines import scan_object
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
    Stream,
    Type,
)

NO_PATH = "a step of its path is empty, or has a dot in it"
MAX_KEYS = 10_000  # an object with more different keys is a map, and its keys are data

_WHOLE = DecimalType(38, 0)
_NARROWEST_FIRST = (BOOLEAN, INT, BIGINT, _WHOLE, DOUBLE, DATE, TIMESTAMP, STRING)


@dataclass(frozen=True, slots=True)
class Inferred:
    """A stream, the attributes left out of it with the reason, and the rows that were looked at."""

    stream: Stream
    skipped: tuple[tuple[str, str], ...]
    rows: int


def infer_stream(path: str | PathLike[str], name: str | None = None) -> Inferred:
    """Infer the stream that a file suggests; its name is the file's unless one is given.

    Of a Parquet file the schema is read, of a text file every event that can be.
    """
    kind = find_file_kind(path)
    if kind == ".parquet":
        inferred = _infer_parquet(path)
    elif kind in SEPARATORS:
        inferred = _infer_csv(path, SEPARATORS[kind])
    else:
        inferred = _infer_json_lines(path)
    types, skipped, rows = inferred
    attributes = tuple(Attribute(attribute, type_) for attribute, type_ in types.items())
    return Inferred(Stream(name or _stream_name(path), attributes), tuple(skipped.items()), rows)


def _stream_name(path: str | PathLike[str]) -> str:
    """Return a name for the stream of a file.

    >>> _stream_name("data/trades-2024.csv.gz")
    'trades_2024'
    """
    stem = Path(path).name.split(".")[0]
    word = re.sub(r"\W+", "_", stem).strip("_") or "events"
    return word if not word[0].isdigit() else f"events_{word}"


_InferredTypes = tuple[dict[str, Type], dict[str, str], int]


@dataclass(slots=True)
class _Candidate:
    """A type that has taken all values so far; `used` once one of them was not NULL."""

    type: Type
    read: Callable[[Any], Any]
    convert: Convert
    used: bool = False

    def takes(self, value: Any) -> bool:
        raw = self.read(value)
        if raw is None:
            return True
        if isinstance(raw, bytes) and self.type is not DOUBLE:
            return False  # 3.0 is an INT's value, but whoever writes the point means a fraction
        try:
            self.convert(raw)
        except UnfitValue:
            return False
        self.used = True
        return True


@dataclass(slots=True)
class _Guess:
    """The knowledge of one name: the types that may hold it, or that it is an object."""

    name: str
    candidates: list[_Candidate] = field(default_factory=list)
    plain: bool = False
    keys: int | None = None
    refused: str = ""

    def observe(self, value: Any) -> None:
        if value is None or self.refused:
            return
        self.plain = True
        # Every value strikes out the types that do not take it; the others stay, narrowest first.
        self.candidates = [candidate for candidate in self.candidates if candidate.takes(value)]
        if isinstance(value, list):
            self.refused = "an array"
        elif not self.candidates:
            self.refused = f"no type takes {show_value(value)} and the values before it"

    @property
    def type(self) -> Type:
        # NULL fits every type, so a candidate counts only once it took a value. What is always NULL
        # becomes a STRING.
        return next((candidate.type for candidate in self.candidates if candidate.used), STRING)

    @property
    def problem(self) -> str:
        if self.plain and self.keys is not None and not self.refused:
            return "sometimes an object and sometimes not"
        return self.refused or ("an empty object" if self.keys == 0 else "")


def _make_guess(name: str, reader: Callable[[Type], Callable[[Any], Any]]) -> _Guess:
    rules = [(type_, make_json_rule(Attribute(name, type_))) for type_ in _NARROWEST_FIRST]
    return _Guess(name, [_Candidate(type_, reader(type_), rule.convert) for type_, rule in rules])


def _infer_json_lines(path: str | PathLike[str]) -> _InferredTypes:
    root = _Guess("")
    guesses: dict[str, _Guess] = {}
    rows = 0
    with open_lines(path) as lines:
        for number, line in enumerate(lines):
            try:
                event = scan_object(line.removeprefix(BOM) if number == 0 else line)
            except UnfitValue:
                continue
            rows += 1
            _observe_object(root, event, guesses)
    if root.refused:
        raise EventError(f"{path}: each event is {root.refused}; put the map under one key")
    if not rows:
        raise EventError(f"{path}: no line is a JSON object; write one event per line")
    settled = {
        key: (guess.name, guess.problem or guess.type)
        for key, guess in guesses.items()
        if guess.problem or guess.keys is None
    }
    return (*_split_problems(settled), rows)


def _observe_object(
    parent: _Guess, event: Mapping[str, Any] | RepeatedKeys, guesses: dict[str, _Guess]
) -> None:
    parent.keys = parent.keys or 0
    for key, value in event if isinstance(event, RepeatedKeys) else event.items():
        if parent.refused:
            return
        name = f"{parent.name}.{key}" if parent.name else key
        guess = guesses.get(name.lower()) or _add_guess(parent, name, key, guesses)
        if isinstance(value, dict | RepeatedKeys):
            _observe_object(guess, value, guesses)
        else:
            guess.observe(value)


def _add_guess(parent: _Guess, name: str, key: str, guesses: dict[str, _Guess]) -> _Guess:
    guess = guesses[name.lower()] = _make_guess(name, lambda _: lambda value: value)
    if not _has_path(key, parent.name):
        guess.refused = NO_PATH
    parent.keys = (parent.keys or 0) + 1
    if parent.keys > MAX_KEYS:
        parent.refused = f"a map with more than {MAX_KEYS:,} keys"
    return guess


def _split_problems(
    guesses: Mapping[str, tuple[str, Type | str]],
) -> tuple[dict[str, Type], dict[str, str]]:
    """Return types by name and problems by name; what is inside a problem is left out."""
    types: dict[str, Type] = {}
    skipped: dict[str, str] = {}
    for key, (name, type_or_problem) in guesses.items():
        parts = key.split(".")
        # What is refused as a whole hides everything inside it.
        outer = [guesses.get(".".join(parts[:depth])) for depth in range(1, len(parts))]
        if any(place and isinstance(place[1], str) for place in outer):
            continue
        if isinstance(type_or_problem, str):
            skipped[name] = type_or_problem
        else:
            types[name] = type_or_problem
    return types, skipped


def _infer_csv(path: str | PathLike[str], separator: str) -> _InferredTypes:
    rows = 0
    with open_lines(path) as lines:
        records = split_csv(lines, separator=separator)
        _, header = read_header(records, str(path))
        guesses = [
            _make_guess(title, make_field_reader) for title in read_column_names(header, str(path))
        ]
        for record in records:
            # Other records will be dead letters, and say nothing about types.
            if len(record.fields) == len(header):
                rows += 1
                for guess, text in zip(guesses, record.fields, strict=True):
                    guess.observe(text)
    named = {guess.name: guess.type for guess in guesses if guess.name}
    nameless = {
        f"column {number}": "without a name in the header"
        for number, guess in enumerate(guesses, 1)
        if not guess.name
    }
    return named, nameless, rows


def _infer_parquet(path: str | PathLike[str]) -> _InferredTypes:
    with translate_errors(path), pq.ParquetFile(Path(path)) as file:
        return (*infer_types(file.schema_arrow), file.metadata.num_rows)


def infer_types(fields: Iterable[pa.Field[Any]]) -> tuple[dict[str, Type], dict[str, str]]:
    """Return a type for each column or field of a struct, and those without one, with reasons.

    >>> infer_types(pa.schema({"bid": pa.struct({"size": pa.int8()}), "raw": pa.binary()}))
    ({'bid.size': Integer(bits=32)}, {'raw': 'no attribute can be binary'})
    """
    columns: dict[str, tuple[str, Type | str]] = {}
    for name, type_or_problem in _iter_leaves(fields, ""):
        # Names ignore case, so that two columns may claim the same attribute.
        twin = columns.get(name.lower())
        again = f"two columns, `{twin[0]}` and `{name}`" if twin else type_or_problem
        columns[name.lower()] = (name, again)
    return _split_problems(columns)


def _iter_leaves(fields: Iterable[pa.Field[Any]], prefix: str) -> Iterator[tuple[str, Type | str]]:
    for column in fields:
        name = prefix + column.name
        if not _has_path(column.name, prefix):
            yield name, NO_PATH
        elif isinstance(column.type, pa.StructType):
            yield from _iter_leaves(column.type, f"{name}.")
        else:
            yield name, _infer_arrow_type(column.type) or f"no attribute can be {column.type}"


def _has_path(key: str, prefix: str) -> bool:
    """Return whether a path can lead to a key; below the top, a dot in it would be a step."""
    return all(key.split(".")) and not (prefix and "." in key)


def _infer_arrow_type(arrow_type: pa.DataType) -> Type | None:
    """Return the type for a column of Parquet.

    >>> str(_infer_arrow_type(pa.uint32())), _infer_arrow_type(pa.binary())
    ('BIGINT', None)
    """
    of = pa.types
    if isinstance(arrow_type, pa.DictionaryType):
        return _infer_arrow_type(arrow_type.value_type)
    if of.is_boolean(arrow_type):
        return BOOLEAN
    if of.is_uint64(arrow_type):
        return DecimalType(20, 0)
    if of.is_int64(arrow_type) or of.is_uint32(arrow_type):
        return BIGINT
    if of.is_integer(arrow_type):
        return INT
    if of.is_floating(arrow_type):
        return DOUBLE
    if isinstance(arrow_type, pa.Decimal128Type) and 0 <= arrow_type.scale <= arrow_type.precision:
        return DecimalType(arrow_type.precision, arrow_type.scale)
    if of.is_date(arrow_type):
        return DATE
    if of.is_timestamp(arrow_type):
        return TIMESTAMP
    if of.is_null(arrow_type) or of.is_string(arrow_type) or of.is_large_string(arrow_type):
        return STRING
    return None
