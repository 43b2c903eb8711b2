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
from headgate.implication.decision import decide_implication
from headgate.implication.pair import Constraints
from headgate.implication.relaxation import relax
from headgate.predicate import Predicate, collect_columns, disjunction
from headgate.predicate.answer import Answer
from headgate.schema import Stream
from headgate.sharing.sampled import Bits, SampledStream, count_bits, unite_bits
from headgate.sharing.subscription import Subscription

Method = Literal["exact", "hsr", "hcr"]
IMPLICATION_CACHE_SIZE = 200_000  # implications


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
    widest: Subscription | None
    relaxed_condition: Predicate | None = None

    def is_same(self, other: Content) -> bool:
        """Have both the same rows for certain?"""
        return self is other or (
            self.widest is not None
            and self.widest is other.widest
            and self.relaxed_condition is other.relaxed_condition
        )


def make_content(subscription: Subscription) -> Content:
    return Content(
        subscription.rows,
        subscription.count,
        subscription.outputs,
        subscription.attributes,
        subscription,
    )


def make_full_content(sampled: SampledStream) -> Content:
    """All rows and columns of a stream."""
    names = frozenset(sampled.stream.names)
    return Content(sampled.all_rows, sampled.size, names, frozenset(), None)


def compute_byte_rate(content: Content, sampled: SampledStream) -> float:
    """A second."""
    return sampled.rate * content.count / sampled.size * sampled.measure_width(content.columns)


def unite_contents(parts: Sequence[Content], sampled: SampledStream) -> Content:
    """The least content that serves all of these consumers."""
    if len(parts) == 1:
        return parts[0]
    rows = unite_bits([part.rows for part in parts], sampled.word_count)
    size = count_bits(rows)
    wholes = _find_widest(parts, size, sampled.stream) or (None,)
    shaped = [_build_content(parts, rows, size, whole, None) for whole in wholes]
    return min(shaped, key=lambda content: sampled.measure_width(content.columns))


def relax_content(
    parts: Sequence[Content], before: Content, new: Content, sampled: SampledStream
) -> Content:
    """The same by HCR: few boxes, that hold what there was before and a new part, and maybe more.

    A condition of too many boxes is not relaxed.
    """
    if len(parts) == 1:
        return new
    condition = _relax_condition(get_condition(new), get_condition(before), sampled.stream)
    return _reuse_rows((new, before), parts, condition, sampled)


def narrow_content(parts: Sequence[Content], before: Content, sampled: SampledStream) -> Content:
    """By HCR for fewer consumers than before: relaxed anew, where that lies inside what it was.

    Else the condition stays, so that no link ever carries more because a query left.
    """
    condition, old = get_condition(parts[0]), get_condition(before)
    for part in parts[1:]:
        condition = _relax_condition(get_condition(part), condition, sampled.stream)
    if condition is old or is_inside(condition, old, sampled.stream):
        return _reuse_rows(parts, parts, condition, sampled)
    return _build_content(parts, before.rows, before.count, None, old)


def _reuse_rows(
    known: Sequence[Content], parts: Sequence[Content], condition: Predicate, sampled: SampledStream
) -> Content:
    """With the rows of one that has the same condition, where there is one."""
    for one in known:
        if condition is get_condition(one):
            return _build_content(parts, one.rows, one.count, one.widest, one.relaxed_condition)
    rows = sampled.find_rows(condition)
    return _build_content(parts, rows, count_bits(rows), None, condition)


def is_inside(narrow: Predicate, wide: Predicate, stream: Stream) -> bool:
    """Does HCR find one condition inside the other?"""
    try:
        return relax(narrow, wide, stream, method="hcr").covered is Answer.YES
    except ExpansionTooLarge:
        return False


def _relax_condition(wanted: Predicate, condition: Predicate, stream: Stream) -> Predicate:
    if wanted is condition:
        return condition
    try:
        found = relax(wanted, condition, stream, method="hcr")
    except ExpansionTooLarge:
        return disjunction((condition, wanted))
    return condition if found.covered is Answer.YES else found.predicate


def get_condition(content: Content) -> Predicate:
    """The condition of a content that has one: that of a subscription, or a relaxed one."""
    if content.relaxed_condition is not None:
        return content.relaxed_condition
    assert content.widest is not None
    return content.widest.where


def is_implied_by(narrow: Subscription, wide: Subscription, stream: Stream) -> bool:
    """Is every row of one certainly a row of the other? The sample is asked first."""
    if narrow is wide:
        return True
    if (narrow.rows & ~wide.rows).any():
        return False
    return _is_proven_implied(narrow, wide, stream)


@lru_cache(maxsize=IMPLICATION_CACHE_SIZE)
def _is_proven_implied(narrow: Subscription, wide: Subscription, stream: Stream) -> bool:
    p, q = narrow.where, wide.where
    return p == q or decide_implication(p, q, Constraints.of(stream, (p, q))).answer is Answer.YES


def _find_widest(parts: Sequence[Content], size: int, stream: Stream) -> list[Subscription]:
    """Those that want all rows that any of them wants; several only where they want the same."""
    wholes = [part.widest for part in parts if part.relaxed_condition is None]
    known = list({whole.id: whole for whole in wholes if whole is not None}.values())
    if len(wholes) < len(parts) or None in wholes:
        return []
    return [
        wide
        for wide in known
        if wide.count == size and all(is_implied_by(narrow, wide, stream) for narrow in known)
    ]


def _build_content(
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
        if whole is None or part.widest is not whole or part.relaxed_condition is not condition:
            names |= part.attributes
    if whole is not None and condition is None:
        attributes = set(whole.attributes)
    if condition is not None:
        attributes = {column.name for column in collect_columns(condition)}
    return Content(rows, size, frozenset(names), frozenset(attributes), whole, condition)
