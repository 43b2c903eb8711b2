"""What atoms refer to, each once: columns of the schema, the cuts of value sets, and patterns.

A cut is an ordinal, and it lies inside its type: an end that reaches a type's limit is infinite,
and so is no cut (`Interval.clip`). Which pool holds the cuts of a column follows from its type:

| pool    | types                            | arrays                                            |
|---------|----------------------------------|---------------------------------------------------|
| NUMBERS | all whose ordinals fit 64 bits   | `numbers`                                         |
| WIDE    | DECIMAL of more than 18 digits   | `wide_high`, `wide_low`: cut = high · 2^64 + low  |
| TEXTS   | STRING                           | `texts`                                           |

Two 64-bit halves, and not Arrow's decimal128, because a kernel can compare them as they are: first
`wide_high`, then `wide_low`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError
from headgate.events.columns import MAX_CODED_DIGITS
from headgate.predicate import Column, Pattern
from headgate.predicate.atoms import PatternKind
from headgate.queries import Source
from headgate.schema import DecimalType, Ordinal, Schema, String, Type
from headgate.snapshot.arrays.texts import Texts, pack, unpack

NUMBERS, WIDE, TEXTS = range(3)  # the pools of cuts
PATTERN_KINDS: tuple[PatternKind, ...] = ("LIKE", "ILIKE", "RLIKE")

ColumnKey = tuple[int, int, str]  # stream and attribute, as numbers in the schema, and alias

_LOW_64_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTable:
    """Column i is attribute `attribute[i]` of stream `stream[i]`, both as numbers in the schema.

    `alias` is the alias by which a query of more than one source names it; otherwise it is empty.
    """

    stream: npt.NDArray[np.int32]
    attribute: npt.NDArray[np.int32]
    alias: Texts

    def __len__(self) -> int:
        return len(self.stream)


class ColumnNumbers:
    """A numbering of columns, in the order of their first mention."""

    def __init__(self, schema: Schema) -> None:
        self._numbers: dict[ColumnKey, int] = {}
        self._schema = schema
        self._streams = {stream.name: number for number, stream in enumerate(schema)}
        self._attributes = {
            (number, attribute.name): place
            for number, stream in enumerate(schema)
            for place, attribute in enumerate(stream)
        }

    def stream(self, name: str) -> int:
        """Return the number of a stream in the schema."""
        number = self._streams.get(name)
        if number is None:
            raise UsageError(f"the schema has no stream `{name}`")
        return number

    def number(self, column: Column, sources: tuple[Source, ...]) -> int:
        """Return the number of a column that queries over these sources mention."""
        stream = self.stream(_stream_of(column, sources))
        declared = self._schema.streams[stream]
        # a query may be bound to another version of the schema, in which it has another type
        attribute = self._attributes.get((stream, column.name))
        if attribute is None or declared.attributes[attribute].type != column.type:
            raise UsageError(
                f"stream {declared.name} has no attribute `{column.name} {column.type.sql}`"
            )
        return self._numbers.setdefault((stream, attribute, column.source), len(self._numbers))

    def arrays(self) -> ColumnTable:
        return pack_columns(list(self._numbers))


def pack_columns(keys: Sequence[ColumnKey]) -> ColumnTable:
    """Return columns as arrays, given the numbers and the alias of each."""
    return ColumnTable(
        stream=np.array([stream for stream, _, _ in keys], np.int32),
        attribute=np.array([attribute for _, attribute, _ in keys], np.int32),
        alias=pack(alias for _, _, alias in keys),
    )


def _stream_of(column: Column, sources: tuple[Source, ...]) -> str:
    # a query of one source names its columns without an alias
    if len(sources) == 1 and not column.source:
        return sources[0].stream.name
    for source in sources:
        if len(sources) > 1 and source.alias == column.source:
            return source.stream.name
    listed = ", ".join(source.alias for source in sources)
    raise UsageError(f"`{column.key}` is not a column of {listed or 'nothing'}")


def decode_columns(table: ColumnTable, schema: Schema) -> list[Column]:
    """Return the columns as objects, by number."""
    numbers = zip(table.stream.tolist(), table.attribute.tolist(), strict=True)
    attributes = [schema.streams[stream].attributes[attribute] for stream, attribute in numbers]
    aliases = unpack(table.alias)
    return [
        Column(declared.name, declared.type, alias)
        for declared, alias in zip(attributes, aliases, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """All cuts of all atoms; an atom has a range of one pool, in ascending order."""

    numbers: npt.NDArray[np.int64]
    wide_high: npt.NDArray[np.int64]
    wide_low: npt.NDArray[np.uint64]
    texts: Texts

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The number of cuts in each pool."""
        return len(self.numbers), len(self.wide_high), len(self.texts)


