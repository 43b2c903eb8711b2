"""A tree of expressions whose arrays grow as needed, kept up to date with queries and events.

Queries that come or go are noted at once, and inserted or deleted by `settle`, before a match.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.expressions import ExpressionPool
from headgate.matching.be_tree.kernels.adapt import (
    fit_leaves,
    measure_false_rate,
    recycle_attributes,
    recycle_low_ranked,
)
from headgate.matching.be_tree.kernels.change import (
    insert_expressions,
    list_buckets,
    remove_expressions,
)
from headgate.matching.be_tree.kernels.leaves import pack_records, renumber_predicates
from headgate.matching.be_tree.kernels.match import (
    EVENTS,
    MATCHES,
    EventArrays,
    Scratch,
    match_events,
)
from headgate.matching.be_tree.kernels.nodes import add_bucket, rehash
from headgate.matching.be_tree.kernels.pools import (
    CUTTABLE,
    LEAF_COUNT,
    LEAF_SIZE,
    LIVE_EXPRESSIONS,
    NONE,
    PENDING_COUNT,
    RANDOM_STATE,
    ROOT,
    USED_BUCKETS,
    USED_PARTITIONS,
    Policy,
    TreeArrays,
)
from headgate.matching.be_tree.options import BeTreeOptions, choose_capacity
from headgate.matching.be_tree.predicates import PredicatePool, grow_array
from headgate.matching.be_tree.values import MAX_POINT, MIN_POINT, widen

MAX_OUTPUT = 1 << 21  # matches of one call, unless a single event may have more
DIRECTORIES = ("generic", "specialised", "hybrid", "ranked")  # as numbered in `kernels.pools`
MIN_UNPACKED = 1_000  # expressions that moved, before the records are packed again
CAPACITY_CHANGE = 2  # leaves are merged or cut once the capacity has changed by this factor
RANDOM_SEED = 88172645463325252  # any number but 0, for xorshift

Numbers = npt.NDArray[np.int64]


class BeTree:
    """Expressions of queries, by the position of the query, in the arrays of a BE-Tree."""

    def __init__(self, options: BeTreeOptions) -> None:
        self.options = options
        self.predicates = PredicatePool(options)
        self.expressions = ExpressionPool(self.predicates)
        self.arrays = _allocate_arrays()
        self.arrays.state[RANDOM_STATE] = RANDOM_SEED + options.seed
        self._by_column: tuple[int, Numbers, Numbers] | None = None
        self._unpacked = 0  # expressions that moved since the records were packed
        self.beta = 0.5 if options.beta is None else options.beta
        self.seen = np.zeros(3, np.int64)  # candidates, matches and events so far
        self.recycled = 0  # expressions, so far
        self._waited, self._patience = 0, 1  # batches since the last recycling, and until the next
        self._scratch: Scratch | None = None
        self._scratch_shape: tuple[int, ...] = ()
        self.capacity = choose_capacity(options.capacity, 0, 0, 0)
        add_bucket(self.arrays, NONE, NONE, MIN_POINT, MAX_POINT, self.capacity)  # the root

    @property
    def live(self) -> int:
        """The number of expressions in the tree."""
        return int(self.arrays.state[LIVE_EXPRESSIONS])

    def settle(self) -> None:
        """Insert and delete what came and went, and prepare the predicates for matching."""
        if self.expressions.has_new:
            self._insert_new()
        # after the insertions: what came and went since the last call is in the tree by now
        self._remove_dropped()
        # records of neighbours lie apart once many have moved
        if self._unpacked > max(MIN_UNPACKED, self.live // 4):
            self._grow()
        new_numbers = self.predicates.prepare()
        if new_numbers is not None:
            self._by_column = None
            renumber_predicates(
                self.arrays,
                self.expressions.arrays,
                new_numbers.astype(np.int32),
                self.expressions.used,
                self.options.bloom,
            )

    def _insert_new(self) -> None:
        self._patience = 1
        new_predicates = self.predicates.flush()
        numbers = self.expressions.write_new()
        # before the insertion, which places expressions by the domain of an attribute
        self._widen_domains(new_predicates)
        self._fit_capacity(self.live + len(numbers))
        self._insert(numbers)

    def _widen_domains(self, new: Numbers) -> None:
        """Let the domains hold the ends of new predicates, and recycle what they have cut."""
        columns = len(self.predicates.columns)
        low, high = self.arrays.domain_low, self.arrays.domain_high
        known = len(low)
        if columns > known:
            unknown = np.full(columns - known, MAX_POINT)
            low, high = np.concatenate((low, unknown)), np.concatenate((high, unknown))
            self.arrays = self.arrays._replace(domain_low=low, domain_high=high)
        if not len(new):
            return
        arrays = self.predicates.arrays
        # The finite ends of the new predicates, and the column of each.
        column, least, most = arrays.column[new], arrays.least[new], arrays.most[new]
        cuttable = (arrays.flags[new] & CUTTABLE) > 0
        ends = np.concatenate((least[cuttable], most[cuttable]))
        owner = np.concatenate((column[cuttable], column[cuttable]))
        finite = (ends != MIN_POINT) & (ends != MAX_POINT)
        ends, owner = ends[finite], owner[finite]
        lowest, highest = np.full(columns, MAX_POINT), np.full(columns, MIN_POINT)
        np.minimum.at(lowest, owner, ends)
        np.maximum.at(highest, owner, ends)
        outside = (lowest <= highest) & ((lowest < low) | (highest > high))
        if not outside.any():
            return
        # Buckets halve the domain of their attribute, so what lies below it is inserted again.
        again = recycle_attributes(
            self.arrays, self.expressions.arrays, arrays, self._make_policy(), outside
        )
        for c in np.flatnonzero(outside).tolist():
            low[c], high[c] = widen(int(low[c]), int(high[c]), int(lowest[c]), int(highest[c]))
        self._insert(again)

    def _insert(self, numbers: Numbers) -> None:
        """Insert one by one; or, into an empty tree and if so chosen, all before any cut."""
        done, cutting = 0, True
        self._unpacked += len(numbers)
        if self.options.construction == "batch" and not self.live:
            cutting = False
        while True:
            # the kernel stops where an array is full, and goes on once that has grown
            done = self._insert_from(numbers, done, cutting)
            if done == len(numbers) and not (cutting and self.arrays.state[PENDING_COUNT]):
                break
            self._grow()
        if not cutting:
            self._cut_root()

    def _insert_from(self, numbers: Numbers, done: int, cutting: bool) -> int:
        """Go on inserting after the first `done`, and return how many are inserted then."""
        inserted: int = insert_expressions(
            self.arrays,
            self.expressions.arrays,
            self.predicates.arrays,
            self._make_policy(),
            np.ascontiguousarray(numbers),  # the kernel is compiled for one layout
            done,
            cutting,
        )
        return inserted

    def _cut_root(self) -> None:
        """Cut the root, which holds everything so far."""
        state = self.arrays.state
        self.arrays.pending[state[PENDING_COUNT]] = ROOT
        state[PENDING_COUNT] += 1
        nothing = np.empty(0, np.int64)
        while state[PENDING_COUNT]:
            self._insert_from(nothing, 0, True)
            if state[PENDING_COUNT]:
                self._grow()

    def _remove_dropped(self) -> None:
        dropped, done = self.expressions.dropped, 0
        if not len(dropped):
            return
        while done < len(dropped) or self.arrays.state[PENDING_COUNT]:
            done = remove_expressions(
                self.arrays,
                self.expressions.arrays,
                self.predicates.arrays,
                self._make_policy(),
                dropped,
                done,
            )
            if done < len(dropped) or self.arrays.state[PENDING_COUNT]:
                self._grow()
        self._unpacked += len(dropped)
        self.expressions.free_dropped()

    def _grow(self) -> None:
        """Enlarge the arrays that are short, and pack the records in the order of the tree.

        The margins are what a step of cutting the fullest leaf may need (`has_room_to_cut`).
        """
        self._unpacked = 0
        tree = self.arrays
        state = tree.state
        fullest = int(tree.fact[: state[USED_BUCKETS], LEAF_COUNT].max(initial=0))
        longest_leaf = int(tree.bucket[: state[USED_BUCKETS], LEAF_SIZE].max(initial=0))
        order = list_buckets(tree, ROOT)
        live = int(tree.bucket[order, LEAF_SIZE].sum())
        size = 2 * live + 24 * longest_leaf + 512 * len(order) // 64 + (1 << 14)
        # the records go into a new array, without the gaps that moved leaves left
        records = pack_records(tree, order, size + 128 * fullest)
        buckets = int(state[USED_BUCKETS]) + fullest + 64
        bucket, fact = grow_array(tree.bucket, buckets), grow_array(tree.fact, buckets)
        partition = grow_array(tree.partition, int(state[USED_PARTITIONS]) + 64)
        # never more than half full, or searches in it would be long
        table, slots = tree.table, 2 * (len(bucket) + len(partition))
        if len(table) < slots:
            table = rehash(table, 1 << (slots - 1).bit_length())
        self.arrays = tree._replace(
            bucket=bucket,
            fact=fact,
            partition=partition,
            penalty=grow_array(tree.penalty, len(partition)),
            records=records,
            pending=grow_array(tree.pending, int(state[PENDING_COUNT]) + fullest + 64),
            table=table,
        )

    def _make_policy(self) -> Policy:
        options = self.options
        return Policy(
            directory=DIRECTORIES.index(options.directory),
            capacity=self.capacity,
            min_size=options.min_size,
            histogram=options.scoring == "histogram",
            alpha=options.alpha,
            beta=self.beta,
            exploit=options.exploit,
            reinserted=options.reinserted,
            bloom=int(options.bloom),
        )

    def match(self, events: EventArrays, row: int) -> tuple[Numbers, Numbers]:
        """Return the matches of the events from a row on, as many as one output holds.

        They are offsets, one more than events were matched, and the positions of queries.
        """
        rows = len(events.start) - 1
        output = np.empty(max(MAX_OUTPUT, self.live), np.int64)
        offsets = np.empty(rows - row + 1, np.int64)
        end = match_events(
            self.arrays,
            self.expressions.arrays,
            self.predicates.arrays,
            self.predicates.bits,
            events,
            self._prepare_scratch(),
            int(self.options.bloom),
            self.options.evaluation != "direct",
            self.options.leaf == "rows",
            self.options.adapt or self.options.beta is None,
            row,
            output,
            offsets,
        )
        offsets = offsets[: end - row + 1]
        return offsets, output[: offsets[-1]]

    def _prepare_scratch(self) -> Scratch:
        """Return arrays large enough to match in; every bucket is queued once at most."""
        predicates = self.predicates
        shape = (
            len(predicates.columns),
            predicates.bits.end // 64 + 1,
            (len(predicates) - predicates.bits.end) // 64 + 1,
            int(self.arrays.state[USED_BUCKETS]),
            self.expressions.positions,
        )
        if self._scratch is None or any(
            have < need for have, need in zip(self._scratch_shape, shape, strict=True)
        ):
            # Twice what is needed, so that not every new query makes new arrays.
            columns, words, late_words, buckets, positions = self._scratch_shape = tuple(
                2 * need for need in shape
            )
            self._scratch = Scratch(
                at=np.full(columns, NONE, np.int64),
                result=np.zeros(words, np.uint64),
                passed=np.zeros(late_words, np.uint64),
                failed=np.zeros(late_words, np.uint64),
                touched=np.zeros(late_words + 1, np.int64),
                queue=np.zeros(buckets, np.int64),
                met=np.zeros(positions, np.int64),
                seen=self.seen,
            )
        return self._scratch

    def group_by_column(self) -> tuple[Numbers, Numbers]:
        """Return the predicates in the order of their columns, and where each column begins."""
        count, column = len(self.predicates), self.predicates.arrays.column
        if self._by_column is None or self._by_column[0] != count:
            order = np.argsort(column[:count], kind="stable")
            places = np.arange(len(self.predicates.columns) + 1)
            self._by_column = count, order, np.searchsorted(column[order], places)
        return self._by_column[1:]

    def adapt(self) -> None:
        """Learn from the events so far: capacity (Table VI), β (Equation 15), and recycling."""
        self._fit_capacity(self.live)
        if self.options.beta is None:
            # the more false candidates covered predicates lead to, the less they weigh
            arrays = self.arrays, self.expressions.arrays, self.predicates.arrays
            self.beta = 0.5 - measure_false_rate(*arrays) / 2
        self._waited += 1
        if self.options.adapt and self._waited >= self._patience:
            self._waited = 0
            again = recycle_low_ranked(
                self.arrays,
                self.expressions.arrays,
                self.predicates.arrays,
                self._make_policy(),
                self.options.threshold,
                self.options.window,
            )
            self._insert(again)
            self.recycled += len(again)
            # Wait twice as long after each recycling, so that a steady stream comes to rest.
            self._patience = 2 * self._patience if len(again) else 1

    def _fit_capacity(self, expressions: int) -> None:
        """Let leaves grow or shrink with the number of expressions and with what matched."""
        observed = int(self.seen[EVENTS]), int(self.seen[MATCHES])
        capacity = choose_capacity(self.options.capacity, expressions, *observed)
        before, self.capacity = self.capacity, capacity
        # leaves are not worth touching for less
        if capacity >= CAPACITY_CHANGE * before or before >= CAPACITY_CHANGE * capacity:
            self._grow()
            fit_leaves(
                self.arrays, self.expressions.arrays, self.predicates.arrays, self._make_policy()
            )
            self._insert(np.empty(0, np.int64))
        else:
            self.capacity = before


def _allocate_arrays() -> TreeArrays:
    """Return the arrays of an empty tree, which has no root yet."""
    return TreeArrays(
        bucket=np.zeros((64, 8), np.int64),
        fact=np.zeros((64, 14), np.int64),
        partition=np.zeros((64, 8), np.int64),
        penalty=np.zeros(64, np.float64),
        records=np.zeros(1 << 12, np.int32),
        table=np.full((256, 4), NONE, np.int64),
        state=np.array([0, NONE, 0, NONE, 0, 0, 1, 0], np.int64),
        pending=np.zeros(1 << 10, np.int64),
        domain_low=np.zeros(0, np.int64),
        domain_high=np.zeros(0, np.int64),
    )
