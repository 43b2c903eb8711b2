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

The translation is a single pass that never recurses: open groups are on a stack of our own, so
hostile text costs no more than any other. What is known about Java's syntax beyond its
documentation was read off its behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import re2

from headgate.errors import shorten
from headgate.predicate.pattern.character_class import read_class, read_escape
from headgate.predicate.pattern.character_set import ANYTHING, DOT, CharacterSet
from headgate.predicate.pattern.cursor import Cursor
from headgate.predicate.pattern.errors import PatternRefused
from headgate.predicate.pattern.fragment import (
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
from headgate.predicate.pattern.regex_tree import Concatenation, Letter, Place

_MAX_LENGTH = 10_000

# Enough for `\p{L}{200}`; a pattern that needs more is refused after a third of a second.
_MAX_MEMORY = 4 << 20
_MAX_DEPTH = 100
_MAX_REPEATS = 1000  # RE2's own limit

_QUANTIFIERS = ("?", "*", "+", "{")
_QUANTIFIER = re.compile(r"([?*+])|\{([0-9]+)(?:(,)([0-9]*))?\}")
_PLAIN = re.compile(r"[^\\.\[(){*+?^$|]+")
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
_ANCHORS = {place.value: place for place in (Place.START, Place.END, Place.BOUNDARY)}


class TextSpan(Protocol):
    """Where a match lies in its text."""

    def start(self) -> int: ...

    def end(self) -> int: ...


class CompiledPattern(Protocol):
    """A pattern that is ready to search texts."""

    def search(self, text: str) -> object | None: ...

    def finditer(self, text: str) -> Iterator[TextSpan]: ...


def to_re2(pattern: str) -> str:
    r"""Return the RE2 pattern that finds a match in exactly the texts in which Java does.

    Linear in the pattern's length, and never recursive. The result is known to compile.

    >>> to_re2(r"(?i)k\s?\d{2,}")
    '(?:K|k)[\\x{9}-\\x{d} ]?[0-9]{2,}'
    >>> compile_re2(to_re2("^a$")).search("a\r\n") is not None
    True
    >>> to_re2("a(?=b)")
    Traceback (most recent call last):
    ...
    headgate.predicate.pattern.errors.PatternRefused: lookahead `(?=` at character 2
    """
    if len(pattern) > _MAX_LENGTH:
        raise PatternRefused(f"longer than {_MAX_LENGTH} characters", 0, shorten(pattern))
    _refuse_surrogates(pattern)
    whole = translate(pattern)
    _refuse_inner_boundary(whole)
    # RE2 has a limit on memory that only compiling shows.
    try:
        compile_re2(whole.text)
    except re2.error as error:
        reason = f"too large for RE2 ({_decode_message(error)})"
        raise PatternRefused(reason, 0, shorten(pattern)) from error
    return whole.text


def sample_regex(pattern: str) -> str:
    """Return a text that an accepted pattern probably matches: whoever needs to be sure, tries it.

    >>> sample_regex("^[A-Z]{3}-(new|old)$")
    'AAA-new'
    """
    return translate(pattern).example


@lru_cache(maxsize=100_000)
def compile_re2(re2_pattern: str) -> CompiledPattern:
    """Return a pattern of `to_re2`, ready to search; a text is searched in linear time.

    >>> compile_re2("b+").search("abc") is not None
    True
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    return re2.compile(re2_pattern, options)


def _decode_message(error: re2.error) -> str:
    detail = error.args[0]
    return detail.decode() if isinstance(detail, bytes) else str(detail)


def _refuse_surrogates(pattern: str) -> None:
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        half = pattern[error.start]
        raise PatternRefused("half of a surrogate pair", error.start, half) from error


def _refuse_inner_boundary(whole: Fragment) -> None:
    r"""Refuse a `\B` that may be tested inside a character, where the engines differ.

    RE2 tries between the bytes of any other than an ASCII character, Java between the two halves of
    a surrogate pair, and there a `.` takes the second half.
    """
    if whole.not_boundary and (whole.has_dot or whole.emptiness):
        raise whole.not_boundary.refusal("{} before any character")


def translate(pattern: str) -> Fragment:
    r"""Return the whole pattern as one fragment.

    >>> translate(r"(?<year>\d{4})(-|/)").text
    '(?:[0-9]{4})(?:\\-|/)'
    """
    return _Translation(pattern).run()


@dataclass(frozen=True, slots=True)
class _Flags:
    """Those of Java's flags that we keep."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False

    def change(self, letters: str, value: bool) -> _Flags:
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
        symbol = self.cursor.peek()
        if symbol == "(":
            self._open_group()
        elif symbol == ")":
            self._close_group()
        elif symbol == "|":
            self.cursor.take()
            self.open_groups[-1].end_alternative()
        elif symbol in _QUANTIFIERS:
            raise _refuse_repetition_of_nothing(self.cursor)
        else:
            start = self.cursor.at
            self._append(self._read_atom(), start)

    def _append(self, atom: Fragment, start: int) -> None:
        """Add an atom that began at `start`, with the quantifier that follows it."""
        self.open_groups[-1].sequence.append(_quantify(self.cursor, atom, start))

    def _read_atom(self) -> Fragment:
        symbol = self.cursor.peek()
        if symbol == "[":
            return character(read_class(self.cursor, ignore_case=self.flags.ignore_case))
        if symbol == "\\":
            return self._read_escape()
        if symbol in "^$":
            return self._read_line_anchor()
        if symbol == ".":
            self.cursor.take()
            return character(ANYTHING if self.flags.dot_all else DOT, is_dot=True)
        return self._read_literals()

    def _read_literals(self) -> Fragment:
        """Return a run of plain characters; a quantifier behind them binds the last one only."""
        literals = self.cursor.match(_PLAIN)
        run = literals[0] if literals else ""
        if len(run) > 1 and self.cursor.peek() in _QUANTIFIERS:
            # The last character is left for the next step, which reads its quantifier.
            self.cursor.at -= 1
            run = run[:-1]
        return _make_literal(run, self.flags.ignore_case)

    def _read_line_anchor(self) -> Fragment:
        start = self.cursor.at
        sign = self.cursor.take()
        mark = self._make_mark(start)
        if self.flags.multiline:
            raise mark.refusal("{} in multiline mode")
        return anchor(Place.START) if sign == "^" else dollar(mark)

    def _read_escape(self) -> Fragment:
        start = self.cursor.at
        escape = self.cursor.peek(2)
        if escape in _ANCHORS or escape in (r"\B", r"\Z"):
            self.cursor.take(2)
            return self._read_anchor(escape, start)
        read = read_escape(self.cursor, ignore_case=self.flags.ignore_case)
        if isinstance(read, CharacterSet):
            return character(read)
        return _make_literal(chr(read), self.flags.ignore_case)

    def _read_anchor(self, escape: str, start: int) -> Fragment:
        if escape == r"\b" and self.cursor.skip("{g"):
            self.cursor.skip("}")
            raise self.cursor.refusal("grapheme boundary", start)
        if escape == r"\Z":
            return dollar(self._make_mark(start))
        if escape == r"\B":
            return anchor(Place.NOT_BOUNDARY, not_boundary=self._make_mark(start))
        return anchor(_ANCHORS[escape])

    def _open_group(self) -> None:
        start = self.cursor.at
        # Flags that the group sets hold up to its end, so those before it are kept.
        outer_flags = self.flags
        if self.cursor.peek(2) != "(?":
            self.cursor.take()
        elif not self._read_group_kind(start):
            return
        self.open_groups.append(_OpenGroup(start, outer_flags))
        if len(self.open_groups) > _MAX_DEPTH + 1:
            raise self.cursor.refusal(f"groups nested deeper than {_MAX_DEPTH}", start)

    def _read_group_kind(self, start: int) -> bool:
        """Read `(?…` up to the contents of the group; False when it has none, like `(?i)`."""
        for opening, name in _REFUSED_GROUPS.items():
            if self.cursor.skip(opening):
                raise self.cursor.refusal(name, start)
        if self._read_group_name(start):
            return True
        flags = self.cursor.match(_FLAGS)
        if flags is None:
            self.cursor.take(3)
            raise self.cursor.invalid("an unknown kind of group", start)
        self._set_flags(flags[1], flags[2] or "", start)
        return flags[3] == ":"

    def _read_group_name(self, start: int) -> bool:
        name = self.cursor.match(_GROUP_NAME)
        if name is None:
            return False
        if name[1] in self.names:
            raise self.cursor.invalid(f"two groups are named `{name[1]}`", start)
        self.names.add(name[1])
        return True

    def _set_flags(self, on: str, off: str, start: int) -> None:
        # To switch off a flag that was never on changes nothing.
        for letter in on:
            if letter in _REFUSED_FLAGS:
                raise self.cursor.refusal(_REFUSED_FLAGS[letter], start)
        self.flags = self.flags.change(on, True).change(off, False)

    def _close_group(self) -> None:
        start = self.cursor.at
        self.cursor.take()
        if len(self.open_groups) == 1:
            raise self.cursor.invalid("a `)` closes nothing", start)
        # The group becomes one atom of the group around it, with the flags from before it.
        closed = self.open_groups.pop()
        self.flags = closed.outer_flags
        self._append(group(closed.close()), closed.start)

    def _make_mark(self, start: int) -> Mark:
        return Mark(self.cursor.offset(start), self.cursor.written(start))


@lru_cache(maxsize=4096)
def _make_literal(run: str, ignore_case: bool) -> Fragment:
    # Only the last character can take a quantifier or stand before a `$`.
    *head, last = (_make_single(ord(letter), ignore_case) for letter in run)
    text = "".join(members.text for members in head)
    tree = Concatenation(tuple(map(Letter, head)))
    return join([Fragment(text, is_unit=False, tree=tree, example=run[:-1]), character(last)])


def _make_single(point: int, ignore_case: bool) -> CharacterSet:
    members = CharacterSet.of((point, point))
    return members.fold_case() if ignore_case else members


def _quantify(cursor: Cursor, atom: Fragment, start: int) -> Fragment:
    """Return the atom with the quantifier that follows it, if one does."""
    if cursor.peek() not in _QUANTIFIERS:
        return atom
    sign = cursor.at
    low, high = _read_quantifier(cursor)
    # A second `+` is possessive and changes what matches; a `?` is reluctant and does not.
    if cursor.skip("+"):
        raise cursor.refusal("possessive quantifier", start)
    cursor.skip("?")
    # Checked behind the whole quantifier, which the refusal shows.
    if max(low, high or 0) > _MAX_REPEATS:
        raise cursor.refusal(f"more than {_MAX_REPEATS} repetitions", sign)
    return repeat(atom, low, high, Mark(cursor.offset(sign), cursor.written(sign)))


def _read_quantifier(cursor: Cursor) -> tuple[int, int | None]:
    start = cursor.at
    quantifier = cursor.match(_QUANTIFIER)
    if quantifier is None:
        cursor.take()
        raise cursor.invalid("`{` without a number of repetitions", start)
    if quantifier[1]:
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[quantifier[1]]
    low = _parse_count(quantifier[2])
    high = low if not quantifier[3] else _parse_count(quantifier[4]) if quantifier[4] else None
    if high is not None and high < low:
        raise cursor.invalid("repetitions that end before they start", start)
    return low, high


def _refuse_repetition_of_nothing(cursor: Cursor) -> PatternRefused:
    """Return the refusal of `a{2}{3}`: to Java that repeats the empty text three times."""
    start = cursor.at
    _read_quantifier(cursor)
    if cursor.text[start] == "{":
        return cursor.refusal("repetition of nothing", start)
    return cursor.invalid(f"`{cursor.text[start]}` has nothing to repeat", start)


def _parse_count(digits: str) -> int:
    """Return at most one million; whatever is larger is refused anyway."""
    return min(int(digits.lstrip("0")[:7] or "0"), 1_000_000)
