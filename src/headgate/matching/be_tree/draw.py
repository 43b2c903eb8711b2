"""What a tree looks like: its shape in figures, the path to a leaf, and a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.matching.be_tree.domain import is_exact
from headgate.matching.be_tree.kernels.change import buckets_from
from headgate.matching.be_tree.kernels.pools import (
    AFTER,
    ATTRIBUTE,
    CAPACITY,
    COUNT,
    FIRST,
    FIRST_HASHED,
    HASHED,
    HIGH,
    HOME,
    LEFT,
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
)

if TYPE_CHECKING:
    from headgate.matching.be_tree.growing import GrowingTree


def shape_of(growing: GrowingTree) -> dict[str, Any]:
    """Heights and numbers of nodes; the height counts partitions, as every path alternates."""
    tree = growing.tree
    found = buckets_from(tree, ROOT)
    counts = tree.fact[found, COUNT]
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
        "at_root": int(tree.fact[ROOT, COUNT]),
    }


def _height(growing: GrowingTree, b: int) -> int:
    tree = growing.tree
    height, owner = 0, tree.fact[b, OWNER]
    while owner != NONE:
        height, owner = height + 1, tree.fact[tree.partition[owner, HOME], OWNER]
    return height


def path_of(growing: GrowingTree, b: int) -> list[str]:
    """The conditions that lead to a bucket, from the root on."""
    tree, path = growing.tree, []
    while tree.fact[b, OWNER] != NONE:
        path.append(_label(growing, b))
        b = int(tree.partition[tree.fact[b, OWNER], HOME])
    return ["root", *reversed(path)]


def _label(growing: GrowingTree, b: int) -> str:
    """What an event must have to come to a bucket."""
    tree = growing.tree
    attribute = int(tree.partition[tree.fact[b, OWNER], ATTRIBUTE])
    column = growing.pool.columns[attribute]
    if tree.fact[b, PARENT] == NONE and not tree.fact[b, HASHED]:
        return f"{column.name}: any value"
    low, high = int(tree.bucket[b, LOW]), int(tree.bucket[b, HIGH])
    if low == high and tree.fact[b, HASHED]:
        return f"{column.name}: {_value(column, low)}"
    first = "…" if low == tree.domain_low[attribute] else _value(column, low)
    last = "…" if high == tree.domain_high[attribute] else _value(column, high)
    return f"{column.name}: {first} to {last}"


def _value(column: Any, point: int) -> str:
    if is_exact(column.type):
        return str(column.type.value(point))
    if isinstance(column.type.minimum, str):
        text = (point + (1 << 63)).to_bytes(8, "big").rstrip(b"\0")
        return repr(text.decode(errors="replace")) + "…"
    return str(point)


def drawn(growing: GrowingTree, *, deepest: int, widest: int) -> Iterator[tuple[int, str]]:
    """The nodes from the root on: how deep each lies, and what it says.

    Of each node at most `widest` of those below it are shown, the fullest first.
    """
    yield 0, _bucket_line(growing, ROOT, "root")
    yield from _below_bucket(growing, ROOT, 1, deepest, widest)


def _below_bucket(
    growing: GrowingTree, b: int, depth: int, deepest: int, widest: int
) -> Iterator[tuple[int, str]]:
    tree = growing.tree
    partitions = sorted(
        _chained(tree.partition, int(tree.bucket[b, FIRST]), AFTER),
        key=lambda p: -int(tree.partition[p, SIZE]),
    )
    if depth > deepest:
        return
    for p in partitions[:widest]:
        name = growing.pool.columns[int(tree.partition[p, ATTRIBUTE])].name
        yield depth, f"by {name}: {int(tree.partition[p, SIZE]):,} expressions"
        yield from _below_partition(growing, p, depth + 1, deepest, widest)
    if len(partitions) > widest:
        yield depth, f"… and {len(partitions) - widest:,} more, by other attributes"


def _below_partition(
    growing: GrowingTree, p: int, depth: int, deepest: int, widest: int
) -> Iterator[tuple[int, str]]:
    tree = growing.tree
    buckets = list(_halves(growing, int(tree.partition[p, TOP])))
    buckets += _chained(tree.fact, int(tree.partition[p, FIRST_HASHED]), NEXT)
    full = [b for b in buckets if tree.fact[b, COUNT] or tree.fact[b, PARTITIONS]]
    full.sort(key=lambda b: -int(tree.fact[b, COUNT]))
    if depth > deepest:
        return
    for b in full[:widest]:
        yield depth, _bucket_line(growing, b, _label(growing, b))
        yield from _below_bucket(growing, b, depth + 1, deepest, widest)
    if len(full) > widest:
        yield depth, f"… and {len(full) - widest:,} more, of other values or ranges"


def _halves(growing: GrowingTree, b: int) -> Iterator[int]:
    if b != NONE:
        yield b
        yield from _halves(growing, int(growing.tree.bucket[b, LEFT]))
        yield from _halves(growing, int(growing.tree.bucket[b, RIGHT]))


def _chained(pool: Any, first: int, after: int) -> list[int]:
    found = []
    while first != NONE:
        found.append(first)
        first = int(pool[first, after])
    return found


def _bucket_line(growing: GrowingTree, b: int, label: str) -> str:
    tree = growing.tree
    count, capacity = int(tree.fact[b, COUNT]), int(tree.fact[b, CAPACITY])
    return f"{label} [leaf: {count:,} of {capacity:,}]"
