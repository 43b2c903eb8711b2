r"""The fast path for plain conditions: whole atoms are the tokens.

A million rules repeat the same few kinds of condition. One regular expression reads a complete atom
(`price >= 10`, `side IN ('buy', 'sell')`) as a single token, atoms are cached by their text, and
AND, OR, NOT and parentheses are a small loop over them. Whatever does not fit, or is wrong, is
declined: then `binder` reads it through sqlglot, and also finds the position of the error. The
tests hold both equal on every text that the fast path does not decline.

An atom that is not in the cache is read in one of two ways. In its commonest spelling, `name
operator literal` one space apart with a literal of the attribute's own type, it goes straight from
text to cuts: `price >= 10.50` on DECIMAL(10, 2) is a cut at 1050. The general way would build ten
objects to learn that number. Everything else, also a value at a limit of its type, is taken apart
by regular expressions and built by `conditions`, as the binder does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from headgate.predicate import Column, IsNull, Predicate, conjunction, disjunction
from headgate.predicate.pattern.errors import PatternRefused
from headgate.schema import Boolean
from headgate.sql import conditions
from headgate.sql.conditions import OPERATORS, ConditionError
from headgate.sql.cursor import MAX_DEPTH
from headgate.sql.lexer import LITERAL_TYPES, MAX_LITERAL, MAX_STATEMENT, RESERVED, is_unicode
from headgate.sql.literals import Literal, LiteralError, Number, TypedLiteral
from headgate.sql.ordinals import TestReaders, make_test_readers
from headgate.sql.scope import NameProblem, Scope

MAX_CACHED_ATOMS = 500_000
MAX_FINDALL_LENGTH = 5_000

# Quantifiers are possessive (`*+`), so that reading is linear in the text, whatever it is.
_NAME = r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+"
_NUMBER = r"-?\d++(?:\.\d++)?+(?:E[+-]?\d++)?+(?![\w.])"
_STRING = r"'[^'\\]*+'(?!')"
_LITERAL = rf"(?:{_NUMBER}|{_STRING}|(?:DATE|TIMESTAMP)\s*{_STRING}|TRUE\b|FALSE\b)"
# Three groups: a whole atom, a connective or parenthesis, and anything else, which declines. An
# atom is a comparison, IN, BETWEEN or LIKE, IS NULL, or a flag that stands as a condition.
_TOKEN = re.compile(
    rf"""\s*+(?:
    ( {_NAME} (?: \s*+(?:<=|>=|<>|!=|==|=|<|>)\s*+ (?:{_LITERAL}|{_NAME}(?!\s*+[('.]))
              | \s++(?:NOT\s++)?+ (?: IN\s*+\(\s*+{_LITERAL}(?:\s*+,\s*+{_LITERAL})*+\s*+\)
                                    | BETWEEN\s++{_LITERAL}\s++AND\s++{_LITERAL}
                                    | LIKE\s++{_STRING}(?!\s*+ESCAPE) )
              | \s++IS\s++(?:NOT\s++)?+NULL\b
              | (?=\s*+(?:AND\b|OR\b|\)|$)) ) )
  | (AND\b | OR\b | NOT\b | \( | \))
  | (\S.*) )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
# These take an atom apart that `_TOKEN` has accepted as a whole.
_COMPARISON = re.compile(
    rf"({_NAME})\s*(<=|>=|<>|!=|==|=|<|>)\s*(?:({_LITERAL})|({_NAME}))", re.IGNORECASE | re.ASCII
)
_SET_TEST = re.compile(
    rf"({_NAME})\s+(IS\s+)?(NOT\s+)?(IN|BETWEEN|LIKE|NULL)\b(.*)", re.I | re.A | re.S
)
_PLAIN_NAME = re.compile(_NAME, re.ASCII)
_LITERALS = re.compile(_LITERAL, re.IGNORECASE | re.ASCII)
_RESERVED_NAMES = RESERVED | LITERAL_TYPES


class FastPath:
    """A reader of plain conditions on the streams of one scope, which remembers their atoms.

    >>> from headgate.schema import INT, Attribute, Stream
    >>> from headgate.sql.binder import parse_condition
    >>> scope = Scope.of(Stream("s", (Attribute("a", INT), Attribute("b", INT))))
    >>> fast_path = FastPath(scope)
    >>> fast_path.parse("a > 3 AND (b = 1 OR a < b)") == parse_condition(
    ...     "a > 3 AND (b = 1 OR a < b)", scope)
    True
    >>> fast_path.parse("lower(a) = 3") is None
    True
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._atoms: dict[str, Predicate] = {}
        self._columns: dict[str, Column] = {}
        self._test_readers: dict[str, TestReaders] = {}
        self._general_names: set[str] = set()  # of columns whose literals are read the general way

    def parse(self, text: str) -> Predicate | None:
        """Return the predicate of a condition, or None where it is not plain."""
        if len(text) > MAX_STATEMENT or "\0" in text or not is_unicode(text):
            return None
        return self._read_conjunction(text) or self._read_tokens(text)

    def _read_conjunction(self, text: str) -> Predicate | None:
        """Return the AND of conditions in their commonest spelling; None for any other text.

        The text is torn apart at every ` AND `, and each piece has to be a whole condition. A piece
        of a torn string is none, since it has one quote too many.
        """
        atoms, readers, parts = self._atoms, self._test_readers, []
        pieces = iter(text.split(" AND "))
        for piece in pieces:
            part = atoms.get(piece)
            if part is None:
                name, _, test = piece.partition(" ")
                operator, _, operand = test.partition(" ")
                # here and not in a function, for most of a load is this: an atom in its commonest
                # spelling on a column that was met before
                try:
                    part = readers[name][operator](operand)
                except (KeyError, ValueError):
                    part = self._read_piece(piece, pieces)
                    if part is None:
                        return None
                else:
                    if len(atoms) < MAX_CACHED_ATOMS:
                        atoms[piece] = part
            parts.append(part)
        return conjunction(parts)

    def _read_piece(self, text: str, following: Iterator[str]) -> Predicate | None:
        """Return the predicate of an atom or of `(atom OR atom …)`, with at most one NOT."""
        if text[:4] == "NOT ":
            part = None if text[4:8] == "NOT " else self._read_piece(text[4:], following)
            return None if part is None else conditions.negate(part)
        if text[:1] == "(":
            return self._read_alternatives(text[1:-1]) if text[-1] == ")" else None
        # the AND of a BETWEEN has torn it, too
        if " BETWEEN " in text:
            text = f"{text} AND {next(following, '')}"
            if text in self._atoms:
                return self._atoms[text]
        return self._bind(text)

    def _read_alternatives(self, text: str) -> Predicate | None:
        """Return the OR of atoms."""
        parts = []
        for piece in text.split(" OR "):
            part = self._atoms.get(piece) or self._bind(piece)
            if part is None:
                return None
            parts.append(part)
        return disjunction(parts)

    def _read_tokens(self, text: str) -> Predicate | None:
        """Return the predicate of a plain condition in any spelling."""
        atoms = self._atoms
        groups: list[_Group] = [_Group()]  # one for each parenthesis that is open
        # A token continues the innermost group, opens one, or closes it. Whatever may not stand in
        # its place declines the whole text.
        for atom, word, other in _tokens(text):
            if other:
                return None
            group = groups[-1]
            if atom:
                part = atoms.get(atom) or self._bind(atom)
                if part is None or not group.add_operand(part):
                    return None
            elif word == "(":
                if not group.expects_operand or len(groups) > MAX_DEPTH:
                    return None
                groups.append(_Group())
            elif word == ")":
                if len(groups) == 1 or group.expects_operand:
                    return None
                groups.pop()
                groups[-1].add_operand(group.close())
            elif not group.add_connective(word.upper()):
                return None
        return None if len(groups) > 1 or groups[0].expects_operand else groups[0].close()

    def _bind(self, text: str) -> Predicate | None:
        """Return the predicate of one atom's text, and remember it."""
        try:
            atom = self.bind_common(text) or (self.bind_general(text) if _is_atom(text) else None)
        except (LiteralError, ConditionError, NameProblem, PatternRefused):
            return None
        # A full cache takes no more atoms, so that memory stays bounded.
        if atom is not None and len(self._atoms) < MAX_CACHED_ATOMS:
            self._atoms[text] = atom
        return atom

    def bind_common(self, text: str) -> Predicate | None:
        """Return the predicate of an atom in its commonest spelling.

        >>> from headgate.schema import INT, Attribute, Stream
        >>> fast_path = FastPath(Scope.of(Stream("s", (Attribute("qty", INT),))))
        >>> fast_path.bind_common("qty > 3").values.cuts, fast_path.bind_common("qty > 3.5")
        ((4,), None)
        """
        name, _, test = text.partition(" ")
        operator, _, operand = test.partition(" ")
        readers = self._test_readers.get(name) or self._find_test_readers(name)
        read = readers.get(operator)
        if read is None:
            return None
        try:
            return read(operand)
        except ValueError:
            return None

    def _find_test_readers(self, name: str) -> TestReaders:
        """Return how tests of a column are read; nothing for other texts and types."""
        if name in self._general_names or not _PLAIN_NAME.fullmatch(name):
            return {}
        readers = make_test_readers(self._resolve_column(name))
        if readers:
            self._test_readers[name] = readers
        else:
            self._general_names.add(name)
        return readers

    def bind_general(self, text: str) -> Predicate | None:
        """Return the predicate of an atom in any spelling of the plain subset."""
        return self._bind_comparison(text) or self._bind_set_test(text) or self._bind_flag(text)

    def _bind_comparison(self, text: str) -> Predicate | None:
        match = _COMPARISON.fullmatch(text)
        if match is None:
            return None
        name, written, literal, other = match.groups()
        column, operator = self._resolve_column(name), OPERATORS[written]
        if literal is not None:
            return conditions.build_comparison(
                column, operator, _read_literal(literal), self.scope.zone
            )
        return conditions.build_column_comparison(column, operator, self._resolve_column(other))

    def _bind_set_test(self, text: str) -> Predicate | None:
        """Return the predicate of IS NULL, IN, BETWEEN or LIKE."""
        match = _SET_TEST.fullmatch(text)
        if match is None:
            return None
        name, _, negated, kind, operands = match.groups()
        column, zone = self._resolve_column(name), self.scope.zone
        if kind.upper() == "NULL":
            return IsNull(column, negated is not None)
        literals = [_read_literal(literal) for literal in _LITERALS.findall(operands)]
        if kind.upper() == "IN":
            predicate = conditions.build_membership(column, literals, zone)
        elif kind.upper() == "BETWEEN":
            predicate = conditions.build_between(column, literals[0], literals[1], zone)
        else:
            assert isinstance(literals[0], str)
            predicate = conditions.build_match(column, "LIKE", literals[0])
        return conditions.negate(predicate) if negated else predicate

    def _bind_flag(self, text: str) -> Predicate | None:
        """Return the predicate of a BOOLEAN attribute that stands as a condition."""
        column = self._resolve_column(text)
        return conditions.build_flag(column) if isinstance(column.type, Boolean) else None

    def _resolve_column(self, name: str) -> Column:
        column = self._columns.get(name)
        if column is None:
            parts = name.split(".")
            if any(part.upper() in _RESERVED_NAMES for part in parts):
                raise NameProblem(f"`{name}` is a word of the language", "")
            column = self._columns[name] = self.scope.resolve(parts)
        return column


def _is_atom(text: str) -> bool:
    """Return whether a text is one atom and nothing else."""
    match = _TOKEN.fullmatch(text)
    return match is not None and match[1] == text


def _tokens(text: str) -> Iterable[tuple[str, str, str]]:
    """Return all tokens at once, or one by one where an early refusal saves much work."""
    text = text.rstrip()  # blanks at the end would be tried from each of them
    if len(text) < MAX_FINDALL_LENGTH:
        return _TOKEN.findall(text)
    return (match.groups("") for match in _TOKEN.finditer(text))  # type: ignore[misc]


class _Group:
    """The content of one pair of parentheses: an OR of ANDs, read from left to right."""

    __slots__ = ("conjuncts", "disjuncts", "expects_operand", "negations")

    def __init__(self) -> None:
        self.disjuncts: list[Predicate] = []
        self.conjuncts: list[Predicate] = []
        self.negations = 0
        self.expects_operand = True

    def add_operand(self, part: Predicate) -> bool:
        """Add an atom or a closed group; False where none may stand."""
        if not self.expects_operand:
            return False
        if self.negations:
            for _ in range(self.negations):
                part = conditions.negate(part)
            self.negations = 0
        self.conjuncts.append(part)
        self.expects_operand = False
        return True

    def add_connective(self, word: str) -> bool:
        """Add AND, OR or NOT; False where it may not stand."""
        if word == "NOT":
            self.negations += 1
            return self.expects_operand and self.negations <= MAX_DEPTH
        if self.expects_operand:
            return False
        # AND binds closer than OR, which ends the conjunction so far.
        if word == "OR":
            self.disjuncts.append(conjunction(self.conjuncts))
            self.conjuncts = []
        self.expects_operand = True
        return True

    def close(self) -> Predicate:
        """Return the predicate of the whole group."""
        last = conjunction(self.conjuncts)
        return disjunction([*self.disjuncts, last]) if self.disjuncts else last


def _read_literal(text: str) -> Literal:
    if len(text) > MAX_LITERAL:
        raise LiteralError("too long")
    if text[0] == "'":
        return text[1:-1]
    # Four letters tell TRUE, FALSE, DATE and TIMESTAMP apart.
    word = text[:4].upper()
    if word in ("TRUE", "FALS"):
        return word == "TRUE"
    if word in ("DATE", "TIME"):
        kind, value = text.split("'")[:2]
        return TypedLiteral(kind.strip().upper(), value)
    return Number(text)
