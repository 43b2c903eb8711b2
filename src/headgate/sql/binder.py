"""Conditions from text to predicates, with a position in every error.

sqlglot gives the tree, which says how a condition is made up, and the tokens say what stands in it.
The binder walks both side by side, in the order of the text. It steps over every token that a node
is written with, and refuses a node that is not in the language, an operand that is no operand, and
a token that no node explains. What it accepts is therefore exactly what stands there: sqlglot may
mend a text, but not unnoticed. The walk also knows where each part stands, which the tree does not.

Plain conditions are read by `fast_path`, which declines whatever it does not know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from sqlglot import exp

from headgate.errors import (
    InvalidPattern,
    SqlError,
    SqlSyntaxError,
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
from headgate.predicate.tree import Accepted
from headgate.schema import Boolean, DecimalType, Timestamp
from headgate.sql import conditions
from headgate.sql.conditions import OPERATORS, ConditionError
from headgate.sql.cursor import SIGNS, TEST_ENDS, Cursor, Extent
from headgate.sql.functions import COALESCE
from headgate.sql.lexer import LITERAL_TYPES
from headgate.sql.literals import (
    Literal,
    LiteralError,
    Number,
    TypedLiteral,
    add_article,
    check_literal,
    evaluate_literal,
    parse_special_double,
    unescape,
)
from headgate.sql.parser import parse_condition_tree
from headgate.sql.scope import NameProblem, Scope

MAX_TRUTH_TESTS = 8

_PATTERN_KINDS: dict[str, PatternKind] = {
    "LIKE": "LIKE",
    "ILIKE": "ILIKE",
    "RLIKE": "RLIKE",
    "REGEXP": "RLIKE",
}
_TRUTHS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
# The nodes of sqlglot, by the part that they play in a condition.
_COMPARISON_NODES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PATTERN_NODES = (exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)
_CONDITION_NODES = (exp.Connector, exp.Not, exp.In, exp.Between, exp.Is, exp.Predicate)
_NAME_NODES = (exp.Column, exp.Dot)
_LITERAL_NODES = (exp.Literal, exp.RawString, exp.Neg, exp.Cast, exp.Boolean, exp.Null)
_OPERAND_NODES = (exp.Paren, *_NAME_NODES, *_LITERAL_NODES)
_LEFT_FIRST_NODES = (exp.Binary, *_CONDITION_NODES)  # what begins with its first child
# a number as it is written, and the type that its suffix gives it
_NUMBER = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)
_SUFFIX_TYPES = {
    "L": "BIGINT",
    "S": "SMALLINT",
    "Y": "TINYINT",
    "BD": "DECIMAL",
    "D": "DOUBLE",
    "F": "FLOAT",
}
# Suffixes that leave a number exact. D makes it a DOUBLE, and F is refused.
_EXACT_SUFFIXES = frozenset(("L", "S", "Y", "BD"))
# What may follow a whole condition; nothing is the end of the text.
_CONDITION_ENDS = frozenset(("", "AND", "OR", ")", ",", "GROUP"))
_NO_CAST = "CAST is not supported but for 'NaN' and the infinities AS DOUBLE"
_WRITE_LITERAL = "write the literal itself"

Node = exp.Expr | None  # None where sqlglot met an error


class Operand(NamedTuple):
    """A column or a literal, and where it stands."""

    value: Column | Literal
    extent: Extent


class LiteralOperand(NamedTuple):
    """A literal, and where it stands."""

    value: Literal
    extent: Extent


@dataclass(slots=True)
class WrittenTest:
    """A test as it stands in the text, from its first NOT on, and its atoms in the predicate."""

    atoms: tuple[Atom, ...]
    extent: Extent


def parse_condition(text: str, scope: Scope) -> Predicate:
    """Return the predicate that a condition means, by way of sqlglot."""
    cursor = Cursor(text)
    if not cursor.tokens:
        raise SqlSyntaxError("the condition is empty", hint="TRUE accepts every event")
    predicate = Binder(cursor, scope).bind(parse_condition_tree(cursor.tokens))
    cursor.expect_end()
    return predicate


@dataclass
class Binder:
    """A walk over a tree and the tokens that it was made of.

    `tests` are all tests that were walked over, in the order of the text.
    """

    cursor: Cursor
    scope: Scope
    tests: list[WrittenTest] = field(default_factory=list, repr=False)
    depth: int = 0  # of truth tests

    def bind(self, node: Node) -> Predicate:
        """Return the predicate of a whole condition."""
        try:
            return self.bind_condition(node)
        except RecursionError:
            raise TooLarge("the expression nests too deeply", text=self.cursor.text) from None

    def bind_condition(self, node: Node) -> Predicate:
        """Bind anything that is TRUE, FALSE or NULL."""
        # OR holds ANDs, AND and NOT hold terms, so that a tree has one reading
        if isinstance(node, exp.Or):
            return self.bind_chain(node, "OR", self.bind_condition, disjunction)
        if isinstance(node, exp.And):
            return self.bind_chain(node, "AND", self.bind_term, conjunction)
        return self.bind_term(node)

    def bind_chain(
        self,
        node: exp.Expr,
        word: str,
        bind: Callable[[Node], Predicate],
        join: Callable[[list[Predicate]], Predicate],
    ) -> Predicate:
        """Bind `a AND b AND c …`, without recursion: there may be thousands."""
        # sqlglot nests a chain to the left, so it is walked from its last part to its first, and
        # bound in the order of the text.
        kind, parts = type(node), []
        first: Any = node
        while type(first) is kind:
            parts.append(first.args.get("expression"))
            first = first.args.get("this")
        bound = [bind(first)]
        for part in reversed(parts):
            self.cursor.expect(word)
            bound.append(bind(part))
        return join(bound)

    def bind_term(self, node: Node) -> Predicate:
        """Bind a condition in parentheses, a negation, or a test."""
        if isinstance(node, exp.Paren):
            return self.bind_parenthesized(node)
        if isinstance(node, exp.Not):
            return self.bind_negation(node)
        if isinstance(node, exp.Alias):
            self.bind_condition(node.this)  # `(a = 1 b)`, where sqlglot takes b for a name
            raise self.cursor.refuse_token(TEST_ENDS)
        start = self.cursor.place
        if isinstance(node, exp.Is):
            return self.bind_is(node, negated=False)
        # The parser hides the names of functions from sqlglot, so the token says which it is.
        if isinstance(node, exp.Anonymous) and self.cursor.peek() == COALESCE:
            return self.bind_coalesce(node)
        return self.note_test(self.bind_test(node, negated=False), start)

    def note_test(self, predicate: Predicate, start: int) -> Predicate:
        """Note a test that reaches from a place to here."""
        self.tests.append(WrittenTest(tuple(iter_atoms(predicate)), self.cursor.extent(start)))
        return predicate

    def bind_parenthesized(self, node: exp.Paren) -> Predicate:
        """Bind a condition in parentheses."""
        if self.cursor.peek() != "(":
            # sqlglot sets parentheses of its own where a second test follows a first
            self.bind_condition(node.this)
            raise self.cursor.refuse_token(TEST_ENDS)
        self.cursor.place += 1
        inner = self.bind_condition(node.this)
        self.cursor.expect(")")
        return inner

    def bind_negation(self, node: exp.Not) -> Predicate:
        """Bind `NOT a`, `! a`, and `a NOT IN (…)`, which have the same tree."""
        start = self.cursor.place
        if not self.cursor.accept("NOT", "!"):
            if isinstance(node.this, exp.Is):
                return self.bind_is(node.this, negated=True)
            return self.note_test(self.bind_test(node.this, negated=True), start)
        negated = conditions.negate(self.bind_term(node.this))
        # a NOT before a test belongs to it, also where parentheses stand between
        if isinstance(negated, Atom):
            self.tests[-1].atoms = (negated,)
        if _is_single_test(node.this):
            self.tests[-1].extent = self.cursor.extent(start)
        return negated

    def bind_test(self, node: Node, negated: bool) -> Predicate:
        """Bind a condition without conditions in it."""
        if isinstance(node, exp.In):
            return self.bind_membership(node, negated)
        if isinstance(node, exp.Between):
            return self.bind_between(node, negated)
        if isinstance(node, _PATTERN_NODES):
            return self.bind_pattern(node, negated)
        if negated:
            raise self.refuse_node(node, "a condition")
        if isinstance(node, _COMPARISON_NODES):
            return self.bind_comparison(node)
        return self.bind_truth(node)

    def bind_truth(self, node: Node) -> Predicate:
        """Bind a BOOLEAN attribute or literal that stands as a condition."""
        value, extent = self.bind_operand(node, "a condition")
        # TRUE, FALSE and NULL are conditions by themselves.
        if value is None or isinstance(value, bool):
            return conditions.build_constant(value)
        # What follows the value is at fault then, not the value.
        if self.cursor.peek() not in _CONDITION_ENDS:
            raise self.cursor.refuse_token(TEST_ENDS)
        if isinstance(value, Column):
            return self.bind_flag(value, extent)
        message = "a literal is not a condition"
        raise self.cursor.make_error(TypeMismatch, message, extent=extent)

    def bind_flag(self, column: Column, extent: Extent) -> Predicate:
        """Bind a BOOLEAN column as the condition that it is TRUE."""
        if not isinstance(column.type, Boolean):
            message = f"`{column.key}` is {add_article(column.type.sql)}, not a condition"
            hint = "compare it with something"
            raise self.cursor.make_error(TypeMismatch, message, hint, extent=extent)
        return conditions.build_flag(column)

    def bind_comparison(self, node: exp.Expr) -> Predicate:
        """Bind `a < b`, with columns or literals on both sides."""
        start = self.cursor.place
        left = self.bind_first_operand(node.this)
        operator = OPERATORS.get(self.cursor.peek())
        if operator is None:
            raise self.cursor.refuse_token(TEST_ENDS)
        self.cursor.place += 1
        right = self.bind_operand(node.args.get("expression"), "a value")
        return self.compare(left, operator, right, self.cursor.extent(start))

    def compare(self, left: Operand, op: Operator, right: Operand, extent: Extent) -> Predicate:
        """Compare columns and literals in any order; the extent is that of the comparison."""
        # A column comes first: `3 < a` is `a > 3`.
        if not isinstance(left.value, Column) and isinstance(right.value, Column):
            left, right, op = right, left, MIRROR[op]
        column, other = left.value, right.value
        if not isinstance(column, Column):
            assert not isinstance(other, Column)
            return self.compare_constants(column, op, other, extent)
        if isinstance(other, Column):
            build = partial(conditions.build_column_comparison, column, op, other)
            return self.build_at(extent, build)
        build = partial(conditions.build_comparison, column, op, other, self.scope.zone)
        return self.build_at(right.extent, build)

    def compare_constants(
        self, first: Literal, op: Operator, second: Literal, extent: Extent
    ) -> Predicate:
        """Bind `1 = 1`, which generated SQL is fond of."""
        if first is None or second is None:
            return conditions.build_constant(None)
        # Numbers are compared with numbers, strings with strings and booleans with booleans; times
        # and mixtures are refused.
        if not (isinstance(first, Number) and isinstance(second, Number)) and (
            not isinstance(first, type(second)) or isinstance(first, TypedLiteral)
        ):
            message = "these constants are not compared"
            raise self.cursor.make_error(UnsupportedSql, message, extent=extent)
        return conditions.build_constant(
            OPERATOR_TESTS[op](compare_values(_to_value(first), _to_value(second), Timestamp()), 0)
        )

    def bind_membership(self, node: exp.In, negated: bool) -> Predicate:
        """Bind `a [NOT] IN (1, 2)`."""
        cursor = self.cursor
        column = self.bind_first_attribute(node.this)
        self.expect_test("IN", negated)
        cursor.expect("(")
        if cursor.peek() == "SELECT":
            raise cursor.refuse("IN with a subquery is not supported")
        items = [self.read_constant()]
        while cursor.accept(","):
            items.append(self.read_constant())
        cursor.expect(")")
        build = partial(conditions.build_membership, column, zone=self.scope.zone)
        try:
            # All at once; only where that fails, one by one to find the literal that is at fault.
            membership = build([item.value for item in items])
        except LiteralError:
            for item in items:
                self.build_at(item.extent, partial(build, [item.value]))
            raise
        return conditions.negate(membership) if negated else membership

    def read_constant(self) -> LiteralOperand:
        """Read the literal that has to stand here."""
        literal = self.read_literal()
        if literal is None:
            raise self.cursor.refuse_token("a constant")
        return literal

    def bind_between(self, node: exp.Between, negated: bool) -> Predicate:
        """Bind `a [NOT] BETWEEN b AND c`, with columns or literals in all places."""
        start = self.cursor.place
        value = self.bind_first_operand(node.this)
        self.expect_test("BETWEEN", negated)
        low = self.bind_operand(node.args.get("low"), "a value")
        self.cursor.expect("AND")
        high = self.bind_operand(node.args.get("high"), "a value")
        extent = self.cursor.extent(start)
        bound = self.compare(value, ">=", low, extent)
        column, first, last = value.value, low.value, high.value
        if not isinstance(column, Column) or isinstance(first, Column) or isinstance(last, Column):
            bound = conjunction((bound, self.compare(value, "<=", high, extent)))
        else:
            # Literals at both ends make one set of values. The comparison above was made only for
            # its error, which stands at the lower end.
            build = partial(conditions.build_between, column, first, last, self.scope.zone)
            bound = self.build_at(high.extent, build)
        return conditions.negate(bound) if negated else bound

    def bind_pattern(self, node: exp.Expr, negated: bool) -> Predicate:
        """Bind `a [NOT] LIKE 'x%' [ESCAPE '|']`, ILIKE and RLIKE."""
        start = self.cursor.place
        # ESCAPE is a node around the LIKE that it belongs to.
        like: Any = node.this if isinstance(node, exp.Escape) else node
        if not isinstance(like, _PATTERN_NODES):
            raise self.refuse_node(node, "a condition")
        column = self.bind_first_attribute(like.this)
        # NOT LIKE is a flag of its node, while NOT RLIKE is a node NOT around it.
        negated = negated or bool(like.args.get("negate"))
        if negated:
            self.cursor.expect("NOT")
        kind = _PATTERN_KINDS.get(self.cursor.peek())
        if kind is None:
            raise self.cursor.refuse_token(TEST_ENDS)
        self.cursor.place += 1
        text = self.bind_operand(like.args.get("expression"), "a pattern")
        escape = "\\"
        if kind != "RLIKE" and self.cursor.accept("ESCAPE"):
            character = self.read_constant().value
            if not isinstance(character, str) or len(character) != 1:
                message, extent = "ESCAPE takes a single character", self.cursor.extent(start)
                raise self.cursor.make_error(InvalidPattern, message, extent=extent)
            escape = character
        matches = self.bind_match(column, kind, text, escape)
        return conditions.negate(matches) if negated else matches

    def bind_match(
        self, column: Column, kind: PatternKind, text: Operand, escape: str
    ) -> Predicate:
        """Bind a match with a pattern, which must be a string."""
        value = text.value
        if isinstance(value, Column):
            message = f"{kind} needs a string pattern, not an attribute"
            raise self.cursor.make_error(UnsupportedSql, message, extent=text.extent)
        if value is None:
            return conditions.build_constant(None)
        if not isinstance(value, str):
            message = f"{kind} needs a string pattern"
            raise self.cursor.make_error(TypeMismatch, message, extent=text.extent)
        build = partial(conditions.build_match, column, kind, value, escape)
        return self.build_at(text.extent, build)

    def expect_test(self, word: str, negated: bool) -> None:
        """Step over the word of a test and the NOT before it."""
        if negated:
            self.cursor.expect("NOT")
        if self.cursor.peek() != word:
            raise self.cursor.refuse_token(TEST_ENDS)
        self.cursor.place += 1

    def bind_is(self, node: exp.Is, negated: bool) -> Predicate:
        """Bind `a IS [NOT] NULL`, and IS [NOT] TRUE, FALSE or NULL of a condition."""
        start, cursor = self.cursor.place, self.cursor
        # An attribute is tested itself; anything else before IS is a condition, in parentheses.
        column = None
        if isinstance(_unwrap(node.this), _NAME_NODES):
            column, extent = self.bind_operand(node.this, "a condition")
        elif isinstance(node.this, _CONDITION_NODES):
            self.bind_first_operand(node.this)
        else:
            inner = self.bind_nested(node.this)
        # NULL, TRUE or FALSE stands behind IS, or behind IS NOT.
        ahead = 2 if negated else 1
        word = cursor.peek(ahead)
        if cursor.peek() != "IS" or word not in _TRUTHS or (negated and cursor.peek(1) != "NOT"):
            raise cursor.refuse_token(TEST_ENDS)
        cursor.place += ahead + 1
        if isinstance(column, Column):
            if word == "NULL":
                return self.note_test(IsNull(column, negated), start)
            inner = self.note_test(self.bind_flag(column, extent), start)
        # `TRUE IS NULL`: the test that was noted for its literal reaches to the end of IS.
        elif _is_single_value(node.this):
            self.tests[-1].extent = cursor.extent(start)
        truth = Truth(inner, frozenset({_TRUTHS[word]}))
        return conditions.negate(truth) if negated else truth

    def bind_coalesce(self, node: exp.Anonymous) -> Predicate:
        """Bind COALESCE(condition, TRUE or FALSE)."""
        start, cursor = self.cursor.place, self.cursor
        cursor.place += 1
        cursor.expect("(")
        inner = self.bind_nested(node.expressions[0] if node.expressions else None)
        cursor.expect(",")
        default = cursor.peek()
        if default not in _TRUTHS:
            raise cursor.refuse("only TRUE, FALSE or NULL can stand here")
        cursor.place += 1
        cursor.expect(")")
        if default == "NULL":
            message, extent = "COALESCE(…, NULL) does nothing", cursor.extent(start)
            raise cursor.make_error(UnsupportedSql, message, extent=extent)
        # A default of TRUE accepts what is NULL, one of FALSE does not.
        accepted: Accepted = frozenset({True, None} if default == "TRUE" else {True})
        return Truth(inner, accepted)

    def bind_nested(self, node: Node) -> Predicate:
        """Bind the condition inside a truth test, which may not nest deeply."""
        self.depth += 1
        if self.depth > MAX_TRUTH_TESTS:
            message = "truth tests of conditions nest too deeply"
            raise self.cursor.make_error(TooLarge, message, f"at most {MAX_TRUTH_TESTS} levels")
        inner = self.bind_condition(node)
        self.depth -= 1
        return inner

    def bind_operand(self, node: Node, expected: str) -> Operand:
        """Bind a column or a literal, maybe in parentheses."""
        cursor = self.cursor
        if isinstance(node, exp.Paren) and cursor.peek() == "(":
            cursor.place += 1
            start = cursor.place
            if isinstance(_unwrap(node.this), (*_CONDITION_NODES, exp.Alias)):
                # Errors inside the condition come first.
                self.bind_condition(node.this)
                message, hint = "a condition is not compared with a value", "write (…) IS TRUE"
                extent = cursor.extent(start)
                raise cursor.make_error(UnsupportedSql, message, hint, extent=extent)
            inner = self.bind_operand(node.this, "a condition")
            cursor.expect(")")
            return inner
        if isinstance(node, _NAME_NODES):
            start = cursor.place
            return Operand(self.bind_column(expected), cursor.extent(start))
        literal = self.read_literal() if isinstance(node, _LITERAL_NODES) else None
        if literal is None:
            raise self.refuse_node(node, expected)
        return Operand(*literal)

    def bind_first_operand(self, node: Node) -> Operand:
        """Bind the operand that a test begins with."""
        if isinstance(node, exp.Paren) and self.cursor.peek() != "(":
            self.bind_parenthesized(node)
        if not isinstance(node, _CONDITION_NODES):
            return self.bind_operand(node, "a condition")
        # a second test behind a first, which is read to its end
        first: Any = node
        while isinstance(first.args.get("this"), _CONDITION_NODES):
            first = first.this
        self.bind_term(first)
        raise self.cursor.refuse_token(TEST_ENDS)

    def bind_first_attribute(self, node: Node) -> Column:
        """Bind the attribute that a test begins with."""
        value, extent = self.bind_first_operand(node)
        if not isinstance(value, Column):
            message = "an attribute is expected here"
            raise self.cursor.make_error(UnsupportedSql, message, extent=extent)
        return value

    def bind_column(self, expected: str) -> Column:
        """Bind the attribute whose name stands here."""
        start = self.cursor.place
        parts = self.cursor.read_name(expected)
        if self.cursor.peek() == "(":
            raise self.cursor.refuse_call()
        extent = self.cursor.extent(start)
        try:
            return self.scope.resolve(parts)
        except NameProblem as problem:
            message, hint = str(problem), problem.hint
            raise self.cursor.make_error(UnknownName, message, hint, extent=extent) from None

    def read_literal(self) -> LiteralOperand | None:
        """Read the literal that begins here, if one does; its tokens say which."""
        cursor, start = self.cursor, self.cursor.place
        word, kind = cursor.peek(), cursor.kind()
        value: Literal
        if kind == "number":
            value = self.read_number()
        elif word in SIGNS:
            while cursor.accept("-", "+"):
                pass
            if cursor.kind() != "number":
                raise cursor.refuse_token("a number")
            # An even number of minus signs cancels out.
            signs = cursor.words[start : cursor.place]
            value = self.read_number()
            if signs.count("-") % 2:
                value = Number("-" + value.text) if isinstance(value, Number) else -value
        elif kind == "string":
            value = self.read_string()
        # DATE and TIMESTAMP are names, too, unless a string follows.
        elif word in LITERAL_TYPES and cursor.kind(1) == "string":
            cursor.place += 1
            start = cursor.place  # an error is in the string
            value = TypedLiteral(word, self.read_string())
        elif word == "CAST" and cursor.peek(1) == "(":
            value = self.read_cast()
        elif kind == "word" and word in _TRUTHS:
            cursor.place += 1
            value = _TRUTHS[word]
        else:
            return None
        extent = cursor.extent(start)
        try:
            check_literal(value)
        except LiteralError as problem:
            error = cursor.make_error(TypeMismatch, str(problem), problem.hint, extent=extent)
            raise error from None
        return LiteralOperand(value, extent)

    def read_number(self) -> Number | float:
        """Read 10, 1.5e3, 10L, 1.5D or 1.5BD."""
        token = self.cursor.tokens[self.cursor.place]
        match = _NUMBER.fullmatch(token.text)
        assert match is not None
        text, suffix = match[1], (match[2] or "").upper()
        if not suffix or (suffix in _EXACT_SUFFIXES and text.replace(".", "", 1).isdigit()):
            self.cursor.place += 1
            return Number(text)
        # 1e400D is no number: it would be read as infinity.
        if suffix != "D" or not math.isfinite(float(text)):
            message = f"a literal of type {_SUFFIX_TYPES[suffix]} is not supported"
            raise self.cursor.refuse(message)
        self.cursor.place += 1
        return float(text)

    def read_string(self) -> str:
        """Read a string literal, from how it is written."""
        try:
            text = unescape(self.cursor.tokens[self.cursor.place].text)
        except LiteralError as problem:
            raise self.cursor.make_error(TypeMismatch, str(problem)) from None
        self.cursor.place += 1
        return text

    def read_cast(self) -> float:
        """Read CAST('NaN' AS DOUBLE), and the infinities."""
        cursor, start = self.cursor, self.cursor.place
        cursor.place += 2
        if cursor.kind() != "string":
            raise cursor.refuse("CAST of anything but a string is not supported")
        value = parse_special_double(self.read_string())
        cursor.expect("AS")
        if not cursor.accept("DOUBLE"):
            raise cursor.refuse(_NO_CAST, _WRITE_LITERAL)
        cursor.expect(")")
        if value is None:
            extent = cursor.extent(start)
            raise cursor.make_error(UnsupportedSql, _NO_CAST, _WRITE_LITERAL, extent=extent)
        return value

    def refuse_node(self, node: Node, expected: str, then: str = TEST_ENDS) -> SqlError:
        """Return the error for a node that is not in the language.

        It stands at the first token that does not belong: `a + 1` is read up to the plus.
        """
        cursor = self.cursor
        if cursor.peek() == "(" and cursor.peek(1) == "SELECT":
            cursor.place += 1
            return cursor.refuse("a subquery is not supported")
        # Read the operand that the node begins with; what stands behind it is what is refused.
        leftmost: Any = node
        while isinstance(leftmost, _LEFT_FIRST_NODES) and leftmost.args.get("this"):
            leftmost = leftmost.this
        if leftmost is not node and isinstance(leftmost, _OPERAND_NODES):
            self.bind_operand(leftmost, expected)
            return self.refuse_rest(then)
        # `(a, b) = …`: rows of values are not in the language.
        if isinstance(node, exp.Tuple) and cursor.accept("("):
            cursor.skip_value()
            return cursor.refuse_token(")")
        if isinstance(node, exp.Anonymous) and cursor.peek() == COALESCE:
            message, hint = "a condition is not compared with a value", "write (…) IS TRUE"
            return cursor.refuse(message, hint)
        if cursor.skip_value():
            return self.refuse_rest(then)
        return cursor.refuse_operand(expected)

    def refuse_rest(self, then: str) -> SqlError:
        """Return the error for what stands behind an operand."""
        cursor = self.cursor
        if cursor.peek() == "(" and cursor.tokens[cursor.place - 1].kind in ("word", "quoted"):
            return cursor.refuse_call()
        return cursor.refuse_token(then)

    def build_at(self, extent: Extent, build: Callable[[], Predicate]) -> Predicate:
        """Build a condition; what is wrong with it is wrong at this piece of the text."""
        try:
            return build()
        except PatternRefused as refused:
            message = f"the pattern is refused: {refused.reason}"
            error = self.cursor.make_error(InvalidPattern, message, extent=extent, topic=message)
            raise error from None
        except (LiteralError, ConditionError) as problem:
            hint = problem.hint if isinstance(problem, LiteralError) else ""
            error = self.cursor.make_error(TypeMismatch, str(problem), hint, extent=extent)
            raise error from None


def _unwrap(node: Node) -> Node:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_single_value(node: Node) -> bool:
    return isinstance(_unwrap(node), _NAME_NODES + _LITERAL_NODES)


def _is_single_test(node: Node) -> bool:
    """Return whether this is one test, maybe in parentheses and negated."""
    while isinstance(node, exp.Paren | exp.Not):
        node = node.this
    if isinstance(node, exp.Is):
        return _is_single_value(node.this)
    return not isinstance(node, exp.Connector | exp.Anonymous)


def _to_value(literal: Number | TypedLiteral | str | bool | float) -> Any:
    """Return a literal as a Python value that `compare_values` can compare."""
    if isinstance(literal, Number):
        return evaluate_literal(literal, DecimalType(38, 0), "UTC")
    return literal
