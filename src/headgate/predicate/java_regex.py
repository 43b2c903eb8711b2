r"""RLIKE means what Java means, and runs on RE2, in time linear in the text.

`to_re2` reads a pattern of `java.util.regex` (Java 17 and later, no flags) and writes one for RE2
that finds a match in exactly the same texts, `Matcher.find()` being the judge. What RE2 cannot mean
the same is refused by name: lookaround, backreferences, possessive quantifiers, atomic groups,
class intersections, `^` and `$` under `(?m)`, a `$` with something behind it, and the flags
`x`, `d`, `u`, `U` and `c`.

Java does not always agree with itself, nor with its documentation. In three places we take a side:

- `\b` and `\B` see ASCII word characters only, as Java does since 19 (17 takes every letter). A
  combining mark behind a letter counts as part of the word in Java, and not here.
- Categories such as `\p{L}` are those of RE2's version of Unicode, which lies between those of
  Java 17 and 25. For characters assigned since Unicode 13 Java's answer depends on its version.
- A text is a sequence of code points. Halves of surrogate pairs are refused in patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import re2

from headgate.predicate.pattern_refused import PatternRefused
from headgate.predicate.regex_class import read_class
from headgate.predicate.regex_cursor import Cursor
from headgate.predicate.regex_escape import read_escape
from headgate.predicate.regex_fragment import (
    Fragment,
    Mark,
    anchor,
    character,
    choose,
    dollar,
    group,
    join,
    repeat,
)
from headgate.predicate.regex_sets import ANYTHING, DOT, CharacterSet

__all__ = ["CompiledPattern", "PatternRefused", "compile_re2", "to_re2"]

_DEEPEST = 100
_MOST_REPEATS = 1000  # RE2's own limit
_MEMORY = 4 << 20

_QUANTIFIER = re.compile(r"([?*+])|\{([0-9]+)(?:(,)([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([imsducxU]*)(?:-([imsducxU]*))?([:)])")
_GROUP_NAME = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")

_REFUSED_GROUPS = {
    "(?=": "lookahead",
    "(?!": "negative lookahead",
    "(?<=": "lookbehind",
    "(?<!": "negative lookbehind",
    "(?>": "atomic group",
}
_REFUSED_FLAGS = {
    "x": "comments mode",
    "d": "Unix lines mode",
    "u": "Unicode case folding",
    "U": "Unicode character classes",
    "c": "canonical equivalence",
}
_ANCHORS = {r"\A": r"\A", r"\z": r"\z", r"\b": r"\b"}


class CompiledPattern(Protocol):
    """A pattern that is ready to search texts."""

    def search(self, text: str) -> object | None: ...


def to_re2(pattern: str) -> str:
    r"""The RE2 pattern that finds a match in exactly the texts in which Java does.

    Linear in the pattern's length, and never recursive. The result is known to compile.

    >>> to_re2(r"(?i)k\s?\d{2,}")
    '(?:K|k)[\\x{9}-\\x{d} ]?[0-9]{2,}'
    >>> compile_re2(to_re2("^a$")).search("a\r\n") is not None
    True
    >>> to_re2("a(?=b)")
    Traceback (most recent call last):
    ...
    headgate.predicate.pattern_refused.PatternRefused: lookahead `(?=` at character 2
    """
    _refuse_surrogates(pattern)
    whole = _Translation(pattern).run()
    _refuse_inner_boundary(whole)
    try:
        compile_re2(whole.text)
    except re2.error as error:
        raise PatternRefused(f"too large for RE2 ({_message(error)})", 0, pattern) from error
    return whole.text


@lru_cache(maxsize=100_000)
def compile_re2(re2_pattern: str) -> CompiledPattern:
    """A pattern of `to_re2`, ready to search; a text is searched in linear time.

    >>> compile_re2("b+").search("abc") is not None
    True
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return re2.compile(re2_pattern, options)


def _message(error: re2.error) -> str:
    detail = error.args[0]
    return detail.decode() if isinstance(detail, bytes) else str(detail)


