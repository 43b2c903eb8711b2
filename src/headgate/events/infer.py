"""The stream that a file suggests: for each attribute the narrowest type that takes all its values.

The types are tried by the rules that will read the events later, so no event of the file becomes a
dead letter for the type of an inferred attribute. Attributes that no type can take are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import EventError
from headgate.events.convert import Convert, Unfit, field_reader, json_rule, show
from headgate.events.csv_records import split_csv
from headgate.events.files import SEPARATORS, file_kind, open_lines, read_header, reading
from headgate.events.json_lines import scan_object
from headgate.events.paths import Repeated
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
    """The stream that a file suggests; its name is the file's unless one is given.

    Of a Parquet file the schema is read, of a text file every event that can be.
    """
    kind = file_kind(path)
    if kind == ".parquet":
        found = _from_parquet(path)
    elif kind in SEPARATORS:
        found = _from_csv(path, SEPARATORS[kind])
    else:
        found = _from_json_lines(path)
    types, skipped, rows = found
    attributes = tuple(Attribute(attribute, type_) for attribute, type_ in types.items())
    return Inferred(Stream(name or _stream_name(path), attributes), tuple(skipped.items()), rows)


def _stream_name(path: str | PathLike[str]) -> str:
    """
    >>> _stream_name("data/trades-2024.csv.gz")
    'trades_2024'
    """
    stem = Path(path).name.split(".")[0]
    word = re.sub(r"\W+", "_", stem).strip("_") or "events"
    return word if not word[0].isdigit() else f"events_{word}"


_Found = tuple[dict[str, Type], dict[str, str], int]


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
        except Unfit:
            return False
        self.used = True
        return True


@dataclass(slots=True)
class _Guess:
    """What is known about one attribute, or about an object on the way to some."""

    name: str
    candidates: list[_Candidate]
    keys: int = 0
    refused: str = ""
    scalar: bool = False

    def see(self, value: Any) -> None:
        if value is None or self.refused:
            return
        self.scalar = True
        self.candidates = [candidate for candidate in self.candidates if candidate.takes(value)]
        if isinstance(value, list):
            self.refused = "an array"
        elif not self.candidates:
            self.refused = f"no type takes {show(value)} and all values before it"

    @property
    def type(self) -> Type:
        return next((found.type for found in self.candidates if found.used), STRING)


def _json_guess(name: str) -> _Guess:
    rules = ((type_, json_rule(Attribute(name, type_))) for type_ in _NARROWEST_FIRST)
    return _Guess(name, [_Candidate(type_, _itself, rule.convert) for type_, rule in rules])


def _itself(value: Any) -> Any:
    return value


def _csv_guess(name: str) -> _Guess:
    rules = ((type_, json_rule(Attribute(name, type_))) for type_ in _NARROWEST_FIRST)
    return _Guess(
        name, [_Candidate(type_, field_reader(type_), rule.convert) for type_, rule in rules]
    )


def _from_json_lines(path: str | PathLike[str]) -> _Found:
    root = _Guess("", [])
    guesses: dict[str, _Guess] = {}
    rows = 0
    with open_lines(path) as lines:
        for number, line in enumerate(lines):
            try:
                found = scan_object(line.removeprefix(BOM) if number == 0 else line)
            except Unfit:
                continue
            rows += 1
            _look_into(root, found, guesses)
            if root.refused:
                raise EventError(f"{path}: {root.refused}; they cannot be declared as attributes")
    if not rows:
        raise EventError(f"{path}: no line is a JSON object; write one event per line")
    types, skipped = _decide(guesses)
    return types, skipped, rows


def _look_into(
    parent: _Guess, found: Mapping[str, Any] | Repeated, guesses: dict[str, _Guess]
) -> None:
    for key, value in found if isinstance(found, Repeated) else found.items():
        name = f"{parent.name}.{key}" if parent.name else key
        guess = guesses.get(name.lower())
        if guess is None:
            parent.keys += 1
            if parent.keys > MAX_KEYS:
                parent.refused = f"a map: more than {MAX_KEYS:,} different keys"
                return
            guess = guesses[name.lower()] = _json_guess(name)
            if not all(name.split(".")) or (parent.name and "." in key):
                guess.refused = "a key that cannot be part of a path"
        if not isinstance(value, dict | Repeated):
            guess.see(value)
        elif not guess.refused:
            guess.keys = guess.keys or 1
            _look_into(guess, value, guesses)


def _decide(guesses: Mapping[str, _Guess]) -> tuple[dict[str, Type], dict[str, str]]:
    types: dict[str, Type] = {}
    skipped: dict[str, str] = {}
    ...
