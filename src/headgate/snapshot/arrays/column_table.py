"""The columns that atoms mention, each once; their names and types are the schema's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError
from headgate.predicate import Column
from headgate.queries import Source
from headgate.schema import Schema
from headgate.snapshot.arrays.texts import Texts, pack, unpack


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
        self._numbers: dict[tuple[int, int, str], int] = {}
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
        attribute = self._attributes.get((stream, column.name))
        if attribute is None or declared.attributes[attribute].type != column.type:
            raise UsageError(
                f"stream {declared.name} has no attribute `{column.name} {column.type.sql}`"
            )
        return self._numbers.setdefault((stream, attribute, column.source), len(self._numbers))

    def arrays(self) -> ColumnTable:
        keys = list(self._numbers)
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
