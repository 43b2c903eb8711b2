"""Conditions of every shape over attributes of every type: ORs of ANDs, ANDs of ORs, and NOT.

They have comparisons, BETWEEN, IN with up to thousands of values, `<>`, NOT IN, LIKE, IS NULL and
comparisons between attributes; values hardly ever repeat, and attributes are NULL now and then.

Matching probability: within a clause no attribute occurs twice and attributes are independent, so
the probability of AND is the product of those of its parts, and of OR one minus the product of
their complements. The probability asked for is divided from the root down to the leaves, and each
leaf takes a range or a set of that size. Some leaves have a probability of their own (IS NULL, a
comparison of two attributes, LIKE); those stand in an AND, whose other parts make up for them. NOT
is written by De Morgan's laws before a part whose opposite has been built, so it changes no
probability: with NULL, too, what makes a condition TRUE makes its opposite FALSE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.dice import Dice, repeat_by_weight
from benchmarks.workloads.rules import WORDS
from headgate.queries import Query
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Attribute,
    DecimalType,
    Stream,
    Type,
    Value,
)
from headgate.sql import render_literal

# Attributes of every type with very many values, whose i-th value is known as text and as array.
#
# Values are drawn by their rank, uniformly, and ranks are ordered as values are. So the
# probability of a range, of a set or of a prefix is known exactly.
#
# | type           | values                                                    | number of them |
# |----------------|-----------------------------------------------------------|----------------|
# | INT            | 0, 1, …                                                   | 1,000,000      |
# | DOUBLE         | 0.0, 0.1, … as doubles come                               | 10,000,000     |
# | DECIMAL(12, 2) | 0.00, 0.01, …                                             | 100,000,000    |
# | BIGINT         | from 2^53 in steps of 3: doubles could not tell them apart | 1,000,000,000 |
# | DECIMAL(30, 6) | from 10^20 in steps of a millionth                        | 1,000,000,000  |
# | STRING         | five hexadecimal digits, a hyphen and one of 40 words     | 1,048,576      |
# | DATE           | days from 2000-01-01                                      | 10,000         |
# | TIMESTAMP      | every 1,234,567 microseconds from 2020-01-01              | 100,000,000    |
# | STRING (small) | twelve names of months                                    | 12             |
# | BOOLEAN        | FALSE, TRUE                                               | 2              |
#
# The first three have the same span, so that an attribute of one is as often below as above one
# of another.

PRICE, WIDE = DecimalType(12, 2), DecimalType(30, 6)
MONTHS = ("Apr", "Aug", "Dec", "Feb", "Jan", "Jul", "Jun", "Mar", "May", "Nov", "Oct", "Sep")
DIGITS = 5
FIRST_DAY = date(2000, 1, 1)
FIRST_MOMENT = datetime(2020, 1, 1, tzinfo=UTC)
STEP = timedelta(microseconds=1_234_567)
MILLIONTH = Decimal("0.000001")
GREAT = Decimal(10**20)

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of an attribute: their type, their number, and each by its rank."""

    name: str
    type: Type
    count: int
    at: Callable[[int], Value]

    @property
    def span(self) -> str:
        """Attributes of one span compare with each other, and are below and above as often."""
        return "millions" if self.type in (INT, DOUBLE, PRICE) else self.name

    def array(self, ranks: Ranks, missing: npt.NDArray[np.bool_]) -> pa.Array[Any]:
        """Return the values of these ranks, NULL where they are missing."""
        at = self.at
        pairs = zip(ranks.tolist(), missing.tolist(), strict=True)
        return pa.array([None if absent else at(rank) for rank, absent in pairs], self.type.arrow)


def _text(rank: int) -> str:
    return f"{rank:0{DIGITS}x}-{WORDS[rank % len(WORDS)]}"


