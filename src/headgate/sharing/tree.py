"""The streams that begin at one source, as a tree of hops over links.

The root is the source itself, at the super-peer where it enters. Each hop carries a content over
one link, taken from what its parent brings; its consumers are the hops that go on from its end, and
the queries that are delivered there. What a new query would add to every hop is worked out at once,
over arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.sharing.content import Content, make_content, make_full_content
from headgate.sharing.sampled import SampledStream
from headgate.sharing.subscription import Subscription

INITIAL_HOPS = 64  # hops that there is room for at first
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
        return [*(child.content for child in self.children), *map(make_content, self.deliveries)]

    @property
    def reader_count(self) -> int:
        return len(self.children) + len(self.deliveries)

    @property
    def path_to_root(self) -> Iterator[Hop]:
        """This hop and those before it, without the root."""
        hop: Hop | None = self
        while hop is not None and hop.parent is not None:
            yield hop
            hop = hop.parent


class StreamTree:
    """Hops by number: a parent's is always lower. Those that ended leave gaps, but never many.

    Columns of `arrays` are what `growth` reads.
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
        """The same hops once more, which change on their own."""
        found = StreamTree(self.sampled, self.root.end, self.root.node)
        made: list[Hop | None] = []
        for hop in self.hops:
            made.append(None if hop is None else _copy_hop(hop, made))
        found.hops, found.arrays, found._gaps = made, self.arrays.copy(), self._gaps
        found.root = next(iter(found))
        return found

    def add_hop(
        self, parent: Hop, way: tuple[int, float], end: tuple[str, int], content: Content
    ) -> Hop:
        """A hop more from the end of another: by a link of a cost, to a super-peer of a number."""
        link, cost = way
        hop = Hop(len(self.hops), parent, link, *end, content)
        self.hops.append(hop)
        if hop.number == self.arrays.size:
            self.arrays = self.arrays.double()
        parent.children.append(hop)
        self.arrays.add(hop, cost, self.sampled)
        self.arrays.reader_count[parent.number] = parent.reader_count
        return hop

    def update_hop(self, hop: Hop, content: Content | None = None) -> None:
        """A hop has other consumers, or another content."""
        if content is not None:
            hop.content = content
        self.arrays.update(hop, self.sampled)

    def remove_hop(self, hop: Hop) -> None:
        """A hop that nobody needs any more."""
        assert hop.parent is not None
        hop.parent.children.remove(hop)
        self.arrays.reader_count[hop.parent.number] = hop.parent.reader_count
        self.hops[hop.number] = None
        self.arrays.alive[hop.number] = False
        self._gaps += 1
        if self._gaps > max(INITIAL_HOPS, len(self.hops) // 2):
            self._close_gaps()

    def _close_gaps(self) -> None:
        self._gaps = 0
        kept = [hop.number for hop in self]
        self.hops = list(self)
        for number, hop in enumerate(self.hops):
            assert hop is not None
            hop.number = number
        self.arrays = self.arrays.select(np.array(kept, np.int64))
        for hop in self:
            if hop.parent is not None:
                self.arrays.parent[hop.number] = hop.parent.number


def _copy_hop(hop: Hop, made: Sequence[Hop | None]) -> Hop:
    parent = None if hop.parent is None else made[hop.parent.number]
    found = replace(
        hop, parent=parent, children=[], deliveries=[*hop.deliveries], served={**hop.served}
    )
    if parent is not None:
        parent.children.append(found)
    return found


@dataclass(slots=True)
class HopArrays:
    """Of each hop: its sample rows and their count, its columns, who reads it, and where it ends.

    A column is CARRIED, or READ by the filter alone: to be carried once there are more rows in it.
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
        return len(self.count)

    def add(self, hop: Hop, cost: float, sampled: SampledStream) -> None:
        at = hop.number
        self.parent[at] = -1 if hop.parent is None else hop.parent.number
        self.node[at] = hop.node
        self.link_cost[at] = cost
        self.alive[at] = True
        self.update(hop, sampled)

    def update(self, hop: Hop, sampled: SampledStream) -> None:
        at, content = hop.number, hop.content
        self.rows[at] = content.rows
        self.count[at] = content.count
        self.column_use[at] = 0
        self.column_use[at, sampled.get_positions(content.attributes)] = COLUMN_READ
        self.column_use[at, sampled.get_positions(content.columns)] = COLUMN_CARRIED
        self.width[at] = sampled.measure_width(content.columns)
        self.reader_count[at] = hop.reader_count

    def copy(self) -> HopArrays:
        return HopArrays(*(a.copy() for a in self._all))

    def double(self) -> HopArrays:
        return HopArrays(*(np.concatenate((a, np.zeros_like(a))) for a in self._all))

    def select(self, kept: npt.NDArray[np.int64]) -> HopArrays:
        """These rows, and room for as many again."""
        return HopArrays(*(a[kept] for a in self._all)).double()

    @property
    def _all(self) -> tuple[npt.NDArray[Any], ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
