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

from headgate.implication.implies import implied
from headgate.implication.pair import Declared
from headgate.implication.relax import relax
from headgate.predicate import Predicate, columns
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


def united(parts: Sequence[Content], sampled: Sampled) -> Content:
    """The least content that serves all of these consumers."""
    if len(parts) == 1:
        return parts[0]
    rows = union([part.rows for part in parts], sampled.words)
    size = count(rows)
    whole = _whole(parts, size, sampled.stream)
    return _shaped(parts, rows, size, whole, None)


def relaxed(parts: Sequence[Content], before: Content | None, sampled: Sampled) -> Content:
    """A content that serves all of them with few boxes, by HCR, so that it may have more rows.

    `before` is what it was, which is only widened.
    """
    if len(parts) == 1:
        return parts[0]
    condition = None if before is None else condition_of(before)
    for part in parts:
        wanted = condition_of(part)
        if condition is None:
            condition = wanted
        elif condition is not wanted:
            found = relax(wanted, condition, sampled.stream, method="hcr")
            condition = condition if found.covered else found.predicate
    assert condition is not None
    for part in (*parts, *([] if before is None else [before])):
        if condition is condition_of(part):
            return _shaped(parts, part.rows, part.count, part.whole, part.relaxed)
    rows = sampled.rows_of(condition)
    return _shaped(parts, rows, count(rows), None, condition)


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
    return p == q or implied(p, q, Declared.of(stream, (p, q))).answer == "yes"


def _whole(parts: Sequence[Content], size: int, stream: Stream) -> Subscription | None:
    wholes = [part.whole for part in parts if part.relaxed is None]
    known = [whole for whole in wholes if whole is not None]
    if len(known) < len(parts):
        return None
    for wide in known:
        if wide.count == size and all(implied_by(narrow, wide, stream) for narrow in known):
            return wide
    return None


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
        attributes = {column.name for column in columns(condition)}
    return Content(rows, size, frozenset(names), frozenset(attributes), whole, condition)