def _refuse_surrogates(pattern: str) -> None:
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        half = pattern[error.start]
        raise PatternRefused("half of a surrogate pair", error.start, half) from error


def _refuse_inner_boundary(whole: Fragment) -> None:
    r"""Java also tries places inside a surrogate pair, where `\B` holds and a `.` takes a half.

    It does so unless some class of the pattern reaches beyond the basic plane: a line too fine to
    follow.
    """
    if whole.not_boundary and (whole.has_dot or whole.emptiness):
        raise whole.not_boundary.refusal(r"`\B` before any character")


@dataclass(frozen=True, slots=True)
class _Flags:
    """Those of Java's flags that we keep."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False

    def changed(self, letters: str, value: bool) -> _Flags:
        names = {"i": "ignore_case", "m": "multiline", "s": "dot_all"}
        return replace(self, **{names[letter]: value for letter in letters if letter in names})


@dataclass(slots=True)
class _OpenGroup:
    """What has been read of a group, and the flags that return when it closes."""

    start: int
    outer_flags: _Flags
    alternatives: list[Fragment] = field(default_factory=list)
    sequence: list[Fragment] = field(default_factory=list)

    def end_alternative(self) -> None:
        self.alternatives.append(join(self.sequence))
        self.sequence = []

    def close(self) -> Fragment:
        self.end_alternative()
        return choose(self.alternatives)


class _Translation:
    """One pass over a pattern, with the open groups on a stack of our own."""

    def __init__(self, pattern: str) -> None:
        self.cursor = Cursor(pattern)
        self.flags = _Flags()
        self.open_groups = [_OpenGroup(0, self.flags)]
        self.names: set[str] = set()

    def run(self) -> Fragment:
        while not self.cursor.is_at_end:
            self._step()
        if len(self.open_groups) > 1:
            raise self.cursor.invalid("a group is not closed", self.open_groups[-1].start)
        return self.open_groups[0].close()

    def _step(self) -> None:
        next_one = self.cursor.peek()
        if next_one == "(":
            self._open_group()
        elif next_one == ")":
            self._close_group()
        elif next_one == "|":
            self.cursor.take()
            self.open_groups[-1].end_alternative()
        elif next_one in "?*+{":
            start = self.cursor.at
            self.cursor.take()
            raise self.cursor.invalid(f"`{next_one}` has nothing to repeat", start)
        else:
            start = self.cursor.at
            self._append(self._read_atom(), start)

    def _append(self, atom: Fragment, start: int) -> None:
        """Add an atom that began at `start`, with the quantifier that follows it."""
        self.open_groups[-1].sequence.append(_quantified(self.cursor, atom, start))

    def _read_atom(self) -> Fragment:
        next_one = self.cursor.peek()
        if next_one == "[":
            return character(read_class(self.cursor, ignore_case=self.flags.ignore_case))
        if next_one == "\\":
            return self._read_escaped()
        if next_one in "^$":
            return self._read_line_anchor()
        self.cursor.take()
        if next_one == ".":
            return character(ANYTHING if self.flags.dot_all else DOT, is_dot=True)
        return _literal(ord(next_one), self.flags.ignore_case)

    def _read_line_anchor(self) -> Fragment:
        start = self.cursor.at
        sign = self.cursor.take()
        mark = self._mark(start)
        if self.flags.multiline:
            raise mark.refusal(f"`{sign}` in multiline mode")
        return anchor(r"\A") if sign == "^" else dollar(mark)

    def _read_escaped(self) -> Fragment:
        start = self.cursor.at
        escape = self.cursor.peek(2)
        if escape in _ANCHORS or escape in (r"\B", r"\Z"):
            self.cursor.take(2)
            return self._read_anchor(escape, start)
        read = read_escape(self.cursor, ignore_case=self.flags.ignore_case)
        if isinstance(read, CharacterSet):
            return character(read)
        return _literal(read, self.flags.ignore_case)

    def _read_anchor(self, escape: str, start: int) -> Fragment:
        if escape == r"\b" and self.cursor.skip("{g"):
            self.cursor.skip("}")
            raise self.cursor.refusal("grapheme boundary", start)
        if escape == r"\Z":
            return dollar(self._mark(start))
        if escape == r"\B":
            return anchor(escape, not_boundary=self._mark(start))
        return anchor(_ANCHORS[escape])

    def _open_group(self) -> None:
        start = self.cursor.at
        outer_flags = self.flags
        if self.cursor.peek(2) != "(?":
            self.cursor.take()
        elif not self._read_group_kind(start):
            return
        self.open_groups.append(_OpenGroup(start, outer_flags))
        if len(self.open_groups) > _DEEPEST + 1:
            raise self.cursor.refusal(f"groups nested deeper than {_DEEPEST}", start)

    def _read_group_kind(self, start: int) -> bool:
        """Read `(?…` up to the contents of the group; False when it has none, like `(?i)`."""
        for opening, name in _REFUSED_GROUPS.items():
            if self.cursor.skip(opening):
                raise self.cursor.refusal(name, start)
        if self._read_group_name(start):
            return True
        found = self.cursor.match(_FLAGS)
        if found is None:
            self.cursor.take(3)
            raise self.cursor.invalid("an unknown kind of group", start)
        self._set_flags(found[1], found[2] or "", start)
        return found[3] == ":"

    def _read_group_name(self, start: int) -> bool:
        found = self.cursor.match(_GROUP_NAME)
        if found is None:
            return False
        if found[1] in self.names:
            raise self.cursor.invalid(f"two groups are named `{found[1]}`", start)
        self.names.add(found[1])
        return True

    def _set_flags(self, on: str, off: str, start: int) -> None:
        for letter in on:
            if letter in _REFUSED_FLAGS:
                raise self.cursor.refusal(_REFUSED_FLAGS[letter], start)
        self.flags = self.flags.changed(on, True).changed(off, False)

    def _close_group(self) -> None:
        here = self.cursor.at
        self.cursor.take()
        if len(self.open_groups) == 1:
            raise self.cursor.invalid("a `)` closes nothing", here)
        done = self.open_groups.pop()
        self.flags = done.outer_flags
        self._append(group(done.close()), done.start)

    def _mark(self, start: int) -> Mark:
        return Mark(self.cursor.offset(start), self.cursor.written(start))


@lru_cache(maxsize=1024)
def _literal(point: int, ignore_case: bool) -> Fragment:
    members = CharacterSet.of((point, point))
    return character(members.case_folded() if ignore_case else members)


def _quantified(cursor: Cursor, atom: Fragment, start: int) -> Fragment:
    """The atom with the quantifier that follows it, if one does."""
    if cursor.peek() not in ("?", "*", "+", "{"):
        return atom
    here = cursor.at
    low, high = _read_quantifier(cursor)
    if cursor.skip("+"):
        raise cursor.refusal("possessive quantifier", start)
    cursor.skip("?")
    if max(low, high or 0) > _MOST_REPEATS:
        raise cursor.refusal(f"more than {_MOST_REPEATS} repetitions", here)
    return repeat(atom, low, high, Mark(cursor.offset(here), cursor.written(here)))


def _read_quantifier(cursor: Cursor) -> tuple[int, int | None]:
    start = cursor.at
    found = cursor.match(_QUANTIFIER)
    if found is None:
        cursor.take()
        raise cursor.invalid("`{` without a number of repetitions", start)
    if found[1]:
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[found[1]]
    low = _number(found[2])
    high = low if not found[3] else _number(found[4]) if found[4] else None
    if high is not None and high < low:
        raise cursor.invalid("repetitions that end before they start", start)
    return low, high


def _number(digits: str) -> int:
    """At most one million; whatever is larger is refused anyway."""
    return min(int(digits.lstrip("0")[:7] or "0"), 1_000_000)
