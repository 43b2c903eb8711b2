"""What the rivals have in common: the protocol of an index around arrays that never change.

The papers' algorithms are static. So a change of the queries is only noted, and the next match
files all of them anew.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.entries import Entries, Numbers, are_conjunctions, make_entries
from benchmarks.rivals.kernels.entries import collect_owners
from headgate.errors import ExpansionTooLarge, QuerySetError
from headgate.matching.base import BaseIndex
from headgate.matching.encoding.code_book import CodeBook
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, to_events
from headgate.matching.protocol import Placement
from headgate.predicate import Atom, Compare, IsNull, Within
from headgate.predicate import Matches as TextMatches
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.predicate.tree import conjunction
from headgate.queries import Query, Source
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries, encode_queries
from headgate.snapshot.arrays.atoms import decode_atoms
from headgate.snapshot.arrays.texts import unpack

OUTPUT = 1 << 21  # matches of a chunk, unless a single event may have more


class Events(NamedTuple):
    """Event e has the codes `low[k]` to `high[k]` of `column[k]`, for k from `start[e]` on.

    These are one code wherever an event is a row.
    """

    start: Any
    column: Any
    low: Any
    high: Any


# From row, up to row, into these entries and offsets: how far there was room.
Match = Callable[[Events, int, int, Numbers, Numbers], int]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What a rival made of its entries: the arrays that matching reads, and how it does so.

    `match` reports entries, each at most once an event, and stops before an event for which the
    room might not suffice.
    """

    arrays: tuple[npt.NDArray[Any], ...]
    match: Match


@dataclass(frozen=True, slots=True, eq=False)
class BuiltQueries:
    """The queries of an index, filed; `owner` is the position of each entry's query."""

    book: CodeBook
    entries: Entries
    layout: Layout
    owner: Numbers
    always: Numbers
    positions: int

    def match(self, events: Events) -> Iterator[RowMatches]:
        """Yield the matches of events, in as many pieces as there is room for."""
        rows = len(events.start) - 1
        most, row = len(self.entries), 0
        at_once = max(1, OUTPUT // (1 + len(self.always)))
        plain = not len(self.always) and np.array_equal(self.owner, np.arange(most))
        seen = np.empty(0 if plain else self.positions, np.int64)
        while row < rows:
            out = np.empty(max(OUTPUT, most), np.int64)
            offsets = np.zeros(rows - row + 1, np.int64)
            end = self.layout.match(events, row, min(rows, row + at_once), out, offsets)
            ends = offsets[: end - row + 1]
            matched = ends, out[: ends[-1]]
            if not plain:
                matched = collect_owners(*matched, self.owner, self.always, seen)
            yield RowMatches(row, *matched)
            row = end


class StaticIndex(BaseIndex):
    """Filters that are conjunctions of comparisons with constants, or ORs of such.

    Guarantee: that of `scan`, for the queries that it takes; another is refused by name. Memory
    beside it: about as much as the matches of a chunk.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    how: ClassVar[str]

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._conjunctions: dict[int, tuple[Conjunction, ...]] = {}
        self._encoded: EncodedQueries | None = None  # in the place of the conjunctions
        self._built: BuiltQueries | None = None

    @abstractmethod
    def _lay_out(self, entries: Entries) -> Layout:
        """Return the arrays of the rival."""

    @classmethod
    def from_encoded(cls, stream: Stream, encoded: EncodedQueries) -> Self:
        """Return an index over queries that are arrays already, all filters on the stream.

        Where all are plain conjunctions, there is no object for each of them.
        """
        schema = Schema((stream,))
        flaws = map(cls._find_flaw, decode_atoms(encoded.atoms, schema))
        if not are_conjunctions(encoded) or any(flaws):
            return cls.build(stream, list(decode_queries(encoded, schema)))
        index = cls(stream)
        index._ids = unpack(encoded.ids)
        index._positions = {name: position for position, name in enumerate(index._ids)}
        index._encoded = encoded
        index._build()
        return index

    @classmethod
    def refusal(cls, query: Query) -> str | None:
        """Return why the rival does not take a query; None if it does."""
        try:
            cls._split(query)
        except QuerySetError as error:
            return str(error)
        return None

    def _add(self, query: Query, position: int) -> None:
        expressed = self._split(query)
        self._change()
        self._conjunctions[position] = expressed

    def _discard(self, query_id: str, position: int) -> None:
        del query_id
        self._change()
        del self._conjunctions[position]

    def _check(self, query: Query) -> None:
        self._split(query)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        built = self._build()
        used = [regions.column.name for regions in built.book.regions]
        batch = self._read(events, used)
        columns = EventColumns(batch.table, len(batch.events))
        start, column, code = built.book.codes(columns)
        matches = built.match(Events(start, column, code, code))
        yield from to_events(batch, matches, self._ids)

    def locate(self, query_id: str) -> Placement:
        self._position_of(query_id)
        return Placement(self.kind, self.how)

    def describe(self) -> dict[str, Any]:
        built = self._build()
        return {
            "kind": self.kind,
            "queries": len(self),
            "positions": len(self._ids),
            "entries": len(built.entries),
            "bytes": sum(array.nbytes for array in built.layout.arrays),
        }

    @classmethod
    def _split(cls, query: Query) -> tuple[Conjunction, ...]:
        """Return the query as conjunctions, or an error that names what the rival cannot do."""
        try:
            parts = to_conjunctions(query.where)
        except ExpansionTooLarge as error:
            raise QuerySetError(f"`{query.id}`: {error}") from None
        for flaw in (cls._find_flaw(atom) for atoms in parts for atom in atoms):
            if flaw is not None:
                raise QuerySetError(f"`{query.id}` has {flaw}")
        return parts

    @classmethod
    def _find_flaw(cls, atom: Atom) -> str | None:
        """Return what is wrong with a predicate, if the rival cannot do it."""
        if isinstance(atom, Within):
            return None
        return f"{_name_atom(atom)}; {cls.title} indexes comparisons with constants only"

    def _change(self) -> None:
        """Turn the queries into objects, which from here on differ from what was built."""
        if self._encoded is not None:
            schema = Schema((self.stream,))
            for position, query in enumerate(decode_queries(self._encoded, schema)):
                self._conjunctions[position] = to_conjunctions(query.where)
        self._encoded = self._built = None

    def _build(self) -> BuiltQueries:
        """Return the queries as they are now, laid out for matching."""
        if self._built is None:
            schema = Schema((self.stream,))
            parts = [
                (at, part)
                for at, conjunctions in self._conjunctions.items()
                for part in conjunctions
            ]
            encoded, owner = self._encoded, np.arange(len(self._ids))
            if encoded is None:
                source = (Source(self.stream, self.stream.name),)
                whole = (Query("", source, conjunction(part)) for _, part in parts if part)
                encoded = encode_queries(whole, schema)
                owner = np.array([at for at, part in parts if part], np.int64)
            book, entries = make_entries(encoded, schema)
            always = np.array([at for at, part in parts if not part], np.int64)
            layout = self._lay_out(entries)
            self._built = BuiltQueries(book, entries, layout, owner, always, len(self._ids))
        return self._built


def _name_atom(atom: Atom) -> str:
    """Return what the user wrote, in short."""
    if isinstance(atom, IsNull):
        return f"`{atom.column.name}` IS NULL"
    if isinstance(atom, Compare):
        return f"`{atom.left.name}` {atom.operator} `{atom.right.name}`"
    return atom.pattern.kind if isinstance(atom, TextMatches) else "a constant"
