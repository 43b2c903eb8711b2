"""What a tree looks like: its shape in figures, the path to a leaf, and a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.matching.be_tree.kernels.change import list_buckets
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
    TreeArrays,
)
from headgate.matching.be_tree.values import fits_in_64_bits

if TYPE_CHECKING:
    from headgate.matching.be_tree.tree import BeTree
if TYPE_CHECKING:
    from headgate.matching.be_tree.tree import BeTree


def measure_shape(growing: BeTree) -> dict[str, Any]:
    """Heights and numbers of nodes; the height counts partitions, as every path alternates."""
    tree = growing.tree
    found = list_buckets(tree, ROOT)
    counts = tree.fact[found, LEAF_COUNT]
    heights = [_height(growing, int(b)) for b in found[counts > 0].tolist()]
    weights = counts[counts > 0]
    full = counts[counts > 0]
    return {
        "height": max(heights, default=0),
        "average_height": round(float(np.average(heights, weights=weights)), 2) if heights else 0,
        "partitions": int(tree.fact[found, PARTITIONS].sum()),
        "buckets": len(found),
        "hashed_buckets": int((tree.fact[found, HASHED] == 1).sum()),
        "leaves": len(full),
        "largest_leaf": int(full.max(initial=0)),
        "extended_leaves": int((tree.fact[found, CAPACITY] > growing.capacity).sum()),
        "at_root": int(tree.fact[ROOT, LEAF_COUNT]),
    }


def _height(growing: BeTree, b: int) -> int:
    tree = growing.tree
    height, owner = 0, tree.fact[b, OWNER]
    while owner != NONE:
        height, owner = height + 1, tree.fact[tree.partition[owner, HOME], OWNER]
    return height


def describe_path(growing: BeTree, b: int) -> list[str]:
    """The conditions that lead to a bucket, from the root on."""
    tree, path = growing.tree, []
    while tree.fact[b, OWNER] != NONE:
        path.append(_label_bucket(growing, b))
        b = int(tree.partition[tree.fact[b, OWNER], HOME])
    return ["root", *reversed(path)]


def _label_bucket(growing: BeTree, b: int) -> str:
    """What an event must have to come to a bucket."""
    tree = growing.tree
    attribute = int(tree.partition[tree.fact[b, OWNER], ATTRIBUTE])
    column = growing.pool.columns[attribute]
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
        text = (point + (1 << 63)).to_bytes(8, "big").rstrip(b"\0")
        return repr(text.decode(errors="replace")) + "…"
    return str(point)


def draw_tree(growing: BeTree, *, deepest: int, widest: int) -> Iterator[tuple[int, str]]:
    """The nodes from the root on: how deep each lies, and what it says.

    Of each node at most `widest` of those below it are shown, the fullest first.
    """
    yield 0, _draw_bucket(growing, ROOT, "root")
    yield from _draw_below_bucket(growing, ROOT, 1, deepest, widest)


def _draw_below_bucket(
    growing: BeTree, b: int, depth: int, deepest: int, widest: int
) -> Iterator[tuple[int, str]]:
    tree = growing.tree
    partitions = sorted(
        _walk_chain(tree.partition, int(tree.bucket[b, FIRST_PARTITION]), NEXT_PARTITION),
        key=lambda p: -int(tree.partition[p, PARTITION_SIZE]),
    )
    if depth > deepest:
        return
    for p in partitions[:widest]:
        name = growing.pool.columns[int(tree.partition[p, ATTRIBUTE])].name
        yield depth, f"by {name}: {int(tree.partition[p, PARTITION_SIZE]):,} expressions"
        yield from _draw_below_partition(growing, p, depth + 1, deepest, widest)
    if len(partitions) > widest:
        yield depth, f"… and {len(partitions) - widest:,} more, by other attributes"


def _draw_below_partition(
    growing: BeTree, p: int, depth: int, deepest: int, widest: int
) -> Iterator[tuple[int, str]]:
    tree = growing.tree
    buckets = list(_list_halves(growing, int(tree.partition[p, TOP_BUCKET])))
    buckets += _walk_chain(tree.fact, int(tree.partition[p, FIRST_HASHED]), NEXT_HASHED)
    full = [b for b in buckets if tree.fact[b, LEAF_COUNT] or tree.fact[b, PARTITIONS]]
    full.sort(key=lambda b: -int(tree.fact[b, LEAF_COUNT]))
    if depth > deepest:
        return
    for b in full[:widest]:
        yield depth, _draw_bucket(growing, b, _label_bucket(growing, b))
        yield from _draw_below_bucket(growing, b, depth + 1, deepest, widest)
    if len(full) > widest:
        yield depth, f"… and {len(full) - widest:,} more, of other values or ranges"


def _list_halves(growing: BeTree, b: int) -> Iterator[int]:
    if b != NONE:
        yield b
        yield from _list_halves(growing, int(growing.tree.bucket[b, LEFT]))
        yield from _list_halves(growing, int(growing.tree.bucket[b, RIGHT]))


def _walk_chain(pool: Any, first: int, after: int) -> list[int]:
    found = []
    while first != NONE:
        found.append(first)
        first = int(pool[first, after])
    return found


def _draw_bucket(growing: BeTree, b: int, label: str) -> str:
    tree = growing.tree
    count, capacity = int(tree.fact[b, LEAF_COUNT]), int(tree.fact[b, CAPACITY])
    return f"{label} [leaf: {count:,} of {capacity:,}]"


def find_violations(growing: BeTree) -> Iterator[str]:
    """Every rule of section 4.3 that the tree breaks, and everything that does not add up."""
    checker = _Checker(growing)
    yield from checker.bucket(ROOT, ())
    live = int(growing.tree.state[LIVE_EXPRESSIONS])
    if len(checker.seen) != live:
        yield f"{len(checker.seen)} expressions are in leaves, and {live} should be"


Path = tuple[tuple[int, int], ...]  # attributes and buckets, from the root on


class _Checker:
    def __init__(self, growing: BeTree) -> None:
        self.tree = growing.tree
        self.growing = growing
        self.seen: set[int] = set()

    def bucket(self, b: int, path: Path) -> Iterator[str]:
        """A bucket, its leaf and what is below; the path has the attributes and buckets above."""
        tree = self.tree
        yield from self._leaf(b, path)
        count, capacity = int(tree.fact[b, LEAF_COUNT]), int(tree.fact[b, CAPACITY])
        if count > capacity:
            yield f"bucket {b} holds {count} expressions, over its capacity of {capacity}"
        partitions = self._chain(
            tree.partition, int(tree.bucket[b, FIRST_PARTITION]), NEXT_PARTITION
        )
        if len(partitions) != tree.fact[b, PARTITIONS]:
            yield f"bucket {b} has {len(partitions)} partitions and counts otherwise"
        halvable = (
            tree.fact[b, OWNER] != NONE
            and tree.fact[b, HASHED] == 0
            and tree.bucket[b, LOW] < tree.bucket[b, HIGH]
            and self.growing.options.directory != "specialised"
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
            yield from self._partition(p, attribute, path)

    def _partition(self, p: int, attribute: int, path: Path) -> Iterator[str]:
        tree, before = self.tree, len(self.seen)
        for b in self._chain(tree.fact, int(tree.partition[p, FIRST_HASHED]), NEXT_HASHED):
            if tree.fact[b, OWNER] != p or tree.fact[b, HASHED] != 1:
                yield f"hashed bucket {b} of partition {p} says otherwise"
            if look_up(tree.table, bucket_owner(p), tree.fact[b, KEY]) != b:
                yield f"the directory of partition {p} does not lead to bucket {b}"
            yield from self.bucket(b, (*path, (attribute, b)))
        top = int(tree.partition[p, TOP_BUCKET])
        if top != NONE:
            ends = (tree.domain_low[attribute], tree.domain_high[attribute])
            if (tree.bucket[top, LOW], tree.bucket[top, HIGH]) != ends:
                yield f"the top of partition {p} does not span its domain"
            yield from self._check_halves(top, NONE, p, attribute, path)
        inside = len(self.seen) - before
        if inside != tree.partition[p, PARTITION_SIZE]:
            yield f"partition {p} has {inside} expressions and counts {tree.partition[p, PARTITION_SIZE]}"
        if inside == 0:
            yield f"partition {p} is empty"

    def _list_halves(
        self, b: int, parent: int, p: int, attribute: int, path: Path
    ) -> Iterator[str]:
        tree = self.tree
        if tree.fact[b, OWNER] != p or tree.fact[b, PARENT] != parent or tree.fact[b, HASHED]:
            yield f"bucket {b} of partition {p} says otherwise"
        yield from self.bucket(b, (*path, (attribute, b)))
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

    def _leaf(self, b: int, path: Path) -> Iterator[str]:
        tree, expressions = self.tree, self.growing.expressions
        place = int(tree.bucket[b, LEAF_BEGIN])
        end, number = place + int(tree.bucket[b, LEAF_SIZE]), 0
        while place < end:
            e = int(tree.records[place + 2])
            if e in self.seen:
                yield f"expression {e} is in two leaves"
            self.seen.add(e)
            if expressions.leaf[e] != b:
                yield f"expression {e} is in bucket {b} and says otherwise"
            yield from self._belongs(e, path)
            place += int(tree.records[place])
            number += 1
        if place != end or number != tree.fact[b, LEAF_COUNT]:
            yield f"bucket {b} counts {tree.fact[b, LEAF_COUNT]} expressions and has {number}"

    def _belongs(self, e: int, path: Path) -> Iterator[str]:
        """Each bucket on the path encloses the expression, and no half of it does (Rule 1)."""
        tree, arrays, expressions = self.tree, self.growing.pool.arrays, self.growing.expressions
        start, count = int(expressions.start[e]), int(expressions.count[e])
        listed = expressions.predicate[start : start + count].tolist()
        for attribute, b in path:
            mine = [
                p for p in listed if arrays.column[p] == attribute and arrays.flags[p] & CUTTABLE
            ]
            if len(mine) != 1:
                yield f"expression {e} is below attribute {attribute}, of which it has {len(mine)}"
                continue
            (p,) = mine
            if tree.fact[b, HASHED] == 1:
                if not arrays.flags[p] & EQUALITY or arrays.key[p] != tree.fact[b, KEY]:
                    yield f"expression {e} is below another value of attribute {attribute}"
                continue
            low, high = int(tree.domain_low[attribute]), int(tree.domain_high[attribute])
            least = min(max(int(arrays.least[p]), low), high)
            most = min(max(int(arrays.most[p]), low), high)
            if not _encloses(tree, b, least, most):
                yield f"bucket {b} does not enclose expression {e}"
            for half in (int(tree.bucket[b, LEFT]), int(tree.bucket[b, RIGHT])):
                if half != NONE and _encloses(tree, half, least, most):
                    yield f"expression {e} belongs into a half of bucket {b} (Rule 1)"

    @staticmethod
    def _chain(pool: Any, first: int, after: int) -> list[int]:
        found = []
        while first != NONE:
            found.append(first)
            first = int(pool[first, after])
        return found


def _encloses(tree: TreeArrays, b: int, least: int, most: int) -> bool:
    return bool(tree.bucket[b, LOW] <= least and most <= tree.bucket[b, HIGH])
