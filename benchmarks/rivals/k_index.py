"""The k-index (Whang et al. 2009, "Indexing Boolean expressions"), with ranges enumerated.

Entries are partitioned by their number of predicates, K. In each partition there is a list for each
attribute and value, in the order of the entries. An entry of partition K matches where it stands in
K lists of the event; these are walked together, in the order of their current entries, and what
cannot stand in K of them is skipped. Entries with more predicates than the event has values are
never looked at.

`<>` and NOT IN are refused: the k-index takes them to hold for an absent attribute, and to make
them fail would need a value for each absent attribute of each event (section 8.3 of the BE-Tree
paper).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.counting import make_lists
from benchmarks.rivals.entries import Entries
from benchmarks.rivals.kernels.k_index import partition_lists, walk_lists
from benchmarks.rivals.static_index import Layout, StaticIndex
from headgate.predicate import Atom, Within
from headgate.schema import ValueSet


class KIndex(StaticIndex):
    """Walks the lists of an event's values together, for each number of predicates.

    Memory: four bytes for each value that each predicate accepts.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(1, seed=2)
    >>> index = KIndex.from_encoded(queries.stream, queries.encode())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "k-index"
    title = "the k-index"
    how = "listed under every value that one of its predicates accepts, by its number of predicates"

    @classmethod
    def _find_flaw(cls, atom: Atom) -> str | None:
        if isinstance(atom, Within) and _all_but_some(atom.values):
            return (
                f"<>, NOT IN or NOT BETWEEN on `{atom.column.name}`; {cls.title} would take it "
                "to hold for an absent attribute"
            )
        return super()._find_flaw(atom)

    def _lay_out(self, entries: Entries) -> Layout:
        sizes = np.diff(entries.start)
        order = np.argsort(sizes, kind="stable")
        lists = make_lists(entries, order=order)
        sizes = sizes[order]
        partitions = Partitions(*partition_lists(lists.start, lists.entry, sizes))
        return Layout(
            (*lists, *partitions, order),
            partial(
                walk_lists, lists.entry, partitions, entries.base, order, int(sizes.max(initial=0))
            ),
        )


def _all_but_some(values: ValueSet) -> bool:
    """Return whether the set has no least and no greatest value, and yet a gap."""
    return values.starts_inside and len(values.cuts) > 0 and len(values.cuts) % 2 == 0


class Partitions(NamedTuple):
    """The lists of entries, by value and number of predicates.

    The lists of value v are those from `start[v]` to `start[v + 1]`: list g is of the entries
    with `size[g]` predicates, and stands at `place[g]` up to `place[g + 1]`.
    """

    start: Any
    size: Any
    place: Any
