"""Steps over the tokens of a text; what is not expected is an error at its place.

The language, of which conditions and SELECT are parsed by sqlglot and checked against the tokens by
`binder` and `select`, and the rest is read by `statements` and `declarations`:

    condition := conjunct (OR conjunct)*            conjunct := negation (AND negation)*
    negation  := (NOT | !)* predicate               predicate := operand [test]
    operand   := ( condition ) | COALESCE ( condition , literal ) | literal | name
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
"""

from __future__ import annotations

from headgate.errors import Position, SqlError, SqlSyntaxError, TooLarge, UnsupportedSql
from headgate.sql.functions import Clause, may_be_called, refuse_call
from headgate.sql.lexer import LITERAL_TYPES, RESERVED, Token, check_tokens

MAX_DEPTH = 100
MAX_NAME_PARTS = 32
MAX_CHAINED_TESTS = 10  # tests in a row; from the second on the walk refuses them
COMPARISONS = frozenset(("=", "==", "<>", "!=", "<", "<=", ">", ">="))
SIGNS = frozenset(("-", "+"))
_PREFIXES = SIGNS | {"NOT", "!"}
_NEGATED = frozenset(("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"))
_TESTS = COMPARISONS | _NEGATED | {"<=>", "IS"}
_SEPARATORS = frozenset(("OR", ",", "WHERE", "GROUP"))
_ARITHMETIC = frozenset(("+", "-", "*"))
# Words that begin something which SQL has and this language lacks. They are refused by name, and
# never taken for an alias.
_UNSUPPORTED = frozenset(
    "ANTI CLUSTER COLLATE CROSS DISTRIBUTE DIV EXCEPT FETCH FULL GLOB HAVING INNER INTERSECT JOIN "
    "LATERAL LEFT LIMIT MINUS NATURAL OFFSET ORDER PIVOT QUALIFY RIGHT SEMI SIMILAR SORT "
    "TABLESAMPLE UNION UNPIVOT USING WINDOW WITH XOR".split()
)
_NO_ALIAS = RESERVED | _UNSUPPORTED
_HINTS = {
    "<=>": "say what NULL means with IS NULL",
    "CURRENT_DATE": "write a literal: a standing query does not depend on when it is read",
    "CURRENT_TIMESTAMP": "write a literal: a standing query does not depend on when it is read",
    "INTERVAL": "there is no arithmetic; write the bound as a literal",
    "SELECT": "there are no subqueries",
    "JOIN": "list the streams in FROM and put the condition into WHERE",
    "UNION": "register two queries",
}
_IN_BACKTICKS = "a name that is a word of SQL goes in backticks"
TEST_ENDS = "AND, OR or the end"

Extent = tuple[int, int]  # offsets of the first character and behind the last


