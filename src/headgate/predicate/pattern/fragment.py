r"""A fragment is RE2 text, and what must be known about its ends to put it next to others.

Java's `$` stands at the end of the text or before a final line terminator, but not between
`\r` and `\n`. RE2 cannot look ahead, so where nothing follows a `$` we consume the terminator
instead, and keep account of whether the character before it may be a `\r`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from headgate.errors import shorten
from headgate.predicate.pattern.character_set import NOTHING, CharacterSet
from headgate.predicate.pattern.errors import PatternRefused
from headgate.predicate.pattern.regex_tree import (
    EMPTY_TEXT,
    Alternation,
    Concatenation,
    Letter,
    Place,
    RegexTree,
    Repetition,
)

_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
_END_AFTER_RETURN = r"(?:\r\n|[\r\x{85}\x{2028}\x{2029}])?\z"


class Emptiness(IntEnum):
    """May a fragment match no character? A sequence has the minimum, a choice the maximum."""

    NEVER = 0
    WHERE_AN_ANCHOR_HOLDS = 1
    ALWAYS = 2


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of the pattern that a refusal may have to point at."""

    offset: int
    text: str

    def refusal(self, reason: str) -> PatternRefused:
        """Return a refusal of this piece; `{}` in the reason stands for it."""
        text = shorten(self.text)
        return PatternRefused(reason.replace("{}", f"`{text}`"), self.offset, text)


@dataclass(frozen=True, slots=True)
class Fragment:
    r"""RE2 text with the facts that its neighbours need.

    `is_unit`           the text takes a quantifier as it stands
    `is_zero_width`     it never consumes a character
    `members`           it is one character of this set
    `ends_in_return`    its last character may be a `\r`
    `before_dollar`     then, its text with a `$` behind it, if we know how to write that
    `passes_return`     it may be empty, so that a `\r` before it is still the character before
    `dollar`            a `$` in it, behind which nothing may follow
    `dollar_is_open`    that `$` may be reached before any character
    `not_boundary`      a `\B` in it that may be tested before any character
    `has_dot`           a `.` is in it
    `tree`              what it means in Java, for the algebra of patterns
    `example`           a text that it probably matches
    """

    text: str
    emptiness: Emptiness = Emptiness.NEVER
    is_unit: bool = True
    is_zero_width: bool = False
    members: CharacterSet | None = None
    ends_in_return: bool = False
    before_dollar: str | None = None
    passes_return: bool = False
    dollar: Mark | None = None
    dollar_is_open: bool = False
    not_boundary: Mark | None = None
    has_dot: bool = False
    tree: RegexTree = EMPTY_TEXT
    example: str = ""


EMPTY = Fragment("", Emptiness.ALWAYS, is_unit=False, is_zero_width=True, passes_return=True)


@lru_cache(maxsize=4096)
def character(members: CharacterSet, *, is_dot: bool = False) -> Fragment:
    """Return one character of a set."""
    ends_in_return = members.has_control("\r")
    return Fragment(
        members.text,
        members=members,
        ends_in_return=ends_in_return,
        before_dollar=_character_before_dollar(members) if ends_in_return else None,
        has_dot=is_dot,
        tree=Letter(members),
        example=members.sample,
    )


def _character_before_dollar(members: CharacterSet) -> str | None:
    r"""Return the text with `\r` apart: behind it, a `\n` alone is not the end."""
    others = members.without_control("\r")
    if others is None:
        return None
    after_others = f"{others.text}{_END}|" if others != NOTHING else ""
    return rf"(?:{after_others}\r{_END_AFTER_RETURN})"


def anchor(place: Place, not_boundary: Mark | None = None) -> Fragment:
    r"""Return a place in the text, such as `\A` or `\b`."""
    return Fragment(
        place.value,
        Emptiness.WHERE_AN_ANCHOR_HOLDS,
        is_zero_width=True,
        passes_return=True,
        not_boundary=not_boundary,
        tree=place,
    )


