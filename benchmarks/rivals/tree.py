"""The tree of Gryphon: entries that begin with the same predicates share the way down.

The predicates of each entry are put into one order of attributes. A node tests an attribute for all
its entries, with an edge for each predicate on it and a *-edge for "don't care", which leads to the
node that tests the next attribute. Here the nodes along a chain of *-edges lie side by side, as the
groups of one node: a group tests one attribute, and going on to the next group is taking the
*-edge. Attributes that none of the entries asks for have no group. Below an edge that only one
entry takes there is no tree any more, but the entry and the rest of its predicates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.entries import Entries, Numbers
from headgate.snapshot.arrays.selection import expand_ranges


class Tree(NamedTuple):
    """A tree of predicates, as arrays.

    Node 0 is the root. The groups of node n are those from `groups[n]` to `groups[n + 1]`, and
    the entries that end there `ended[ends[n]:ends[n + 1]]`.

    Group g tests column `column[g]`, by the edges from `edges[g]` to `edges[g + 1]`: edge i has the
    predicate `label[i]`, and leads to node `child[i]`, or to entry −1 − `child[i]` alone, of which
    the predicates `tail[rest[i]:rest[i + 1]]` are left to test. Nothing can match below an edge
    unless the event has the attribute `ahead[i]`; where there is no such attribute it stands for
    the number of columns.
    """

    groups: Any
    ends: Any
    ended: Any
    column: Any
    edges: Any
    label: Any
    child: Any
    ahead: Any
    tail_start: Any
    tail: Any


def build_tree(entries: Entries, label: Numbers, column: Numbers) -> Tree:
    """Return the tree over the predicates `label`, an ascending number for each of the entries'.

    Labels ascend in the order in which attributes are tested; `column` is the column of each label.
    """
    owner = np.repeat(np.arange(len(entries)), np.diff(entries.start))
    path = label[np.lexsort((label, owner))]
    at, stop = entries.start[:-1].copy(), entries.start[1:]
    parents, labels, children = [], [], []
    ended_at, ended = [], []
    first, count = 0, 1  # the nodes of a level are numbered from `first`
    inside, node = np.arange(len(entries)), np.zeros(len(entries), np.int64)
    while len(inside):
        is_done = at[inside] == stop[inside]
        ended_at.append(node[is_done])
        ended.append(inside[is_done])
        inside, node = inside[~is_done], node[~is_done]
        taken = path[at[inside]]
        at[inside] += 1
        keys, member, sizes = np.unique(
            node * len(column) + taken, return_inverse=True, return_counts=True
        )
        shared = sizes > 1
        child = np.empty(len(keys), np.int64)
        first, count = first + count, int(shared.sum())
        child[shared] = first + np.arange(count)
        is_lone = ~shared[member]
        child[member[is_lone]] = -1 - inside[is_lone]
        parents.append(keys // len(column))
        labels.append(keys % len(column))
        children.append(child)
        inside, node = inside[~is_lone], child[member[~is_lone]]
    parent, child = _concatenate(parents), _concatenate(children)
    about = column[_concatenate(labels)]
    heads = np.flatnonzero(_find_changes(parent) | _find_changes(about))
    last = np.argsort(_concatenate(ended_at), kind="stable")
    lone, entry = child < 0, np.where(child < 0, -1 - child, 0)
    lengths = np.where(lone, (stop - at)[entry], 0)
    tail_start = np.concatenate(([0], np.cumsum(lengths)))
    tail = path[expand_ranges(at[entry[lone]], stop[entry[lone]])]
    groups, ends = (
        _count_starts(at, first + count) for at in (parent[heads], _concatenate(ended_at))
    )
    ahead = np.full(len(child), len(entries.greatest), np.int32)
    ahead[lengths > 0] = column[tail[tail_start[:-1][lengths > 0]]]
    single = (np.diff(groups) == 1) & (np.diff(ends) == 0)
    on = np.flatnonzero(~lone)[single[child[~lone]]]
    ahead[on] = about[heads[groups[child[on]]]]
    return Tree(
        groups=groups,
        ends=ends,
        ended=_concatenate(ended)[last],
        column=about[heads].astype(np.int32),
        edges=np.append(heads, len(parent)),
        label=_concatenate(labels),
        child=child,
        ahead=ahead,
        tail_start=tail_start,
        tail=tail,
    )


class Packed(NamedTuple):
    """The tree as it is walked: what is read together lies together, in rows of 32 bits.

    Node: first group, first end. Group: column, first edge. Edge: child, ahead, rest, and what was
    given of its predicate. The last row of each only ends the one before it.
    """

    nodes: Any
    groups: Any
    edges: Any
    ended: Any

    @classmethod
    def of(cls, tree: Tree, *predicate: npt.NDArray[Any]) -> Packed:
        """Return the tree with an array by label for each further number of an edge."""
        further = (part[tree.label] for part in predicate)
        return cls(
            _rows(tree.groups, tree.ends),
            _rows(tree.column, tree.edges),
            _rows(tree.child, tree.ahead, tree.tail_start, *further),
            tree.ended,
        )


def _rows(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    rows = np.zeros((max(map(len, columns)), len(columns)), np.int32)
    for number, column in enumerate(columns):
        rows[: len(column), number] = column
    return rows


def make_empty_codes(entries: Entries) -> npt.NDArray[np.int32]:
    """Return room for the codes of an event, by column, with one that is always there."""
    codes = np.zeros(len(entries.greatest) + 1, np.int32)
    codes[-1] = 1
    return codes


def _find_changes(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where a value is not the one before it; the first is new."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return new


def _count_starts(owners: Numbers, count: int) -> Numbers:
    return np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count))))


def _concatenate(parts: list[npt.NDArray[Any]]) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *parts])