def pool_of(type_: Type) -> int:
    """Return the pool that holds the cuts of columns of this type.

    >>> pool_of(DecimalType(18, 2)) == NUMBERS, pool_of(DecimalType(19, 2)) == WIDE
    (True, True)
    """
    if isinstance(type_, String):
        return TEXTS
    wide = isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS
    return WIDE if wide else NUMBERS


class CutPools:
    """A collection of cuts, pool by pool."""

    def __init__(self) -> None:
        self._pools: tuple[list[Any], list[Any], list[Any]] = ([], [], [])

    def add(self, type_: Type, cuts: Iterable[Ordinal]) -> tuple[int, int]:
        """Add cuts; return where in their pool they begin and end."""
        pool = self._pools[pool_of(type_)]
        start = len(pool)
        pool.extend(cuts)
        return start, len(pool)

    def arrays(self) -> Cuts:
        numbers, wide, texts = self._pools
        high, low = split_wide(wide)
        return Cuts(np.array(numbers, np.int64), high, low, pack(texts))


def split_wide(cuts: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the high and the low halves of numbers of up to 128 bits.

    >>> split_wide([-1, 5])
    (array([-1,  0]), array([18446744073709551615,                    5], dtype=uint64))
    """
    # an arithmetic shift keeps the sign in the high half, so halves compare as numbers do
    high = np.array([cut >> 64 for cut in cuts], np.int64)
    return high, np.array([cut & _LOW_64_BITS for cut in cuts], np.uint64)


def decode_cuts(cuts: Cuts) -> tuple[list[int], list[int], list[str]]:
    """Return the pools as Python ordinals, by the constants NUMBERS, WIDE and TEXTS."""
    wide = zip(cuts.wide_high.tolist(), cuts.wide_low.tolist(), strict=True)
    wide_cuts = [(high << 64) | low for high, low in wide]
    return cuts.numbers.tolist(), wide_cuts, unpack(cuts.texts)


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """Pattern i has the kind `PATTERN_KINDS[kind[i]]`, its text and its escape character."""

    kind: npt.NDArray[np.uint8]
    text: Texts
    escape: Texts

    def __len__(self) -> int:
        return len(self.kind)


class PatternNumbers:
    """A numbering of distinct patterns, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[Pattern, int] = {}

    def number(self, pattern: Pattern) -> int:
        return self._numbers.setdefault(pattern, len(self._numbers))

    def arrays(self) -> Patterns:
        return Patterns(
            kind=np.array([PATTERN_KINDS.index(p.kind) for p in self._numbers], np.uint8),
            text=pack(pattern.text for pattern in self._numbers),
            escape=pack(pattern.escape for pattern in self._numbers),
        )


def decode_patterns(patterns: Patterns) -> list[Pattern]:
    """Return the patterns as objects, by number."""
    columns = (patterns.kind.tolist(), unpack(patterns.text), unpack(patterns.escape))
    return [
        Pattern(PATTERN_KINDS[kind], text, escape)
        for kind, text, escape in zip(*columns, strict=True)
    ]
