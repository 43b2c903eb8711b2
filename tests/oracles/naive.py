r"""The meaning of a WHERE clause, from its text alone, written without the product.

A parser of Spark's grammar by hand, and three-valued logic over Python's exact numbers. Nothing is
normalised, nothing is fast; every clause is what the contract says, word for word.

>>> naive("a > 3.5 OR b IS NULL", {"a": 4, "b": None}, {"a": "INT", "b": "STRING"})
True
>>> naive(r"b LIKE '50\\%%' AND a <> 1", {"a": None, "b": "50% off"}, {"a": "INT", "b": "STRING"})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.oracles.operands import (
    Attribute,
    Literal,
    NotUnderstoodError,
    Row,
    always,
    holds,
    key_reader,
    number_literal,
    unescape,
)
from tests.oracles.patterns import like, like_pieces, regex

Types = Mapping[str, str]
Truth = bool | None
Meaning = Callable[[Row], Truth]


def naive(text: str, row: Row, types: Types) -> Truth:
    """TRUE, FALSE or NULL; `types` gives each attribute's SQL type by name."""
    return meaning(text, types)(row)


def meaning(text: str, types: Types) -> Meaning:
    """The clause as a function of a row, for texts that meet many rows."""
    parser = Parser(text, types)
    result = parser.condition_of(parser.disjunction())
    parser.end()
    return result


@dataclass(frozen=True)
class Condition:
    truth: Meaning