class Cursor:
    """The tokens of one text, and the place of the next one that is read.

    `closing` has the place of the parenthesis that closes the one at a place. `declared` are the
    names of the user's aggregates in lower case.
    """

    def __init__(self, text: str, declared: frozenset[str] = frozenset()) -> None:
        self.text = text
        self.declared = declared
        self.tokens: list[Token] = []
        # what a keyword or operator is compared with: strings and quoted names are neither
        self.words: list[str] = []
        self.place = 0
        self.clause: Clause = "condition"
        self.closing: dict[int, int] = {}
        self._read_tokens()

    def _read_tokens(self) -> None:
        """Read all tokens; refuse what would cost sqlglot a level of recursion for each of them.

        These are unbalanced and deep parentheses, rows of NOT or minus, names of very many parts,
        and many tests without AND or OR between them (`a = 1 = 2 = 3 …`).
        """
        opened: list[tuple[int, int, bool]] = []  # place, and what was counted before it
        tests, in_between = 0, False
        prefixes, parts, last = 0, 1, ""
        for place, token in enumerate(check_tokens(self.text)):
            word = "" if token.kind in ("string", "quoted") else token.text.upper()
            self.tokens.append(token)
            self.words.append(word)
            self.place = place  # of an error
            # Signs and NOTs in a row nest as parentheses do; a dot lengthens the name before it.
            prefixes = prefixes + 1 if word in _PREFIXES else 0
            parts = parts + 1 if word == "." else parts if last == "." else 1
            if prefixes > MAX_DEPTH or len(opened) > MAX_DEPTH:
                hint = f"at most {MAX_DEPTH} levels"
                raise self.make_error(TooLarge, "the expression nests too deeply", hint)
            if parts > MAX_NAME_PARTS:
                raise self.make_error(TooLarge, f"a name has more than {MAX_NAME_PARTS} parts")
            # Tests are counted again inside parentheses; behind them the outer count goes on.
            if word == "(":
                opened.append((place, tests, in_between))
                tests, in_between = 0, False
            elif word == ")":
                if not opened:
                    message = "a parenthesis is closed that was never opened"
                    raise self.make_error(SqlSyntaxError, message)
                start, tests, in_between = opened.pop()
                self.closing[start] = place
            elif word == ";":
                message = "one condition or statement is expected, and here is a second"
                raise self.refuse(message)
            elif word in _SEPARATORS or (word == "AND" and not in_between):
                tests, in_between = 0, False
            elif word == "AND":
                in_between = False  # the AND of BETWEEN
            elif word in _TESTS:
                tests += 1
                in_between = word == "BETWEEN"
                if tests > MAX_CHAINED_TESTS:
                    raise self.make_error(SqlSyntaxError, f"{TEST_ENDS} is expected here")
            last = word
        if opened:
            self.place = opened[-1][0]
            raise self.make_error(SqlSyntaxError, "a parenthesis is opened and never closed")
        self.words += ("", "", "")  # so that `peek` looks ahead without a check
        self.place = 0

    def peek(self, ahead: int = 0) -> str:
        """Return the token in upper case; nothing at the end, and for strings and quoted names."""
        return self.words[self.place + ahead]

    def kind(self, ahead: int = 0) -> str:
        """Return the kind of a token; `end` behind the last."""
        place = self.place + ahead
        return self.tokens[place].kind if place < len(self.tokens) else "end"

    def accept(self, *words: str) -> bool:
        """Step over a token if it is one of these."""
        if self.words[self.place] not in words:
            return False
        self.place += 1
        return True

    def accept_kind(self, kind: str) -> bool:
        """Step over a token if it is of this kind."""
        if self.kind() != kind:
            return False
        self.place += 1
        return True

    def expect(self, word: str) -> None:
        """Step over this word; raise where it does not stand here."""
        if self.words[self.place] != word:
            raise self.refuse_token(word)
        self.place += 1

    def expect_end(self, expected: str = TEST_ENDS) -> None:
        """Raise unless all tokens have been read."""
        if self.place < len(self.tokens):
            raise self.refuse_token(expected)

    def extent(self, start: int) -> Extent:
        """Return the offsets from the token at a place to the one before this."""
        return self.tokens[start].start, self.tokens[max(start, self.place - 1)].end

    def read_name(self, expected: str) -> list[str]:
        """Step over a name, dotted or not, and return its parts."""
        parts = [self.read_name_part(expected)]
        while self.accept("."):
            parts.append(self.read_name_part("a name"))
        return parts

    def read_plain_name(self, expected: str) -> str:
        """Step over a name and return it; raise where it has dots."""
        start = self.place
        parts = self.read_name(expected)
        if len(parts) > 1:
            message = "a plain name is expected here"
            raise self.make_error(UnsupportedSql, message, extent=self.extent(start))
        return parts[0]

    def read_name_part(self, expected: str) -> str:
        """Step over one part of a name and return it."""
        kind = self.kind()
        if kind != "quoted" and (kind != "word" or self.peek() in RESERVED):
            raise self.refuse_operand(expected)
        self.place += 1
        return self.tokens[self.place - 1].name

    def read_alias(self) -> str:
        """Step over `AS name`, or over a name where no clause begins; return it, or nothing."""
        if self.accept("AS"):
            return self.read_name_part("a name")
        if self.kind() != "quoted" and (self.kind() != "word" or self.peek() in _NO_ALIAS):
            return ""
        self.place += 1
        return self.tokens[self.place - 1].name

    def skip_value(self) -> bool:
        """Step over an attribute or a literal, if one begins here."""
        kind = self.kind()
        if self.peek() in LITERAL_TYPES and self.kind(1) == "string":
            self.place += 2
        elif kind in ("number", "string") or self.peek() in ("NULL", "TRUE", "FALSE"):
            self.place += 1
        elif kind == "quoted" or (kind == "word" and self.peek() not in RESERVED):
            self.read_name("a name")
        else:
            return False
        return True

    def refuse_operand(self, expected: str) -> SqlError:
        """Return the error for a place where a name or a value has to stand."""
        word = self.peek()
        if self.kind() == "word" and word in RESERVED and not self._is_refused_call(self.place):
            hint = _HINTS.get(word, _IN_BACKTICKS)
            message = f"{expected} is expected here, not {word}"
            return self.make_error(SqlSyntaxError, message, hint)
        return self.refuse_token(expected)

    def refuse_token(self, expected: str, hint: str = "") -> SqlError:
        """Return the error that says what is expected here, and what stands here instead."""
        # The most specific error wins: a function, then SQL that the language lacks, and only then
        # what is expected.
        word = self.peek()
        if self._is_refused_call(self.place):
            self.place += 1
            return self.refuse_call()
        if word in _UNSUPPORTED:
            written = f"{word} BY" if word in ("ORDER", "SORT") else word
            return self.refuse(f"{written} is not supported", _HINTS.get(word, ""))
        if word in _ARITHMETIC:
            return self.refuse(f"arithmetic with {word} is not supported")
        if word == "<=>":
            return self.refuse("<=> is not supported", _HINTS[word])
        if word == "IS" and "DISTINCT" in self.words[self.place + 1 : self.place + 3]:
            self.place += 1 if self.peek(1) == "DISTINCT" else 2
            return self.refuse("IS DISTINCT FROM is not supported")
        if expected == TEST_ENDS:
            expected = self._find_missing()
        where = "at the end" if self.kind() == "end" else "here"
        return self.make_error(SqlSyntaxError, f"{expected} is expected {where}", hint)

    def _find_missing(self) -> str:
        """Go on to where a test breaks off that sqlglot made nothing of; return what is missing."""
        word, ahead = self.peek(), 2 if self.peek(1) == "NOT" else 1
        # `a IS 3`, `a NOT 3` and `a = = 3` break off behind the words that were understood.
        if word == "IS" and self.peek(ahead) not in ("NULL", "TRUE", "FALSE"):
            self.place += ahead
            return "NULL, TRUE or FALSE"
        if word == "NOT" and self.peek(1) not in _NEGATED:
            self.place += 1
            return "IN, BETWEEN, LIKE or RLIKE"
        if word in COMPARISONS and self.peek(1) in COMPARISONS:
            self.place += 1
            return "a value"
        # Inside parentheses the condition may also end with one.
        nested = any(start < self.place < end for start, end in self.closing.items())
        return "AND, OR or )" if nested else TEST_ENDS

    def refuse_call(self) -> SqlError:
        """Return the error for a parenthesis that makes the name before it a function."""
        name = self.tokens[self.place - 1]
        # `s.count(…)`: the name may be called, but not behind a dot.
        dotted = self.words[self.place - 2] == "."
        if dotted and may_be_called(name, self.clause, self.declared):
            return self.refuse("a function has a plain name")
        return refuse_call(self.text, name, self.clause, self.declared)

    def _is_refused_call(self, place: int) -> bool:
        """Return whether the token at a place is a name that may not be called there, but is."""
        # `words` is longer than `tokens`, so the word behind the last token is nothing.
        if not 0 <= place < len(self.tokens) or self.words[place + 1] != "(":
            return False
        name = self.tokens[place]
        if name.kind not in ("word", "quoted"):
            return False
        return not may_be_called(name, self.clause, self.declared)

    def refuse(self, message: str, hint: str = "") -> SqlError:
        """Return the error for SQL that is outside the language."""
        return self.make_error(UnsupportedSql, message, hint)

    def make_error(
        self,
        kind: type[SqlError],
        message: str,
        hint: str = "",
        *,
        extent: Extent | None = None,
        topic: str = "",
    ) -> SqlError:
        """Return an error about a piece of the text; without an extent, about the next token."""
        if extent is not None:
            start, near = extent[0], self.text[slice(*extent)]
        elif self.place < len(self.tokens):
            start, near = self.tokens[self.place].start, self.tokens[self.place].text
        else:
            # behind the last token, which is shown
            last = self.tokens[-1] if self.tokens else Token("end", "", 0)
            start, near = last.end, last.text
        position = Position.of(self.text, start)
        return kind(message, text=near, hint=hint, position=position, topic=topic)
