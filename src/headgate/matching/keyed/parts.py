"""The parts of an index: new queries are a part of their own, until parts are merged.

As in a log-structured merge tree, a new part takes in the parts before it that are not much larger,
so that there are few parts and a query is placed again only a few times. Large parts are merged in
the background. A tuple of parts never changes, so that no match against it is disturbed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.matching.keyed.arrays import Appended, Events, Living, Scratch
from headgate.matching.keyed.build import KeyedArrays
from headgate.matching.keyed.kernels.clusters import pack_living
from headgate.matching.keyed.kernels.grid import BLOCK_WORDS, ROWS_PER_PASS
from headgate.matching.keyed.kernels.match import match
from headgate.matching.keyed.segment import Segment, build_segment
from headgate.matching.matches import Numbers, Positions
from headgate.queries import Query
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, encode_queries
from headgate.snapshot.arrays.selection import concatenate_queries, select_queries

OUTPUT_SIZE = 1 << 21  # matches that a thread collects, unless a single event may have more

MAX_MERGE_RATIO = 2  # how much larger than what comes a part is that is merged with it
MAX_MERGED_AT_ONCE = 5_000  # queries of a part; larger ones are merged in the background
STALE_SHARE = 0.05  # removed queries, and those in other parts, as a share of the largest part
MIN_STALE = 1_000  # of them, that are worth a merge

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment without the queries that were removed."""

    segment: Segment
    is_alive: Mask  # by number
    living: Living
    position: Positions  # by number; empty if numbers are positions

    @classmethod
    def from_segment(cls, segment: Segment, is_alive: Mask | None = None) -> Part:
        """Return the part of a segment that is alive, by number; by default all of it."""
        alive = np.ones(len(segment), np.bool_) if is_alive is None else is_alive
        # the kernel skips the translation where numbers are positions already
        is_same = np.array_equal(segment.positions, np.arange(len(segment)))
        position = segment.positions[:0] if is_same else segment.positions
        return cls(segment, alive, _pack(segment.built, alive), position.astype(np.int32))

    @property
    def removed(self) -> int:
        """The number of queries that were removed."""
        return len(self.is_alive) - int(self.is_alive.sum())

    def without(self, positions: Numbers) -> Part:
        """Return the part without the queries at some positions, as far as it has them."""
        is_alive = self.is_alive.copy()
        is_alive[self.numbers(positions)] = False
        return Part.from_segment(self.segment, is_alive)

    def numbers(self, positions: Positions) -> Numbers:
        """Return the numbers of the living queries at some positions, as far as they are here."""
        return np.flatnonzero(np.isin(self.segment.positions, positions) & self.is_alive)

    def match(
        self,
        events: Events,
        row: int,
        stop: int,
        workspace: Workspace,
        others: tuple[Numbers, Positions],
    ) -> tuple[Numbers, Positions]:
        """Return the matches of rows from `row` on, at most up to `stop`: offsets and positions.

        The positions of each event, in no particular order, include those that other parts found.
        Fewer rows are matched if the output is full, but at least one.
        """
        built = self.segment.built
        max_others = int(np.diff(others[0]).max(initial=0))
        # allocated for every call: memory is mapped only when it is written to
        out = np.empty(max(OUTPUT_SIZE, len(self.segment) + max_others), np.int32)
        end = match(
            built.programs,
            built.clusters,
            built.grid,
            events,
            row,
            stop,
            workspace.scratch,
            self.living,
            Appended(self.position, *others),
            out,
            workspace.offsets,
        )
        offsets = workspace.offsets[: end - row + 1].copy()
        return offsets, out[: offsets[-1]]


Parts = tuple[Part, ...]


class Workspace:
    """The memory in which one thread matches events against one segment."""

    def __init__(self, segment: Segment, rows: int) -> None:
        built = segment.built
        columns = len(built.book.regions)
        self.offsets = np.empty(rows + 1, np.int64)
        self.scratch = Scratch(
            clock=np.zeros(1, np.int64),
            codes=np.zeros(columns, np.int32),
            stamp=np.zeros(len(built.slots.pattern_atoms), np.int64),
            seen=np.zeros(len(segment), np.int64),
            cells=np.zeros(built.most_cells + 1, np.uint8),
            rows=np.empty(2 * (columns + ROWS_PER_PASS), np.int64),
            met=np.empty(_count_reachable(built), np.int64),
            block=np.empty(BLOCK_WORDS, np.uint64),
            full=np.empty(BLOCK_WORDS, np.int64),
        )