def dollar(mark: Mark) -> Fragment:
    r"""Return Java's `$` or `\Z`, where nothing follows."""
    return Fragment(
        _END,
        Emptiness.WHERE_AN_ANCHOR_HOLDS,
        is_unit=False,
        is_zero_width=True,
        dollar=mark,
        dollar_is_open=True,
        tree=Place.LAST_LINE_END,
    )


def group(fragment: Fragment) -> Fragment:
    """Return the fragment as one unit. It never captures: RLIKE needs no groups."""
    if fragment.is_unit or not fragment.text:
        return fragment
    return replace(fragment, text=f"(?:{fragment.text})", is_unit=True)


def choose(alternatives: Sequence[Fragment]) -> Fragment:
    """Return any one of the alternatives."""
    if len(alternatives) == 1:
        return alternatives[0]
    # What may be so for one alternative may be so for the choice; only zero width needs all.
    return Fragment(
        "|".join(fragment.text for fragment in alternatives),
        max(fragment.emptiness for fragment in alternatives),
        is_unit=False,
        is_zero_width=all(fragment.is_zero_width for fragment in alternatives),
        ends_in_return=any(fragment.ends_in_return for fragment in alternatives),
        before_dollar=_choice_before_dollar(alternatives),
        passes_return=any(fragment.passes_return for fragment in alternatives),
        dollar=next((f.dollar for f in alternatives if f.dollar), None),
        dollar_is_open=any(fragment.dollar_is_open for fragment in alternatives),
        not_boundary=next((f.not_boundary for f in alternatives if f.not_boundary), None),
        has_dot=any(fragment.has_dot for fragment in alternatives),
        tree=Alternation(tuple(fragment.tree for fragment in alternatives)),
        example=alternatives[0].example,
    )


def _choice_before_dollar(alternatives: Sequence[Fragment]) -> str | None:
    returning = [fragment for fragment in alternatives if fragment.ends_in_return]
    if not returning or any(fragment.before_dollar is None for fragment in returning):
        return None
    texts = (fragment.before_dollar or fragment.text + _END for fragment in alternatives)
    return f"(?:{'|'.join(texts)})"


def join(fragments: Sequence[Fragment]) -> Fragment:
    r"""Return one fragment after the other.

    >>> from headgate.predicate.pattern.character_set import DIGIT, SPACE
    >>> join([character(DIGIT), dollar(Mark(2, "$"))]).text
    '[0-9](?:\\r\\n|[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z'
    >>> join([dollar(Mark(0, "$")), character(SPACE)])
    Traceback (most recent call last):
    ...
    headgate.predicate.pattern.errors.PatternRefused:
    `$` with something behind it at character 1
    """
    written = [fragment for fragment in fragments if fragment.text]
    if len(written) <= 1:
        return written[0] if written else EMPTY
    *before, last = written
    # RE2 cannot look ahead, so only the last fragment may hold a `$`.
    for fragment in before:
        if fragment.dollar:
            raise fragment.dollar.refusal("{} with something behind it")
    # The sequence may be empty where every part may. A `$` at its end is reached before any
    # character only past parts that may all be empty.
    return Fragment(
        _join_text(before, last),
        min(fragment.emptiness for fragment in written),
        is_unit=False,
        is_zero_width=all(fragment.is_zero_width for fragment in written),
        ends_in_return=_may_end_in_return(written),
        before_dollar=_sequence_before_dollar(written),
        passes_return=all(fragment.passes_return for fragment in written),
        dollar=last.dollar,
        dollar_is_open=last.dollar_is_open and all(f.passes_return for f in before),
        not_boundary=_find_not_boundary(written),
        has_dot=any(fragment.has_dot for fragment in written),
        tree=Concatenation(tuple(fragment.tree for fragment in written)),
        example="".join(fragment.example for fragment in written),
    )


