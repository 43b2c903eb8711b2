"""The language as a grammar that text must be in before it is parsed.

sqlglot mends what it cannot read: it drops an empty place in a list, a leading AND, half of a name
that runs into a number. We never guess, so this recogniser walks the tokens first, builds nothing,
and refuses what is not in the language, by name and position:

    condition := conjunct (OR conjunct)*            conjunct := negation (AND negation)*
    negation  := (NOT | !)* predicate               predicate := operand [test]
    operand   := ( condition ) | COALESCE ( condition , condition ) | literal | name
    test      := comparison operand
               | IS [NOT] (NULL | TRUE | FALSE)
               | [NOT] IN ( literal (, literal)* )
               | [NOT] BETWEEN operand AND operand
               | [NOT] (LIKE | ILIKE) operand [ESCAPE literal] | [NOT] (RLIKE | REGEXP) operand
    literal   := (- | +)* number | string | NULL | TRUE | FALSE
               | (DATE | TIMESTAMP) string | CAST ( string AS DOUBLE )
    query     := CREATE QUERY name AS SELECT [DISTINCT] (* | output (, output)*)
                 FROM source (, source)* [WHERE condition] [GROUP BY name (, name)*]
    output    := (name | name ( [DISTINCT] (* | name) )) [[AS] name]
    source    := (name | LAST_ROWS ( name , number )) [[AS] name]
    aggregate := CREATE AGGREGATE name ( type ) RETURNS type
                 (DISTRIBUTIVE | ALGEBRAIC | HOLISTIC) [DUPLICATE (SENSITIVE | INSENSITIVE)]
    stream    := CREATE STREAM name ( attribute (, attribute)* )
    attribute := name type (NOT NULL | CHECK ( condition ) | COMMENT string)*
    type      := name [( number (, number)* )]

Here are conditions; statements are in `statement_grammar`. On the way, the recogniser notes where
each test of a condition stands, which the parser's tree does not know exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from headgate.errors import Position, SqlError, SqlSyntaxError, TooLarge, UnsupportedSql
from headgate.sql.calls import Clause, may_be_called, refused_call
from headgate.sql.lexer import MAX_DEPTH, Token, guard, only_tokens
from headgate.sql.words import RESERVED, TYPED

MAX_PARTS = 32
_COMPARISONS = frozenset(("=", "==", "<>", "!=", "<", "<=", ">", ">="))
_SIGNS = frozenset(("-", "+"))
_ARITHMETIC = frozenset(("+", "-", "*"))
UNSUPPORTED = frozenset(
    "ANTI CLUSTER COLLATE CROSS DISTRIBUTE DIV EXCEPT FETCH FULL GLOB HAVING INNER INTERSECT JOIN "
    "LATERAL LEFT LIMIT MINUS NATURAL OFFSET ORDER PIVOT QUALIFY RIGHT SEMI SIMILAR SORT "
    "TABLESAMPLE UNION UNPIVOT USING WINDOW WITH XOR".split()
)
_HINTS = {
    "CURRENT_DATE": "write a literal: a standing query does not depend on when it is read",
    "CURRENT_TIMESTAMP": "write a literal: a standing query does not depend on when it is read",
    "INTERVAL": "there is no arithmetic; write the bound as a literal",
    "SELECT": "there are no subqueries",
    "JOIN": "list the streams in FROM and put the condition into WHERE",
    "UNION": "register two queries",
}


Extent = tuple[int, int]  # offsets of the first character and behind the last
# a condition is one value (an attribute or literal, maybe in parentheses), one test, or neither
Form = Literal["value", "test", "other"]
Test = Literal["none", "of a value", "of a truth"]


def check_condition(text: str) -> str:
    """The text without comments; raises unless it is exactly one condition."""
    grammar = Grammar(text)
    if grammar.kind() == "end":
        raise SqlSyntaxError("the condition is empty", hint="TRUE accepts every event")
    grammar.condition()
    return grammar.end()


class Grammar:
    """Walks over the tokens, which are read only as far as the text makes sense.

    `tests` are the offsets of each test of a condition, from its first NOT to its end, in the order
    and the number in which `Binder.bound` has them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.declared: frozenset[str] = frozenset()  # aggregates of the user
        self.source = guard(text)
        self.tokens: list[Token] = []
        self.place = 0
        self.clause: Clause = "condition"
        self.tests: list[Extent] = []

    def token(self, ahead: int = 0) -> Token | None:
        """The token here or a little ahead; None behind the last."""
        place = self.place + ahead
        while len(self.tokens) <= place:
            following = next(self.source, None)
            if following is None:
                return None
            self.tokens.append(following)
            if following.text == "(":
                self.check_call()
        return self.tokens[place]

    def check_call(self) -> None:
        """Refuse a function as soon as its parenthesis comes into sight."""
        name = self.tokens[-2] if len(self.tokens) > 1 else None
        if name is None or name.kind not in ("word", "quoted"):
            return
        if not may_be_called(name, self.clause, self.declared):
            raise self.refused(name)

    def refused(self, name: Token) -> SqlError:
        """The error for a name that is called where it may not be."""
        return refused_call(self.text, name, self.clause, self.declared)

    # What stands here

    def peek(self, ahead: int = 0) -> str:
        """The token in upper case; nothing at the end, and for strings and quoted names."""
        token = self.token(ahead)
        return "" if token is None or token.kind in ("string", "quoted") else token.word

    def kind(self, ahead: int = 0) -> str:
        token = self.token(ahead)
        return "end" if token is None else token.kind

    def accept(self, *words: str) -> bool:
        """Step over a token if it is one of these."""
        if self.peek() not in words or not words:
            return False
        self.place += 1
        return True

    def accept_kind(self, kind: str) -> bool:
        if self.kind() != kind:
            return False
        self.place += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.unexpected(word)

    def close(self, opened: int) -> None:
        """Step over the parenthesis that closes the one at a place."""
        if self.kind() == "end":
            self.place = opened
            raise self.error(SqlSyntaxError, "a parenthesis is opened and never closed")
        self.expect(")")

    def end(self, expected: str = "AND, OR or the end") -> str:
        """The text without comments; raises unless all of it has been read."""
        if self.peek() == ")":
            raise self.error(SqlSyntaxError, "a parenthesis is closed that was never opened")
        if self.peek() == ";":
            raise self.unsupported("one condition or statement is expected, and here is a second")
        if self.kind() != "end":
            raise self.unexpected(expected)
        return only_tokens(self.text, self.tokens)

    def repeat(self, *words: str) -> None:
        """Step over any of these words, as often as nesting may go."""
        count = 0
        while self.accept(*words):
            count += 1
            if count > MAX_DEPTH:
                hint = f"at most {MAX_DEPTH} levels"
                raise self.error(TooLarge, "the expression nests too deeply", hint)

    def extent(self, start: int) -> Extent:
        """The offsets from the token at a place to the one before this."""
        return self.tokens[start].start, self.tokens[self.place - 1].end

    # Conditions

    def condition(self) -> Form:
        form = self.negation()
        while self.accept("AND", "OR"):
            self.negation()
            form = "other"
        return form

    def negation(self) -> Form:
        """A test from its NOT on, also where parentheses stand between; or several, each noted."""
        start, known = self.place, len(self.tests)
        self.repeat("NOT", "!")
        negated = self.place > start
        in_parentheses = self.peek() == "("
        form = self.operand("a condition")
        test = self.test()
        if test == "of a value" or (test == "of a truth" and form == "value"):
            form = "test"
        elif test == "of a truth" or form == "other":
            return "other"
        elif negated:
            form = "test"
        elif in_parentheses:
            return form
        self.tests[known:] = [self.extent(start)]
        return form

    def operand(self, what: str) -> Form:
        opened = self.place
        if self.accept("("):
            if self.peek() == "SELECT":
                raise self.unsupported("a subquery is not supported")
            form = self.condition()
            self.close(opened)
            return form
        if self.peek() == "COALESCE" and self.peek(1) == "(":
            self.place += 2
            self.condition()
            known = len(self.tests)
            self.expect(",")
            self.condition()
            del self.tests[known:]
            self.close(opened + 1)
            return "other"
        if not self.literal():
            self.name(what)
        return "value"

    def test(self) -> Test:
        if self.accept(*_COMPARISONS):
            self.operand("a value")
            return "of a value"
        if self.accept("IS"):
            self.accept("NOT")
            if self.peek() == "DISTINCT":
                raise self.unsupported("IS DISTINCT FROM is not supported")
            if not self.accept("NULL", "TRUE", "FALSE"):
                raise self.unexpected("NULL, TRUE or FALSE")
            return "of a truth"
        if self.peek() == "<=>":
            raise self.unsupported("<=> is not supported", "say what NULL means with IS NULL")
        return "of a value" if self.set_test() else "none"

    def set_test(self) -> bool:
        """Step over IN, BETWEEN and patterns, which take NOT, if one begins here."""
        negated = self.accept("NOT")
        if self.accept("IN"):
            opened = self.place
            self.expect("(")
            if self.peek() == "SELECT":
                raise self.unsupported("IN with a subquery is not supported")
            self.listed(self.constant)
            self.close(opened)
        elif self.accept("BETWEEN"):
            self.operand("a value")
            self.expect("AND")
            self.operand("a value")
        elif self.accept("LIKE", "ILIKE"):
            self.operand("a pattern")
            if self.accept("ESCAPE"):
                self.constant()
        elif self.accept("RLIKE", "REGEXP"):
            self.operand("a pattern")
        elif negated:
            raise self.unexpected("IN, BETWEEN, LIKE or RLIKE")
        else:
            return False
        return True

    def constant(self) -> None:
        if not self.literal():
            raise self.unexpected("a constant")

    def literal(self) -> bool:
        """Step over a literal, if one begins here."""
        if self.peek() in _SIGNS:
            self.repeat(*_SIGNS)
            if not self.accept_kind("number"):
                raise self.unexpected("a number")
            return True
        if self.peek() in TYPED and self.kind(1) == "string":
            self.place += 2
            return True
        if self.peek() == "CAST" and self.peek(1) == "(":
            self.place += 2
            if not self.accept_kind("string"):
                raise self.unsupported("CAST of anything but a string is not supported")
            self.expect("AS")
            if not self.accept("DOUBLE"):
                message = "CAST is not supported but for 'NaN' and the infinities AS DOUBLE"
                raise self.unsupported(message, "write the literal itself")
            self.expect(")")
            return True
        return (
            self.accept_kind("number")
            or self.accept_kind("string")
            or self.accept("NULL", "TRUE", "FALSE")
        )

    # Names and lists

    def name(self, what: str) -> None:
        """A name, dotted or not."""
        self.name_part(what)
        parts = 1
        while self.accept("."):
            self.name_part("a name")
            parts += 1
            if parts > MAX_PARTS:
                raise self.error(TooLarge, f"a name has more than {MAX_PARTS} parts")

    def name_part(self, what: str) -> None:
        if self.accept_kind("quoted"):
            return
        if self.kind() == "word" and self.peek() in RESERVED:
            self.token(1)  # a parenthesis makes it a function, which the guard refuses by name
            hint = _HINTS.get(self.peek(), "a name that is a word of SQL goes in backticks")
            message = f"{what} is expected here, not {self.peek()}"
            raise self.error(SqlSyntaxError, message, hint)
        if self.kind() != "word":
            raise self.unexpected(what)
        self.place += 1

    def listed(self, item: Callable[[], None], most: int | None = None) -> None:
        item()
        count = 1
        while self.accept(","):
            count += 1
            if most is not None and count > most:
                raise self.error(TooLarge, f"there are more than {most}")
            item()

    # Errors

    def unexpected(self, what: str, hint: str = "") -> SqlError:
        """What is expected here, and what stands here instead."""
        token = self.peek()
        if token in UNSUPPORTED:
            written = f"{token} BY" if token in ("ORDER", "SORT") else token
            return self.unsupported(f"{written} is not supported", _HINTS.get(token, ""))
        if token in _ARITHMETIC:
            return self.unsupported(f"arithmetic with {token} is not supported")
        if self.kind() == "end":
            return self.error(SqlSyntaxError, f"{what} is expected at the end", hint)
        return self.error(SqlSyntaxError, f"{what} is expected here", hint)

    def unsupported(self, message: str, hint: str = "") -> SqlError:
        return self.error(UnsupportedSql, message, hint)

    def error(self, kind: type[SqlError], message: str, hint: str = "") -> SqlError:
        token = self.token()
        if token is not None:
            start, near = token.start, token.text
        else:
            last = self.tokens[-1] if self.tokens else None
            start, near = (last.end, last.text) if last else (0, "")
        return kind(message, text=near, hint=hint, position=Position.of(self.text, start))
