"""Random joins of two occurrences whose conditions have OR, as trees and as SQL.

Two streams, or one that joins itself, with two attributes each. The condition has one to three
parts, of which at least one is an OR of two or three members; a member is a literal, or two of them
that both hold. A literal compares the streams (six of ten), two attributes of one stream (one of
ten), or an attribute with a constant from 0 to 2 (two of ten), or asks for NULL (one of ten). Every
second attribute is NOT NULL. What is put out is an attribute `k`, of one of the occurrences or of
both, that is 1, or 1 or 2, and in no condition, so that outputs are always finitely many.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

CONSTANTS = (0, 1, 2)
OPERATORS = ("<", "<", "<=", "<=", "=", "=", ">", ">=", "<>")
SELECTS = ("DISTINCT", "all", "COUNT(*)")
OUTPUTS = ((0,), (1,), (0, 1))  # the occurrences whose `k` is put out

Attribute = tuple[int, str]  # the occurrence, 0 or 1, and the name


@dataclass(frozen=True, slots=True)
class Literal:
    """A comparison with another attribute or a constant; or IS [NOT] NULL, without a right side."""

    left: Attribute
    operator: str
    right: Attribute | int | None


@dataclass(frozen=True, slots=True)
class Tree:
    """All of its members hold ("AND"), or at least one ("OR")."""

    connective: str
    members: tuple[Tree | Literal, ...]


@dataclass(frozen=True, slots=True)
class OrQuery:
    """A query over two occurrences; `nullable` names the attributes that may be NULL.

    `outputs` are the occurrences of which `k` is put out, and `keys` the values that it has.
    """

    is_self_join: bool
    select: str
    condition: Tree
    nullable: frozenset[Attribute]
    outputs: tuple[int, ...] = (0,)
    keys: tuple[int, ...] = (1,)

    def names(self, occurrence: int) -> tuple[str, str]:
        return ("a", "b") if self.is_self_join or not occurrence else ("c", "d")

    @property
    def sql(self) -> str:
        """The streams, and the query."""
        keys = ", ".join(map(str, self.keys))
        streams = {"s": 0} if self.is_self_join else {"s": 0, "t": 1}
        declared = "".join(
            f"CREATE STREAM {stream} (k INT NOT NULL CHECK (k IN ({keys})), "
            + ", ".join(
                f"{name} INT{'' if (at, name) in self.nullable else ' NOT NULL'}"
                for name in self.names(at)
            )
            + ");\n"
            for stream, at in streams.items()
        )
        columns = ", ".join(f"{'xy'[at]}.k AS k{at}" for at in self.outputs)
        outputs = {"DISTINCT": f"DISTINCT {columns}", "all": columns}.get(self.select, self.select)
        other = "s" if self.is_self_join else "t"
        return f"{declared}SELECT {outputs} FROM s AS x, {other} AS y WHERE {write(self.condition)}"


def write(node: Tree | Literal) -> str:
    """Return a condition in SQL."""
    if isinstance(node, Tree):
        parts = (write(member) for member in node.members)
        return "(" + f" {node.connective} ".join(parts) + ")"
    right = _write_side(node.right) if isinstance(node.right, tuple) else str(node.right)
    return " ".join(
        (_write_side(node.left), node.operator, *(() if node.right is None else (right,)))
    )


def _write_side(attribute: Attribute) -> str:
    return f"{'xy'[attribute[0]]}.{attribute[1]}"


def or_queries(seed: int, count: int) -> Iterator[OrQuery]:
    """So many queries."""
    numbers = random.Random(seed)
    for _ in range(count):
        yield _make_query(numbers)


def _make_query(numbers: random.Random) -> OrQuery:
    is_self_join = numbers.random() < 0.35
    names = (("a", "b"), ("a", "b") if is_self_join else ("c", "d"))
    parts: list[Tree | Literal] = [
        Tree("OR", tuple(_make_member(numbers, names) for _ in range(numbers.choice((2, 2, 3)))))
    ]
    for _ in range(numbers.choice((0, 1, 1, 2))):
        alternatives = numbers.choice((1, 1, 1, 2))
        members = tuple(_make_member(numbers, names) for _ in range(alternatives))
        parts.append(Tree("OR", members) if alternatives > 1 else members[0])
    nullable = {(at, name) for at in (0, 1) for name in names[at] if numbers.random() < 0.5}
    if is_self_join:
        nullable = {(at, name) for at in (0, 1) for _, name in nullable}
    return OrQuery(
        is_self_join,
        numbers.choice(SELECTS),
        Tree("AND", tuple(parts)),
        frozenset(nullable),
        numbers.choice(OUTPUTS),
        numbers.choice(((1,), (1, 2))),
    )


def _make_member(numbers: random.Random, names: tuple[tuple[str, ...], ...]) -> Tree | Literal:
    if numbers.random() < 0.3:
        return Tree("AND", (_make_literal(numbers, names), _make_literal(numbers, names)))
    return _make_literal(numbers, names)


def _make_literal(numbers: random.Random, names: tuple[tuple[str, ...], ...]) -> Literal:
    kind = numbers.random()
    at = numbers.randrange(2)
    left = (at, numbers.choice(names[at]))
    if kind < 0.6:
        return Literal(left, numbers.choice(OPERATORS), (1 - at, numbers.choice(names[1 - at])))
    if kind < 0.7:
        return Literal((at, names[at][0]), numbers.choice(OPERATORS), (at, names[at][1]))
    if kind < 0.9:
        return Literal(left, numbers.choice(OPERATORS), numbers.choice(CONSTANTS))
    return Literal(left, numbers.choice(("IS NULL", "IS NOT NULL")), None)