VALUES = (
    Values("count", INT, 10**6, lambda rank: rank),
    Values("ratio", DOUBLE, 10**7, lambda rank: rank * 0.1),
    Values("price", PRICE, 10**8, lambda rank: Decimal(rank).scaleb(-2)),
    Values("account", BIGINT, 10**9, lambda rank: 2**53 + 3 * rank),
    Values("amount", WIDE, 10**9, lambda rank: GREAT + rank * MILLIONTH),
    Values("code", STRING, 16**DIGITS, _text),
    Values("day", DATE, 10**4, lambda rank: FIRST_DAY + timedelta(rank)),
    Values("moment", TIMESTAMP, 10**8, lambda rank: FIRST_MOMENT + rank * STEP),
    Values("month", STRING, len(MONTHS), MONTHS.__getitem__),
    Values("flag", BOOLEAN, 2, bool),
)


MISSING = (0.0, 0.02, 0.1, 0.3)  # the share of NULLs, in turns
COPIES = 4  # of the attributes of each type
NEGATED = 0.15  # of the parts are written as NOT of their opposite
LONG_LISTS = 0.02  # of the clauses have an IN with thousands of values
LONGEST = 5_000
CLOSE = 0.1

OPPOSITE = {"<": ">=", "<=": ">", ">=": "<", ">": "<=", "=": "<>", "<>": "="}

