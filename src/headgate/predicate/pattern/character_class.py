r"""A bracketed class `[…]` as a set: members, ranges, escapes, and classes within classes.

In Java a class inside a class is a union, and `^` negates all that its own brackets hold:
`[^a[b]]` is neither `a` nor `b`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.predicate.pattern.character_set import CharacterSet
from headgate.predicate.pattern.cursor import Cursor
from headgate.predicate.pattern.escape import read_escape

_DEEPEST = 100


@dataclass(slots=True)
class _OpenClass:
    start: int
    is_negated: bool
    parts: list[CharacterSet] = field(default_factory=list)


def read_class(cursor: Cursor, *, ignore_case: bool = False) -> CharacterSet:
    r"""The set that a class stands for; the cursor is at its `[`.

    >>> read_class(Cursor("[a-c[^b-z]]")).text
    '[^d-z]'
    >>> read_class(Cursor("[Z-a]"), ignore_case=True).text
    '[AZ-az]'
    """
    nesting = [_open(cursor)]
    while True:
        innermost = nesting[-1]
        if cursor.is_at_end:
            raise cursor.invalid("a class is not closed", nesting[0].start)
        if cursor.peek() == "[":
            nesting.append(_open(cursor))
            if len(nesting) > _DEEPEST:
                raise cursor.refusal(f"classes nested deeper than {_DEEPEST}", cursor.at - 1)
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


def _close(cursor: Cursor, done: _OpenClass) -> CharacterSet:
    members = CharacterSet.union(done.parts)
    if members is None:
        raise cursor.refusal("a negated property inside a class", done.start)
    return members.complement() if done.is_negated else members


def _read_part(cursor: Cursor, ignore_case: bool) -> CharacterSet:
    """A member, a range of members, or an escaped set."""
    start = cursor.at
    low = _read_member(cursor, ignore_case)
    if isinstance(low, CharacterSet):
        return low
    high = _read_range_end(cursor, ignore_case) if _is_range(cursor) else low
    if isinstance(high, CharacterSet) or high < low:
        raise cursor.invalid("a range that ends before it starts", start)
    members = CharacterSet.of((low, high))
    return members.case_folded() if ignore_case else members


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
    if cursor.peek(3) == "\\v-":
        cursor.take(2)
        return 0x0B
    start = cursor.at
    if cursor.peek(2)[1:] in _ONLY_OUTSIDE:
        cursor.take(2)
        raise cursor.invalid(f"`{cursor.written(start)}` has no meaning in a class", start)
    return read_escape(cursor, ignore_case=ignore_case)


_ONLY_OUTSIDE = frozenset("123456789ABGRXZbkz")
