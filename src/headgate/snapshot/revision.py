"""A set of queries as a revision of a snapshot: which of its queries stay, and which are new.

A revision comes from a whole set (`compare_set`), which is compared with the snapshot array by
array, or from a change (`apply_change`), which looks only at the queries that it names. Either way
no stored query that stays becomes an object, and the step to be written follows from two arrays of
numbers (`compute_step`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import QuerySetError
from headgate.queries import Change, Query, QuerySet
from headgate.queries.queryset import are_different, refuse_unknown_id
from headgate.snapshot.arrays import EncodedQueries, encode_queries
from headgate.snapshot.arrays.comparison import mark_equal
from headgate.snapshot.arrays.selection import concatenate_queries, select_queries
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.segments import Positions
from headgate.snapshot.snapshot import Snapshot

MAX_SELECTED = 0.2  # of the stored queries; to compare more, they are not selected first


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many queries were added, removed and updated; those that only moved do not count."""

    added: int
    removed: int
    updated: int


@dataclass(frozen=True, slots=True, eq=False)
class Revision:
    """The queries of a set in its order, of which some are stored already.

    `entries` has a number for each: the position of a query that the parent stores, or, counted on
    from the number of those, its place in `new`, whose arrays are `encoded`. `replaced` has for
    each of `new` the position of the query that lives under its id, −1 if there is none.
    """

    parent: Snapshot
    new: Sequence[Query]
    encoded: EncodedQueries
    entries: Positions
    replaced: Positions

    def __len__(self) -> int:
        return len(self.entries)

    def queries_of(self, entries: Positions) -> list[Query]:
        """Return the queries of some entries; only those that are stored have to be decoded."""
        stored = count_stored(self.parent)
        decoded = iter(self.parent.queries_at(entries[entries < stored]))
        return [
            next(decoded) if entry < stored else self.new[entry - stored]
            for entry in entries.tolist()
        ]

    def encode_all(self) -> EncodedQueries:
        """Return the whole set as arrays."""
        stored = count_stored(self.parent)
        # a whole set is encoded as it is, in its order; a change may name all queries in another
        if len(self.encoded) == len(self):
            is_own = self.entries == stored + np.arange(len(self))
            if np.all(is_own | (self.entries == self.replaced)):
                return self.encoded
        # a small change must not decode a large set
        schema = self.parent.schema
        whole = concatenate_queries([*self.parent.stored, self.encoded], schema)
        assert len(whole) == stored + len(self.encoded)
        return select_queries(whole, self.entries, schema)

    def count_changes(self) -> ChangeCounts:
        """Return how many queries differ from those of the parent, as `QuerySet.diff` has it."""
        stored = count_stored(self.parent)
        is_new = self.entries >= stored
        new = self.entries[is_new] - stored
        before = self.replaced[new]
        # objects may differ where the rendered SQL does not
        pairs = zip(
            self.parent.queries_at(before[before >= 0]), new[before >= 0].tolist(), strict=True
        )
        updated = sum(are_different(old, self.new[place]) for old, place in pairs)
        added = int(np.sum(before < 0))
        removed = len(self.parent) - (len(self) - added)
        return ChangeCounts(added, removed, updated)


def compare_set(parent: Snapshot, queries: QuerySet, encoded: EncodedQueries) -> Revision:
    """Return a set as a revision of a snapshot that has the same schema."""
    replaced, is_equal = _find_equal(parent, encoded)
    new = count_stored(parent) + np.arange(len(encoded))
    return Revision(parent, list(queries), encoded, np.where(is_equal, replaced, new), replaced)


def apply_change(parent: Snapshot, change: Change) -> Revision:
    """Return the set that a change makes of a snapshot.

    Queries that are added or updated take the place of the one that has their id, or else go to the
    end; what is removed is removed first. Raise QuerySetError for an id that occurs twice, and for
    one to remove that there is not.
    """
    new = (*change.updated, *change.added)
    # a set refuses an id that is taken, and one that is none
    QuerySet(parent.schema, new)
    if len(set(change.removed)) != len(change.removed):
        raise QuerySetError("an id is to be removed twice; name it once")
    encoded = encode_queries(new, parent.schema)
    replaced, is_equal = _find_equal(parent, encoded)
    removed = parent.find_ids(pack(change.removed))
    if np.any(removed < 0):
        missing = change.removed[int(np.argmax(removed < 0))]
        raise refuse_unknown_id(missing, parent.ids_at(parent.order))
    stored = count_stored(parent)
    numbers = stored + np.arange(len(new))
    # by position: the entry that stands there in the revision, −1 if none does
    entry_of = np.full(stored, -1, np.int64)
    entry_of[parent.order] = parent.order
    stays = replaced >= 0
    entry_of[replaced[stays]] = np.where(is_equal, replaced, numbers)[stays]
    entry_of[removed] = -1
    entries = entry_of[parent.order]
    # what was removed under its own id comes again at the end
    appended = np.where(is_equal, replaced, numbers)[~stays | np.isin(replaced, removed)]
    entries = np.concatenate([entries[entries >= 0], appended])
    return Revision(parent, new, encoded, entries, replaced)


