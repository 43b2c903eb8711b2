"""Values worth trying: beside a bound, or matched by a pattern."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from headgate.predicate.atoms import Column, Matches, Operator
from headgate.predicate.comparison import values_where, zone_of
from headgate.predicate.pattern import parse_like, sample_regex
from headgate.schema import EVERYTHING, Date, Ordinal, ValueSet


def values_within_bound(
    column: Column, op: Operator, bound: Ordinal | None, other: Column
) -> ValueSet:
    """The values v of a column for which `v op bound` holds, the bound being of another column."""
    if bound is None:
        return EVERYTHING
    value = other.type.value(bound)
    if isinstance(column.type, Date) and isinstance(value, datetime):
        value = value.astimezone(ZoneInfo(zone_of(column.type, other.type).zone))
    return values_where(column.type, op, value)


def list_pattern_examples(part: Matches) -> list[str]:
    """Texts that a pattern matches, or that a negated one does not."""
    text = part.pattern.text
    if part.pattern.kind == "RLIKE":
        return [sample_regex(text), "", "a", "zzz"]
    return [parse_like(text, part.pattern.escape).example(), "", "zzz"]
