r"""WHERE clauses over the whole language, and rows near their constants.

One grammar, two sources of choice: `Seeded` rolls thousands of clauses a second, and hypothesis
(`wheres`, `rows`) draws the same ones so that a failure shrinks.

>>> Clauses(Seeded(3)).where() == Clauses(Seeded(3)).where()
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from headgate.schema import BOOLEAN, DATE, STRING, TIMESTAMP, Attribute
from tests.boundaries import (
    CLOCKS,
    DATES,
    ESCAPED,
    NUMBERS,
    NUMERIC,
    PATTERNS,
    REGEXES,
    STREAM,
    TEMPORAL,
    VALUES,
    Row,
)

T = TypeVar("T")


class Dice(Protocol):
    """A source of choice."""

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1; 0 where the source likes simple cases."""


class Seeded:
    """Choices of a seeded generator, without hypothesis: fast."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def below(self, n: int) -> int:
        return int(self._random() * n)


class Drawn:
    """Choices that hypothesis draws, and shrinks towards 0."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def below(self, n: int) -> int:
        return self._draw(st.integers(0, n - 1)) if n > 1 else 0


def pick(dice: Dice, choices: Sequence[T]) -> T:
    return choices[dice.below(len(choices))]


class Clauses:
    """The grammar. A clause speaks of few attributes, so that its conditions meet."""

    def __init__(self, dice: Dice, attributes: Sequence[Attribute] = STREAM.attributes) -> None:
        self.dice = dice
        self.attributes = attributes
        self.palette: list[Attribute] = []
        self.lower = False

    def where(self, depth: int = 3) -> str:
        """A WHERE clause, without the word."""
        self.lower = self.dice.below(4) == 1
        size = 1 + self.dice.below(4)
        self.palette = [pick(self.dice, self.attributes) for _ in range(size)]
        return self.condition(depth)

    def word(self, text: str) -> str:
        return text.lower() if self.lower else text

    def condition(self, depth: int) -> str:
        """A condition, in parentheses where it is not an atom."""
        kind = self.dice.below(12) if depth else 0
        if kind < 4:
            return self.atom()
        if kind < 10:
            joint = self.word(" AND " if kind < 7 else " OR ")
            parts = [self.operand(depth - 1) for _ in range(2 + self.dice.below(2))]
            return joint.join(parts)
        if kind == 10:
            return f"{self.word('NOT')} ({self.condition(depth - 1)})"
        return self.test(self.condition(depth - 1))

    def operand(self, depth: int) -> str:
        """Mostly in parentheses; without them AND and OR bind as SQL has it, and that is fine."""
        text = self.condition(depth)
        return f"({text})" if depth and self.dice.below(4) else text

    def test(self, inner: str) -> str:
        word = pick(self.dice, ("IS TRUE", "IS FALSE", "IS NULL", "COALESCE"))
        if word == "COALESCE":
            return (
                self.word(f"COALESCE({pick(self.dice, ('TRUE', 'FALSE'))}").replace(
                    "(", f"({inner}, ", 1
                )
                + ")"
            )
        negated = " NOT" if self.dice.below(2) else ""
        return f"({inner}) {self.word(word.replace(' ', negated + ' ', 1))}"

    def atom(self) -> str:
        attribute = pick(self.dice, self.palette)
        kind = self.dice.below(16)
        if kind < 5:
            return self.comparison(attribute)
        if kind < 7:
            return self.membership(attribute)
        if kind < 9:
            return self.between(attribute)
        if kind < 11:
            return self.between_attributes(attribute)
        if kind < 12:
            negated = "NOT " if self.dice.below(2) else ""
            return f"{self.name(attribute)} {self.word(f'IS {negated}NULL')}"
        if kind < 13:
            return self.constant()
        if attribute.type == STRING:
            return self.pattern(attribute)
        if attribute.type == BOOLEAN:
            return pick(self.dice, ("", self.word("NOT "))) + self.name(attribute)
        return self.comparison(attribute)

    def operator(self) -> str:
        return pick(self.dice, ("=", "<", "<=", ">", ">=", "<>", "!=", "=="))

    def comparison(self, attribute: Attribute) -> str:
        name, literal = self.name(attribute), self.literal(attribute)
        if self.dice.below(4) == 1:
            name, literal = literal, name
        space = pick(self.dice, (" ", "", "\n"))
        return f"{name}{space}{self.operator()}{space}{literal}"

    def membership(self, attribute: Attribute) -> str:
        literals = [self.literal(attribute) for _ in range(1 + self.dice.below(4))]
        word = self.word("NOT IN" if self.dice.below(3) == 1 else "IN")
        return f"{self.name(attribute)} {word} ({', '.join(literals)})"

    def between(self, attribute: Attribute) -> str:
        word = self.word("NOT BETWEEN" if self.dice.below(3) == 1 else "BETWEEN")
        low, high = self.literal(attribute), self.literal(attribute)
        return f"{self.name(attribute)} {word} {low} {self.word('AND')} {high}"

    def between_attributes(self, attribute: Attribute) -> str:
        other = pick(self.dice, self.comparable(attribute))
        if self.dice.below(6) == 1:
            word = self.word("NOT BETWEEN" if self.dice.below(3) == 1 else "BETWEEN")
            first, last = self.name(other), self.literal(attribute)
            if self.dice.below(2):
                first, last = last, first
            return f"{self.name(attribute)} {word} {first} {self.word('AND')} {last}"
        return f"{self.name(attribute)} {self.operator()} {self.name(other)}"

    def comparable(self, attribute: Attribute) -> Sequence[Attribute]:
        for group in (NUMERIC, TEMPORAL):
            if attribute in group:
                return [a for a in self.attributes if a in group]
        return [a for a in self.attributes if a.type == attribute.type]

    def constant(self) -> str:
        return self.word(
            pick(self.dice, ("TRUE", "FALSE", "NULL", "1 = 1", "1 > 2.5", "NULL = 1", "0.1 = 0.10"))
        )

    def pattern(self, attribute: Attribute) -> str:
        name, negated = self.name(attribute), "NOT " if self.dice.below(3) == 1 else ""
        kind = self.dice.below(8)
        if kind == 7:
            text, escape = pick(self.dice, ESCAPED)
            word = self.word(negated + pick(self.dice, ("LIKE", "ILIKE")))
            return f"{name} {word} {self.text(text)} {self.word('ESCAPE')} {self.text(escape)}"
        if kind == 6:
            word = self.word(negated + pick(self.dice, ("RLIKE", "REGEXP")))
            return f"{name} {word} {self.text(pick(self.dice, REGEXES))}"
        word = self.word(negated + ("ILIKE" if kind > 3 else "LIKE"))
        return f"{name} {word} {self.text(pick(self.dice, PATTERNS))}"

    def name(self, attribute: Attribute) -> str:
        kind = self.dice.below(12)
        if kind == 11:
            return attribute.name.upper()
        if kind == 10:
            return ".".join(f"`{part}`" for part in attribute.name.split("."))
        return f"trades.{attribute.name}" if kind == 9 else attribute.name

    def literal(self, attribute: Attribute) -> str:
        """A literal that may stand beside the attribute; sometimes NULL."""
        if self.dice.below(16) == 15:
            return self.word("NULL")
        kind = attribute.type
        if kind == BOOLEAN:
            return self.word(pick(self.dice, ("TRUE", "FALSE")))
        if kind == STRING:
            return self.text(str(pick(self.dice, VALUES["STRING"])))
        if kind not in (DATE, TIMESTAMP):
            return pick(self.dice, NUMBERS) if self.dice.below(8) else self.near(attribute)
        style = self.dice.below(4)
        if style == 3:
            return self.word("DATE") + f" '{pick(self.dice, DATES)}'"
        if style == 2:
            return self.word("TIMESTAMP") + f" '{pick(self.dice, CLOCKS)}'"
        return f"'{pick(self.dice, DATES if kind == DATE else CLOCKS)}'"

    def near(self, attribute: Attribute) -> str:
        """A value of the attribute's own type as a number."""
        value = pick(self.dice, VALUES[attribute.type.sql])
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else "0.0"
        return f"{value:f}" if isinstance(value, Decimal) else str(value)

    def text(self, value: str) -> str:
        """A string literal in one of the ways to write it."""
        style = self.dice.below(6)
        if style == 5 and "\\" not in value and '"' not in value and "\0" not in value:
            return f'r"{value}"'
        written = value.replace("\\", "\\\\").replace("\0", "\\0")
        if style == 4:
            return '"' + written.replace('"', '""') + '"'
        if style == 3:
            return "'" + "".join(_coded(c) for c in value) + "'"
        if style == 2:
            return "'" + written.replace("'", "\\'").replace("\n", "\\n") + "'"
        return "'" + written.replace("'", "''") + "'"


def _coded(character: str) -> str:
    point = ord(character)
    if 32 <= point < 127 and character not in "'\\":
        return character
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def row(dice: Dice, attributes: Sequence[Attribute] = STREAM.attributes) -> Row:
    """A row of values near the constants; one in eight is NULL."""
    collected: Row = {}
    for attribute in attributes:
        choices = VALUES[attribute.type.sql]
        at = dice.below(len(choices) + len(choices) // 7 + 1)
        collected[attribute.name] = choices[at] if at < len(choices) else None
    return collected


@st.composite
def wheres(draw: Any, depth: int = 3) -> str:
    """WHERE clauses over `STREAM`."""
    return Clauses(Drawn(draw)).where(depth)


@st.composite
def rows(draw: Any) -> Row:
    """Rows of `STREAM`."""
    return row(Drawn(draw))
