"""The fast way through the common subset: whole atoms are the tokens.

A million rules repeat the same few kinds of condition. One regular expression reads a complete atom
(`price >= 10`, `side IN ('buy', 'sell')`) as a single token, atoms are cached by their text, and
AND, OR, NOT and parentheses are a small grammar over them. Whatever does not fit, or is wrong,
returns None: then `where` reads it through sqlglot, which also finds the position of the error.
Both ways build their conditions by `conditions`, and the tests hold them equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from headgate.predicate import Column, IsNull, Operator, Predicate, conjunction, disjunction
from headgate.predicate.pattern.errors import PatternRefused
from headgate.schema import Boolean
from headgate.sql import conditions
from headgate.sql.conditions import ConditionError
from headgate.sql.lexer import MAX_DEPTH, MAX_LITERAL, MAX_STATEMENT, is_unicode
from headgate.sql.literals import Literal, LiteralError, Number, Typed
from headgate.sql.plain_atoms import plain_atom, plain_column
from headgate.sql.scope import NameProblem, Scope
from headgate.sql.words import RESERVED, TYPED

MAX_CACHE = 500_000
LONG = 5_000

# Quantifiers are possessive (`*+`), so that reading is linear in the text, whatever it is.
_NAME = r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+"
_NUMBER = r"-?\d++(?:\.\d++)?+(?:E[+-]?\d++)?+(?![\w.])"
_TEXT = r"'[^'\\]*+'(?!')"
_LITERAL = rf"(?:{_NUMBER}|{_TEXT}|(?:DATE|TIMESTAMP)\s*{_TEXT}|TRUE\b|FALSE\b)"
_TOKEN = re.compile(
    rf"""\s*+(?:
    ( {_NAME} (?: \s*+(?:<=|>=|<>|!=|==|=|<|>)\s*+ (?:{_LITERAL}|{_NAME}(?!\s*+[('.]))
              | \s++(?:NOT\s++)?+ (?: IN\s*+\(\s*+{_LITERAL}(?:\s*+,\s*+{_LITERAL})*+\s*+\)
                                    | BETWEEN\s++{_LITERAL}\s++AND\s++{_LITERAL}
                                    | LIKE\s++{_TEXT}(?!\s*+ESCAPE) )
              | \s++IS\s++(?:NOT\s++)?+NULL\b
              | (?=\s*+(?:AND\b|OR\b|\)|$)) ) )
  | (AND\b | OR\b | NOT\b | \( | \))
  | (\S.*) )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
_COMPARISON = re.compile(
    rf"({_NAME})\s*(<=|>=|<>|!=|==|=|<|>)\s*(?:({_LITERAL})|({_NAME}))", re.IGNORECASE | re.ASCII
)
_OTHER = re.compile(
    rf"({_NAME})\s+(IS\s+)?(NOT\s+)?(IN|BETWEEN|LIKE|NULL)\b(.*)", re.I | re.A | re.S
)
_WORD = re.compile(_NAME, re.ASCII)
_LITERALS = re.compile(_LITERAL, re.IGNORECASE | re.ASCII)
_OPERATORS: dict[str, Operator] = {
    "<": "<",
    "<=": "<=",
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    ">=": ">=",
    ">": ">",
}
_WORDS = RESERVED | TYPED
_Cache = dict[str, Predicate]


def condition(text: str, scope: Scope, cache: _Cache | None = None) -> Predicate | None:
    """The predicate of a condition, or None where it is not of the common subset.

    >>> from headgate.schema import INT, Attribute, Stream
    >>> from headgate.sql.where import parse_condition
    >>> scope = Scope.of(Stream("s", (Attribute("a", INT), Attribute("b", INT))))
    >>> condition("a > 3 AND (b = 1 OR a < b)", scope) == parse_condition(
    ...     "a > 3 AND (b = 1 OR a < b)", scope)
    True
    >>> condition("lower(a) = 3", scope) is None
    True
    """
    if len(text) > MAX_STATEMENT or "\0" in text or not is_unicode(text):
        return None
    if cache is None:
        cache = {}
    groups: list[_Group] = [_Group()]
    for atom, word, other in _tokens(text):
        if other:
            return None
        group = groups[-1]
        if atom:
            part = cache.get(atom) or _bind(atom, scope, cache)
            if part is None or not group.operand(part):
                return None
        elif word == "(":
            if not group.expects_operand or len(groups) > MAX_DEPTH:
                return None
            groups.append(_Group())
        elif word == ")":
            if len(groups) == 1 or group.expects_operand:
                return None
            groups.pop()
            groups[-1].operand(group.closed())
        elif not group.connective(word.upper()):
            return None
    return None if len(groups) > 1 or groups[0].expects_operand else groups[0].closed()


def _tokens(text: str) -> Iterable[tuple[str, str, str]]:
    """All at once where the text is short; one by one where an early refusal saves much work."""
    text = text.rstrip()  # blanks at the end would be tried from each of them
    if len(text) < LONG:
        return _TOKEN.findall(text)
    return (match.groups("") for match in _TOKEN.finditer(text))  # type: ignore[misc]


class _Group:
    """What stands inside one pair of parentheses: an OR of ANDs, read from left to right."""

    __slots__ = ("conjuncts", "disjuncts", "expects_operand", "negations")

    def __init__(self) -> None:
        self.disjuncts: list[Predicate] = []
        self.conjuncts: list[Predicate] = []
        self.negations = 0
        self.expects_operand = True

    def operand(self, part: Predicate) -> bool:
        if not self.expects_operand:
            return False
        if self.negations:
            for _ in range(self.negations):
                part = conditions.negation(part)
            self.negations = 0
        self.conjuncts.append(part)
        self.expects_operand = False
        return True

    def connective(self, word: str) -> bool:
        if word == "NOT":
            self.negations += 1
            return self.expects_operand and self.negations <= MAX_DEPTH
        if self.expects_operand:
            return False
        if word == "OR":
            self.disjuncts.append(conjunction(self.conjuncts))
            self.conjuncts = []
        self.expects_operand = True
        return True

    def closed(self) -> Predicate:
        last = conjunction(self.conjuncts)
        return disjunction([*self.disjuncts, last]) if self.disjuncts else last


def _bind(text: str, scope: Scope, cache: _Cache) -> Predicate | None:
    """The predicate of one atom's text."""
    try:
        found = plain(text, scope) or general(text, scope)
    except (LiteralError, ConditionError, NameProblem, PatternRefused):
        return None
    if found is not None and len(cache) < MAX_CACHE:
        cache[text] = found
    return found


def plain(text: str, scope: Scope) -> Predicate | None:
    """An atom in its commonest spelling."""
    name, _, rest = text.partition(" ")
    if name not in scope.plain:
        scope.plain[name] = plain_column(_column(name, scope)) if _WORD.fullmatch(name) else None
    known = scope.plain[name]
    operator, _, operand = rest.partition(" ")
    return None if known is None else plain_atom(known, operator, operand)


def general(text: str, scope: Scope) -> Predicate | None:
    """An atom in any spelling of the common subset."""
    return _comparison(text, scope) or _other(text, scope) or _flag(text, scope)


def _comparison(text: str, scope: Scope) -> Predicate | None:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        return None
    name, operator, literal, other = match.groups()
    op = _OPERATORS[operator]
    if literal is not None:
        return conditions.compare(_column(name, scope), op, _literal(literal), scope.zone)
    return conditions.compare_columns(_column(name, scope), op, _column(other, scope))


def _other(text: str, scope: Scope) -> Predicate | None:
    match = _OTHER.fullmatch(text)
    if match is None:
        return None
    name, _, negated, kind, rest = match.groups()
    column = _column(name, scope)
    if kind.upper() == "NULL":
        return IsNull(column, negated is not None)
    literals = [_literal(literal) for literal in _LITERALS.findall(rest)]
    if kind.upper() == "IN":
        found = conditions.within(column, literals, scope.zone)
    elif kind.upper() == "BETWEEN":
        found = conditions.between(column, literals[0], literals[1], scope.zone)
    else:
        assert isinstance(literals[0], str)
        found = conditions.matches(column, "LIKE", literals[0])
    return conditions.negation(found) if negated else found


def _flag(text: str, scope: Scope) -> Predicate | None:
    """A BOOLEAN attribute alone."""
    column = _column(text, scope)
    return conditions.is_true(column) if isinstance(column.type, Boolean) else None


def _column(name: str, scope: Scope) -> Column:
    known = scope.unquoted.get(name)
    if known is None:
        parts = name.split(".")
        if any(part.upper() in _WORDS for part in parts):
            raise NameProblem(f"`{name}` is a word of the language", "")
        known = scope.unquoted[name] = scope.column(parts)
    return known


def _literal(text: str) -> Literal:
    if len(text) > MAX_LITERAL:
        raise LiteralError("too long")
    if text[0] == "'":
        return text[1:-1]
    word = text[:4].upper()
    if word in ("TRUE", "FALS"):
        return word == "TRUE"
    if word in ("DATE", "TIME"):
        kind, value = text.split("'")[:2]
        return Typed(kind.strip().upper(), value)
    return Number(text)
