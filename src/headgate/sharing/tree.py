"""The streams that begin at one source, as a tree of hops over links.

The root is the source itself, at the super-peer where it enters. Each hop carries a content over
one link, taken from what its parent brings; its consumers are the hops that go on from its end, and
the queries that are delivered there. What a new query would add to every hop is computed for all
hops at once, over arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.sharing.content import Content, Subscription, make_content, make_full_content
from headgate.sharing.sampled_stream import SampledStream

INITIAL_HOPS = 64  # that arrays have room for at first
COLUMN_CARRIED, COLUMN_READ = 1, 2


@dataclass(eq=False, slots=True)
class Hop:
    """A content on its way over a link, from the end of its parent; the root has no link.

    `node` is the number of the super-peer at its end.
    """

    number: int
    parent: Hop | None
    link: int | None
    end: str
    node: int
    content: Content
    children: list[Hop] = field(default_factory=list)
    deliveries: list[Subscription] = field(default_factory=list)
    served: dict[str, Subscription] = field(default_factory=dict)

    @property
    def consumers(self) -> list[Content]:
        """The contents that are taken from this one: hops that go on, then deliveries."""
        return [*(child.content for child in self.children), *map(make_content, self.deliveries)]

    @property
    def reader_count(self) -> int:
        """How many hops and deliveries read this one."""
        return len(self.children) + len(self.deliveries)

    @property
    def path_to_root(self) -> Iterator[Hop]:
        """The hop and those before it, without the root."""
        hop: Hop | None = self
        while hop is not None and hop.parent is not None:
            yield hop
            hop = hop.parent


class StreamTree:
    """Hops by number: a parent's is always lower. Removed hops leave gaps, but never many.

    `arrays` has the same hops for the kernel.
    """

    def __init__(self, sampled: SampledStream, entry: str, node: int) -> None:
        self.sampled = sampled
        self.root = Hop(0, None, None, entry, node, make_full_content(sampled))
        self.hops: list[Hop | None] = [self.root]
        self.arrays = HopArrays.allocate(INITIAL_HOPS, sampled)
        self.arrays.add(self.root, 0.0, sampled)
        self._gaps = 0

    def __iter__(self) -> Iterator[Hop]:
        return (hop for hop in self.hops if hop is not None)

    def copy(self) -> StreamTree:
        """Return the same hops once more, which change independently."""
        copied = StreamTree(self.sampled, self.root.end, self.root.node)
        # Parents have lower numbers, so the copy of a parent exists before its children ask for it.
        hops: list[Hop | None] = []
        for hop in self.hops:
            hops.append(None if hop is None else _copy_hop(hop, hops))
        copied.hops, copied.arrays, copied._gaps = hops, self.arrays.copy(), self._gaps
        copied.root = next(iter(copied))
        return copied

    def add_hop(
        self, parent: Hop, link_and_cost: tuple[int, float], end: tuple[str, int], content: Content
    ) -> Hop:
        """Add a hop from the end of another, over a link, to a super-peer by name and number."""
        link, cost = link_and_cost
        hop = Hop(len(self.hops), parent, link, *end, content)
        self.hops.append(hop)
        # Arrays double when they are full, so that adding a hop takes constant time on average.
        if hop.number == self.arrays.size:
            self.arrays = self.arrays.double()
        parent.children.append(hop)
        self.arrays.add(hop, cost, self.sampled)
        self.arrays.reader_count[parent.number] = parent.reader_count
        return hop

    def update_hop(self, hop: Hop, content: Content | None = None) -> None:
        """Record that a hop has other consumers, or another content."""
        if content is not None:
            hop.content = content
        self.arrays.update(hop, self.sampled)

    def remove_hop(self, hop: Hop) -> None:
        """Remove a hop that is not needed any more."""
        assert hop.parent is not None
        hop.parent.children.remove(hop)
        self.arrays.reader_count[hop.parent.number] = hop.parent.reader_count
        self.hops[hop.number] = None
        self.arrays.alive[hop.number] = False
        self._gaps += 1
        # Renumber when half of the numbers are gaps: kernels read arrays from end to end.
        if self._gaps > max(INITIAL_HOPS, len(self.hops) // 2):
            self._close_gaps()

    def _close_gaps(self) -> None:
        self._gaps = 0
        # Order is kept, so parents still have lower numbers than their children.
        numbers = [hop.number for hop in self]
        self.hops = list(self)
        for number, hop in enumerate(self.hops):
            assert hop is not None
            hop.number = number
        self.arrays = self.arrays.select(np.array(numbers, np.int64))
        # The selected rows hold old numbers of parents; all hops have their new ones by now.
        for hop in self:
            if hop.parent is not None:
                self.arrays.parent[hop.number] = hop.parent.number


def _copy_hop(hop: Hop, copies: Sequence[Hop | None]) -> Hop:
    parent = None if hop.parent is None else copies[hop.parent.number]
    copied = replace(
        hop, parent=parent, children=[], deliveries=[*hop.deliveries], served={**hop.served}
    )
    if parent is not None:
        parent.children.append(copied)
    return copied


@dataclass(slots=True)
class HopArrays:
    """For each hop: its sample rows and their count, its columns, its readers, and where it ends.

    A column is COLUMN_CARRIED, or COLUMN_READ by the filter only: it must be carried as soon as the
    hop has more rows.
    """

    rows: npt.NDArray[np.uint64]
    count: npt.NDArray[np.int64]
    column_use: npt.NDArray[np.uint8]
    width: npt.NDArray[np.float64]
    reader_count: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    node: npt.NDArray[np.int64]
    link_cost: npt.NDArray[np.float64]
    alive: npt.NDArray[np.bool_]

    @staticmethod
    def allocate(size: int, sampled: SampledStream) -> HopArrays:
        """Return arrays with room for so many hops."""
        return HopArrays(
            np.zeros((size, sampled.word_count), np.uint64),
            np.zeros(size, np.int64),
            np.zeros((size, len(sampled.stream.names)), np.uint8),
            np.zeros(size),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros(size, np.bool_),
        )

    @property
    def size(self) -> int:
        """How many hops there is room for."""
        return len(self.count)

    def add(self, hop: Hop, cost: float, sampled: SampledStream) -> None:
        """Write a new hop over a link of a cost."""
        at = hop.number
        self.parent[at] = -1 if hop.parent is None else hop.parent.number
        self.node[at] = hop.node
        self.link_cost[at] = cost
        self.alive[at] = True
        self.update(hop, sampled)

    def update(self, hop: Hop, sampled: SampledStream) -> None:
        """Write what a hop carries now, and how many read it."""
        at, content = hop.number, hop.content
        self.rows[at] = content.rows
        self.count[at] = content.count
        # Carried is written after read, as it is the stronger of the two.
        self.column_use[at] = 0
        self.column_use[at, sampled.get_positions(content.attributes)] = COLUMN_READ
        self.column_use[at, sampled.get_positions(content.columns)] = COLUMN_CARRIED
        self.width[at] = sampled.measure_width(content.columns)
        self.reader_count[at] = hop.reader_count

    def copy(self) -> HopArrays:
        """Return arrays that change independently."""
        return HopArrays(*(a.copy() for a in self._all))

    def double(self) -> HopArrays:
        """Return the same rows with room for as many again."""
        return HopArrays(*(np.concatenate((a, np.zeros_like(a))) for a in self._all))

    def select(self, numbers: npt.NDArray[np.int64]) -> HopArrays:
        """Return only these rows, with room for as many again."""
        return HopArrays(*(a[numbers] for a in self._all)).double()

    @property
    def _all(self) -> tuple[npt.NDArray[Any], ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
