"""Whether a stream already carries all rows of a query, by the method that widens streams.

The sample says no at once for nearly all streams: a sample row that the query wants and the stream
lacks is a proof. What it does not rule out must be proven by implication, and only against those
queries of the stream whose hulls overlap that of the new one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.implication.decision import decide_implication
from headgate.implication.pair import Constraints
from headgate.implication.relaxation import relax
from headgate.predicate import Box, Predicate, disjunction, to_dnf
from headgate.predicate.answer import Answer
from headgate.schema import Interval, Ordinal, Stream
from headgate.sharing.content import Subscription, is_implied_by, is_inside
from headgate.sharing.decisions import Method
from headgate.sharing.tree import Hop

HULL_LETTERS = 6  # first letters of a text that make its number in a hull
MAX_HULL_BOXES = 1_000
MAX_PROBED_QUERIES = 64

Hull = dict[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Proofs for one stream, by one method."""

    stream: Stream
    method: Method
    hulls: dict[Subscription, Hull]

    def covers(self, hop: Hop, wanted: Subscription) -> bool:
        """Return whether all rows of the query are certainly rows of the hop, columns aside."""
        content = hop.content
        if hop.parent is None:
            return True
        # A sample row that is missing is a proof; only what passes is worth an implication.
        if (wanted.rows & ~content.rows).any():
            return False
        if content.relaxed_condition is not None:
            return is_inside(wanted.where, content.relaxed_condition, self.stream)
        if content.widest is not None:
            return is_implied_by(wanted, content.widest, self.stream)
        return self._is_covered_by_union(wanted, hop.served.values())

    def _is_covered_by_union(self, wanted: Subscription, served: Iterable[Subscription]) -> bool:
        """Try each query separately first, then all that overlap together."""
        # A query with fewer sample rows cannot hold all rows of this one, so it is not probed
        # alone; it may still be part of a union that does.
        mine = self.get_hull(wanted)
        near = [one for one in served if _overlap(mine, self.get_hull(one))]
        large = [one for one in near if one.count >= wanted.count][:MAX_PROBED_QUERIES]
        if any(is_implied_by(wanted, one, self.stream) for one in large):
            return True
        if len(near) < 2:
            return False
        # Their union may hold the query although none of them does.
        condition = disjunction(one.where for one in near)
        try:
            # HSR decides by its own test, which may say no where the exact decision says yes.
            if self.method == "hsr":
                relaxation = relax(wanted.where, condition, self.stream, method="hsr")
                return relaxation.covered is Answer.YES
            both = wanted.where, condition
            return decide_implication(*both, Constraints.of(self.stream, both)).answer is Answer.YES
        except ExpansionTooLarge:
            return False

    def get_hull(self, wanted: Subscription) -> Hull:
        """Return a range of each attribute that holds all rows, a little too large at most."""
        if wanted not in self.hulls:
            self.hulls[wanted] = compute_hull(wanted.where)
        return self.hulls[wanted]


def compute_hull(where: Predicate) -> Hull:
    """Return the hull of a condition's boxes; empty where they are too many."""
    try:
        boxes = [conjunct.box for conjunct in to_dnf(where, MAX_HULL_BOXES)]
    except ExpansionTooLarge:
        return {}
    hull: Hull = {}
    # An attribute that one box leaves free has no bounds in the hull, so only common ones are
    # listed.
    names = set.intersection(*({c.name for c in box.sides} for box in boxes)) if boxes else set()
    for name in names:
        ranges = [_get_range(box, name) for box in boxes]
        hull[name] = min(low for low, _ in ranges), max(high for _, high in ranges)
    return hull


def _get_range(box: Box, name: str) -> tuple[float, float]:
    side = next(side for column, side in box.sides.items() if column.name == name)
    if not isinstance(side, Interval):
        return -math.inf, math.inf
    low = -math.inf if side.low is None else _to_number(side.low)
    high = math.inf if side.high is None else _to_number(side.high)
    # One step outwards makes up for rounding: a hull may be too large but never too small.
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _to_number(ordinal: Ordinal) -> float:
    """Return a number that is no greater for a lower ordinal; of a text, by its first letters."""
    if isinstance(ordinal, str):
        # Letters are digits in base 2**21, which is above every code point; short texts are padded.
        start = [*map(ord, ordinal[:HULL_LETTERS]), *[0] * HULL_LETTERS][:HULL_LETTERS]
        number = 0.0
        for letter in start:
            number = number * 0x200000 + letter
        return number
    return float(ordinal)


def _overlap(one: Hull, other: Hull) -> bool:
    return all(
        # Missing attributes are unbounded, so they never separate two hulls.
        low <= other[name][1] and other[name][0] <= high
        for name, (low, high) in one.items()
        if name in other
    )
