"""Which unions contain which queries: candidates, then a proof by parts, then an exact answer.

Most candidates are proved by their parts, in a kernel. The rest are asked one by one, up to a
budget; past it they stay open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.implies import implied
from headgate.implication.order.candidates import TooMany, candidates, refuted, rows_of
from headgate.implication.order.classes import Class, Classes
from headgate.implication.order.found import Found, nothing_found
from headgate.implication.order.inside import proved, refuted_by_corners
from headgate.implication.order.products import Numbers, Products
from headgate.implication.order.supersets import set_in_rows
from headgate.implication.pair import Declared
from headgate.schema import Stream

ASKED = 3_000  # pairs that are asked one by one, for each 10,000 classes begun
MATCHES = 60_000_000  # of rows that were taken from queries
STORED = 1 << 28  # bytes of bits


class Split(NamedTuple):
    """Where the parts of class i are among all hulls.

    `outer[outer_offsets[i]:outer_offsets[i + 1]]` contain it, all together, and each of
    `inner[inner_offsets[i]:inner_offsets[i + 1]]` is inside it.
    """

    outer_offsets: Numbers
    outer: Numbers
    inner_offsets: Numbers
    inner: Numbers


@dataclass(slots=True)
class Answers:
    """Exact answers as long as the budget lasts. `open` has the pairs without one, by the outer."""

    stream: Stream
    budget: int
    open: dict[int, list[int]] = field(default_factory=dict)

    def implies(self, p: Class, q: Class) -> bool:
        answer = "unknown"
        if self.budget > 0:
            self.budget -= 1
            declared = Declared.of(self.stream, (p.held, q.held))
            answer = implied(p.held, q.held, declared).answer
        if answer == "unknown":
            self.open.setdefault(q.places[0], []).append(p.places[0])
        return answer == "yes"


@dataclass(slots=True)
class Search:
    """Looks for what bitmaps of products do not show."""

    classes: Classes
    hulls: Products
    split: Split
    answers: Answers
    is_complete: bool = True
    plain: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.plain = np.array([_is_plain(one) for one in self.classes.all], np.bool_)

    def run(self) -> Found:
        """The unions around each class, and the products around loose hulls."""
        if not self.classes.unions:
            return nothing_found(len(self.classes.products))
        row, unions = self._around_unions()
        offsets, products = self._around_products()
        return Found(row, unions, offsets, products)

    def _around_unions(self) -> tuple[Numbers, npt.NDArray[np.uint64]]:
        everything, unions = self.classes.all, self.classes.unions
        size, width = len(self.classes.products), (len(unions) + 63) // 64
        row = np.full(len(everything), -1, np.int64)
        blocks = [np.zeros((0, width), np.uint64)]
        rows = 0
        for first, second in self._pairs(everything, unions, np.arange(len(everything)), size):
            owners, places = np.unique(first, return_inverse=True)
            block = np.zeros((len(owners), width), np.uint64)
            set_in_rows(block, places, second - size)
            row[owners] = rows + np.arange(len(owners))
            rows += len(owners)
            blocks.append(block)
            if rows * width * 8 > STORED:
                self.is_complete = False
                break
        return row, np.concatenate(blocks)

    def _around_products(self) -> tuple[Numbers, Numbers]:
        size, count = len(self.classes.products), len(self.classes.all)
        loose = [at for at, one in enumerate(self.classes.unions) if not one.hull.is_tight]
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        if loose and size:
            chosen = [self.classes.unions[at] for at in loose]
            numbers = np.array(loose, np.int64) + size
            found += self._pairs(chosen, self.classes.products, numbers, 0)
        first, second = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(first, kind="stable")
        offsets = np.searchsorted(first[order], np.arange(count + 1))
        return offsets, second[order]

    def _pairs(
        self, inner: Sequence[Class], outer: Sequence[Class], numbers: Numbers, shift: int
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """The pairs, by number of class, in which the outer one contains the inner one."""
        rows = rows_of(self.classes, self.answers.stream)
        try:
            for first, second in candidates(inner, outer, rows, self.answers.stream, MATCHES):
                i, j = numbers[first], second + shift
                holds = proved(self.hulls, self.split, i, j)
                others = i != j
                asked = np.flatnonzero(~holds & others)
                corners = asked[self._have_corners(i[asked], j[asked])]
                out = refuted_by_corners(self.hulls, self.split, i[corners], j[corners])
                for at in np.setdiff1d(asked, corners[out]).tolist():
                    p, q = inner[first[at]], outer[second[at]]
                    holds[at] = not refuted(p, q, rows) and self.answers.implies(p, q)
                yield i[holds & others], j[holds & others]
        except TooMany:
            self.is_complete = False

    def _have_corners(self, i: Numbers, j: Numbers) -> npt.NDArray[np.bool_]:
        """The pairs of a product and of what is exactly the union of its inner hulls."""
        size = len(self.classes.products)
        return (i < size) & self.plain[j]


def _is_plain(one: Class) -> bool:
    """Is it the union of its inner hulls, and do these speak of columns of the stream only?"""
    return all(
        part.inner is not None and part.inner.sides == part.plain.sides for part in one.parts
    )
