"""Queries as dense arrays, and back again exactly.

A query is its id, its metadata, its frame and its condition. Conditions are postfix
programs (`trees`) over distinct atoms (`atoms`), which refer to columns of the schema, and to cuts
and patterns in pools (`operands`).

A frame is a query without its id, condition and metadata: what it selects, from where, grouped. A
million queries have few frames, most often the single one `SELECT * FROM trades`. So frames are
kept as SQL, the one form that is known to say everything exactly.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from headgate.errors import SqlError, UsageError
from headgate.predicate import TRUE, Atom
from headgate.queries import Query
from headgate.schema import Schema
from headgate.snapshot.arrays.atoms import AtomNumbers, EncodedAtoms, Flags, decode_atoms
from headgate.snapshot.arrays.texts import Texts, pack, unpack
from headgate.snapshot.arrays.trees import Trees, from_postfix, to_postfix
from headgate.sql import Script, render_select

_QUERIES_PER_CHUNK = 1 << 16  # queries that are decoded at once
_FRAME_ID = "framed"


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQueries:
    """Queries as nothing but arrays, so that they can be written to a file and read by kernels.

    `stream` is the number in the schema of a query's first stream, `frame` the number of its frame
    in `frames`. Where `has_metadata` is 0, the text in `metadata` is empty.
    """

    ids: Texts
    metadata: Texts
    has_metadata: Flags
    stream: npt.NDArray[np.int32]
    frame: npt.NDArray[np.int32]
    frames: Texts
    trees: Trees
    atoms: EncodedAtoms

    def __len__(self) -> int:
        return len(self.stream)


def encode_queries(queries: Iterable[Query], schema: Schema) -> EncodedQueries:
    """Return queries as arrays; `decode_queries` is the exact inverse.

    Raise UsageError for a query over names that the schema does not have.

    >>> from headgate.schema import INT, Attribute, Stream
    >>> from headgate.sql import Script
    >>> script = Script(Schema((Stream("s", (Attribute("a", INT),)),)))
    >>> queries = list(script.read("CREATE QUERY q AS SELECT * FROM s WHERE a > 3 OR a IS NULL"))
    >>> encoded = encode_queries(queries, script.schema)
    >>> encoded.trees.program.tolist(), encoded.atoms.cuts.numbers.tolist()
    ([0, 1, -21], [4])
    >>> list(decode_queries(encoded, script.schema)) == queries
    True
    """
    return _Encoder(schema).encode(queries)


@dataclass(slots=True)
class _Frame:
    number: int
    stream: int
    number_of: Callable[[Atom], int]


class _Encoder:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._atoms = AtomNumbers(schema)
        self._frames: dict[object, _Frame] = {}
        # by the addresses of its parts, which most queries share; they are kept alive for that
        self._known_frames: dict[tuple[int, int, bool, int], _Frame] = {}
        self._alive: list[Query] = []
        self._frame_texts: list[str] = []

    def encode(self, queries: Iterable[Query]) -> EncodedQueries:
        ids: list[str] = []
        metadata: list[str | None] = []
        frames, streams = array("i"), array("i")
        # arrays of machine numbers: lists of Python integers would take far more memory
        program, offsets = array("i"), array("q", [0])
        for query in queries:
            frame = self._find_frame(query)
            try:
                program.extend(to_postfix(query.where, frame.number_of))
            except UsageError as error:
                raise UsageError(f"query `{query.id}`: {error}") from None
            # the program of query i ends where that of the next begins
            offsets.append(len(program))
            frames.append(frame.number)
            streams.append(frame.stream)
            ids.append(query.id)
            metadata.append(query.metadata)
        return EncodedQueries(
            ids=pack(ids),
            metadata=pack(text or "" for text in metadata),
            has_metadata=np.array([text is not None for text in metadata], np.uint8),
            stream=np.array(streams, np.int32),
            frame=np.array(frames, np.int32),
            frames=pack(self._frame_texts),
            trees=Trees(np.array(offsets, np.int64), np.array(program, np.int32)),
            atoms=self._atoms.arrays(),
        )

    def _find_frame(self, query: Query) -> _Frame:
        address = (id(query.sources), id(query.outputs), query.distinct, id(query.group_by))
        frame = self._known_frames.get(address)
        if frame is None:
            frame = self._known_frames[address] = self._make_frame(query)
            self._alive.append(query)
        return frame

    def _make_frame(self, query: Query) -> _Frame:
        # by its parts: rendering and reading SQL for each query would take most of the time
        key = (query.sources, query.outputs, query.distinct, query.group_by)
        frame = self._frames.get(key)
        if frame is None:
            try:
                stream = self._atoms.stream(query.stream_name)
                text = render_frame(make_frame(query), self._schema)
            except UsageError as error:
                raise UsageError(f"query `{query.id}`: {error}") from None
            number_of = self._atoms.under(query.sources)
            frame = self._frames[key] = _Frame(len(self._frame_texts), stream, number_of)
            self._frame_texts.append(text)
        return frame


def decode_queries(encoded: EncodedQueries, schema: Schema) -> Iterator[Query]:
    """Return the queries, one after the other; equal atoms are one object."""
    atoms = decode_atoms(encoded.atoms, schema)
    frames = decode_frames(encoded.frames, schema)
    for start in range(0, len(encoded), _QUERIES_PER_CHUNK):
        yield from _decode_chunk(encoded, start, start + _QUERIES_PER_CHUNK, atoms, frames)


def _decode_chunk(
    encoded: EncodedQueries, start: int, stop: int, atoms: list[Atom], frames: list[Query]
) -> Iterator[Query]:
    # lists are faster to read one by one than arrays, but larger: so chunk by chunk
    offsets = encoded.trees.offsets[start : stop + 1]
    # offsets count through all queries, `program` begins at the first of the chunk
    first = int(offsets[0])
    program = encoded.trees.program[first : int(offsets[-1])].tolist()
    ends = (offsets - first).tolist()
    for query_id, text, has_metadata, number, low, high in zip(
        unpack(encoded.ids, start, stop),
        unpack(encoded.metadata, start, stop),
        encoded.has_metadata[start:stop].tolist(),
        encoded.frame[start:stop].tolist(),
        ends[:-1],
        ends[1:],
        strict=True,
    ):
        frame = frames[number]
        yield Query(
            query_id,
            frame.sources,
            from_postfix(program[low:high], atoms),
            frame.outputs,
            frame.distinct,
            frame.group_by,
            text if has_metadata else None,
        )


def make_frame(query: Query) -> Query:
    """Return a query without its id, condition and metadata."""
    return replace(query, id=_FRAME_ID, where=TRUE, metadata=None)


def render_frame(frame: Query, schema: Schema) -> str:
    """Return a frame as SQL; raise if it would be read back differently.

    SQL says everything that SQL has brought in, but a query can also be made by hand.
    """
    text = render_select(frame)
    try:
        same = _read_frame(text, schema) == frame
    except SqlError as error:
        raise UsageError(f"`{text}` cannot be stored: {error}") from None
    if not same:
        raise UsageError(f"`{text}` cannot be stored: it would be read back differently")
    return text


def decode_frames(texts: Texts, schema: Schema) -> list[Query]:
    """Return the frames as objects, by number; raise SqlError if one does not fit the schema."""
    return [_read_frame(text, schema) for text in unpack(texts)]


@lru_cache(maxsize=10_000)
def _read_frame(text: str, schema: Schema) -> Query:
    query = Script(schema).read_statement(f"CREATE QUERY {_FRAME_ID} AS {text}")
    assert isinstance(query, Query)
    return query
