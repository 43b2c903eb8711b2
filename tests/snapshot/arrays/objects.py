"""Predicates and queries as objects, over every type and far beyond what people write."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from headgate.predicate import (
    And,
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Not,
    Or,
    Pattern,
    Predicate,
    Truth,
    Within,
)
from headgate.predicate.pattern import PatternRefused
from headgate.queries import Aggregate, Output, Query, Source
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    Schema,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)

TYPES: tuple[Type, ...] = (
    BOOLEAN,
    INT,
    BIGINT,
    DecimalType(10, 2),
    DecimalType(18, 0),
    DecimalType(19, 19),
    DecimalType(38, 10),
    DOUBLE,
    STRING,
    DATE,
    Timestamp("Europe/Berlin"),
)
_ATTRIBUTES = tuple(Attribute(f"a{number}", type_) for number, type_ in enumerate(TYPES))
TRADES = Stream("trades", _ATTRIBUTES)
# the same names, of other types, in another order
QUOTES = Stream(
    "quotes",
    tuple(
        Attribute(f"a{number}", type_, nullable=False)
        for number, type_ in enumerate(reversed(TYPES))
    ),
)
SCHEMA = Schema((TRADES, QUOTES))

SINGLE_SOURCES = [(Source(TRADES, "trades"),), (Source(QUOTES, "quotes"),), (Source(QUOTES, "q"),)]
JOINED = [
    (Source(TRADES, "trades"), Source(QUOTES, "quotes")),
    (Source(TRADES, "x"), Source(TRADES, "the other")),
]

texts = st.one_of(
    st.text(),
    st.text().map(lambda text: text + "\0"),
    st.sampled_from(["", "\0", "\ud800", "a\udfff\0", "\uffff", "𝄞", "\U0010ffff", "it's", "\\"]),
)


def has_meaning(pattern: Pattern) -> bool:
    try:
        return pattern.matcher is not None
    except PatternRefused:
        return False


patterns = st.one_of(
    st.builds(Pattern, st.sampled_from(["LIKE", "ILIKE"]), texts, texts).filter(has_meaning),
    st.builds(Pattern, st.sampled_from(["LIKE", "ILIKE"]), texts, st.just("|")).filter(has_meaning),
    st.builds(Pattern, st.just("RLIKE"), texts, texts).filter(has_meaning),
)


@st.composite
def value_sets(draw: Any, type_: Type) -> ValueSet:
    """Any set of values in canonical form: sorted cuts inside the type, none of them its least."""
    low, high = type_.minimum, type_.maximum
    if isinstance(low, int) and isinstance(high, int):
        near = st.integers(0, 3)
        ordinals: st.SearchStrategy[Any] = st.one_of(
            st.integers(low + 1, high),
            near.map(lambda step: max(low + 1, high - step)),
            near.map(lambda step: min(high, low + 1 + step)),
        )
    else:
        ordinals = texts.filter(bool)
    cuts = draw(st.lists(ordinals, max_size=5, unique=True))
    return ValueSet(tuple(sorted(cuts)), draw(st.booleans()))


@st.composite
def columns(draw: Any, sources: tuple[Source, ...]) -> Column:
    source = draw(st.sampled_from(sources))
    stream = SCHEMA.stream(source.stream.name)
    attribute = draw(st.sampled_from(stream.attributes))
    return Column(attribute.name, attribute.type, source.alias if len(sources) > 1 else "")


@st.composite
def atoms(draw: Any, sources: tuple[Source, ...]) -> Atom:
    kind = draw(st.sampled_from([Within, Within, Constant, IsNull, Compare, Matches]))
    if kind is Constant:
        return Constant(draw(st.sampled_from([True, False, None])))
    column: Column = draw(columns(sources))
    if kind is Within:
        return Within(column, draw(value_sets(column.type)))
    if kind is IsNull:
        return IsNull(column, draw(st.booleans()))
    if kind is Compare:
        operator = draw(st.sampled_from(["<", "<=", "=", "<>", ">=", ">"]))
        family = column.type.family
        second = draw(columns(sources).filter(lambda other: other.type.family == family))
        return Compare(column, operator, second)
    text_column: Column = draw(columns(sources).filter(lambda other: other.type == STRING))
    return Matches(text_column, draw(patterns), draw(st.booleans()))


def predicates(sources: tuple[Source, ...]) -> st.SearchStrategy[Predicate]:
    """Any tree, also such as SQL has no words for: AND of one part, a test that accepts all."""
    truths = st.frozensets(st.sampled_from([True, False, None]))

    def larger(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        parts = st.lists(inner, min_size=1, max_size=4).map(tuple)
        return st.one_of(
            parts.map(And), parts.map(Or), inner.map(Not), st.builds(Truth, inner, truths)
        )

    return st.recursive(atoms(sources), larger, max_leaves=12)


@st.composite
def queries(draw: Any) -> Query:
    """Filters, projections, joins and aggregates, under any id that can be, with any metadata."""
    sources = draw(st.sampled_from(SINGLE_SOURCES + JOINED))
    stream = sources[-1].stream
    alias = sources[-1].alias if len(sources) > 1 else ""
    listed = tuple(Column(a.name, a.type, alias) for a in stream.attributes[:2])
    keys = tuple(Output(f"out {number}", column) for number, column in enumerate(listed))
    aggregates = (Output("count(*)", Aggregate("COUNT")), Output("m", Aggregate("MIN", listed[0])))
    outputs, grouped = draw(
        st.sampled_from([((), ()), (keys, ()), (aggregates, ()), ((*keys, *aggregates), listed)])
    )
    return Query(
        id=draw(texts.map(lambda text: text.replace("\0", "") or "q")),
        sources=sources,
        where=draw(predicates(sources)),
        outputs=outputs,
        distinct=draw(st.booleans()),
        group_by=grouped,
        metadata=draw(st.none() | texts),
    )
