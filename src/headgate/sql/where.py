"""A condition as text, bound to the streams that it speaks of.

The common subset is read by `fast`; everything else goes through sqlglot, node by node from an
allow-list, and so does everything that is wrong, because here every error gets its position.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlglot import exp

from headgate.errors import (
    InvalidPattern,
    Position,
    SqlError,
    TooLarge,
    TypeMismatch,
    UnknownName,
    UnsupportedSql,
)
from headgate.predicate import (
    Atom,
    Column,
    IsNull,
    Operator,
    Predicate,
    Truth,
    conjunction,
    disjunction,
    iter_atoms,
)
from headgate.predicate.atoms import MIRROR, PatternKind
from headgate.predicate.comparison import OPERATOR_TESTS, compare_values
from headgate.predicate.pattern.errors import PatternRefused
from headgate.predicate.tree import ALL_TRUTHS, Accepted
from headgate.schema import Boolean, DecimalType, Timestamp
from headgate.sql import conditions
from headgate.sql.conditions import ConditionError
from headgate.sql.dialect import parse, span
from headgate.sql.grammar import check_condition
from headgate.sql.literals import (
    Literal,
    LiteralError,
    Number,
    Typed,
    article,
    check_literal,
    constant,
    special_double,
    unescape,
)
from headgate.sql.scope import NameProblem, Scope

MAX_TESTS = 8

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_CONDITIONS = (exp.Connector, exp.Not, exp.In, exp.Between, exp.Is, exp.Predicate)
_EXACT = (  # the types of 10L, 10S, 10Y and 1.5BD
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.TINYINT,
    exp.DataType.Type.DECIMAL,
)
_PATTERNS: dict[type[exp.Expr], PatternKind] = {
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.RegexpLike: "RLIKE",
}


def parse_condition(text: str, scope: Scope) -> Predicate:
    """The predicate of a condition by way of sqlglot."""
    return Binder(text, scope).condition(parse(check_condition(text), exp.Condition))


@dataclass
class Binder:
    """Walks a syntax tree whose positions are offsets into `text`.

    `bound` are the atoms of each test that was written, in the order of the text, as they are in
    the predicate: a NOT before a test is in its atom.
    """

    text: str
    scope: Scope
    tests: int = 0
    bound: list[tuple[Atom, ...]] = field(default_factory=list, repr=False)

    def condition(self, node: exp.Expr) -> Predicate:
        """The predicate that a node means."""
        if isinstance(node, exp.Paren):
            self.only(node, "this")
            return self.condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            join = conjunction if isinstance(node, exp.And) else disjunction
            return join([self.condition(part) for part in self.chain(node)])
        if isinstance(node, exp.Not):
            self.only(node, "this")
            negated = conditions.negation(self.condition(node.this))
            if isinstance(negated, Atom):
                self.bound[-1] = (negated,)
            return negated
        if isinstance(node, exp.Is | exp.Coalesce):
            return self.test(node)
        found = self.simple(node)
        self.bound.append(tuple(iter_atoms(found)))
        return found

    def simple(self, node: exp.Expr) -> Predicate:
        """A condition without conditions in it."""
        if type(node) in _OPERATORS:
            return self.comparison(node)
        if isinstance(node, exp.In):
            return self.membership(node)
        if isinstance(node, exp.Between):
            return self.between(node)
        if type(node) in _PATTERNS or isinstance(node, exp.Escape):
            return self.pattern(node)
        return self.truth(node)

    def chain(self, node: exp.Expr) -> list[exp.Expr]:
        """The operands of `a AND b AND c …`, without recursion: there may be thousands."""
        kind, parts = type(node), []
        while type(node) is kind:
            self.only(node, "this", "expression")
            parts.append(node.expression)
            node = node.this
        return [node, *reversed(parts)]

    def truth(self, node: exp.Expr) -> Predicate:
        """A BOOLEAN attribute or literal that stands as a condition."""
        if self.is_column(node):
            column = self.column(node)
            if not isinstance(column.type, Boolean):
                message = f"`{column.key}` is {article(column.type.sql)}, not a condition"
                raise self.error(TypeMismatch, node, message, "compare it with something")
            return conditions.is_true(column)
        if isinstance(node, exp.Boolean | exp.Null):
            return conditions.truth(None if isinstance(node, exp.Null) else bool(node.this))
        if isinstance(node, exp.Literal):
            raise self.error(TypeMismatch, node, "a literal is not a condition")
        raise self.unsupported(node)

    def comparison(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "expression")
        left, right = _unwrapped(node.this), _unwrapped(node.expression)
        op = _OPERATORS[type(node)]
        if not self.is_column(left) and self.is_column(right):
            left, right, op = right, left, MIRROR[op]
        if self.is_column(left):
            column = self.column(left)
            if self.is_column(right):
                other = self.column(right)
                return self.placed(node, lambda: conditions.compare_columns(column, op, other))
            literal = self.literal(right)
            return self.placed(right, lambda: conditions.compare(column, op, literal, self.zone))
        return self.constants(node, left, op, right)

    def constants(self, node: exp.Expr, left: exp.Expr, op: Operator, right: exp.Expr) -> Predicate:
        """`1 = 1`, which generated SQL is fond of."""
        first, second = self.literal(left), self.literal(right)
        if first is None or second is None:
            return conditions.truth(None)
        if not (isinstance(first, Number) and isinstance(second, Number)) and (
            not isinstance(first, type(second)) or isinstance(first, Typed)
        ):
            raise self.error(UnsupportedSql, node, "these constants are not compared")
        ordered = compare_values(_plain(first), _plain(second), Timestamp())
        return conditions.truth(OPERATOR_TESTS[op](ordered, 0))

    def membership(self, node: exp.In) -> Predicate:
        self.only(node, "this", "expressions")
        column = self.tested(node.this)
        literals = [self.literal(item) for item in node.expressions]
        try:
            return conditions.within(column, literals, self.zone)
        except LiteralError:
            for item in node.expressions:
                one = [self.literal(item)]
                self.placed(item, partial(conditions.within, column, one, self.zone))
            raise

    def between(self, node: exp.Between) -> Predicate:
        self.only(node, "this", "low", "high")
        low, high = _unwrapped(node.args["low"]), _unwrapped(node.args["high"])
        if not self.is_column(node.this) or self.is_column(low) or self.is_column(high):
            return self.spread(node.this, low, high)
        column = self.column(node.this)
        first, last = self.literal(low), self.literal(high)
        self.placed(low, lambda: conditions.compare(column, ">=", first, self.zone))
        return self.placed(high, lambda: conditions.between(column, first, last, self.zone))

    def spread(self, value: exp.Expr, low: exp.Expr, high: exp.Expr) -> Predicate:
        """`a BETWEEN b AND c` and `5 BETWEEN a AND b`, as the two comparisons that it means."""
        first = exp.GTE(this=value.copy(), expression=low.copy())
        last = exp.LTE(this=value.copy(), expression=high.copy())
        return conjunction((self.comparison(first), self.comparison(last)))

    def pattern(self, node: exp.Expr) -> Predicate:
        """LIKE, ILIKE and RLIKE, with NOT and ESCAPE."""
        escape = "\\"
        if isinstance(node, exp.Escape):
            self.only(node, "this", "expression")
            character = self.literal(node.expression)
            if not isinstance(character, str) or len(character) != 1:
                raise self.error(InvalidPattern, node, "ESCAPE takes a single character")
            escape, node = character, node.this
        if type(node) not in _PATTERNS or (escape != "\\" and isinstance(node, exp.RegexpLike)):
            raise self.unsupported(node)
        self.only(node, "this", "expression", "negate")
        kind = _PATTERNS[type(node)]
        column = self.tested(node.this)
        if self.is_column(_unwrapped(node.expression)):
            message = f"{kind} needs a string pattern, not an attribute"
            raise self.error(UnsupportedSql, node.expression, message)
        text = self.literal(node.expression)
        if text is None:
            return conditions.truth(None)
        if not isinstance(text, str):
            raise self.error(TypeMismatch, node.expression, f"{kind} needs a string pattern")
        found = self.placed(node.expression, lambda: conditions.matches(column, kind, text, escape))
        return conditions.negation(found) if node.args.get("negate") else found

    def test(self, node: exp.Expr) -> Predicate:
        """IS NULL, IS TRUE, IS FALSE, and COALESCE(condition, TRUE or FALSE)."""
        if isinstance(node, exp.Is):
            self.only(node, "this", "expression")
            wanted = self.truth_literal(node.expression)
            inner = _unwrapped(node.this)
            if wanted is None and self.is_column(inner):
                null = IsNull(self.column(inner))
                self.bound.append((null,))
                return null
            return self.tested_truth(node, inner, frozenset({wanted}))
        self.only(node, "this", "expressions")
        if len(node.expressions) != 1:
            raise self.error(UnsupportedSql, node, "COALESCE takes a condition and TRUE or FALSE")
        default = self.truth_literal(node.expressions[0])
        if default is None:
            raise self.error(UnsupportedSql, node, "COALESCE(…, NULL) does nothing")
        return self.tested_truth(node, node.this, frozenset({True, None} if default else {True}))

    def tested_truth(self, node: exp.Expr, inner: exp.Expr, accepted: Accepted) -> Predicate:
        self.tests += 1
        if self.tests > MAX_TESTS:
            message = "truth tests of conditions nest too deeply"
            raise self.error(TooLarge, node, message, f"at most {MAX_TESTS} levels")
        part = self.condition(inner)
        self.tests -= 1
        return Truth(part, accepted & ALL_TRUTHS)

    def truth_literal(self, node: exp.Expr) -> bool | None:
        if isinstance(node, exp.Null):
            return None
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        raise self.error(UnsupportedSql, node, "only TRUE, FALSE or NULL can stand here")

    def tested(self, node: exp.Expr) -> Column:
        """The attribute that a condition is about."""
        inner = _unwrapped(node)
        if not self.is_column(inner):
            raise self.error(UnsupportedSql, inner, "an attribute is expected here")
        return self.column(inner)

    def is_column(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column | exp.Dot)

    def column(self, node: exp.Expr) -> Column:
        parts = _name_parts(node)
        if parts is None:
            raise self.unsupported(node)
        try:
            return self.scope.column(parts)
        except NameProblem as problem:
            raise self.error(UnknownName, node, str(problem), problem.hint) from None

    def plain_name(self, node: exp.Expr) -> str:
        """A name without dots in front."""
        identifier = node.this
        if not isinstance(identifier, exp.Identifier) or node.args.get("db"):
            raise self.error(UnsupportedSql, node, "a plain name is expected here")
        return str(identifier.this)

    def literal(self, node: exp.Expr) -> Literal:
        """The literal that a node is; raises for anything else, and for one without a meaning."""
        found = self.written(_unwrapped(node))
        try:
            check_literal(found)
        except LiteralError as problem:
            raise self.error(TypeMismatch, node, str(problem)) from None
        return found

    def written(self, inner: exp.Expr) -> Literal:
        if isinstance(inner, exp.Null):
            return None
        if isinstance(inner, exp.Boolean):
            return bool(inner.this)
        if isinstance(inner, exp.RawString) or inner.is_string:
            return self.string(inner)
        if isinstance(inner, exp.Literal):
            return Number(str(inner.this))
        if isinstance(inner, exp.Neg):
            return self.negative(inner)
        if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
            return self.typed(inner)
        if isinstance(inner, _CONDITIONS):
            message = "a condition is not compared with a value"
            raise self.error(UnsupportedSql, inner, message, "write (…) IS TRUE")
        raise self.unsupported(inner)

    def string(self, node: exp.Expr) -> str:
        """The text of a string literal, from how it was written."""
        try:
            return unescape(self.text[int(node.meta["start"]) : int(node.meta["end"]) + 1])
        except LiteralError as problem:
            raise self.error(TypeMismatch, node, str(problem)) from None

    def negative(self, node: exp.Neg) -> Literal:
        inner = self.literal(node.this)
        if isinstance(inner, Number):
            return Number(inner.text[1:] if inner.text.startswith("-") else "-" + inner.text)
        if isinstance(inner, float):
            return -inner
        raise self.error(TypeMismatch, node, "only a number can be negative")

    def typed(self, node: exp.Cast) -> Literal:
        """DATE '…', TIMESTAMP '…', 10L, 1.5D, 1.5BD and CAST('NaN' AS DOUBLE)."""
        kind, text = node.to.this, str(node.this.this)
        if kind == exp.DataType.Type.DATE and node.this.is_string:
            return Typed("DATE", text)
        if kind in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
            return Typed("TIMESTAMP", text)
        if kind == exp.DataType.Type.DOUBLE:
            number = special_double(text) if node.this.is_string else _double(text)
            if number is not None:
                return number
        if kind in _EXACT and _is_number(text):
            return Number(text)
        if node.this.is_string:
            message = "CAST is not supported but for 'NaN' and the infinities AS DOUBLE"
            raise self.error(UnsupportedSql, node, message, "write the literal itself")
        message = f"a literal of type {kind.value} is not supported"
        raise self.error(UnsupportedSql, node, message)

    @property
    def zone(self) -> str:
        return self.scope.zone

    def placed(self, node: exp.Expr, build: Callable[[], Predicate]) -> Predicate:
        """Build a condition; what is wrong with it is wrong at this node."""
        try:
            return build()
        except PatternRefused as refused:
            message = f"the pattern is refused: {refused.reason}"
            raise self.error(InvalidPattern, node, message, topic=message) from None
        except (LiteralError, ConditionError) as problem:
            raise self.error(TypeMismatch, node, str(problem)) from None

    def only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node that says more than we understand."""
        for name, value in node.args.items():
            if value and name not in known:
                what = f"{name.strip('_').upper()} is not supported here"
                raise self.error(UnsupportedSql, node, what, topic=what)

    def unsupported(self, node: exp.Expr) -> SqlError:
        called = f"function {node.sql_name().lower()}(…)" if isinstance(node, exp.Func) else "this"
        what = f"{called} is not supported here"
        return self.error(UnsupportedSql, node, what, topic=what)

    def error(
        self,
        kind: type[SqlError],
        node: exp.Expr,
        message: str,
        hint: str = "",
        topic: str = "",
    ) -> SqlError:
        """An error at the place of a node, or of the nearest one around it that has a place."""
        place: Any = node
        covered = span(place)
        while covered is None and place.parent is not None:
            place = place.parent
            covered = span(place)
        start, end = covered or (0, len(self.text))
        position = Position.of(self.text, start)
        text = self.text[start:end]
        return kind(message, text=text, hint=hint, position=position, topic=topic)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _name_parts(node: exp.Expr) -> list[str] | None:
    parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
    if not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    return [str(part.this) for part in parts]


def _double(text: str) -> float | None:
    """The number of `1.5D`; None where it is too large for a double."""
    number = float(text)
    return number if math.isfinite(number) else None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _plain(literal: Number | Typed | str | bool | float) -> Any:
    """A literal as a Python value that `order` can compare."""
    if isinstance(literal, Number):
        return constant(literal, DecimalType(38, 0), "UTC")
    return literal
