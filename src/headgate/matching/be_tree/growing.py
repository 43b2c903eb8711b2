"""The tree with its pools, which grow as needed: what changes is kept until somebody matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.capacity import capacity_for
from headgate.matching.be_tree.domain import LEAST, MOST, widened
from headgate.matching.be_tree.kernels.adapt import (
    coarsen,
    covered_rate,
    recycle_attributes,
    recycle_low,
)
from headgate.matching.be_tree.kernels.change import buckets_from, insert_all, remove_all
from headgate.matching.be_tree.kernels.leaves import (
    copy_live_predicates,
    in_order,
    packed,
    renumber_records,
)
from headgate.matching.be_tree.kernels.match import (
    CANDIDATES,
    EVENTS,
    TRUE_ONES,
    Events,
    Room,
    match,
)
from headgate.matching.be_tree.kernels.nodes import new_bucket, rehashed
from headgate.matching.be_tree.kernels.pools import (
    ALWAYS,
    BUCKETS,
    COUNT,
    CUTTABLE,
    LIVE,
    NONE,
    PENDING,
    RANDOM,
    ROOT,
    TOGETHER,
    USED,
    USED_PARTITIONS,
    Expressions,
    Policy,
    Tree,
    filled_up,
)
from headgate.matching.be_tree.options import BeTreeOptions
from headgate.matching.be_tree.predicates import PredicatePool, grow_array
from headgate.matching.protocol import Placement
from headgate.predicate.conjunctions import Conjunction
from headgate.schema import Stream
from headgate.snapshot.arrays.selection import expand_ranges

OUTPUT = 1 << 21  # matches that are collected, unless a single event may have more
DIRECTORIES = ("generic", "specialised", "hybrid", "ranked")
FEWEST_UNPACKED = 1_000  # expressions that changed, before records are put in order
TOO_DIFFERENT = 2  # times as large or small as it was: then leaves are merged or cut

Numbers = npt.NDArray[np.int64]


class GrowingTree:
    """Expressions of queries, by the position of the query."""

    def __init__(self, stream: Stream, options: BeTreeOptions) -> None:
        self.stream = stream
        self.options = options
        self.pool = PredicatePool(options)
        self.tree = empty_tree()
        self.tree.state[RANDOM] = 88172645463325252 + options.seed
        self.expressions = Expressions(
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            np.zeros(0, np.uint8),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
        )
        self._used = 0  # numbers of expressions given out
        self._stored = 0  # predicates of expressions stored
        self._garbage = 0
        self._free: list[int] = []
        self._of_position: dict[int, list[int]] = {}
        self._new: list[int] = []
        self._new_rows: list[tuple[int, int, int, bool]] = []  # number, size, position, several
        self._new_predicates: list[int] = []
        self._gone: list[int] = []
        self._columns: tuple[int, Numbers, Numbers] | None = None
        self._unpacked = 0  # expressions that were moved since the records were put in order
        self._positions = 0
        self.beta = 0.5 if options.beta is None else options.beta
        self._seen = np.zeros(3, np.int64)
        self.recycled = 0  # expressions, so far
        self._waited, self._patience = 0, 1  # batches since the last judgement, and until the next
        self._room: Room | None = None
        self._room_shape: tuple[int, ...] = ()
        self.capacity = capacity_for(options.capacity, 0, 0, 0)
        new_bucket(self.tree, NONE, NONE, LEAST, MOST, self.capacity)

    # -- changes, kept until `settle`

    def add(self, position: int, parts: tuple[Conjunction, ...]) -> None:
        """Take in the expressions of a query."""
        several = len(parts) > 1
        self._positions = position + 1
        numbers = []
        for part in parts:
            number = self._free.pop() if self._free else self._used
            self._used = max(self._used, number + 1)
            numbers.append(number)
            listed = [self.pool.number(atom) for atom in part]
            self._new.append(number)
            self._new_rows.append((number, len(listed), position, several))
            self._new_predicates += listed
            self._new_predicates += [ALWAYS] * (-len(listed) % TOGETHER)
        self._of_position[position] = numbers

    def drop(self, position: int) -> None:
        """Take out the expressions of a query."""
        self._gone += self._of_position.pop(position)

    def settle(self) -> None:
        """Make the tree what it should be by now: what came and went is inserted and deleted."""
        self._write_new()
        self._remove_gone()
        if self._unpacked > max(FEWEST_UNPACKED, int(self.tree.state[LIVE]) // 4):
            self._grow()
        changed = self.pool.ready()
        if changed is not None:
            moved = changed.astype(np.int32)
            self._columns = None
            renumber_records(self.tree, self.expressions, moved, self._used, self.options.bloom)

    def _write_new(self) -> None:
        if not self._new:
            return
        self._patience = 1
        new_predicates = self.pool.flush()
        rows = np.array(self._new_rows, np.int64).reshape(-1, 4)
        listed = np.array(self._new_predicates, np.int32)
        self._new_rows, self._new_predicates = [], []
        numbers, sizes = rows[:, 0], rows[:, 1]
        start, count, position, several, leaf = (
            grow_array(one, self._used) for one in self.expressions[:5]
        )
        predicate = grow_array(self.expressions.predicate, self._stored + len(listed))
        self.expressions = Expressions(start, count, position, several, leaf, predicate)
        predicate[self._stored : self._stored + len(listed)] = listed
        places = -(-sizes // TOGETHER) * TOGETHER
        start[numbers] = self._stored + np.cumsum(places) - places
        count[numbers], position[numbers] = sizes, rows[:, 2]
        several[numbers], leaf[numbers] = rows[:, 3], NONE
        self._stored += len(listed)
        self._count_uses(numbers, 1)
        in_order(self.expressions, self.pool.arrays, numbers)
        self._widen(new_predicates)
        added, self._new = np.array(self._new, np.int64), []
        self._fit_capacity(int(self.tree.state[LIVE]) + len(added))
        self._insert(added)

    def _widen(self, new: Numbers) -> None:
        """Let the domains hold the ends of new predicates, and recycle what they have cut."""
        columns = len(self.pool.columns)
        low, high = self.tree.domain_low, self.tree.domain_high
        known = len(low)
        if columns > known:
            unknown = np.full(columns - known, MOST)
            low, high = np.concatenate((low, unknown)), np.concatenate((high, unknown))
            self.tree = self.tree._replace(domain_low=low, domain_high=high)
        if not len(new):
            return
        arrays = self.pool.arrays
        column, least, most = arrays.column[new], arrays.least[new], arrays.most[new]
        inside = (arrays.flags[new] & CUTTABLE) > 0
        ends = np.concatenate((least[inside], most[inside]))
        owner = np.concatenate((column[inside], column[inside]))
        finite = (ends != LEAST) & (ends != MOST)
        ends, owner = ends[finite], owner[finite]
        lowest, highest = np.full(columns, MOST), np.full(columns, LEAST)
        np.minimum.at(lowest, owner, ends)
        np.maximum.at(highest, owner, ends)
        outside = (lowest <= highest) & ((lowest < low) | (highest > high))
        if not outside.any():
            return
        again = recycle_attributes(
            self.tree, self.expressions, self.pool.arrays, self._policy(), outside
        )
        for c in np.flatnonzero(outside).tolist():
            low[c], high[c] = widened(int(low[c]), int(high[c]), int(lowest[c]), int(highest[c]))
        self._insert(again)

    def _insert(self, numbers: Numbers) -> None:
        """Insert one by one; or, into an empty tree and if so chosen, all before any cut."""
        done, cutting = 0, True
        self._unpacked += len(numbers)
        if self.options.construction == "batch" and not self.tree.state[LIVE]:
            cutting = False
        while True:
            done = insert_all(
                self.tree,
                self.expressions,
                self.pool.arrays,
                self._policy(),
                numbers,
                done,
                cutting,
            )
            if done == len(numbers) and not (cutting and self.tree.state[PENDING]):
                break
            self._grow()
        if not cutting:
            self._cut_all()

    def _cut_all(self) -> None:
        """Cut the root, which holds everything so far."""
        state = self.tree.state
        self.tree.pending[state[PENDING]] = ROOT
        state[PENDING] += 1
        nothing = np.empty(0, np.int64)
        while state[PENDING]:
            insert_all(
                self.tree, self.expressions, self.pool.arrays, self._policy(), nothing, 0, True
            )
            if state[PENDING]:
                self._grow()

    def _remove_gone(self) -> None:
        if not self._gone:
            return
        gone = np.array(self._gone, np.int64)
        done = 0
        while done < len(gone) or self.tree.state[PENDING]:
            done = remove_all(
                self.tree, self.expressions, self.pool.arrays, self._policy(), gone, done
            )
            if done < len(gone) or self.tree.state[PENDING]:
                self._grow()
        self._count_uses(gone, -1)
        self._garbage += int(filled_up(self.expressions.count[gone]).sum())
        self._free += self._gone
        self._unpacked += len(gone)
        self._gone = []
        if self._garbage > self._stored // 2 + 1024:
            self.expressions, self._stored = compacted(self.expressions, self._used)
            self._garbage = 0

    def _count_uses(self, numbers: Numbers, change: int) -> None:
        """Count the predicates of expressions, or discount them."""
        starts = self.expressions.start[numbers]
        places = expand_ranges(starts, starts + self.expressions.count[numbers])
        np.add.at(self.pool.uses, self.expressions.predicate[places], change)
        self.pool.released += len(places) if change < 0 else 0

    def _grow(self) -> None:
        """Larger pools where they are short, and records in the order of the tree, without gaps."""
        self._unpacked = 0
        tree = self.tree
        state = tree.state
        longest_leaf = int(tree.bucket[: state[BUCKETS], USED].max(initial=0))
        order = buckets_from(tree, ROOT)
        live = int(tree.bucket[order, USED].sum())
        room = 2 * live + 24 * longest_leaf + 512 * len(order) // 64 + (1 << 14)
        records = packed(tree, order, room + 128 * self._longest_count())
        buckets = int(state[BUCKETS]) + self._longest_count() + 64
        bucket, fact = grow_array(tree.bucket, buckets), grow_array(tree.fact, buckets)
        partition = grow_array(tree.partition, int(state[USED_PARTITIONS]) + 64)
        penalty = grow_array(tree.penalty, len(partition))
        pending = grow_array(tree.pending, int(state[PENDING]) + self._longest_count() + 64)
        table, wanted = tree.table, 2 * (len(bucket) + len(partition))
        if len(table) < wanted:
            table = rehashed(table, 1 << (wanted - 1).bit_length())
        self.tree = tree._replace(
            bucket=bucket,
            fact=fact,
            partition=partition,
            penalty=penalty,
            records=records,
            pending=pending,
            table=table,
        )

    def _longest_count(self) -> int:
        """The expressions of the fullest leaf."""
        return int(self.tree.fact[: self.tree.state[BUCKETS], COUNT].max(initial=0))

    def _policy(self) -> Policy:
        options = self.options
        return Policy(
            DIRECTORIES.index(options.directory),
            self.capacity,
            options.fewest,
            options.scoring == "histogram",
            options.alpha,
            self.beta,
            options.exploit,
            options.reinserted,
            int(options.bloom),
            options.adapt,
        )

    # -- matching

    def match(self, events: Events, row: int) -> tuple[Numbers, Numbers]:
        """The matches of the events from a row on, as many as there is room for."""
        rows = len(events.start) - 1
        room = self._working_room()
        out = np.empty(max(OUTPUT, int(self.tree.state[LIVE])), np.int64)
        offsets = np.empty(rows - row + 1, np.int64)
        end = match(
            self.tree,
            self.expressions,
            self.pool.arrays,
            self.pool.bits,
            events,
            room,
            int(self.options.bloom),
            self.options.evaluation != "direct",
            self.options.leaf == "rows",
            self.options.adapt or self.options.beta is None,
            row,
            out,
            offsets,
        )
        offsets = offsets[: end - row + 1]
        return offsets, out[: offsets[-1]]

    def _working_room(self) -> Room:
        """Room for the tree as it is now; every bucket is queued once at most."""
        tail = (len(self.pool) - self.pool.bits.end) // 64 + 1
        shape = (
            len(self.pool.columns),
            self.pool.bits.end // 64 + 1,
            tail,
            int(self.tree.state[BUCKETS]),
            self._positions,
        )
        if self._room is None or any(
            have < need for have, need in zip(self._room_shape, shape, strict=True)
        ):
            columns, words, tail, buckets, positions = self._room_shape = tuple(
                2 * need for need in shape
            )
            self._room = Room(
                np.full(columns, NONE, np.int64),
                np.zeros(words, np.uint64),
                np.zeros(tail, np.uint64),
                np.zeros(tail, np.uint64),
                np.zeros(tail + 1, np.int64),
                np.zeros(buckets, np.int64),
                np.zeros(positions, np.int64),
                self._seen,
            )
        return self._room

    def by_column(self) -> tuple[Numbers, Numbers]:
        """The predicates in the order of their columns, and where those of each column begin."""
        count = len(self.pool)
        if self._columns is None or self._columns[0] != count:
            order = np.argsort(self.pool.arrays.column[:count], kind="stable")
            places = np.arange(len(self.pool.columns) + 1)
            bounds = np.searchsorted(self.pool.arrays.column[order], places)
            self._columns = count, order, bounds
        return self._columns[1:]

    def has_several(self, position: int) -> bool:
        """Is a query an OR of several expressions?"""
        return len(self._of_position.get(position, ())) > 1

    def sizes(self, positions: Numbers) -> Numbers:
        """The number of expressions of each query."""
        return np.array([len(self._of_position[p]) for p in positions.tolist()], np.int64)

    def adapt(self) -> None:
        """Learn from the events so far: Table VI, Equation 15, and recycling."""
        self._fit_capacity(int(self.tree.state[LIVE]))
        if self.options.beta is None:
            self.beta = 0.5 - covered_rate(self.tree) / 2
        self._waited += 1
        if self.options.adapt and self._waited >= self._patience:
            self._waited = 0
            again = recycle_low(
                self.tree,
                self.expressions,
                self.pool.arrays,
                self._policy(),
                self.options.threshold,
                self.options.window,
            )
            self._insert(again)
            self.recycled += len(again)
            self._patience = 2 * self._patience if len(again) else 1

    def _fit_capacity(self, expressions: int) -> None:
        """Let leaves grow or shrink with what there is, and with what was seen to match."""
        seen = int(self._seen[EVENTS]), int(self._seen[TRUE_ONES])
        wanted = capacity_for(self.options.capacity, expressions, *seen)
        before, self.capacity = self.capacity, wanted
        if wanted >= TOO_DIFFERENT * before or before >= TOO_DIFFERENT * wanted:
            self._grow()
            coarsen(self.tree, self.expressions, self.pool.arrays, self._policy())
            self._insert(np.empty(0, np.int64))
        else:
            self.capacity = before

    # -- what there is to see

    def locate(self, position: int) -> Placement:
        """The leaf of a query, or of each of its expressions."""
        from headgate.matching.be_tree.draw import path_of

        numbers = self._of_position[position]
        if not numbers:
            return Placement("be_tree", "never: no event can match it")
        leaves = sorted({int(self.expressions.leaf[number]) for number in numbers})
        paths = [" → ".join(path_of(self, b)) for b in leaves]
        if paths == ["root"]:
            return Placement("be_tree", "at the root: every event looks at it")
        return Placement("be_tree", "by attribute and value, from the root to a leaf", tuple(paths))

    def describe(self) -> dict[str, Any]:
        from headgate.matching.be_tree.draw import shape_of

        candidates, matched = int(self._seen[CANDIDATES]), int(self._seen[TRUE_ONES])
        pool, tree = self.pool, self.tree
        arrays = [*self.expressions, *pool.arrays, *pool.bits[1:], pool.uses]
        live_records = int(tree.bucket[: tree.state[BUCKETS], USED].sum())
        return {
            "expressions": int(tree.state[LIVE]),
            "predicates": pool.live,
            "in_bitmap": sum(len(block.predicates) for block in pool.blocks.values()),
            "bitmap_bytes": int(pool.bits.bits.nbytes),
            **shape_of(self),
            "capacity": self.capacity,
            "beta": self.beta,
            "recycled": self.recycled,
            "events": int(self._seen[EVENTS]),
            "candidates": candidates,
            "false_candidates": round(1 - matched / candidates, 4) if candidates else None,
            "bytes": 4 * live_records
            + sum(one.nbytes for one in arrays)
            + int(tree.state[BUCKETS]) * 8 * (8 + 14)
            + tree.table.nbytes
            + tree.partition.nbytes,
        }


def empty_tree() -> Tree:
    """A root without expressions, and room for little."""
    return Tree(
        np.zeros((64, 8), np.int64),
        np.zeros((64, 14), np.int64),
        np.zeros((64, 8), np.int64),
        np.zeros(64, np.float64),
        np.zeros(1 << 12, np.int32),
        np.full((256, 4), NONE, np.int64),
        np.array([0, NONE, 0, NONE, 0, 0, 1, 0], np.int64),
        np.zeros(1 << 10, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
    )


def compacted(expressions: Expressions, count: int) -> tuple[Expressions, int]:
    """The same without the predicates of expressions that are gone, and how many there are."""
    predicate = np.zeros(len(expressions.predicate), np.int32)
    used = copy_live_predicates(expressions, count, predicate)
    return expressions._replace(predicate=predicate), used
