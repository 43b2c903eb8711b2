"""An atom is a condition on one attribute, or a comparison of two.

Everything that compares one attribute with constants (`=`, `<`, `BETWEEN`, `<>`, `IN`, `NOT IN`) is
one kind of atom, `Within`: the attribute's value lies in a set of values. Atoms are NULL where an
attribute that they mention is NULL, except for `IsNull`, which is never NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Protocol

from headgate._slots import set_slots_directly
from headgate.predicate.pattern import LikePattern, compile_re2, parse_like, to_re2
from headgate.schema import Type, ValueSet

Operator = Literal["<", "<=", "=", "<>", ">=", ">"]
PatternKind = Literal["LIKE", "ILIKE", "RLIKE"]
SetForm = Literal["range", "list", "exclusion"]

# NOT (a < b) is a >= b.
OPPOSITE: dict[Operator, Operator] = {
    "<": ">=",
    "<=": ">",
    "=": "<>",
    "<>": "=",
    ">=": "<",
    ">": "<=",
}
# NOT (a IN (1, 2)) is a NOT IN (1, 2).
OPPOSITE_FORM: dict[SetForm, SetForm] = {
    "range": "range",
    "list": "exclusion",
    "exclusion": "list",
}
# a < b is b > a.
MIRROR: dict[Operator, Operator] = {
    "<": ">",
    "<=": ">=",
    "=": "=",
    "<>": "<>",
    ">=": "<=",
    ">": "<",
}


@dataclass(frozen=True, slots=True)
class Column:
    """An attribute as a predicate names it; `source` is the alias where FROM has several."""

    name: str
    type: Type
    source: str = ""

    def __hash__(self) -> int:
        return hash(self.name)  # the rest seldom differs, and columns are hashed very often

    @property
    def key(self) -> str:
        """The name under which a row holds this column's value."""
        return f"{self.source}.{self.name}" if self.source else self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or NULL."""

    value: bool | None


@set_slots_directly
@dataclass(frozen=True, slots=True)
class Within:
    """The column's value is one of `values`.

    `form` says how the set was written: as a list (`=`, IN), as an exclusion (`<>`, NOT IN), or in
    any other way. `a NOT IN (3, 4)` and `a NOT BETWEEN 3 AND 4` are equal all the same; only the
    weak semantics of a BE-Tree tell them apart.
    """

    column: Column
    values: ValueSet
    form: SetForm = field(default="range", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is NULL; or, negated, it is not. Never NULL itself."""

    column: Column
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """Two columns compared, exactly, whatever their numeric types."""

    left: Column
    operator: Operator
    right: Column


@dataclass(frozen=True, slots=True)
class Pattern:
    """The text of a LIKE, ILIKE or RLIKE pattern."""

    kind: PatternKind
    text: str
    escape: str = "\\"

    @property
    def matcher(self) -> TextMatcher:
        """The test that the pattern stands for; refuses a pattern without a meaning."""
        return _compile(self)


@dataclass(frozen=True, slots=True)
class Matches:
    """The column's text matches a pattern; or, negated, it does not."""

    column: Column
    pattern: Pattern
    negated: bool = False


Atom = Constant | Within | IsNull | Compare | Matches


class TextMatcher(Protocol):
    """A test of texts."""

    def matches(self, text: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class _IgnoringCase:
    """ILIKE, as Spark defines it: both sides in lower case, then LIKE."""

    pattern: LikePattern

    def matches(self, text: str) -> bool:
        return self.pattern.matches(text.lower())


@dataclass(frozen=True, slots=True)
class _Regex:
    re2_pattern: str

    def matches(self, text: str) -> bool:
        return compile_re2(self.re2_pattern).search(text) is not None


@lru_cache(maxsize=100_000)
def _compile(pattern: Pattern) -> TextMatcher:
    # A regular expression is translated once; LIKE is matched without one.
    if pattern.kind == "RLIKE":
        return _Regex(to_re2(pattern.text))
    if pattern.kind == "ILIKE":
        return _IgnoringCase(parse_like(pattern.text.lower(), pattern.escape))
    return parse_like(pattern.text, pattern.escape)
