"""The index that users get: an event looks only at queries that one of its own values leads to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from headgate.encoding import encode_column, encode_queries
from headgate.encoding.atoms import atoms_from
from headgate.encoding.trees import TRUTH_VALUES
from headgate.events import EventBatch, from_rows
from headgate.matching.admission import check_held, check_new
from headgate.matching.keyed.arrays import Events
from headgate.matching.keyed.build import Built, build
from headgate.matching.keyed.match import match
from headgate.matching.matches import Matches, joined
from headgate.matching.scan import compared
from headgate.predicate import Atom, Compare, Constant
from headgate.predicate import Matches as TextMatches
from headgate.query import Query
from headgate.schema import Schema, Stream

OUTPUT = 1 << 21  # matches of a chunk, unless a single event may have more


class KeyedIndex:
    """Files each query under a condition that must hold for it, the rarest that there is.

    Guarantee: that of `scan`, event for event.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import parse_where
    >>> from headgate.query import Source
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> big = Query("big", (Source("s", "s"),), parse_where("a > 10", s))
    >>> index = KeyedIndex.build(s, [big])
    >>> index.match([{"a": 11}, {"a": 3}, {"a": None}]).ids().to_pylist()
    [['big'], [], []]
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._ids: list[str] = []
        self._live: dict[str, int] = {}
        self._queries: list[Query] = []
        self._alive = np.zeros(0, np.uint64)
        self._built: Built | None = None
        self._atoms: list[Atom] = []

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        for query in queries:
            index.insert(query)
        return index

    def insert(self, query: Query) -> int:
        check_new(query, self.stream, self._live)
        position = len(self._ids)
        self._ids.append(query.id)
        self._queries.append(query)
        self._live[query.id] = position
        self._built = None
        return position

    def remove(self, query_id: str) -> None:
        check_held(query_id, self._live)
        position = self._live.pop(query_id)
        if self._built is not None:
            self._alive[position >> 6] &= ~np.uint64(1 << (position & 63))

    def __len__(self) -> int:
        return len(self._live)

    def match(self, events: Any) -> Matches:
        return joined(list(self.match_chunks(events)), self._ids)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        built = self._ready()
        used = [regions.column.name for regions in built.book.regions]
        batch = (
            events
            if isinstance(events, EventBatch)
            else from_rows(events, self.stream, columns=used)
        )
        yield from _with_errors(batch, self._matched(built, batch), self._ids)

    def _ready(self) -> Built:
        if self._built is None:
            schema = Schema((self.stream,))
            encoded = encode_queries(self._queries, schema)
            self._built = build(encoded, schema)
            self._atoms = atoms_from(encoded.atoms, schema)
            self._alive = np.zeros(len(self._ids) // 64 + 1, np.uint64)
            places = np.fromiter(self._live.values(), np.uint64, len(self._live))
            np.bitwise_or.at(self._alive, places >> 6, np.uint64(1) << (places & 63))
        return self._built

    def _matched(
        self, built: Built, batch: EventBatch
    ) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Rows up to which the matches go, their offsets, and the positions."""
        count = len(self._ids)
        out = np.empty(max(OUTPUT, count), np.int64)
        stamp = np.zeros(len(built.pattern_slots), np.int64)
        seen = np.zeros(count, np.int64)
        bitmap = np.zeros(count // 64 + 1, np.uint64)
        stack = np.empty(built.depth + 1, np.int64)
        offsets = np.empty(len(batch.events) + 1, np.int64)
        events = self._events(built, batch)
        row = 0
        while row < len(batch.events):
            end = match(
                built.conditions,
                built.clusters,
                built.leaves,
                events,
                row,
                self._alive,
                stamp,
                seen,
                stack,
                bitmap,
                out,
                offsets,
            )
            taken = offsets[: end - row + 1].copy()
            yield row, taken, out[: taken[-1]].copy()
            row = end

    def _events(self, built: Built, batch: EventBatch) -> Events:
        rows = len(batch.events)
        codes = built.book.matrix(batch)
        columns = {
            regions.column.name: encode_column(
                batch.table.column(regions.column.name), regions.column.type
            )
            for regions in built.book.regions
            if batch.table.schema.get_field_index(regions.column.name) >= 0
        }
        bits = np.zeros((rows, len(built.bit_atoms)), np.uint8)
        for slot, number in enumerate(built.bit_atoms.tolist()):
            atom = self._atoms[number]
            if isinstance(atom, Constant):
                bits[:, slot] = TRUTH_VALUES.index(atom.value)
                continue
            assert isinstance(atom, Compare)
            left, right = columns[atom.left.name], columns[atom.right.name]
            truth = compared(atom, left, right).astype(np.uint8)
            for side in (left, right):
                if side.valid is not None:
                    truth[~side.valid] = 2
            bits[:, slot] = truth
        return Events(codes, bits, *self._patterns(built, columns, rows))

    def _patterns(self, built: Built, columns: dict[str, Any], rows: int) -> tuple[Any, ...]:
        found = (self._atoms[number] for number in built.pattern_slots.tolist())
        atoms = [atom for atom in found if isinstance(atom, TextMatches)]
        names = list(dict.fromkeys(atom.column.name for atom in atoms))
        numbers = {regions.column.name: n for n, regions in enumerate(built.book.regions)}
        ranks = np.zeros((rows, len(names)), np.int64)
        first_text = np.zeros(len(names), np.int64)
        starts, matched = [0], list[int]()
        for place, name in enumerate(names):
            column = columns[name]
            ranks[:, place] = column.codes
            first_text[place] = len(starts) - 1
            tests = [(n, a.pattern.compiled) for n, a in enumerate(atoms) if a.column.name == name]
            for text in column.ranked or []:
                matched += [slot for slot, test in tests if test.matches(text)]
                starts.append(len(matched))
        return (
            ranks,
            np.array([numbers[name] for name in names], np.int64),
            first_text,
            np.array(starts, np.int64),
            np.array(matched, np.int64),
        )

    def describe(self) -> dict[str, Any]:
        built = self._ready()
        return {
            "kind": "keyed",
            "queries": len(self),
            "positions": len(self._ids),
            "clusters": len(built.clusters.start) - 1,
            "entries": len(built.clusters.query),
            "bitmaps": int((built.leaves.of_cluster >= 0).sum()),
            "without_key": built.unkeyed,
            "never_true": built.never,
            "bytes": built.bytes,
        }


def _with_errors(
    batch: EventBatch, chunks: Iterator[tuple[int, Any, Any]], ids: Sequence[str]
) -> Iterator[Matches]:
    """Chunks over all events, the unreadable ones among them, which have a reason and no match."""
    errors = {letter.event: letter.reason for letter in batch.dead}
    numbers = batch.events
    total = len(numbers) + len(batch.dead)
    origin = min([*errors, *numbers[:1].tolist()], default=0)
    first = origin
    for row, taken, positions in chunks:
        stop = row + len(taken) - 1
        end = origin + total if stop == len(numbers) else int(numbers[stop])
        counts = np.zeros(end - first, np.int64)
        counts[numbers[row:stop] - first] = np.diff(taken)
        yield Matches(
            np.concatenate(([0], np.cumsum(counts))),
            positions,
            ids,
            {event: errors[event] for event in range(first, end) if event in errors},
            first,
        )
        first = end
    if first < origin + total:
        yield Matches(np.zeros(total + 1, np.int64), np.empty(0, np.int64), ids, errors, first)