def build_parts(encoded: EncodedQueries, positions: Numbers, schema: Schema) -> Parts:
    """Return one part of these queries, or none if there are none."""
    if not len(encoded):
        return ()
    return (Part.from_segment(build_segment(encoded, positions, schema)),)


def remove_queries(parts: Parts, positions: Sequence[int]) -> Parts:
    """Return the parts without the queries at some positions."""
    if not positions:
        return parts
    removed = np.array(sorted(positions), np.int64)
    return tuple(part.without(removed) for part in parts)


def add_queries(parts: Parts, new: Mapping[int, Query], schema: Schema, fixed: int) -> Parts:
    """Return the parts with new queries, by their positions, which are above all others.

    The first `fixed` of the parts stay as they are.
    """
    if not new:
        return parts
    encoded = encode_queries(new.values(), schema)
    positions = np.fromiter(new, np.int64, len(new))
    merged: list[Part] = []
    size = len(new)
    # take in the last parts as long as each is not much larger than all that comes
    while len(parts) > fixed and len(parts[-1].segment) <= min(
        MAX_MERGED_AT_ONCE, MAX_MERGE_RATIO * size
    ):
        parts, last = parts[:-1], parts[-1]
        merged.insert(0, last)
        size += len(last.segment)
    if merged:
        # in the order of the parts, so that positions ascend
        older, older_positions = collect_living(merged, schema)
        encoded = concatenate_queries([older, encoded], schema)
        positions = np.concatenate([older_positions, positions])
    return parts + build_parts(encoded, positions, schema)


def merge_parts(parts: Sequence[Part], schema: Schema) -> Parts:
    """Return one part that holds the living queries of all, or none if there are none."""
    return build_parts(*collect_living(parts, schema), schema)


def collect_living(parts: Sequence[Part], schema: Schema) -> tuple[EncodedQueries, Numbers]:
    """Return the living queries of some parts, and their positions."""
    encoded, positions = [], []
    for part in parts:
        numbers = np.flatnonzero(part.is_alive)
        encoded.append(select_queries(part.segment.encoded, numbers, schema))
        positions.append(part.segment.positions[numbers])
    return concatenate_queries(encoded, schema), np.concatenate(positions)


def is_stale(parts: Sequence[Part]) -> bool:
    """Return whether it is time to merge the parts."""
    if not parts:
        return False
    largest = max(len(part.segment) for part in parts)
    # what a match reads in vain, and what it reads besides the largest part
    removed = sum(part.removed for part in parts)
    elsewhere = sum(len(part.segment) for part in parts) - largest
    return removed + elsewhere > max(STALE_SHARE * largest, MIN_STALE)


def _pack(built: KeyedArrays, is_alive: Mask) -> Living:
    """Return the living queries as bits, in the three orders that the kernels need."""
    if is_alive.all():
        nothing = np.empty(0, np.uint64)
        return Living(nothing, nothing, nothing)
    numbers = _pack_bits(is_alive)
    clusters = built.clusters
    bitmaps = pack_living(clusters.descriptions, clusters.members, built.living_words, numbers)
    return Living(numbers, bitmaps, _pack_bits(is_alive[built.grid.query]))


def _count_reachable(built: KeyedArrays) -> int:
    """Return how many clusters an event can lead to at most."""
    # a node of each level of each column, all patterns, negated or not, and all comparisons
    clusters = built.clusters
    levels = int(np.bitwise_count(clusters.levels).sum())
    return levels + 2 * len(built.slots.pattern_atoms) + len(clusters.compared)


def _pack_bits(bits: Mask) -> npt.NDArray[np.uint64]:
    # whole words, and a spare one where the bits fill them
    padded = np.zeros((len(bits) // 64 + 1) * 64, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view(np.uint64)
