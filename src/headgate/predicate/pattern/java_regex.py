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

from functools import lru_cache
from typing import Protocol

import re2

from headgate.errors import shorten
from headgate.predicate.pattern.errors import PatternRefused
from headgate.predicate.pattern.fragment import Fragment
from headgate.predicate.pattern.translation import translate

__all__ = ["CompiledPattern", "PatternRefused", "compile_re2", "to_re2"]

_MAX_LENGTH = 10_000

# Enough for `\p{L}{200}`; a pattern that needs more is refused after a third of a second.
_MEMORY = 4 << 20


class CompiledPattern(Protocol):
    """A pattern that is ready to search texts."""

    def search(self, text: str) -> object | None: ...


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
        reason = f"too large for RE2 ({_message(error)})"
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
    r"""Refuse a `\B` that may be tested inside a character, where the engines differ.

    RE2 tries between the bytes of any other than an ASCII character, Java between the two halves of
    a surrogate pair, and there a `.` takes the second half.
    """
    if whole.not_boundary and (whole.has_dot or whole.emptiness):
        raise whole.not_boundary.refusal("{} before any character")
