"""Look into a tree: its figures, the path to a query, a drawing, and what is wrong with it.

`find_violations` is the obvious version: it looks at everything and assumes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headgate.matching.be_tree.kernels.change import list_buckets
from headgate.matching.be_tree.kernels.match import CANDIDATES, EVENTS, MATCHES
from headgate.matching.be_tree.kernels.nodes import bucket_owner, look_up, partition_owner
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    CAPACITY,
    CUTTABLE,
    EQUALITY,
    FIRST_HASHED,
    FIRST_PARTITION,
    HASHED,
    HIGH,
    HOME,
    KEY,
    LEAF_BEGIN,
    LEAF_COUNT,
    LEAF_SIZE,
    LEFT,
    LIVE_EXPRESSIONS,
    LOW,
    NEXT_HASHED,
    NEXT_PARTITION,
    NONE,
    OWNER,
    PARENT,
    PARTITION_SIZE,
    PARTITIONS,
    RIGHT,
    ROOT,
    TOP_BUCKET,
    USED_BUCKETS,
    TreeArrays,
)
from headgate.matching.be_tree.tree import BeTree
from headgate.matching.be_tree.values import fits_in_64_bits
from headgate.matching.protocol import Placement

Path = tuple[tuple[int, int], ...]  # attributes and buckets, from the root on


def describe_tree(be_tree: BeTree) -> dict[str, Any]:
    """Return figures about a tree, its predicates, and the events that it has matched."""
    candidates, matches = int(be_tree.seen[CANDIDATES]), int(be_tree.seen[MATCHES])
    pool, tree = be_tree.predicates, be_tree.arrays
    arrays: list[Any] = [*be_tree.expressions.arrays, *pool.arrays, *pool.bits[1:], pool.uses]
    buckets = int(tree.state[USED_BUCKETS])
    live_records = int(tree.bucket[:buckets, LEAF_SIZE].sum())
    return {
        "expressions": be_tree.live,
        "predicates": pool.live_count,
        "in_bitmap": sum(len(block.predicates) for block in pool.blocks.values()),
        "bitmap_bytes": int(pool.bits.bits.nbytes),
        **_measure_shape(be_tree),
        "capacity": be_tree.capacity,
        "beta": be_tree.beta,
        "recycled": be_tree.recycled,
        "events": int(be_tree.seen[EVENTS]),
        "candidates": candidates,
        "false_candidates": round(1 - matches / candidates, 4) if candidates else None,
        "bytes": 4 * live_records
        + sum(array.nbytes for array in arrays)
        + 8 * buckets * (tree.bucket.shape[1] + tree.fact.shape[1])
        + tree.table.nbytes
        + tree.partition.nbytes,
    }


def _measure_shape(be_tree: BeTree) -> dict[str, Any]:
    """Return heights and numbers of nodes; the height counts the partitions on a path."""
    tree = be_tree.arrays
    buckets = list_buckets(tree, ROOT)
    counts = tree.fact[buckets, LEAF_COUNT]
    # leaves with expressions, which the average counts by their size
    heights = [_measure_height(be_tree, int(b)) for b in buckets[counts > 0].tolist()]
    full = counts[counts > 0]
    return {
        "height": max(heights, default=0),
        "average_height": round(float(np.average(heights, weights=full)), 2) if heights else 0,
        "partitions": int(tree.fact[buckets, PARTITIONS].sum()),
        "buckets": len(buckets),
        "hashed_buckets": int((tree.fact[buckets, HASHED] == 1).sum()),
        "leaves": len(full),
        "largest_leaf": int(full.max(initial=0)),
        "extended_leaves": int((tree.fact[buckets, CAPACITY] > be_tree.capacity).sum()),
        "at_root": int(tree.fact[ROOT, LEAF_COUNT]),
    }


def _measure_height(be_tree: BeTree, b: int) -> int:
    tree = be_tree.arrays
    height, owner = 0, tree.fact[b, OWNER]
    while owner != NONE:
        height, owner = height + 1, tree.fact[tree.partition[owner, HOME], OWNER]
    return height


def locate_query(be_tree: BeTree, position: int) -> Placement:
    """Return the leaf of a query, or of each of its expressions."""
    numbers = be_tree.expressions.numbers_of(position)
    if not numbers:
        return Placement("be_tree", "in no leaf, because no event can match it")
    leaves = sorted({int(be_tree.expressions.arrays.leaf[number]) for number in numbers})
    paths = [" → ".join(_describe_path(be_tree, b)) for b in leaves]
    if paths == ["root"]:
        return Placement("be_tree", "in the root, so evaluated for every event")
    return Placement("be_tree", "by attribute and value, from the root to a leaf", tuple(paths))


def _describe_path(be_tree: BeTree, b: int) -> list[str]:
    """Return the conditions that lead to a bucket, from the root on."""
    tree, path = be_tree.arrays, []
    while tree.fact[b, OWNER] != NONE:
        path.append(_label_bucket(be_tree, b))
        b = int(tree.partition[tree.fact[b, OWNER], HOME])
    return ["root", *reversed(path)]


def _label_bucket(be_tree: BeTree, b: int) -> str:
    """Return what an event must have to come to a bucket, in words."""
    tree = be_tree.arrays
    attribute = int(tree.partition[tree.fact[b, OWNER], ATTRIBUTE])
    column = be_tree.predicates.columns[attribute]
    if tree.fact[b, PARENT] == NONE and not tree.fact[b, HASHED]:
        return f"{column.name}: any value"
    low, high = int(tree.bucket[b, LOW]), int(tree.bucket[b, HIGH])
    if low == high and tree.fact[b, HASHED]:
        return f"{column.name}: {_show_value(column, low)}"
    first = "…" if low == tree.domain_low[attribute] else _show_value(column, low)
    last = "…" if high == tree.domain_high[attribute] else _show_value(column, high)
    return f"{column.name}: {first} to {last}"


def _show_value(column: Any, point: int) -> str:
    if fits_in_64_bits(column.type):
        return str(column.type.value(point))
    if isinstance(column.type.minimum, str):
        # the point of a text is its first eight bytes, shifted below 0
        text = (point + (1 << 63)).to_bytes(8, "big").rstrip(b"\0")
        return repr(text.decode(errors="replace")) + "…"
    return str(point)


def draw_tree(be_tree: BeTree, *, deepest: int, widest: int) -> Iterator[tuple[int, str]]:
    """Yield the nodes from the root on: how deep each lies, and a line about it.

    Of each node at most `widest` of those below it are shown, the fullest first.
    """
    yield 0, _draw_bucket(be_tree, ROOT, "root")
    yield from _draw_below_bucket(be_tree, ROOT, 1, deepest, widest)


def _draw_below_bucket(
    be_tree: BeTree, b: int, depth: int, deepest: int, widest: int
) -> Iterator[tuple[int, str]]:
    tree = be_tree.arrays
    partitions = sorted(
        _walk_chain(tree.partition, int(tree.bucket[b, FIRST_PARTITION]), NEXT_PARTITION),
        key=lambda p: -int(tree.partition[p, PARTITION_SIZE]),
    )
    if depth > deepest:
        return
    for p in partitions[:widest]:
        name = be_tree.predicates.columns[int(tree.partition[p, ATTRIBUTE])].name
        yield depth, f"by {name}: {int(tree.partition[p, PARTITION_SIZE]):,} expressions"
        yield from _draw_below_partition(be_tree, p, depth + 1, deepest, widest)
    if len(partitions) > widest:
        yield depth, f"… and {len(partitions) - widest:,} more, by other attributes"


def _draw_below_partition(
    be_tree: BeTree, p: int, depth: int, deepest: int, widest: int
) -> Iterator[tuple[int, str]]:
    tree = be_tree.arrays
    buckets = list(_list_halves(be_tree, int(tree.partition[p, TOP_BUCKET])))
    buckets += _walk_chain(tree.fact, int(tree.partition[p, FIRST_HASHED]), NEXT_HASHED)
    full = [b for b in buckets if tree.fact[b, LEAF_COUNT] or tree.fact[b, PARTITIONS]]
    full.sort(key=lambda b: -int(tree.fact[b, LEAF_COUNT]))
    if depth > deepest:
        return
    for b in full[:widest]:
        yield depth, _draw_bucket(be_tree, b, _label_bucket(be_tree, b))
        yield from _draw_below_bucket(be_tree, b, depth + 1, deepest, widest)
    if len(full) > widest:
        yield depth, f"… and {len(full) - widest:,} more, of other values or ranges"


def _list_halves(be_tree: BeTree, b: int) -> Iterator[int]:
    if b != NONE:
        yield b
        yield from _list_halves(be_tree, int(be_tree.arrays.bucket[b, LEFT]))
        yield from _list_halves(be_tree, int(be_tree.arrays.bucket[b, RIGHT]))


def _walk_chain(pool: Any, first: int, after: int) -> list[int]:
    """Return the nodes of a chain whose links are in column `after` of their array."""
    chain = []
    while first != NONE:
        chain.append(first)
        first = int(pool[first, after])
    return chain


def _draw_bucket(be_tree: BeTree, b: int, label: str) -> str:
    tree = be_tree.arrays
    count, capacity = int(tree.fact[b, LEAF_COUNT]), int(tree.fact[b, CAPACITY])
    return f"{label} [leaf: {count:,} of {capacity:,}]"


def find_violations(be_tree: BeTree) -> Iterator[str]:
    """Yield every rule of section 4.3 that the tree breaks, and everything that does not add up."""
    checker = _Checker(be_tree)
    yield from checker.check_bucket(ROOT, ())
    live = int(be_tree.arrays.state[LIVE_EXPRESSIONS])
    if len(checker.seen) != live:
        yield f"{len(checker.seen)} expressions are in leaves, and {live} should be"


class _Checker:
    def __init__(self, be_tree: BeTree) -> None:
        self.tree = be_tree.arrays
        self.be_tree = be_tree
        self.seen: set[int] = set()

    def check_bucket(self, b: int, path: Path) -> Iterator[str]:
        """Check a bucket, its leaf and what is below; the path has attributes and buckets above."""
        tree = self.tree
        yield from self._check_leaf(b, path)
        count, capacity = int(tree.fact[b, LEAF_COUNT]), int(tree.fact[b, CAPACITY])
        if count > capacity:
            yield f"bucket {b} holds {count} expressions, over its capacity of {capacity}"
        partitions = _walk_chain(
            tree.partition, int(tree.bucket[b, FIRST_PARTITION]), NEXT_PARTITION
        )
        if len(partitions) != tree.fact[b, PARTITIONS]:
            yield f"bucket {b} has {len(partitions)} partitions and counts otherwise"
        # a bucket of a binary tree that covers more than one point
        halvable = (
            tree.fact[b, OWNER] != NONE
            and tree.fact[b, HASHED] == 0
            and tree.bucket[b, LOW] < tree.bucket[b, HIGH]
            and self.be_tree.options.directory != "specialised"
        )
        if partitions and halvable and tree.bucket[b, LEFT] == NONE:
            yield f"bucket {b} is partitioned, and was not halved before (Rule 2)"
        for p in partitions:
            attribute = int(tree.partition[p, ATTRIBUTE])
            if look_up(tree.table, partition_owner(b), attribute) != p:
                yield f"the directory of bucket {b} does not lead to partition {p}"
            if tree.partition[p, HOME] != b:
                yield f"partition {p} is below bucket {b} and says otherwise"
            if attribute in {a for a, _ in path}:
                yield f"attribute {attribute} is used twice on the way to partition {p}"
            yield from self._check_partition(p, attribute, path)

    def _check_partition(self, p: int, attribute: int, path: Path) -> Iterator[str]:
        tree, before = self.tree, len(self.seen)
        for b in _walk_chain(tree.fact, int(tree.partition[p, FIRST_HASHED]), NEXT_HASHED):
            if tree.fact[b, OWNER] != p or tree.fact[b, HASHED] != 1:
                yield f"hashed bucket {b} of partition {p} says otherwise"
            if look_up(tree.table, bucket_owner(p), tree.fact[b, KEY]) != b:
                yield f"the directory of partition {p} does not lead to bucket {b}"
            yield from self.check_bucket(b, (*path, (attribute, b)))
        top = int(tree.partition[p, TOP_BUCKET])
        if top != NONE:
            ends = (tree.domain_low[attribute], tree.domain_high[attribute])
            if (tree.bucket[top, LOW], tree.bucket[top, HIGH]) != ends:
                yield f"the top of partition {p} does not span its domain"
            yield from self._check_halves(top, NONE, p, attribute, path)
        inside = len(self.seen) - before
        if inside != tree.partition[p, PARTITION_SIZE]:
            counted = tree.partition[p, PARTITION_SIZE]
            yield f"partition {p} has {inside} expressions and counts {counted}"
        if inside == 0:
            yield f"partition {p} is empty"

    def _check_halves(
        self, b: int, parent: int, p: int, attribute: int, path: Path
    ) -> Iterator[str]:
        tree = self.tree
        if tree.fact[b, OWNER] != p or tree.fact[b, PARENT] != parent or tree.fact[b, HASHED]:
            yield f"bucket {b} of partition {p} says otherwise"
        yield from self.check_bucket(b, (*path, (attribute, b)))
        left, right = int(tree.bucket[b, LEFT]), int(tree.bucket[b, RIGHT])
        if (left == NONE) != (right == NONE):
            yield f"bucket {b} has one half"
        if NONE in (left, right):
            return
        low, high = int(tree.bucket[b, LOW]), int(tree.bucket[b, HIGH])
        spans = [(int(tree.bucket[h, LOW]), int(tree.bucket[h, HIGH])) for h in (left, right)]
        if spans != [(low, (low + high) // 2), ((low + high) // 2 + 1, high)]:
            yield f"bucket {b} is not halved at its middle"
        for half in (left, right):
            yield from self._check_halves(half, b, p, attribute, path)

    def _check_leaf(self, b: int, path: Path) -> Iterator[str]:
        tree, expressions = self.tree, self.be_tree.expressions.arrays
        # from record to record: size, position, expression, and what is left to check
        place = int(tree.bucket[b, LEAF_BEGIN])
        end, number = place + int(tree.bucket[b, LEAF_SIZE]), 0
        while place < end:
            e = int(tree.records[place + 2])
            if e in self.seen:
                yield f"expression {e} is in two leaves"
            self.seen.add(e)
            if expressions.leaf[e] != b:
                yield f"expression {e} is in bucket {b} and says otherwise"
            yield from self._check_expression(e, path)
            place += int(tree.records[place])
            number += 1
        if place != end or number != tree.fact[b, LEAF_COUNT]:
            yield f"bucket {b} counts {tree.fact[b, LEAF_COUNT]} expressions and has {number}"

    def _check_expression(self, e: int, path: Path) -> Iterator[str]:
        """Check that each bucket on the path encloses the expression, and no half (Rule 1)."""
        tree, arrays, expressions = (
            self.tree,
            self.be_tree.predicates.arrays,
            self.be_tree.expressions.arrays,
        )
        start, count = int(expressions.start[e]), int(expressions.count[e])
        listed = expressions.predicate[start : start + count].tolist()
        for attribute, b in path:
            on_attribute = [
                p for p in listed if arrays.column[p] == attribute and arrays.flags[p] & CUTTABLE
            ]
            if len(on_attribute) != 1:
                count = len(on_attribute)
                yield f"expression {e} is below attribute {attribute}, of which it has {count}"
                continue
            (p,) = on_attribute
            if tree.fact[b, HASHED] == 1:
                if not arrays.flags[p] & EQUALITY or arrays.key[p] != tree.fact[b, KEY]:
                    yield f"expression {e} is below another value of attribute {attribute}"
                continue
            low, high = int(tree.domain_low[attribute]), int(tree.domain_high[attribute])
            # what lies outside of the domain belongs to its ends
            least = min(max(int(arrays.least[p]), low), high)
            most = min(max(int(arrays.most[p]), low), high)
            if not _encloses(tree, b, least, most):
                yield f"bucket {b} does not enclose expression {e}"
            for half in (int(tree.bucket[b, LEFT]), int(tree.bucket[b, RIGHT])):
                if half != NONE and _encloses(tree, half, least, most):
                    yield f"expression {e} belongs into a half of bucket {b} (Rule 1)"


def _encloses(tree: TreeArrays, b: int, least: int, most: int) -> bool:
    return bool(tree.bucket[b, LOW] <= least and most <= tree.bucket[b, HIGH])
