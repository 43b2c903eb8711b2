r"""From the text of a Java regular expression to one fragment of RE2, in a single pass.

Nothing recurses: the open groups are on a stack of our own, so hostile text costs no more than any
other. What is known about Java's syntax beyond its documentation was read off its behaviour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

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
_ANCHORS = {r"\A": r"\A", r"\z": r"\z", r"\b": r"\b"}


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
        next_one = self.cursor.peek()
        if next_one == "(":
            self._open_group()
        elif next_one == ")":
            self._close_group()
        elif next_one == "|":
            self.cursor.take()
            self.open_groups[-1].end_alternative()
        elif next_one in _QUANTIFIERS:
            raise _repetition_of_nothing(self.cursor)
        else:
            start = self.cursor.at
            self._append(self._read_atom(), start)

    def _append(self, atom: Fragment, start: int) -> None:
        """Add an atom that began at `start`, with the quantifier that follows it."""
        self.open_groups[-1].sequence.append(_quantify(self.cursor, atom, start))

    def _read_atom(self) -> Fragment:
        next_one = self.cursor.peek()
        if next_one == "[":
            return character(read_class(self.cursor, ignore_case=self.flags.ignore_case))
        if next_one == "\\":
            return self._read_escaped()
        if next_one in "^$":
            return self._read_line_anchor()
        if next_one == ".":
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
        return _literal(run, self.flags.ignore_case)

    def _read_line_anchor(self) -> Fragment:
        start = self.cursor.at
        sign = self.cursor.take()
        mark = self._mark(start)
        if self.flags.multiline:
            raise mark.refusal("{} in multiline mode")
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
        return _literal(chr(read), self.flags.ignore_case)

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
        for letter in on:
            if letter in _REFUSED_FLAGS:
                raise self.cursor.refusal(_REFUSED_FLAGS[letter], start)
        self.flags = self.flags.change(on, True).change(off, False)

    def _close_group(self) -> None:
        here = self.cursor.at
        self.cursor.take()
        if len(self.open_groups) == 1:
            raise self.cursor.invalid("a `)` closes nothing", here)
        # The group becomes one atom of the group around it, with the flags from before it.
        done = self.open_groups.pop()
        self.flags = done.outer_flags
        self._append(group(done.close()), done.start)

    def _mark(self, start: int) -> Mark:
        return Mark(self.cursor.offset(start), self.cursor.written(start))


@lru_cache(maxsize=4096)
def _literal(run: str, ignore_case: bool) -> Fragment:
    # Only the last character can take a quantifier or stand before a `$`.
    *head, last = (_single(ord(one), ignore_case) for one in run)
    text = "".join(members.text for members in head)
    return join([Fragment(text, is_unit=False, example=run[:-1]), character(last)])


def _single(point: int, ignore_case: bool) -> CharacterSet:
    members = CharacterSet.of((point, point))
    return members.case_folded() if ignore_case else members


def _quantify(cursor: Cursor, atom: Fragment, start: int) -> Fragment:
    """Return the atom with the quantifier that follows it, if one does."""
    if cursor.peek() not in _QUANTIFIERS:
        return atom
    here = cursor.at
    low, high = _read_quantifier(cursor)
    # A second `+` is possessive and changes what matches; a `?` is reluctant and does not.
    if cursor.skip("+"):
        raise cursor.refusal("possessive quantifier", start)
    cursor.skip("?")
    if max(low, high or 0) > _MAX_REPEATS:
        raise cursor.refusal(f"more than {_MAX_REPEATS} repetitions", here)
    return repeat(atom, low, high, Mark(cursor.offset(here), cursor.written(here)))


def _read_quantifier(cursor: Cursor) -> tuple[int, int | None]:
    start = cursor.at
    quantifier = cursor.match(_QUANTIFIER)
    if quantifier is None:
        cursor.take()
        raise cursor.invalid("`{` without a number of repetitions", start)
    if quantifier[1]:
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[quantifier[1]]
    low = _number(quantifier[2])
    high = low if not quantifier[3] else _number(quantifier[4]) if quantifier[4] else None
    if high is not None and high < low:
        raise cursor.invalid("repetitions that end before they start", start)
    return low, high


def _repetition_of_nothing(cursor: Cursor) -> PatternRefused:
    """Return the refusal of `a{2}{3}`: to Java that repeats the empty text three times."""
    start = cursor.at
    _read_quantifier(cursor)
    if cursor.text[start] == "{":
        return cursor.refusal("repetition of nothing", start)
    return cursor.invalid(f"`{cursor.text[start]}` has nothing to repeat", start)


def _number(digits: str) -> int:
    """Return at most one million; whatever is larger is refused anyway."""
    return min(int(digits.lstrip("0")[:7] or "0"), 1_000_000)