def _join_text(before: Sequence[Fragment], last: Fragment) -> str:
    # Behind a `\r` a final `\n` alone is not the end, so the text before it is written again.
    if last.dollar and last.dollar_is_open and _may_end_in_return(before):
        text = _sequence_before_dollar(before)
        if text is None or last.text != _END:
            raise last.dollar.refusal("{} behind what may end in a carriage return")
        return text
    return "".join([*(fragment.text for fragment in before), last.text])


def _may_end_in_return(sequence: Sequence[Fragment]) -> bool:
    # Backwards past fragments that may be empty, to the last character that is consumed.
    for fragment in reversed(sequence):
        if fragment.ends_in_return or not fragment.passes_return:
            return fragment.ends_in_return
    return False


def _find_not_boundary(sequence: Sequence[Fragment]) -> Mark | None:
    for fragment in sequence:
        if fragment.not_boundary or not fragment.emptiness:
            return fragment.not_boundary
    return None


def _sequence_before_dollar(sequence: Sequence[Fragment]) -> str | None:
    *before, last = sequence
    if last.before_dollar is None or (last.passes_return and _may_end_in_return(before)):
        return None
    return "".join([*(fragment.text for fragment in before), last.before_dollar])


def repeat(fragment: Fragment, low: int, high: int | None, mark: Mark) -> Fragment:
    r"""Return the fragment from `low` to `high` times; None is without limit.

    Greedy and reluctant are one thing here: they find the same texts.

    >>> from headgate.predicate.pattern.character_set import DIGIT
    >>> repeat(character(DIGIT), 2, None, Mark(0, "")).text
    '[0-9]{2,}'
    """
    if high == 0 or not fragment.text:
        return EMPTY
    # An anchor that holds once holds any number of times.
    if fragment.is_zero_width:
        return fragment if low else EMPTY
    if fragment.dollar and high != 1:
        raise fragment.dollar.refusal("{} inside a repetition")
    if low > 1 and fragment.emptiness is Emptiness.WHERE_AN_ANCHOR_HOLDS:
        # Java ends the counting at the first empty round, so `(^|a){2}b` does not find `ab`.
        raise mark.refusal("counted repetition {} of what an anchor may leave empty")
    return _repeat(fragment, low, high)


def _repeat(fragment: Fragment, low: int, high: int | None) -> Fragment:
    unit = group(fragment).text
    # Where the `\n` of a final `\r\n` can be consumed too, the end of the text is reached, and
    # there `$` holds: a `\r` that is last does no harm.
    members = fragment.members
    swallows = high is None and members is not None and members.has_control("\n")
    return Fragment(
        _times(unit, low, high),
        fragment.emptiness if low else Emptiness.ALWAYS,
        is_unit=False,
        ends_in_return=fragment.ends_in_return and not swallows,
        before_dollar=None if swallows else _repetition_before_dollar(fragment, low, high),
        passes_return=not swallows and (low == 0 or fragment.passes_return),
        dollar=fragment.dollar,
        dollar_is_open=fragment.dollar_is_open,
        not_boundary=fragment.not_boundary,
        has_dot=fragment.has_dot,
        tree=Repetition(fragment.tree, low, high),
        example=fragment.example * low,
    )


def _repetition_before_dollar(fragment: Fragment, low: int, high: int | None) -> str | None:
    """Return the rounds with a `$` behind the last one, if we know how to write that."""
    if fragment.before_dollar is None or fragment.emptiness:
        return None
    others = _times(group(fragment).text, max(low - 1, 0), None if high is None else high - 1)
    text = others + fragment.before_dollar
    return text if low else f"(?:{text}|{_END})"


def _times(unit: str, low: int, high: int | None) -> str:
    if high == 0:
        return ""
    # Short forms first: `*`, `+`, `?` and nothing at all; then `{low,high}`.
    if high is None and low <= 1:
        return unit + "*+"[low]
    if (low, high) in ((0, 1), (1, 1)):
        return unit + "?" if low == 0 else unit
    return f"{unit}{{{low}{'' if low == high else ','}{'' if high in (None, low) else high}}}"
