"""Is a tree what it should be? The obvious version: everything is looked at, nothing is assumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headgate.matching.be_tree.kernels.nodes import found, of_bucket, of_partition
from headgate.matching.be_tree.kernels.pools import (
    AFTER,
    ATTRIBUTE,
    BEGIN,
    CAPACITY,
    COUNT,
    CUTTABLE,
    EQUALITY,
    FIRST,
    FIRST_HASHED,
    HASHED,
    HIGH,
    HOME,
    KEY,
    LEFT,
    LIVE,
    LOW,
    NEXT,
    NONE,
    OWNER,
    PARENT,
    PARTITIONS,
    RIGHT,
    ROOT,
    SIZE,
    TOP,
    USED,
    Tree,
)

if TYPE_CHECKING:
    from headgate.matching.be_tree.growing import GrowingTree


def violations(growing: GrowingTree) -> Iterator[str]:
    """Every rule of section 4.3 that the tree breaks, and everything that does not add up."""
    checker = _Checker(growing)
    yield from checker.bucket(ROOT, ())
    live = int(growing.tree.state[LIVE])
    if len(checker.seen) != live:
        yield f"{len(checker.seen)} expressions are in leaves, and {live} should be"


Path = tuple[tuple[int, int], ...]  # attributes and buckets, from the root on


class _Checker:
    def __init__(self, growing: GrowingTree) -> None:
        self.tree = growing.tree
        self.growing = growing
        self.seen: set[int] = set()

    def bucket(self, b: int, path: Path) -> Iterator[str]:
        """A bucket, its leaf and what is below; the path has the attributes and buckets above."""
        tree = self.tree
        yield from self._leaf(b, path)
        count, capacity = int(tree.fact[b, COUNT]), int(tree.fact[b, CAPACITY])
        if count > capacity:
            yield f"bucket {b} holds {count} expressions, over its capacity of {capacity}"
        partitions = self._chain(tree.partition, int(tree.bucket[b, FIRST]), AFTER)
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
            if found(tree.table, of_partition(b), attribute) != p:
                yield f"the directory of bucket {b} does not lead to partition {p}"
            if tree.partition[p, HOME] != b:
                yield f"partition {p} is below bucket {b} and says otherwise"
            if attribute in {a for a, _ in path}:
                yield f"attribute {attribute} is used twice on the way to partition {p}"
            yield from self._partition(p, attribute, path)

    def _partition(self, p: int, attribute: int, path: Path) -> Iterator[str]:
        tree, before = self.tree, len(self.seen)
        for b in self._chain(tree.fact, int(tree.partition[p, FIRST_HASHED]), NEXT):
            if tree.fact[b, OWNER] != p or tree.fact[b, HASHED] != 1:
                yield f"hashed bucket {b} of partition {p} says otherwise"
            if found(tree.table, of_bucket(p), tree.fact[b, KEY]) != b:
                yield f"the directory of partition {p} does not lead to bucket {b}"
            yield from self.bucket(b, (*path, (attribute, b)))
        top = int(tree.partition[p, TOP])
        if top != NONE:
            ends = (tree.domain_low[attribute], tree.domain_high[attribute])
            if (tree.bucket[top, LOW], tree.bucket[top, HIGH]) != ends:
                yield f"the top of partition {p} does not span its domain"
            yield from self._halves(top, NONE, p, attribute, path)
        inside = len(self.seen) - before
        if inside != tree.partition[p, SIZE]:
            yield f"partition {p} has {inside} expressions and counts {tree.partition[p, SIZE]}"
        if inside == 0:
            yield f"partition {p} is empty"

    def _halves(self, b: int, parent: int, p: int, attribute: int, path: Path) -> Iterator[str]:
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
            yield from self._halves(half, b, p, attribute, path)

    def _leaf(self, b: int, path: Path) -> Iterator[str]:
        tree, expressions = self.tree, self.growing.expressions
        place = int(tree.bucket[b, BEGIN])
        end, number = place + int(tree.bucket[b, USED]), 0
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
        if place != end or number != tree.fact[b, COUNT]:
            yield f"bucket {b} counts {tree.fact[b, COUNT]} expressions and has {number}"

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
            if not _within(tree, b, least, most):
                yield f"bucket {b} does not enclose expression {e}"
            for half in (int(tree.bucket[b, LEFT]), int(tree.bucket[b, RIGHT])):
                if half != NONE and _within(tree, half, least, most):
                    yield f"expression {e} belongs into a half of bucket {b} (Rule 1)"

    @staticmethod
    def _chain(pool: Any, first: int, after: int) -> list[int]:
        found = []
        while first != NONE:
            found.append(first)
            first = int(pool[first, after])
        return found


def _within(tree: Tree, b: int, least: int, most: int) -> bool:
    return bool(tree.bucket[b, LOW] <= least and most <= tree.bucket[b, HIGH])
