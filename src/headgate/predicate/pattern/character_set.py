r"""A character class is a set of code points, and it is written for RE2 in one way only.

`\d`, `[0-9]` and `\p{Digit}` are one set. A set is a list of ranges plus, because their members
differ between versions of Unicode, general categories left for RE2 to look up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

Range = tuple[int, int]

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xE000)  # from the first up to before the second: no characters


@dataclass(frozen=True, slots=True)
class CharacterSet:
    r"""The ranges (sorted, apart, inclusive) and the categories, or everything but them.

    A set without categories is never `negated`, so equal sets of ranges are equal objects.

    >>> DIGIT.text, DIGIT.complement().text, CharacterSet.of((0x2028, 0x2028)).text
    ('[0-9]', '[^0-9]', '\\x{2028}')
    >>> CharacterSet((), (r"\p{Lu}",)).complement().text
    '\\P{Lu}'
    """

    ranges: tuple[Range, ...]
    categories: tuple[str, ...] = ()
    negated: bool = False

    @staticmethod
    def of(*ranges: Range) -> CharacterSet:
        """Return the union of ranges, in any order, overlapping or not."""
        return CharacterSet(_merge(ranges))

    @staticmethod
    def union(sets: Iterable[CharacterSet]) -> CharacterSet | None:
        """Return all members of the sets, or None when one class of RE2 cannot hold them."""
        parts = list(dict.fromkeys(sets))
        if len(parts) == 1:
            return parts[0]
        # A class of RE2 can negate all of its members, but not some.
        if any(part.negated for part in parts):
            return None
        categories = dict.fromkeys(name for part in parts for name in part.categories)
        return CharacterSet(_merge(r for part in parts for r in part.ranges), tuple(categories))

    @property
    def text(self) -> str:
        """The set as RE2 reads it."""
        if self._reaches_the_top:
            return f"[^{_ranges_text(_find_gaps(self.ranges))}]"
        # RE2 reads these pairs of letters as a folded letter, so they are written as a choice.
        if self in _TAKEN_FOR_FOLDED:
            return f"(?:{chr(self.ranges[0][0])}|{chr(self.ranges[1][0])})"
        members = _ranges_text(self.ranges) + "".join(self.categories)
        # RE2 has no empty class, so nothing is written as all but everything.
        if not members:
            return f"[^{_ranges_text(ANYTHING.ranges)}]"
        if self.negated:
            return f"[^{members}]"
        return members if self._is_one_item else f"[{members}]"

    @property
    def _reaches_the_top(self) -> bool:
        """Written as all but its gaps, which is what its author wrote; unless it has no gaps."""
        reaches = bool(self.ranges) and self.ranges[-1][1] == MAX_CODE_POINT
        return reaches and not self.categories and self != ANYTHING

    @property
    def _is_one_item(self) -> bool:
        if self.categories:
            return len(self.categories) == 1 and not self.ranges
        return len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]

    def __contains__(self, character: str) -> bool:
        """Return whether a character is a member; only of a set without categories."""
        assert not self.categories
        at = bisect_right(self.ranges, (ord(character), MAX_CODE_POINT)) - 1
        return at >= 0 and ord(character) <= self.ranges[at][1]

    def complement(self) -> CharacterSet:
        """Return every other code point."""
        if not self.categories:
            return CharacterSet(_find_gaps(self.ranges))
        # `\p{Lu}` becomes `\P{Lu}`; a mixture of ranges and categories is negated as a whole.
        if self._is_one_item and not self.negated:
            return CharacterSet((), (_opposite(self.categories[0]),))
        return CharacterSet(self.ranges, self.categories, not self.negated)

    def has_control(self, character: str) -> bool:
        r"""Return whether this control character, such as `\r`, is a member.

        Only of control characters is the category known in every version of Unicode.
        """
        listed = any(low <= ord(character) <= high for low, high in self.ranges)
        return (listed or any(map(_has_controls, self.categories))) != self.negated

    def without_control(self, character: str) -> CharacterSet | None:
        """Return all members but this one, or None when one class of RE2 cannot hold them."""
        point = ord(character)
        # All but some, and now all but one more.
        if self.negated:
            return CharacterSet(_merge([*self.ranges, (point, point)]), self.categories, True)
        if any(map(_has_controls, self.categories)):
            # `\P{L}` without `\r` is `[^\p{L}\r]`, but `\p{Cc}` without it is no class of RE2.
            single = self._is_one_item and self.categories[0].startswith(r"\P")
            name = _opposite(self.categories[0])
            return CharacterSet(((point, point),), (name,), True) if single else None
        ranges = _find_gaps(_merge([*_find_gaps(self.ranges), (point, point)]))
        return CharacterSet(ranges, self.categories)

    @property
    def sample(self) -> str:
        """A member, a plain letter or digit where one is; a guess where categories decide."""
        for character in "aA0 ":
            if self.negated or any(low <= ord(character) <= high for low, high in self.ranges):
                return character
        return chr(self.ranges[0][0]) if self.ranges and not self.categories else "a"

    def fold_case(self) -> CharacterSet:
        """Return the set with both cases of every ASCII letter: all that `(?i)` adds in Java."""
        # A range without letters becomes an empty one, which the merge drops.
        upper = [_shift(r, "A", "Z", 32) for r in self.ranges]
        lower = [_shift(r, "a", "z", -32) for r in self.ranges]
        return CharacterSet(_merge([*self.ranges, *upper, *lower]))


def literal(point: int) -> str:
    r"""Return one code point as RE2 reads it, inside a class and outside.

    >>> [literal(ord(character)) for character in "a.é\n"]
    ['a', '\\.', 'é', '\\x{a}']
    """
    character = chr(point)
    if character.isascii() and character.isprintable():
        return "\\" + character if character in r"\.+*?()|[]{}^$-" else character
    return character if character.isalnum() else f"\\x{{{point:x}}}"


def _shift(span: Range, first: str, last: str, step: int) -> Range:
    low, high = max(span[0], ord(first)), min(span[1], ord(last))
    return (low + step, high + step)


def _merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the ranges sorted and apart; a range whose end comes before its start is nothing."""
    result: list[Range] = []
    for low, high in sorted(r for r in ranges if r[0] <= r[1]):
        # Ranges that overlap or touch become one.
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def _find_gaps(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), MAX_CODE_POINT]
    return tuple(gap for gap in zip(starts, ends, strict=True) if gap[0] <= gap[1])