Draw = Callable[["_Clause"], "tuple[Leaf, float]"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition, and the one that is FALSE where it is TRUE, and TRUE where it is FALSE."""

    text: str
    opposite: str


@dataclass(frozen=True, slots=True)
class Group:
    """Parts joined by AND, or by OR."""

    is_and: bool
    parts: tuple[Leaf | Group, ...]


@dataclass(frozen=True, slots=True)
class MixedAttribute:
    """An attribute with the values that it takes, and how often it is NULL."""

    name: str
    values: Values
    missing: float

    @property
    def present(self) -> float:
        return 1 - self.missing


@dataclass(frozen=True, eq=False)
class Mixed:
    """Clauses on the stream of `generate_mixed_events`."""

    stream: Stream
    clauses: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.clauses)

    def where_clauses(self) -> Iterator[str]:
        return iter(self.clauses)

    def queries(self) -> list[Query]:
        """Return each clause as a query, with the ids mixed0, mixed1, …"""
        return bind_queries(self.stream, self.clauses, "mixed")


def make_attributes() -> list[MixedAttribute]:
    """Return four attributes of each kind, with more and more NULLs."""
    return [
        MixedAttribute(f"{values.name}{copy}", values, missing)
        for values in VALUES
        for copy, missing in enumerate(MISSING)
    ]


def make_stream() -> Stream:
    return Stream("records", tuple(Attribute(a.name, a.values.type) for a in make_attributes()))


def generate_mixed(
    count: int, *, matching: float = 0.005, long_lists: float = LONG_LISTS, seed: int
) -> Mixed:
    """Return clauses that each match an event with the probability `matching`.

    The share `long_lists` of them has an IN with 1,000 to 5,000 values.

    Law: the first n clauses of a seed are the same whatever the count.

    >>> print(generate_mixed(5, seed=1).clauses[3])
    day2 > DATE '2027-05-01' OR price1 < 839.19 OR code1 < '00b07-mesa'
    """
    dice = Dice(seed)
    attributes = make_attributes()
    clauses = (_Clause(attributes, dice).written(matching, long_lists) for _ in range(count))
    return Mixed(make_stream(), tuple(clauses))


def generate_mixed_events(count: int, *, seed: int) -> pa.Table:
    """Return events with independent, uniform values and NULLs."""
    random = np.random.default_rng(seed)
    columns = {}
    for attribute in make_attributes():
        ranks = random.integers(0, attribute.values.count, count)
        missing = random.random(count) < attribute.missing
        columns[attribute.name] = attribute.values.array(ranks, missing)
    return pa.table(columns)


class _Clause:
    """A clause in the making: knows which attributes have not occurred in it."""

    def __init__(self, attributes: list[MixedAttribute], dice: Dice) -> None:
        self.dice = dice
        self.free = sorted(attributes, key=lambda _: dice.fraction())

    def written(self, probability: float, long_lists: float) -> str:
        draws: list[Draw] = [self.dice.one_of(_DRAWS) for _ in range(self.dice.whole(0, 3))]
        if self.dice.chance(long_lists):
            draws.insert(0, _long_list)
        root = self.text(self.around(draws, probability), False)
        return root[1:-1] if root.startswith("(") else root

    def around(self, draws: list[Draw], probability: float) -> Leaf | Group:
        """Return a tree of this probability that has the given leaves, whatever theirs may be."""
        if not draws:
            return self.dice.one_of(_SHAPES)(self, probability)
        leaf, own = draws[0](self)
        if abs(own / probability - 1) < CLOSE:  # too little would be left for the others
            return self.around(draws[1:], probability)
        is_and = own > probability
        remaining = probability / own if is_and else 1 - (1 - probability) / (1 - own)
        return Group(is_and, (leaf, self.around(draws[1:], remaining)))

    def text(self, node: Leaf | Group, opposite: bool) -> str:
        """Return the node or its opposite; a group in parentheses, now and then under NOT."""
        if isinstance(node, Leaf):
            return node.opposite if opposite else node.text
        if self.dice.chance(NEGATED):
            return f"NOT ({self.join(node, not opposite)})"
        return f"({self.join(node, opposite)})"

    def join(self, node: Group, opposite: bool) -> str:
        texts = (self.text(part, opposite) for part in node.parts)
        return (" AND " if node.is_and != opposite else " OR ").join(texts)

    def take(self, fits: Callable[[MixedAttribute], bool]) -> MixedAttribute:
        """Return an attribute that fits, and that did not occur before."""
        return self.free.pop(next(i for i, attribute in enumerate(self.free) if fits(attribute)))

    def shares(self, parts: int) -> list[float]:
        """Return positive numbers that sum to one."""
        weights = [self.dice.fraction() + 0.3 for _ in range(parts)]
        return [weight / sum(weights) for weight in weights]

    def leaves(self, is_and: bool, probability: float, parts: int) -> Leaf | Group:
        shares = self.shares(parts)
        each = (_divide_probability(is_and, probability, share) for share in shares)
        return Group(is_and, tuple(_draw_sized(self, size) for size in each))


def _divide_probability(is_and: bool, probability: float, share: float) -> float:
    """Return what one part must have, so that AND or OR of all parts has the probability."""
    return float(probability**share if is_and else 1 - (1 - probability) ** share)


def _all(clause: _Clause, probability: float) -> Leaf | Group:
    return clause.leaves(True, probability, clause.dice.whole(2, 5))


def _any(clause: _Clause, probability: float) -> Leaf | Group:
    return clause.leaves(False, probability, clause.dice.whole(2, 3))


def _two_levels(is_and: bool) -> Callable[[_Clause, float], Leaf | Group]:
    """Make an AND of ORs, or an OR of ANDs."""

    def build(clause: _Clause, probability: float) -> Leaf | Group:
        shares = clause.shares(clause.dice.whole(2, 4))
        each = [_divide_probability(is_and, probability, share) for share in shares]
        parts = (clause.leaves(not is_and, size, clause.dice.whole(2, 3)) for size in each)
        return Group(is_and, tuple(parts))

    return build


def _draw_sized(clause: _Clause, probability: float) -> Leaf:
    """Return a leaf of this probability: a list where that is short, else a range."""
    attribute = clause.take(lambda candidate: _reaches(candidate, probability))
    total = attribute.values.count
    size = round(probability / attribute.present * total)
    if size >= total:
        return Leaf(f"{attribute.name} IS NOT NULL", f"{attribute.name} IS NULL")
    if size <= 12 or attribute.values.type.family == "boolean":
        return _draw_list(clause, attribute, size)
    return _draw_range(clause, attribute, size)


def _reaches(attribute: MixedAttribute, probability: float) -> bool:
    """Return whether so few values are NULL that a part of the others is that likely."""
    share = probability / attribute.present
    size = round(share * attribute.values.count)
    return size > 0 and share <= 1 and abs(size / attribute.values.count - share) <= 0.1 * share


def _draw_list(clause: _Clause, attribute: MixedAttribute, size: int) -> Leaf:
    """Accept exactly so many values: `=`, or IN."""
    ranks: dict[int, None] = {}
    while len(ranks) < size:
        ranks[clause.dice.whole(0, attribute.values.count - 1)] = None
    listed = ", ".join(render_literal(attribute.values.at(rank)) for rank in ranks)
    if size == 1:
        return _pair(attribute.name, "=", listed)
    return Leaf(f"{attribute.name} IN ({listed})", f"{attribute.name} NOT IN ({listed})")


def _draw_range(clause: _Clause, attribute: MixedAttribute, size: int) -> Leaf:
    """Accept exactly so many values, by one comparison or by BETWEEN."""
    name, total, at = attribute.name, attribute.values.count, attribute.values.at
    kind = clause.dice.whole(0, 5)
    if kind == 0:
        return _pair(name, "<", render_literal(at(size)))
    if kind == 1:
        return _pair(name, "<=", render_literal(at(size - 1)))
    if kind == 2:
        return _pair(name, ">=", render_literal(at(total - size)))
    if kind == 3:
        return _pair(name, ">", render_literal(at(total - size - 1)))
    start = clause.dice.whole(0, total - size)
    ends = f"{render_literal(at(start))} AND {render_literal(at(start + size - 1))}"
    return Leaf(f"{name} BETWEEN {ends}", f"{name} NOT BETWEEN {ends}")


def _pair(left: str, operator: str, right: str) -> Leaf:
    return Leaf(f"{left} {operator} {right}", f"{left} {OPPOSITE[operator]} {right}")


def _null(clause: _Clause) -> tuple[Leaf, float]:
    attribute = clause.take(lambda candidate: candidate.missing > 0)
    is_null, is_not = f"{attribute.name} IS NULL", f"{attribute.name} IS NOT NULL"
    if clause.dice.chance(0.5):
        return Leaf(is_null, is_not), attribute.missing
    return Leaf(is_not, is_null), attribute.present


def _few(clause: _Clause) -> tuple[Leaf, float]:
    """Accept one value or a few of very many, or all but those."""
    attribute = clause.take(lambda candidate: candidate.values.count > 100)
    size = clause.dice.whole(1, 5)
    leaf = _draw_list(clause, attribute, size)
    share = size / attribute.values.count
    if clause.dice.chance(0.5):
        return leaf, attribute.present * share
    return Leaf(leaf.opposite, leaf.text), attribute.present * (1 - share)


def _long_list(clause: _Clause) -> tuple[Leaf, float]:
    """Return an IN with thousands of values."""
    attribute = clause.take(lambda candidate: candidate.values.count > LONGEST)
    size = clause.dice.whole(LONGEST // 5, LONGEST)
    return _draw_list(clause, attribute, size), attribute.present * size / attribute.values.count


def _like(clause: _Clause) -> tuple[Leaf, float]:
    """Ask how a text begins or ends."""
    attribute = clause.take(
        lambda candidate: candidate.values.type == STRING and candidate.values.count > 100
    )
    if clause.dice.chance(0.5):
        digits = clause.dice.whole(1, 2)
        pattern, share = f"{clause.dice.whole(0, 16**digits - 1):0{digits}x}%", 16**-digits
    else:
        pattern, share = f"%-{clause.dice.one_of(WORDS)}", 1 / len(WORDS)
    like, unlike = (f"{attribute.name} {word} '{pattern}'" for word in ("LIKE", "NOT LIKE"))
    if clause.dice.chance(0.7):
        return Leaf(like, unlike), attribute.present * share
    return Leaf(unlike, like), attribute.present * (1 - share)


def _comparison(clause: _Clause) -> tuple[Leaf, float]:
    """Compare two attributes of one span, by order or for being equal."""
    left = clause.take(lambda _: True)
    right = clause.take(lambda candidate: candidate.values.span == left.values.span)
    both = left.present * right.present
    equal = 1 / left.values.count if left.values.count < 100 else 0.0
    if equal:
        leaf = _pair(left.name, "=", right.name)
        if clause.dice.chance(0.5):
            return leaf, both * equal
        return Leaf(leaf.opposite, leaf.text), both * (1 - equal)
    return _pair(left.name, clause.dice.one_of(("<", "<=", ">=", ">")), right.name), both / 2


_DRAWS: tuple[Draw, ...] = (_null, _few, _like, _comparison)
_SHAPES = repeat_by_weight({_all: 3, _any: 1, _two_levels(True): 3, _two_levels(False): 3})
