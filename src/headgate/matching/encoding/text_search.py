"""Find which of very many LIKE, ILIKE and RLIKE patterns match a text: one pass for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headgate.matching.encoding.like_search import LikeSearch
from headgate.matching.encoding.regex_search import RegexSearch
from headgate.predicate import Pattern
from headgate.predicate.atoms import PatternKind, TextMatcher
from headgate.predicate.pattern import LikePattern, parse_like

T = TypeVar("T")

Search = Callable[[str], list[int]]
NumberedPatterns = list[tuple[int, Pattern]]


class TextSearch:
    """A search for the patterns that match a text; a pattern's number is its place in the list.

    Guarantee: exactly those of which `pattern.matcher.matches` says so, in ascending order.

    >>> patterns = [Pattern("ILIKE", "%É%"), Pattern("RLIKE", "^[a-c]"), Pattern("LIKE", "b%")]
    >>> starts, numbers = TextSearch(patterns).match(["bé", "É", "x"])
    >>> starts.tolist(), numbers.tolist()
    ([0, 3, 4, 4], [0, 1, 2, 0])
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._tried: list[tuple[int, TextMatcher]] = []
        self._searches: list[Search] = []
        for kind, max_tried, prepare in _KINDS:
            mine = [(n, pattern) for n, pattern in enumerate(patterns) if pattern.kind == kind]
            if len(mine) <= max_tried:
                self._tried += ((n, one.matcher) for n, one in mine)
            else:
                self._searches.append(prepare(mine))

    def match(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return starts and numbers: text i matches `numbers[starts[i]:starts[i + 1]]`."""
        starts, numbers = [0], list[int]()
        for text in texts:
            matching = [number for number, test in self._tried if test.matches(text)]
            for search in self._searches:
                matching += search(text)
            matching.sort()
            numbers += matching
            starts.append(len(numbers))
        return np.array(starts, np.int64), np.array(numbers, np.int64)


def _prepare_like(patterns: NumberedPatterns) -> Search:
    return LikeSearch(_group((n, _get_like(one)) for n, one in patterns)).match


def _prepare_ilike(patterns: NumberedPatterns) -> Search:
    """Prepare ILIKE as Spark defines it: both sides in lower case, then LIKE."""
    lowered = ((n, parse_like(one.text.lower(), one.escape)) for n, one in patterns)
    search = LikeSearch(_group(lowered))
    return lambda text: search.match(text.lower())


def _prepare_rlike(patterns: NumberedPatterns) -> Search:
    return RegexSearch(_group(patterns)).match


def _get_like(pattern: Pattern) -> LikePattern:
    """Return a LIKE pattern as the binder has parsed it; parsing again takes much longer."""
    matcher = pattern.matcher
    assert isinstance(matcher, LikePattern)
    return matcher


def _group(numbered: Iterable[tuple[int, T]]) -> dict[T, list[int]]:
    """Return the numbers of each item, so that what stands twice is searched for once."""
    groups: dict[T, list[int]] = {}
    for number, item in numbered:
        groups.setdefault(item, []).append(number)
    return groups


# kind; how many patterns are tried one by one, which is faster for so few; the search for more
_KINDS: tuple[tuple[PatternKind, int, Callable[[NumberedPatterns], Search]], ...] = (
    ("LIKE", 3, _prepare_like),
    ("ILIKE", 3, _prepare_ilike),
    ("RLIKE", 1, _prepare_rlike),
)
