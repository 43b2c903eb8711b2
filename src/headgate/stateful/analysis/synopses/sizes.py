"""How many bytes a value has, by its type, and how to say a number that may be huge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.predicate import Column
from headgate.queries import find_attribute
from headgate.schema import Boolean, Date, DecimalType, Double, Integer, String, Type
from headgate.stateful.analysis.case import find_source
from headgate.stateful.analysis.synopses.cells import Cells
from headgate.stateful.analysis.synopses.plan import SynopsisPlan

ASSUMED_TEXT_BYTES = 32
COUNT_BYTES = 8
MAX_EXACT_COUNT = 10**9


def get_value_bytes(type_: Type, longest: int = ASSUMED_TEXT_BYTES) -> int:
    """Return the bytes of a value; of a text, those of the longest.

    >>> from headgate.schema import BIGINT, BOOLEAN, STRING
    >>> get_value_bytes(BOOLEAN), get_value_bytes(BIGINT), get_value_bytes(STRING, 4)
    (1, 8, 4)
    """
    if isinstance(type_, String):
        return longest
    if isinstance(type_, Boolean):
        return 1
    if isinstance(type_, DecimalType):
        return 8 if type_.precision <= 18 else 16
    if isinstance(type_, Date):
        return 4
    return type_.bits // 8 if isinstance(type_, Integer) else 8


def get_sum_bytes(type_: Type) -> int:
    """Return the bytes of an exact sum of up to 2^63 values.

    A sum of doubles has all the bits from 2^-1074 up, so that their order does not matter.
    """
    if isinstance(type_, Double):
        return 272
    return 24 if isinstance(type_, DecimalType) and type_.precision > 18 else 16


def round_count(count: int, noun: str) -> str:
    """Return a number with its noun; a huge one rounded.

    >>> round_count(9, "value"), round_count(1, "byte"), round_count(13**3, "bucket")
    ('9 values', '1 byte', '2,197 buckets')
    >>> round_count(317_000_000_000_000, "value"), round_count(999 * 10**400, "value")
    ('about 3.2 × 10^14 values', 'about 1.0 × 10^403 values')
    """
    if count <= MAX_EXACT_COUNT:
        return f"{count:,} {noun}" + ("" if count == 1 else "s")
    digits = str(count)
    exponent, leading = len(digits) - 1, round(int(digits[:3]) / 100, 1)
    if leading >= 10:
        exponent, leading = exponent + 1, leading / 10
    return f"about {leading} × 10^{exponent} {noun}s"


@dataclass(frozen=True, slots=True)
class TextLengths:
    """The bytes of values, with texts as long as the longest that is possible or was observed."""

    plan: SynopsisPlan
    observed: Mapping[str, int]

    def bytes(self, columns: Iterable[Column]) -> int:
        lengths = ((c, self._find_length(c) or ASSUMED_TEXT_BYTES) for c in columns)
        return sum(get_value_bytes(column.type, length) for column, length in lengths)

    def list_assumed(self, number: int, columns: Iterable[Column]) -> tuple[str, ...]:
        texts = (c for c in dict.fromkeys(columns) if isinstance(c.type, String))
        stream = self.plan.query.sources[number].stream.name
        return tuple(f"{stream}.{c.name}" for c in texts if self._find_length(c) is None)

    def _find_length(self, column: Column) -> int | None:
        if not isinstance(column.type, String):
            return None
        stream = self.plan.query.sources[find_source(self.plan.query, column)].stream.name
        # The length is known only if texts are finitely many in every case that accepts values.
        of = [b for b in self.plan.branches if b.accepts_values(column)]
        attribute = find_attribute(self.plan.query, column)
        cells = [b.cells(column) for b in of] or [Cells(column.type, attribute.domain, ())]
        longest = [each.find_longest() for each in cells]
        known = [length for length in longest if length is not None]
        if len(known) == len(longest):
            return max(known)
        return self.observed.get(f"{stream}.{column.name}")
