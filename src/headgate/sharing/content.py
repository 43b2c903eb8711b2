"""What a stream carries on a link: the rows and columns that the queries served by it need.

A content is the union of the contents of its consumers. One more consumer widens a stream, one less
narrows it, and the filter that restores a consumer's own content stands where it branches off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from headgate.errors import ExpansionTooLarge, UsageError
from headgate.implication.decision import decide_implication
from headgate.implication.pair import Constraints
from headgate.implication.relaxation import relax
from headgate.predicate import Column, Predicate, collect_columns, disjunction
from headgate.predicate.answer import Answer
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sharing.sampled_stream import Bits, SampledStream, count_bits, unite_bits

IMPLICATION_CACHE_SIZE = 200_000


@dataclass(frozen=True, eq=False, slots=True)
class Subscription:
    """A filter, the peer that wants its rows, and these among the sample. Equal only to itself."""

    query: Query
    target: str
    rows: Bits
    count: int
    outputs: frozenset[str]
    attributes: frozenset[str]

    @property
    def id(self) -> str:
        return self.query.id

    @property
    def needs(self) -> frozenset[str]:
        """The attributes that answer the query where the stream has other rows, too."""
        return self.outputs | self.attributes

    @property
    def where(self) -> Predicate:
        return self.query.where


def subscribe(query: Query, target: str, sampled: SampledStream) -> Subscription:
    """Return what a query wants of a stream.

    Raises UsageError for a join or an aggregate: only a filter decides on each row separately.
    """
    if query.kind != "filter":
        raise UsageError(
            f"query `{query.id}` is not a filter ({query.kind}); only filters can share streams"
        )
    rows = sampled.find_rows(query.where)
    stream = sampled.stream
    # A filter without outputs is SELECT *, which puts out all attributes.
    names = [o.expression.name for o in query.outputs if isinstance(o.expression, Column)]
    outputs = frozenset(stream[name].name for name in names or stream.names)
    used = frozenset(stream[column.name].name for column in collect_columns(query.where))
    return Subscription(query, target, rows, count_bits(rows), outputs, used)


@dataclass(frozen=True, eq=False, slots=True)
class Content:
    """Sample rows and columns, and the attributes that the filter which makes them reads.

    `widest` is the one subscription that wants all of these rows, if there is one: two contents
    with the same widest subscription need no filter between them. `relaxed_condition` is set where
    the stream carries more than its consumers want.
    """

    rows: Bits
    count: int
    columns: frozenset[str]
    attributes: frozenset[str]
    widest: Subscription | None
    relaxed_condition: Predicate | None = None

    def is_same(self, other: Content) -> bool:
        """Return whether both certainly have the same rows."""
        return self is other or (
            self.widest is not None
            and self.widest is other.widest
            and self.relaxed_condition is other.relaxed_condition
        )


def make_content(subscription: Subscription) -> Content:
    """Return just the rows and columns that a subscription wants."""
    return Content(
        subscription.rows,
        subscription.count,
        subscription.outputs,
        subscription.attributes,
        subscription,
    )


def make_full_content(sampled: SampledStream) -> Content:
    """Return all rows and columns of a stream."""
    names = frozenset(sampled.stream.names)
    return Content(sampled.all_rows, sampled.size, names, frozenset(), None)


def compute_byte_rate(content: Content, sampled: SampledStream) -> float:
    """Return the bytes per second of a content."""
    return sampled.rate * content.count / sampled.size * sampled.measure_width(content.columns)


def unite_contents(parts: Sequence[Content], sampled: SampledStream) -> Content:
    """Return the least content that serves all of these consumers."""
    if len(parts) == 1:
        return parts[0]
    # The union has the rows of one subscription if one of them wants all of them. Several may be
    # equally wide but differ in the attributes that they read; the cheapest to carry is taken.
    rows = unite_bits([part.rows for part in parts], sampled.word_count)
    size = count_bits(rows)
    widest = _find_widest(parts, size, sampled.stream) or (None,)
    contents = [_build_content(parts, rows, size, subscription, None) for subscription in widest]
    return min(contents, key=lambda content: sampled.measure_width(content.columns))


def relax_content(
    parts: Sequence[Content], before: Content, new: Content, sampled: SampledStream
) -> Content:
    """Return a content by HCR: few boxes that hold the content before, a new part, and maybe more.

    A condition of too many boxes is not relaxed.
    """
    if len(parts) == 1:
        return new
    condition = _relax_condition(get_condition(new), get_condition(before), sampled.stream)
    return _reuse_rows((new, before), parts, condition, sampled)


def narrow_content(parts: Sequence[Content], before: Content, sampled: SampledStream) -> Content:
    """Return the content by HCR for fewer consumers than before.

    It is relaxed again where the result lies inside the condition before. Else that condition
    stays, so that no link ever carries more because a query left.
    """
    # Relaxing is pairwise, so the result depends on the order of the parts: that of the consumers.
    condition, old = get_condition(parts[0]), get_condition(before)
    for part in parts[1:]:
        condition = _relax_condition(get_condition(part), condition, sampled.stream)
    if condition is old or is_inside(condition, old, sampled.stream):
        return _reuse_rows(parts, parts, condition, sampled)
    # Relaxed again it would reach beyond the old condition, which the hops before may not carry.
    return _build_content(parts, before.rows, before.count, None, old)


def _reuse_rows(
    known: Sequence[Content], parts: Sequence[Content], condition: Predicate, sampled: SampledStream
) -> Content:
    """Build a content with the rows of one that has the same condition, if there is one."""
    for content in known:
        if condition is get_condition(content):
            widest, relaxed = content.widest, content.relaxed_condition
            return _build_content(parts, content.rows, content.count, widest, relaxed)
    rows = sampled.find_rows(condition)
    return _build_content(parts, rows, count_bits(rows), None, condition)


def is_inside(narrow: Predicate, wide: Predicate, stream: Stream) -> bool:
    """Return whether HCR finds one condition inside the other."""
    try:
        return relax(narrow, wide, stream, method="hcr").covered is Answer.YES
    except ExpansionTooLarge:
        return False


def _relax_condition(where: Predicate, condition: Predicate, stream: Stream) -> Predicate:
    if where is condition:
        return condition
    try:
        relaxation = relax(where, condition, stream, method="hcr")
    except ExpansionTooLarge:
        return disjunction((condition, where))
    return condition if relaxation.covered is Answer.YES else relaxation.predicate


def get_condition(content: Content) -> Predicate:
    """Return the condition of a content: the relaxed one, or that of its widest subscription."""
    if content.relaxed_condition is not None:
        return content.relaxed_condition
    assert content.widest is not None
    return content.widest.where


def is_implied_by(narrow: Subscription, wide: Subscription, stream: Stream) -> bool:
    """Return whether every row of one is certainly a row of the other; try the sample first."""
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
    """Return the subscriptions that want all rows that any wants; they all want the same rows."""
    # No single subscription has the rows of a relaxed part; then there is no widest one.
    widest = [part.widest for part in parts if part.relaxed_condition is None]
    known = list({wide.id: wide for wide in widest if wide is not None}.values())
    if len(widest) < len(parts) or None in widest:
        return []
    return [
        wide
        for wide in known
        # The count on the sample is cheap and rules out nearly all before any implication is tried.
        if wide.count == size and all(is_implied_by(narrow, wide, stream) for narrow in known)
    ]


def _build_content(
    parts: Sequence[Content],
    rows: Bits,
    size: int,
    widest: Subscription | None,
    condition: Predicate | None,
) -> Content:
    """Build a content with the columns that consumers put out, and those that filters read."""
    names: set[str] = set()
    attributes: set[str] = set()
    for part in parts:
        # A part that has all rows of the stream goes on unfiltered: only then what its filter reads
        # need not be carried.
        names |= part.columns
        attributes |= part.attributes
        if widest is None or part.widest is not widest or part.relaxed_condition is not condition:
            names |= part.attributes
    # The filter that makes this content is that of the widest subscription or the relaxed
    # condition; otherwise it is the union of the filters of all parts.
    if widest is not None and condition is None:
        attributes = set(widest.attributes)
    if condition is not None:
        attributes = {column.name for column in collect_columns(condition)}
    return Content(rows, size, frozenset(names), frozenset(attributes), widest, condition)
