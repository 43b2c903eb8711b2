"""What a stream carries on a link: the rows and columns that whoever is served by it needs.

A content is the union of the contents of its consumers. So a stream is widened by one more
consumer, narrowed by one less, and the filter that restores a consumer's own content stands where
it branches off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from headgate.errors import ExpansionTooLarge
from headgate.implication.implies import decide_implication
from headgate.implication.pair import Constraints
from headgate.implication.relax import relax
from headgate.predicate import Predicate, collect_columns, disjunction
from headgate.predicate.answer import Answer
from headgate.schema import Stream
from headgate.sharing.sampled import Bits, Sampled, count, union
from headgate.sharing.subscription import Subscription

Method = Literal["exact", "hsr", "hcr"]
KEPT = 200_000  # implications


@dataclass(frozen=True, eq=False, slots=True)
class Content:
    """The sample rows, columns, and what the filter that makes them reads.

    `whole` is the subscription that alone wants all of these rows, where there is one: who has the
    same whole needs no filter. `relaxed` is the condition, where it is more than what is wanted.
    """

    rows: Bits
    count: int
    columns: frozenset[str]
    attributes: frozenset[str]
    whole: Subscription | None
    relaxed: Predicate | None = None

    def is_same(self, other: Content) -> bool:
        """Have both the same rows for certain?"""
        return self is other or (
            self.whole is not None and self.whole is other.whole and self.relaxed is other.relaxed
        )


def content_of(subscription: Subscription) -> Content:
    return Content(
        subscription.rows,
        subscription.count,
        subscription.outputs,
        subscription.attributes,
        subscription,
    )


def everything(sampled: Sampled) -> Content:
    """All rows and columns of a stream."""
    names = frozenset(sampled.stream.names)
    return Content(sampled.everything, sampled.size, names, frozenset(), None)


def bytes_of(content: Content, sampled: Sampled) -> float:
    """A second."""
    return sampled.rate * content.count / sampled.size * sampled.width(content.columns)


def united(parts: Sequence[Content], sampled: Sampled) -> Content:
    """The least content that serves all of these consumers."""
    if len(parts) == 1:
        return parts[0]
    rows = union([part.rows for part in parts], sampled.words)
    size = count(rows)
    wholes = _wholes(parts, size, sampled.stream) or (None,)
    shaped = [_shaped(parts, rows, size, whole, None) for whole in wholes]
    return min(shaped, key=lambda content: sampled.width(content.columns))


def relaxed(parts: Sequence[Content], before: Content, new: Content, sampled: Sampled) -> Content:
    """The same by HCR: few boxes, that hold what there was before and a new part, and maybe more.

    A condition of too many boxes is not relaxed.
    """
    if len(parts) == 1:
        return new
    condition = _relaxed(condition_of(new), condition_of(before), sampled.stream)
    return _as_one_of((new, before), parts, condition, sampled)


def narrowed(parts: Sequence[Content], before: Content, sampled: Sampled) -> Content:
    """By HCR for fewer consumers than before: relaxed anew, where that lies inside what it was.

    Else the condition stays, so that no link ever carries more because a query left.
    """
    condition, old = condition_of(parts[0]), condition_of(before)
    for part in parts[1:]:
        condition = _relaxed(condition_of(part), condition, sampled.stream)
    if condition is old or is_inside(condition, old, sampled.stream):
        return _as_one_of(parts, parts, condition, sampled)
    return _shaped(parts, before.rows, before.count, None, old)


def _as_one_of(
    known: Sequence[Content], parts: Sequence[Content], condition: Predicate, sampled: Sampled
) -> Content:
    """With the rows of one that has the same condition, where there is one."""
    for one in known:
        if condition is condition_of(one):
            return _shaped(parts, one.rows, one.count, one.whole, one.relaxed)
    rows = sampled.rows_of(condition)
    return _shaped(parts, rows, count(rows), None, condition)


def is_inside(narrow: Predicate, wide: Predicate, stream: Stream) -> bool:
    """Does HCR find one condition inside the other?"""
    try:
        return relax(narrow, wide, stream, method="hcr").covered is Answer.YES
    except ExpansionTooLarge:
        return False


def _relaxed(wanted: Predicate, condition: Predicate, stream: Stream) -> Predicate:
    if wanted is condition:
        return condition
    try:
        found = relax(wanted, condition, stream, method="hcr")
    except ExpansionTooLarge:
        return disjunction((condition, wanted))
    return condition if found.covered is Answer.YES else found.predicate


def condition_of(content: Content) -> Predicate:
    """The condition of a content that has one: that of a subscription, or a relaxed one."""
    if content.relaxed is not None:
        return content.relaxed
    assert content.whole is not None
    return content.whole.where


def implied_by(narrow: Subscription, wide: Subscription, stream: Stream) -> bool:
    """Is every row of one certainly a row of the other? The sample is asked first."""
    if narrow is wide:
        return True
    if (narrow.rows & ~wide.rows).any():
        return False
    return _implied(narrow, wide, stream)


@lru_cache(maxsize=KEPT)
def _implied(narrow: Subscription, wide: Subscription, stream: Stream) -> bool:
    p, q = narrow.where, wide.where
    return p == q or decide_implication(p, q, Constraints.of(stream, (p, q))).answer is Answer.YES


def _wholes(parts: Sequence[Content], size: int, stream: Stream) -> list[Subscription]:
    """Those that want all rows that any of them wants; several only where they want the same."""
    wholes = [part.whole for part in parts if part.relaxed is None]
    known = list({whole.id: whole for whole in wholes if whole is not None}.values())
    if len(wholes) < len(parts) or None in wholes:
        return []
    return [
        wide
        for wide in known
        if wide.count == size and all(implied_by(narrow, wide, stream) for narrow in known)
    ]


def _shaped(
    parts: Sequence[Content],
    rows: Bits,
    size: int,
    whole: Subscription | None,
    condition: Predicate | None,
) -> Content:
    """With the columns that consumers put out, and those that their filters read."""
    names: set[str] = set()
    attributes: set[str] = set()
    for part in parts:
        names |= part.columns
        attributes |= part.attributes
        if whole is None or part.whole is not whole or part.relaxed is not condition:
            names |= part.attributes
    if whole is not None and condition is None:
        attributes = set(whole.attributes)
    if condition is not None:
        attributes = {column.name for column in collect_columns(condition)}
    return Content(rows, size, frozenset(names), frozenset(attributes), whole, condition)