def rewind(revision: Revision, base: Snapshot) -> Revision:
    """Return a revision as one of the base, to which all that came later is new."""
    stored = count_stored(base)
    # positions in the base are those in the parent, which has it as its first segment
    later = revision.entries >= stored
    queries = revision.queries_of(revision.entries[later])
    encoded = encode_queries(queries, base.schema)
    replaced, is_equal = _find_equal(base, encoded)
    entries = revision.entries.copy()
    # what was changed back is in the base
    entries[later] = np.where(is_equal, replaced, stored + np.arange(len(queries)))
    return Revision(base, queries, encoded, entries, replaced)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step from a snapshot: remove `removed`, then put entries at `places` of the result.

    Removed queries are named by their positions, in the order of the snapshot.
    """

    removed: Positions
    places: Positions

    @property
    def size(self) -> int:
        return len(self.removed) + len(self.places)


def compute_step(order: Positions, entries: Positions) -> Step:
    """Return the least step from the living positions to the entries, in their exact order.

    A query that is added, removed, or changed where it stands costs only itself. Of those that
    changed places as few as possible are taken out and put in again: all outside a longest
    subsequence that kept its order.

    >>> step = compute_step(np.array([0, 1, 2, 3]), np.array([2, 0, 9, 3]))
    >>> step.removed.tolist(), step.places.tolist()
    ([1, 2], [0, 2])
    """
    # by position: the rank in the old order; the last is for entries that are new
    stored = int(order.max(initial=-1)) + 1
    ranks = np.full(stored + 1, -1, np.int64)
    ranks[order] = np.arange(len(order))
    kept = ranks[np.minimum(entries, stored)]
    places = np.flatnonzero(kept >= 0)
    # most changes move nothing, and then all that is the same can stay
    if np.any(np.diff(kept[places]) < 0):
        places = places[longest_increasing(kept[places].tolist())]
    stays = np.zeros(len(order), np.bool_)
    stays[kept[places]] = True
    # new, changed and moved queries alike leave their old place and come in again
    moved_in = np.ones(len(entries), np.bool_)
    moved_in[places] = False
    return Step(order[~stays], np.flatnonzero(moved_in))


def _find_equal(
    parent: Snapshot, encoded: EncodedQueries
) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """Return the position of the living query of each id, or −1, and whether it is the same."""
    positions = parent.find_ids(encoded.ids)
    known = np.flatnonzero(positions >= 0)
    is_equal = np.zeros(len(encoded), np.bool_)
    stored, places, queries = parent.stored, positions[known], encoded
    # to number the atoms of a million queries takes longer than to select a few
    if len(known) < MAX_SELECTED * count_stored(parent):
        stored, places = _select_stored(parent, places), np.arange(len(known))
    if len(known) < len(encoded):
        queries = select_queries(encoded, known, parent.schema)
    is_equal[known] = mark_equal(stored, places, queries, parent.schema)
    return positions, is_equal


def _select_stored(parent: Snapshot, positions: Positions) -> list[EncodedQueries]:
    """Return the stored queries at some positions, in this order."""
    parts, order, start = [], [np.zeros(0, np.int64)], 0
    for queries in parent.stored:
        inside = np.flatnonzero((positions >= start) & (positions < start + len(queries)))
        parts.append(select_queries(queries, positions[inside] - start, parent.schema))
        order.append(inside)
        start += len(queries)
    # from the order of the parts to that of the positions
    whole = concatenate_queries(parts, parent.schema)
    return [select_queries(whole, np.argsort(np.concatenate(order)), parent.schema)]


def count_stored(snapshot: Snapshot) -> int:
    """Return how many queries a snapshot stores, the removed ones too."""
    return sum(map(len, snapshot.stored))


def longest_increasing(values: Sequence[int]) -> list[int]:
    """Return the places of a longest increasing subsequence, in n log n steps (Fredman 1975).

    >>> longest_increasing([3, 0, 1, 2])
    [1, 2, 3]
    """
    ends: list[int] = []  # the least value in which a subsequence of each length can end
    end_places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        # the longest subsequence that the value can be appended to
        length = bisect_left(ends, value)
        before.append(end_places[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        end_places[length : length + 1] = [place]
    # from the last place back to the first
    backwards: list[int] = []
    place = end_places[-1] if end_places else -1
    while place >= 0:
        backwards.append(place)
        place = before[place]
    return backwards[::-1]