def _ranges_text(ranges: tuple[Range, ...]) -> str:
    return "".join(map(_range_text, ranges))


def _range_text(span: Range) -> str:
    low, high = span
    if low == high:
        return literal(low)
    return literal(low) + ("-" if high > low + 1 else "") + literal(high)


def _opposite(category: str) -> str:
    return ("\\P" if category.startswith("\\p") else "\\p") + category[2:]


def _has_controls(category: str) -> bool:
    return (category[2:] == "{Cc}") == category.startswith("\\p")


def _characters(text: str) -> CharacterSet:
    return CharacterSet.of(*((ord(character), ord(character)) for character in text))


# RE2 reads `[Kk]` as `(?i)k`, and as one of several alternatives it then folds it by Unicode:
# `[Kk]|z` finds the Kelvin sign, and `[Ss]|z` the long s. Written `(?:K|k)` it does not.
_TAKEN_FOR_FOLDED = frozenset(_characters(pair) for pair in ("Kk", "Ss"))

LINE_TERMINATORS = _characters("\n\r\x85\u2028\u2029")
DOT = LINE_TERMINATORS.complement()
NOTHING = CharacterSet(())
ANYTHING = CharacterSet.of((0, MAX_CODE_POINT))
LATIN_1 = CharacterSet.of((0, 0xFF))

ASCII = CharacterSet.of((0, 0x7F))
CONTROL = CharacterSet.of((0, 0x1F), (0x7F, 0x7F))
PRINTABLE = CharacterSet.of((0x20, 0x7E))
VISIBLE = CharacterSet.of((0x21, 0x7E))
BLANK = _characters(" \t")
SPACE = _characters(" \t\n\x0b\f\r")
DIGIT = CharacterSet.of((0x30, 0x39))
UPPER = CharacterSet.of((0x41, 0x5A))
LOWER = CharacterSet.of((0x61, 0x7A))
LETTER = LOWER.fold_case()
LETTER_OR_DIGIT = CharacterSet.of(*LETTER.ranges, *DIGIT.ranges)
HEXADECIMAL = CharacterSet.of((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
PUNCTUATION = CharacterSet.of((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))
WORD = CharacterSet.of(*LETTER_OR_DIGIT.ranges, (0x5F, 0x5F))
VERTICAL_SPACE = _characters("\n\x0b\f\r\x85\u2028\u2029")
HORIZONTAL_SPACE = CharacterSet.of(
    (0x09, 0x09),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x180E, 0x180E),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
