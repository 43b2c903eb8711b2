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

from headgate.sharing.content import Content, content_of, everything
from headgate.sharing.sampled import Sampled
from headgate.sharing.subscription import Subscription

FIRST = 64  # hops that there is room for at first
CARRIED, READ = 1, 2


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
        return [*(child.content for child in self.children), *map(content_of, self.deliveries)]

    @property
    def readers(self) -> int:
        return len(self.children) + len(self.deliveries)

    @property
    def upward(self) -> Iterator[Hop]:
        """This hop and those before it, without the root."""
        hop: Hop | None = self
        while hop is not None and hop.parent is not None:
            yield hop
            hop = hop.parent


class Tree:
    """Hops by number: a parent's is always lower. Those that ended leave gaps, but never many.

    Columns of `arrays` are what `growth` reads.
    """

    def __init__(self, sampled: Sampled, entry: str, node: int) -> None:
        self.sampled = sampled
        self.root = Hop(0, None, None, entry, node, everything(sampled))
        self.hops: list[Hop | None] = [self.root]
        self.arrays = Arrays.of(FIRST, sampled)
        self.arrays.put(self.root, 0.0, sampled)
        self._gaps = 0

    def __iter__(self) -> Iterator[Hop]:
        return (hop for hop in self.hops if hop is not None)

    def twin(self) -> Tree:
        """The same hops once more, which change on their own."""
        found = Tree(self.sampled, self.root.end, self.root.node)
        made: list[Hop | None] = []
        for hop in self.hops:
            made.append(None if hop is None else _twin(hop, made))
        found.hops, found.arrays, found._gaps = made, self.arrays.copied(), self._gaps
        found.root = next(iter(found))
        return found

    def grow(
        self, parent: Hop, way: tuple[int, float], end: tuple[str, int], content: Content
    ) -> Hop:
        """A hop more from the end of another: by a link of a cost, to a super-peer of a number."""
        link, cost = way
        hop = Hop(len(self.hops), parent, link, *end, content)
        self.hops.append(hop)
        if hop.number == self.arrays.size:
            self.arrays = self.arrays.doubled()
        parent.children.append(hop)
        self.arrays.put(hop, cost, self.sampled)
        self.arrays.consumers[parent.number] = parent.readers
        return hop

    def change(self, hop: Hop, content: Content | None = None) -> None:
        """A hop has other consumers, or another content."""
        if content is not None:
            hop.content = content
        self.arrays.update(hop, self.sampled)

    def end(self, hop: Hop) -> None:
        """A hop that nobody needs any more."""
        assert hop.parent is not None
        hop.parent.children.remove(hop)
        self.arrays.consumers[hop.parent.number] = hop.parent.readers
        self.hops[hop.number] = None
        self.arrays.alive[hop.number] = False
        self._gaps += 1
        if self._gaps > max(FIRST, len(self.hops) // 2):
            self._close_gaps()

    def _close_gaps(self) -> None:
        self._gaps = 0
        kept = [hop.number for hop in self]
        self.hops = list(self)
        for number, hop in enumerate(self.hops):
            assert hop is not None
            hop.number = number
        self.arrays = self.arrays.only(np.array(kept, np.int64))
        for hop in self:
            if hop.parent is not None:
                self.arrays.parent[hop.number] = hop.parent.number


def _twin(hop: Hop, made: Sequence[Hop | None]) -> Hop:
    parent = None if hop.parent is None else made[hop.parent.number]
    found = replace(
        hop, parent=parent, children=[], deliveries=[*hop.deliveries], served={**hop.served}
    )
    if parent is not None:
        parent.children.append(found)
    return found


@dataclass(slots=True)
class Arrays:
    """Of each hop: its sample rows and their count, its columns, who reads it, and where it ends.

    A column is CARRIED, or READ by the filter alone: to be carried once there are more rows in it.
    """

    rows: npt.NDArray[np.uint64]
    count: npt.NDArray[np.int64]
    has: npt.NDArray[np.uint8]
    width: npt.NDArray[np.float64]
    consumers: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    node: npt.NDArray[np.int64]
    link_cost: npt.NDArray[np.float64]
    alive: npt.NDArray[np.bool_]

    @staticmethod
    def of(size: int, sampled: Sampled) -> Arrays:
        return Arrays(
            np.zeros((size, sampled.words), np.uint64),
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

    def put(self, hop: Hop, cost: float, sampled: Sampled) -> None:
        at = hop.number
        self.parent[at] = -1 if hop.parent is None else hop.parent.number
        self.node[at] = hop.node
        self.link_cost[at] = cost
        self.alive[at] = True
        self.update(hop, sampled)

    def update(self, hop: Hop, sampled: Sampled) -> None:
        at, content = hop.number, hop.content
        self.rows[at] = content.rows
        self.count[at] = content.count
        self.has[at] = 0
        self.has[at, sampled.places(content.attributes)] = READ
        self.has[at, sampled.places(content.columns)] = CARRIED
        self.width[at] = sampled.width(content.columns)
        self.consumers[at] = hop.readers

    def copied(self) -> Arrays:
        return Arrays(*(a.copy() for a in self._all))

    def doubled(self) -> Arrays:
        return Arrays(*(np.concatenate((a, np.zeros_like(a))) for a in self._all))

    def only(self, kept: npt.NDArray[np.int64]) -> Arrays:
        """These rows, and room for as many again."""
        return Arrays(*(a[kept] for a in self._all)).doubled()

    @property
    def _all(self) -> tuple[npt.NDArray[Any], ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