Expression = Attribute | Literal | Condition

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<string>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:L|BD|D)?(?![\w]))
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<sign><=|>=|<>|!=|==|[=<>(),.!+-])""",
    re.VERBOSE | re.DOTALL,
)
OPERATORS = {"=", "==", "<>", "!=", "<", "<=", ">", ">="}
WORDS = set(
    "AND OR NOT IN BETWEEN LIKE ILIKE RLIKE REGEXP ESCAPE IS NULL TRUE FALSE "
    "COALESCE CAST AS".split()
)


class Parser:
    """Spark's grammar: NOT binds looser than a comparison and tighter than AND, AND than OR."""

    def __init__(self, text: str, types: Types) -> None:
        self.types = {name.lower(): (name, type_) for name, type_ in types.items()}
        self.tokens = list(tokenize(text))
        self.at = 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def skip(self, *words: str) -> bool:
        """Take these words or signs if they all stand here."""
        here = [self.peek(n) for n in range(len(words))]
        result = [text.upper() for kind, text in here if kind in ("word", "sign")] == list(words)
        self.at += len(words) if result else 0
        return result

    def expect(self, *words: str) -> None:
        if not self.skip(*words):
            raise NotUnderstoodError(f"{' '.join(words)} expected, not {self.peek()[1]!r}")

    def end(self) -> None:
        if self.peek()[0] != "end":
            raise NotUnderstoodError(f"{self.peek()[1]!r} stands behind the end")

    def disjunction(self) -> Expression:
        parts = [self.conjunction()]
        while self.skip("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else self.join(parts, winner=True)

    def conjunction(self) -> Expression:
        parts = [self.negation()]
        while self.skip("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else self.join(parts, winner=False)

    def join(self, parts: list[Expression], *, winner: bool) -> Condition:
        """AND, where FALSE wins over NULL over TRUE; OR, where TRUE wins."""
        meanings = [self.condition_of(part) for part in parts]

        def truth(row: Row) -> Truth:
            truths = [each(row) for each in meanings]
            if winner in truths:
                return winner
            return None if None in truths else not winner

        return Condition(truth)

    def negation(self) -> Expression:
        if not self.skip("NOT") and not self.skip("!"):
            return self.predicate()
        inner = self.condition_of(self.negation())
        return Condition(lambda row: opposite(inner(row)))

    def predicate(self) -> Expression:
        left = self.value()
        kind, sign = self.peek()
        if kind == "sign" and sign in OPERATORS:
            self.take()
            left = self.comparison(left, sign, self.value())
        if self.skip("IS"):
            return self.test(left)
        negated = self.skip("NOT")
        if self.skip("IN"):
            return self.maybe_negated(self.membership(left), negated)
        if self.skip("BETWEEN"):
            low = self.value()
            self.expect("AND")
            first = self.comparison(left, ">=", low)
            both: list[Expression] = [first, self.comparison(left, "<=", self.value())]
            return self.maybe_negated(self.join(both, winner=False), negated)
        for word in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            if self.skip(word):
                return self.maybe_negated(self.pattern(left, word), negated)
        if negated:
            raise NotUnderstoodError("NOT before nothing that it negates")
        return left

    def maybe_negated(self, condition: Condition, negated: bool) -> Condition:
        if not negated:
            return condition
        return Condition(lambda row: opposite(condition.truth(row)))

    def comparison(self, left: Expression, sign: str, right: Expression) -> Condition:
        if isinstance(left, Condition) or isinstance(right, Condition):
            raise NotUnderstoodError("conditions are not compared")
        key_left, key_right = key_reader(left, right), key_reader(right, left)

        def truth(row: Row) -> Truth:
            a, b = key_left(row), key_right(row)
            return None if a is None or b is None else holds(a, sign, b)

        return Condition(truth)

    def membership(self, left: Expression) -> Condition:
        """`a IN (x, y)` is `a = x OR a = y`."""
        self.expect("(")
        options: list[Expression] = [self.comparison(left, "=", self.value())]
        while self.skip(","):
            options.append(self.comparison(left, "=", self.value()))
        self.expect(")")
        return self.join(options, winner=True)

    def pattern(self, left: Expression, kind: str) -> Condition:
        pattern = self.value()
        escape = "\\"
        if self.skip("ESCAPE"):
            character = self.value()
            if not isinstance(character, Literal) or len(character.content) != 1:
                raise NotUnderstoodError("ESCAPE takes one character")
            escape = character.content
        if isinstance(pattern, Literal) and pattern.kind == "null":
            return Condition(always(None))
        if not isinstance(left, Attribute) or left.type != "STRING":
            raise NotUnderstoodError(f"{kind} tests a STRING")
        if not isinstance(pattern, Literal) or pattern.kind != "string":
            raise NotUnderstoodError(f"{kind} needs a string")
        name, test = left.name, text_test(kind, pattern.content, escape)
        return Condition(lambda row: None if row[name] is None else test(row[name]))

    def test(self, left: Expression) -> Condition:
        negated = self.skip("NOT")
        word = self.take()[1].upper()
        if word not in ("NULL", "TRUE", "FALSE"):
            raise NotUnderstoodError("IS takes NULL, TRUE or FALSE")
        wanted = None if word == "NULL" else word == "TRUE"
        if isinstance(left, Attribute) and wanted is None:
            name = left.name
            return Condition(lambda row: (row[name] is None) != negated)
        inner = self.condition_of(left)
        return Condition(lambda row: (inner(row) is wanted) != negated)

    def value(self) -> Expression:
        """An operand: literal, attribute, COALESCE or something in parentheses."""
        if self.skip("("):
            inner = self.disjunction()
            self.expect(")")
            return inner
        if self.skip("-"):
            return minus(self.value())
        if self.skip("+"):
            return self.value()
        kind, text = self.take()
        if kind == "number":
            return number_literal(text)
        if kind in ("string", "raw"):
            return Literal("string", text[2:-1] if kind == "raw" else unescape(text))
        if kind == "name" or (kind == "word" and text.upper() not in WORDS):
            return self.named(kind, text)
        return self.keyword(text.upper())

    def keyword(self, word: str) -> Expression:
        if word in ("TRUE", "FALSE"):
            return Literal("boolean", word)
        if word == "NULL":
            return Literal("null", "")
        if word == "COALESCE":
            return self.coalesce()
        if word == "CAST":
            self.expect("(")
            content = self.value()
            self.expect("AS", "DOUBLE", ")")
            if isinstance(content, Literal) and content.kind == "string":
                return Literal("double", content.content)
        raise NotUnderstoodError(f"{word!r} is not an operand")

    def coalesce(self) -> Condition:
        self.expect("(")
        inner = self.condition_of(self.disjunction())
        self.expect(",")
        default = self.keyword(self.take()[1].upper())
        self.expect(")")
        if not isinstance(default, Literal) or default.kind != "boolean":
            raise NotUnderstoodError("COALESCE ends in TRUE or FALSE")
        instead = default.content == "TRUE"

        def truth(row: Row) -> Truth:
            result = inner(row)
            return instead if result is None else result

        return Condition(truth)

    def named(self, kind: str, text: str) -> Expression:
        """DATE '…' and TIMESTAMP '…', or an attribute with its dots."""
        word = text.upper()
        if kind == "word" and word in ("DATE", "TIMESTAMP") and self.peek()[0] == "string":
            return Literal(word.lower(), unescape(self.take()[1]))
        parts = [bare(kind, text)]
        while self.skip("."):
            parts.append(bare(*self.take()))
        for name in (".".join(parts), ".".join(parts[1:])):  # the stream's name may stand before
            if name.lower() in self.types:
                return Attribute(*self.types[name.lower()])
        raise NotUnderstoodError(f"no attribute {'.'.join(parts)!r}")

    def condition_of(self, expression: Expression) -> Meaning:
        """The truth of an expression that stands as a condition."""
        if isinstance(expression, Condition):
            return expression.truth
        if isinstance(expression, Attribute) and expression.type == "BOOLEAN":
            name = expression.name
            return lambda row: row[name]
        if isinstance(expression, Literal) and expression.kind in ("boolean", "null"):
            return always(None if expression.kind == "null" else expression.content == "TRUE")
        raise NotUnderstoodError("this is not a condition")


def tokenize(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise NotUnderstoodError(f"no token at {text[at : at + 10]!r}")
        at = match.end()
        if match.lastgroup != "space":
            yield str(match.lastgroup), match.group()


def bare(kind: str, text: str) -> str:
    if kind == "name":
        return text[1:-1].replace("``", "`")
    if kind != "word":
        raise NotUnderstoodError("a name is expected")
    return text


def minus(operand: Expression) -> Literal:
    if not isinstance(operand, Literal) or operand.kind not in ("number", "double"):
        raise NotUnderstoodError("only numbers have a sign")
    text = operand.content
    return Literal(operand.kind, text[1:] if text.startswith("-") else "-" + text)


def opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


def text_test(kind: str, pattern: str, escape: str) -> Callable[[str], bool]:
    if kind in ("RLIKE", "REGEXP"):
        return lambda text: regex(text, pattern)
    if kind == "LIKE":
        pieces = like_pieces(pattern, escape)
        return lambda text: like(text, pieces)
    lowered = like_pieces(pattern.lower(), escape)
    return lambda text: like(text.lower(), lowered)
