r"""A bracketed class `[…]` as a set: members, ranges, escapes, and classes within classes.

In Java a class inside a class is a union, and `^` negates all that its own brackets hold:
`[^a[b]]` is neither `a` nor `b`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from headgate.predicate.pattern import character_set as sets
from headgate.predicate.pattern.character_set import CharacterSet
from headgate.predicate.pattern.cursor import Cursor

_MAX_DEPTH = 100


@dataclass(slots=True)
class _OpenClass:
    start: int
    is_negated: bool
    parts: list[CharacterSet] = field(default_factory=list)


def read_class(cursor: Cursor, *, ignore_case: bool = False) -> CharacterSet:
    r"""Return the set that a class stands for; the cursor is at its `[`.

    >>> read_class(Cursor("[a-c[^b-z]]")).text
    '[^d-z]'
    >>> read_class(Cursor("[Z-a]"), ignore_case=True).text
    '[AZ-az]'
    """
    # Open brackets, outermost first: a stack instead of recursion.
    nesting = [_open(cursor)]
    while True:
        innermost = nesting[-1]
        if cursor.is_at_end:
            raise cursor.invalid("a class is not closed", nesting[0].start)
        if cursor.peek() == "[":
            nesting.append(_open(cursor))
            if len(nesting) > _MAX_DEPTH:
                raise cursor.refusal(f"classes nested deeper than {_MAX_DEPTH}", cursor.at - 1)
        # A `]` that comes first is a member.
        elif cursor.peek() == "]" and innermost.parts:
            cursor.take()
            members = _close(cursor, nesting.pop())
            if not nesting:
                return members
            nesting[-1].parts.append(members)
        elif cursor.skip("&&"):
            raise cursor.refusal("character class intersection", cursor.at - 2)
        else:
            innermost.parts.append(_read_part(cursor, ignore_case))


def _open(cursor: Cursor) -> _OpenClass:
    start = cursor.at
    cursor.take()
    return _OpenClass(start, cursor.skip("^"))


def _close(cursor: Cursor, closed: _OpenClass) -> CharacterSet:
    members = CharacterSet.union(closed.parts)
    if members is None:
        raise cursor.refusal("a negated property inside a class", closed.start)
    return members.complement() if closed.is_negated else members


def _read_part(cursor: Cursor, ignore_case: bool) -> CharacterSet:
    """Return a member, a range of members, or an escaped set."""
    start = cursor.at
    low = _read_member(cursor, ignore_case)
    if isinstance(low, CharacterSet):
        return low
    # A single member is a range of one.
    high = _read_range_end(cursor, ignore_case) if _is_range(cursor) else low
    if isinstance(high, CharacterSet) or high < low:
        raise cursor.invalid("a range that ends before it starts", start)
    members = CharacterSet.of((low, high))
    return members.fold_case() if ignore_case else members


def _is_range(cursor: Cursor) -> bool:
    return cursor.peek() == "-" and cursor.peek(2) not in ("-[", "-]")


def _read_range_end(cursor: Cursor, ignore_case: bool) -> int | CharacterSet:
    cursor.take()
    # Java keeps `\v` as the vertical tab at the ends of a range, as it was before Java 8.
    return 0x0B if cursor.skip("\\v") else _read_member(cursor, ignore_case)


def _read_member(cursor: Cursor, ignore_case: bool) -> int | CharacterSet:
    if cursor.is_at_end:
        raise cursor.invalid("a class is not closed", cursor.at)
    if cursor.peek() != "\\":
        return ord(cursor.take())
    # At the start of a range `\v` is the vertical tab, as at its end.
    if cursor.peek(3) == "\\v-":
        cursor.take(2)
        return 0x0B
    start = cursor.at
    if cursor.peek(2)[1:] in _ESCAPES_OUTSIDE_ONLY:
        cursor.take(2)
        raise cursor.invalid(f"`{cursor.written(start)}` has no meaning in a class", start)
    return read_escape(cursor, ignore_case=ignore_case)


# Digits are backreferences, the letters anchors, boundaries and other things that are no set.
_ESCAPES_OUTSIDE_ONLY = frozenset("123456789ABGRXZbkz")


_CONTROL_ESCAPES = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}

_SET_ESCAPES = {
    "d": sets.DIGIT,
    "w": sets.WORD,
    "s": sets.SPACE,
    "h": sets.HORIZONTAL_SPACE,
    "v": sets.VERTICAL_SPACE,
}
# The upper-case letter is everything else.
_SET_ESCAPES |= {name.upper(): members.complement() for name, members in _SET_ESCAPES.items()}

_POSIX = {
    "Lower": sets.LOWER,
    "Upper": sets.UPPER,
    "ASCII": sets.ASCII,
    "Alpha": sets.LETTER,
    "Digit": sets.DIGIT,
    "Alnum": sets.LETTER_OR_DIGIT,
    "Punct": sets.PUNCTUATION,
    "Graph": sets.VISIBLE,
    "Print": sets.PRINTABLE,
    "Blank": sets.BLANK,
    "Cntrl": sets.CONTROL,
    "XDigit": sets.HEXADECIMAL,
    "Space": sets.SPACE,
    "L1": sets.LATIN_1,
    "all": sets.ANYTHING,
}

# `C` and `Cn` are missing on purpose: RE2 leaves the unassigned code points out of `C`.
_CATEGORIES = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pd Ps Pe Pc Po Pi Pf"
    " S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co Cs".split()
)
_CASED = ("Lu", "Ll", "Lt")
_UNIONS = {"LC": _CASED, "LD": ("L", "Nd")}

_REFUSED_ESCAPES = {
    "G": "end of the previous match",
    "R": "line break",
    "X": "grapheme cluster",
}

_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{2}|\{([0-9a-fA-F]+)\}")
_FOUR_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{4}")
_OCTAL = re.compile(r"[0-3][0-7]{2}|[0-7]{1,2}")
_REFERENCE = re.compile(r"k(?:<[a-zA-Z0-9]*>)?|[1-9][0-9]*")
_BRACED = re.compile(r"\{[^}]*\}")
_PROPERTY = re.compile(r"\{([^}]+)\}|[^{]")


def read_escape(cursor: Cursor, *, ignore_case: bool = False) -> int | CharacterSet:
    r"""Return the code point or the set that an escape stands for; the cursor is at its backslash.

    >>> read_escape(Cursor(r"\x{1F600}")) == ord("😀"), read_escape(Cursor(r"\p{Digit}")).text
    (True, '[0-9]')
    """
    start = cursor.at
    cursor.take()
    if cursor.match(_REFERENCE):
        raise cursor.refusal("backreference", start)
    letter = cursor.take()
    if letter in ("p", "P"):
        members = _read_property(cursor, start, ignore_case)
        return members.complement() if letter == "P" else members
    if letter in _SET_ESCAPES:
        return _SET_ESCAPES[letter]
    if letter in _REFUSED_ESCAPES:
        raise cursor.refusal(_REFUSED_ESCAPES[letter], start)
    if letter == "N":
        cursor.match(_BRACED)
        raise cursor.refusal("character by name", start)
    return _read_code_point(cursor, letter, start)


def _read_code_point(cursor: Cursor, letter: str, start: int) -> int:
    if letter in _CONTROL_ESCAPES:
        return _CONTROL_ESCAPES[letter]
    if letter == "0":
        return _read_number(cursor, _OCTAL, 8, start)
    if letter == "x":
        return _refuse_surrogate(cursor, _read_number(cursor, _HEXADECIMAL, 16, start), start)
    if letter == "u":
        return _refuse_surrogate(cursor, _read_utf16(cursor, start), start)
    # `\cA` is control-A: Java flips one bit, whatever the character.
    if letter == "c" and not cursor.is_at_end:
        return ord(cursor.take()) ^ 64
    # Only letters are kept for escapes to come; all else stands for itself.
    if not letter or (letter.isascii() and letter.isalpha()):
        raise cursor.invalid(f"no escape `\\{letter}`", start)
    return ord(letter)


def _read_number(cursor: Cursor, form: re.Pattern[str], base: int, start: int) -> int:
    digits = cursor.match(form)
    if digits is None:
        raise cursor.invalid("digits are missing", start)
    text = digits[0].strip("{}").lstrip("0") or "0"
    # More than six digits are beyond the last code point, and need not be converted.
    number = int(text, base) if len(text) <= 6 else sets.MAX_CODE_POINT + 1
    if number > sets.MAX_CODE_POINT:
        raise cursor.invalid("beyond the last code point", start)
    return number


def _read_utf16(cursor: Cursor, start: int) -> int:
    r"""Read `\uhhhh`, or a surrogate pair of two such."""
    unit = _read_number(cursor, _FOUR_HEXADECIMAL, 16, start)
    if not (0xD800 <= unit <= 0xDBFF and cursor.skip("\\u")):
        return unit
    low = _read_number(cursor, _FOUR_HEXADECIMAL, 16, start)
    # A high surrogate without a low one stays what it is, and is refused later.
    return 0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00 if 0xDC00 <= low <= 0xDFFF else unit


def _refuse_surrogate(cursor: Cursor, point: int, start: int) -> int:
    if 0xD800 <= point <= 0xDFFF:
        raise cursor.refusal("half of a surrogate pair", start)
    return point


def _read_property(cursor: Cursor, start: int, ignore_case: bool) -> CharacterSet:
    name = cursor.match(_PROPERTY)
    if name is None:
        raise cursor.invalid("the name of a property is missing", start)
    members = _find_property(name[1] or name[0], ignore_case)
    if members is None:
        raise cursor.refusal("property", start)
    return members


def _find_property(name: str, ignore_case: bool) -> CharacterSet | None:
    r"""Return the members of a property, if RE2 knows them all; `(?i)` merges cased ones."""
    if ignore_case and name in ("Lower", "Upper"):
        return sets.LETTER
    if name in _POSIX:
        return _POSIX[name]
    category = _category_name(name)
    # To Java, any of the three cases matches all of them under `(?i)`.
    if ignore_case and category in _CASED:
        category = "LC"
    parts = _UNIONS.get(category, (category,))
    if not _CATEGORIES.issuperset(parts):
        return None
    return CharacterSet((), tuple(f"\\p{{{part}}}" for part in parts))


def _category_name(name: str) -> str:
    """Return `Lu`, also when it is written `IsLu`, `gc=Lu` or `general_category=Lu`."""
    key, equals, value = name.partition("=")
    if equals and key.lower() in ("gc", "general_category"):
        return value
    return name.removeprefix("Is")
