"""The line on which each key and each element of a TOML text stands, which `tomllib` does not tell.

A place is the way to it from the root: names of keys, and numbers of elements of arrays.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

Place = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|\#[^\n]*|[\[\]{}=,.\n]|[^\s\[\]{}=,.\#\"\']+",
    re.DOTALL,
)
_AFTER_A_VALUE = (",", "]", "}", "\n")


def lines_of(text: str) -> Mapping[Place, int]:
    """Where everything stands in a text that is TOML.

    >>> found = lines_of('a = 1\\n[[b]]\\nc.d = [\\n2]')
    >>> found[("a",)], found[("b", 0)], found[("b", 0, "c", "d")], found[("b", 0, "c", "d", 0)]
    (1, 2, 3, 4)
    """
    return _Reader(text).read()


class _Reader:
    """Goes through the tokens once."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ("\n", 0)]
        self._at = 0
        self._found: dict[Place, int] = {}
        self._counts: dict[Place, int] = {}

    def read(self) -> Mapping[Place, int]:
        table: Place = ()
        while self._at < len(self._tokens):
            token, line = self._tokens[self._at]
            if token == "\n":
                self._at += 1
            elif token == "[":
                table = self._header(line)
            else:
                self._pair(table)
        return self._found

    def _header(self, line: int) -> Place:
        self._at += 1
        is_element = self._passes("[")
        *names, last = self._key()
        table: Place = ()
        for name in names:
            table = self._latest(self._mark((*table, name), line))
        table = self._mark((*table, last), line)
        if is_element:
            number = self._counts.get(table, 0)
            self._counts[table] = number + 1
            table = self._mark((*table, number), line)
        while self._passes("]"):
            pass
        return table

    def _latest(self, table: Place) -> Place:
        """Of an array of tables, the one that stands last."""
        count = self._counts.get(table)
        return table if count is None else (*table, count - 1)

    def _pair(self, table: Place) -> None:
        line = self._tokens[self._at][1]
        for name in self._key():
            table = self._mark((*table, name), line)
        self._passes("=")
        self._value(table)

    def _key(self) -> list[str]:
        """The names up to `=` or `]`."""
        names = []
        while (token := self._tokens[self._at][0]) not in ("=", "]"):
            if token != ".":
                names.append(_name(token))
            self._at += 1
        return names

    def _value(self, place: Place) -> None:
        if self._passes("["):
            number = 0
            while not self._ends("]"):
                self._value(self._mark((*place, number), self._tokens[self._at][1]))
                number += 1
        elif self._passes("{"):
            while not self._ends("}"):
                self._pair(place)
        else:
            while self._tokens[self._at][0] not in _AFTER_A_VALUE:
                self._at += 1  # 1.5 is several tokens, and so is a date with a time

    def _mark(self, place: Place, line: int) -> Place:
        self._found.setdefault(place, line)
        return place

    def _ends(self, sign: str) -> bool:
        """Is this the end of an array or an inline table? What separates elements is passed."""
        while self._tokens[self._at][0] in (",", "\n"):
            self._at += 1
        return self._passes(sign)

    def _passes(self, sign: str) -> bool:
        is_next = self._at < len(self._tokens) and self._tokens[self._at][0] == sign
        self._at += is_next
        return is_next


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, before = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", before, match.start())
        before = match.start()
        if not match[0].startswith("#"):
            yield match[0], line


def _name(token: str) -> str:
    """A key as it is meant: quotes and escapes are undone."""
    if token[0] not in "\"'":
        return token
    (name,) = tomllib.loads(f"{token} = 0")
    return name
