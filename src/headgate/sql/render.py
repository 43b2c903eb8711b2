"""Bound objects back to SQL, such that reading the text again gives the same object."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from headgate.predicate import (
    And,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Not,
    Or,
    Predicate,
    Truth,
    Within,
)
from headgate.schema import (
    NOTHING,
    Attribute,
    DeclaredAggregate,
    Interval,
    Ordinal,
    Schema,
    Stream,
    Value,
    ValueSet,
    successor,
)
from headgate.sql.lexer import LITERAL_TYPES, RESERVED
from headgate.sql.query import Aggregate, Output, Query, Source
from headgate.sql.scope import stream_zone

MAX_LISTED = 100_000
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"\\": "\\\\", "'": "''", "\0": "\\000"}
_TESTS: dict[frozenset[bool | None], str] = {
    frozenset({True}): "({}) IS TRUE",
    frozenset({False}): "({}) IS FALSE",
    frozenset({None}): "({}) IS NULL",
    frozenset({False, None}): "({}) IS NOT TRUE",
    frozenset({True, None}): "({}) IS NOT FALSE",
    frozenset({True, False}): "({}) IS NOT NULL",
}


def render_schema(schema: Schema) -> str:
    """Return the statements that declare all streams and aggregates, each in its time zone.

    >>> from headgate.schema import Attribute, Timestamp
    >>> print(render_schema(Schema((Stream("s", (Attribute("t", Timestamp("Europe/Berlin")),)),))))
    SET TIME ZONE 'Europe/Berlin';
    CREATE STREAM s (
        t TIMESTAMP
    );
    """
    declarations = [(stream_zone(stream), render_stream(stream)) for stream in schema]
    declarations += [
        (aggregate.zone, render_aggregate(aggregate)) for aggregate in schema.aggregates
    ]
    # SET TIME ZONE holds until the next one, so it is written only where the zone changes.
    parts: list[str] = []
    known = "UTC"
    for zone, declaration in declarations:
        if zone != known:
            parts.append(f"SET TIME ZONE {render_literal(zone)};\n")
            known = zone
        parts.append(declaration)
    return "".join(parts)


def render_aggregate(aggregate: DeclaredAggregate) -> str:
    r"""Return an aggregate of the user as a CREATE AGGREGATE statement.

    >>> from headgate.schema import DOUBLE, STRING
    >>> render_aggregate(DeclaredAggregate("geo_mean", DOUBLE, DOUBLE, "algebraic"))
    'CREATE AGGREGATE geo_mean (DOUBLE) RETURNS DOUBLE ALGEBRAIC;\n'
    """
    duplicates = "" if aggregate.duplicate_sensitive else " DUPLICATE INSENSITIVE"
    return (
        f"CREATE AGGREGATE {render_name(aggregate.name)} ({aggregate.argument.sql}) "
        f"RETURNS {aggregate.result.sql} {aggregate.category.upper()}{duplicates};\n"
    )


def render_stream(stream: Stream) -> str:
    """Return a stream as a CREATE STREAM statement."""
    width = max((len(render_path(a.name)) for a in stream), default=0)
    lines = ",\n".join(f"    {_render_attribute(attribute, width)}" for attribute in stream)
    return f"CREATE STREAM {render_name(stream.name)} (\n{lines}\n);\n"


def _render_attribute(attribute: Attribute, width: int) -> str:
    parts = [render_path(attribute.name).ljust(width), attribute.type.sql]
    if not attribute.nullable:
        parts.append("NOT NULL")
    if not attribute.domain.is_everything:
        column = Column(attribute.name, attribute.type)
        parts.append(f"CHECK ({render_predicate(Within(column, attribute.domain))})")
    return " ".join(parts)


def render_query(query: Query) -> str:
    """Return a query as a CREATE QUERY statement, without a semicolon."""
    return f"CREATE QUERY {render_name(query.id)} AS {render_select(query)}"


def render_select(query: Query) -> str:
    """Return the SELECT of a query: all of it but its name."""
    outputs = ", ".join(_render_output(output) for output in query.outputs) or "*"
    sources = ", ".join(render_source(source) for source in query.sources)
    text = f"SELECT {'DISTINCT ' if query.distinct else ''}{outputs} FROM {sources}"
    # A query without WHERE has the condition TRUE.
    if query.where != Constant(True):
        text += f" WHERE {render_predicate(query.where)}"
    if query.group_by:
        text += f" GROUP BY {', '.join(_render_column(column) for column in query.group_by)}"
    return text


def render_source(source: Source) -> str:
    """Return a stream as it stands in FROM."""
    stream = render_name(source.stream.name)
    read = stream if source.rows is None else f"last_rows({stream}, {source.rows})"
    return read if source.alias == source.stream.name else f"{read} AS {render_name(source.alias)}"


def _render_output(output: Output) -> str:
    expression = output.expression
    if isinstance(expression, Aggregate):
        inner = _render_column(expression.argument) if expression.argument else "*"
        distinct = "DISTINCT " if expression.distinct else ""
        return (
            f"{render_name(expression.function)}({distinct}{inner}) AS {render_name(output.name)}"
        )
    text = _render_column(expression)
    return text if output.name == expression.name else f"{text} AS {render_name(output.name)}"


def render_predicate(predicate: Predicate) -> str:
    """Return a predicate as a condition.

    >>> from headgate.schema import INT, Interval, ValueSet
    >>> a = Column("a", INT)
    >>> render_predicate(Or((Within(a, ValueSet.of(Interval(4, None))), IsNull(a))))
    'a >= 4 OR a IS NULL'
    """
    if isinstance(predicate, And):
        return " AND ".join(_render_part(part, (Or,)) for part in predicate.parts)
    if isinstance(predicate, Or):
        return " OR ".join(_render_part(part, (And,)) for part in predicate.parts)
    if isinstance(predicate, Not):
        return f"NOT ({render_predicate(predicate.part)})"
    if isinstance(predicate, Truth):
        return _TESTS[predicate.accepted].format(render_predicate(predicate.part))
    return _render_atom(predicate)


def _render_part(part: Predicate, looser: tuple[type, ...]) -> str:
    text = render_predicate(part)
    # A set that is written as an OR of intervals needs parentheses, as an Or does.
    disjoint = isinstance(part, Within) and text.count(" OR ") and not _is_single_test(part.values)
    return f"({text})" if isinstance(part, looser) or disjoint else text


@lru_cache(maxsize=200_000)
def _render_atom(atom: Constant | Within | IsNull | Compare | Matches) -> str:
    if isinstance(atom, Constant):
        return "NULL" if atom.value is None else str(atom.value).upper()
    if isinstance(atom, Within):
        return _render_within(atom)
    if isinstance(atom, IsNull):
        return f"{_render_column(atom.column)} IS {'NOT ' if atom.negated else ''}NULL"
    if isinstance(atom, Compare):
        return f"{_render_column(atom.left)} {atom.operator} {_render_column(atom.right)}"
    pattern, negated = atom.pattern, "NOT " if atom.negated else ""
    text = f"{_render_column(atom.column)} {negated}{pattern.kind} {render_literal(pattern.text)}"
    return text if pattern.escape == "\\" else f"{text} ESCAPE {render_literal(pattern.escape)}"


def _is_single_test(values: ValueSet) -> bool:
    """Return whether one comparison, IN, BETWEEN or its negation says this set."""
    return len(values.intervals) <= 1 or len(values.complement().intervals) <= 1


def _render_within(atom: Within) -> str:
    column, values = atom.column, atom.values
    text = _render_column(column)
    # TRUE or FALSE for every value, but NULL for NULL, which no constant is.
    if values.is_everything or values.is_empty:
        return f"{text} = {text}" if values.is_everything else f"{text} <> {text}"
    # The shortest form that says the set: one interval, all but one, a list, all but a list, and an
    # OR of intervals where none of these does.
    inside, outside = values.intervals, values.complement().intervals
    if len(inside) == 1:
        return _render_interval(text, column, inside[0])
    if len(outside) == 1:
        return _render_outside(text, column, outside[0])
    listed = _list_members(column, values)
    if listed is not None:
        return f"{text} IN ({_render_list(column, listed)})"
    excluded = _list_members(column, values.complement())
    if excluded is not None:
        return f"{text} NOT IN ({_render_list(column, excluded)})"
    return " OR ".join(_render_interval(text, column, interval) for interval in inside)


def _list_members(column: Column, values: ValueSet) -> list[Ordinal] | None:
    """Return the members of a small set, also where it reaches an end of its type; or None."""
    # A set that reaches an end of its type has an open interval there, which cannot be counted; the
    # first and last values are taken out and listed by hand.
    low, high = column.type.minimum, column.type.maximum
    first = ValueSet.of(Interval(None, successor(low)))
    last = NOTHING if high is None else ValueSet.of(Interval(high, None))
    inner = values.intersection(first.union(last).complement()).finite_ordinals(MAX_LISTED)
    if inner is None:
        return None
    ends = [low] if low in values else []
    return [*ends, *inner, *([high] if high is not None and high in values else [])]


def _render_list(column: Column, ordinals: Iterable[Ordinal]) -> str:
    return ", ".join(_render_value(column, ordinal) for ordinal in ordinals)


def _render_interval(text: str, column: Column, interval: Interval) -> str:
    point = _render_point(column, interval)
    if point is not None:
        return f"{text} = {point}"
    low, high = interval.low, interval.high
    if low is not None and high is not None:
        # Ends are exclusive: BETWEEN needs the value before, and a range of texts may have none.
        last = _render_previous(column, high)
        if last is not None:
            return f"{text} BETWEEN {_render_value(column, low)} AND {last}"
    ends = (_render_end(column, low, ">=", ">"), _render_end(column, high, "<", "<="))
    return " AND ".join(f"{text} {end}" for end in ends if end)


def _render_outside(text: str, column: Column, interval: Interval) -> str:
    """Return the condition for everything but an interval."""
    point = _render_point(column, interval)
    if point is not None:
        return f"{text} <> {point}"
    inside = _render_interval(text, column, interval)
    between = f"{text} BETWEEN "
    if inside.startswith(between):
        return f"{text} NOT BETWEEN {inside.removeprefix(between)}"
    return f"NOT ({inside})"


def _render_point(column: Column, interval: Interval) -> str | None:
    """Return the literal of a point, also of the least or greatest value of its type; or None."""
    if interval.is_point or (interval.high is None and interval.low == column.type.maximum):
        return _render_value(column, interval.low)
    if interval.low is None and interval.high == successor(column.type.minimum):
        return _render_value(column, column.type.minimum)
    return None


def _render_end(column: Column, cut: Ordinal | None, at_cut: str, before_cut: str) -> str:
    """Return `operator literal` for an end of an interval, by its cut or the value before it.

    The rounder one wins: `> 10` and not `>= 10.01` on DECIMAL(10, 2), `>= 1000` and not `> 999`.
    """
    if cut is None:
        return ""
    at = _render_value(column, cut) if _has_value(column, cut) else None
    previous = _render_previous(column, cut)
    if previous is None:
        return f"{at_cut} {at}"
    # Shorter without its trailing zeros is rounder; ties go to `<=` and `>=`.
    rounder = 0 if at is None else len(previous.rstrip("0")) - len(at.rstrip("0"))
    if at is None or rounder < 0 or (rounder == 0 and before_cut == "<="):
        return f"{before_cut} {previous}"
    return f"{at_cut} {at}"


def _has_value(column: Column, cut: Ordinal) -> bool:
    maximum: Any = column.type.maximum
    return maximum is None or cut <= maximum


def _render_previous(column: Column, cut: Ordinal) -> str | None:
    # The text before `x\0` is `x`; before any other text there is no last one.
    if isinstance(cut, str):
        return render_literal(cut[:-1]) if cut.endswith("\0") else None
    return _render_value(column, cut - 1)


def _render_value(column: Column, ordinal: Ordinal | None) -> str:
    return render_literal(column.type.value(ordinal))


def render_row(row: Mapping[str, Value | None]) -> str:
    """Return a row as people read it.

    >>> render_row({"qty": 3, "side": None}), render_row({})
    ('qty = 3, side = NULL', 'any row')
    """
    return ", ".join(f"{name} = {render_literal(v)}" for name, v in row.items()) or "any row"


def render_literal(value: Value | None) -> str:
    """Return a value as a literal.

    >>> render_literal("it's"), render_literal(1.5), render_literal(Decimal("10.00"))
    ("'it''s'", '1.5', '10')
    """
    if value is None:
        return "NULL"
    # In Python a bool is an int and a datetime a date, so they are looked at first.
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return _render_double(value)
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, datetime):
        clock = value.astimezone(UTC).isoformat(sep=" ").removesuffix("+00:00")
        return f"TIMESTAMP '{clock}Z'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + "".join(_ESCAPES.get(character, character) for character in value) + "'"
    return str(value)


def _render_double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{word}' AS DOUBLE)"


def _render_column(column: Column) -> str:
    text = render_path(column.name)
    return f"{render_name(column.source)}.{text}" if column.source else text


def render_path(path: str) -> str:
    """Return a dotted path, each part in backticks where it must be."""
    return ".".join(render_name(part) for part in path.split("."))


@lru_cache(maxsize=100_000)
def render_name(text: str) -> str:
    """Return an identifier, in backticks where it is not a plain word.

    >>> render_name("price"), render_name("select"), render_name("rule 7")
    ('price', '`select`', '`rule 7`')
    """
    if _PLAIN_NAME.fullmatch(text) and text.upper() not in RESERVED | LITERAL_TYPES:
        return text
    return "`" + text.replace("`", "``") + "`"
