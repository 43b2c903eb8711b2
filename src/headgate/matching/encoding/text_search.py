"""Which of very many LIKE, ILIKE and RLIKE patterns match a text? One pass for each kind."""

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
Numbered = list[tuple[int, Pattern]]


class TextSearch:
    """Finds the patterns that match a text; a pattern's number is its place in the sequence.

    Guarantee: exactly those of which `pattern.compiled.matches` says so, in ascending order.

    >>> patterns = [Pattern("ILIKE", "%É%"), Pattern("RLIKE", "^[a-c]"), Pattern("LIKE", "b%")]
    >>> starts, numbers = TextSearch(patterns).matched(["bé", "É", "x"])
    >>> starts.tolist(), numbers.tolist()
    ([0, 3, 4, 4], [0, 1, 2, 0])
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._tried: list[tuple[int, TextMatcher]] = []
        self._searches: list[Search] = []
        for kind, few, prepared in _KINDS:
            mine = [(n, one) for n, one in enumerate(patterns) if one.kind == kind]
            if len(mine) <= few:
                self._tried += ((n, one.matcher) for n, one in mine)
            else:
                self._searches.append(prepared(mine))

    def matched(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Starts and numbers: text i matches the patterns `numbers[starts[i]:starts[i + 1]]`."""
        starts, numbers = [0], list[int]()
        for text in texts:
            found = [number for number, test in self._tried if test.matches(text)]
            for search in self._searches:
                found += search(text)
            found.sort()
            numbers += found
            starts.append(len(numbers))
        return np.array(starts, np.int64), np.array(numbers, np.int64)


def _like(patterns: Numbered) -> Search:
    return LikeSearch(_grouped((n, _compiled(one)) for n, one in patterns)).found


def _ilike(patterns: Numbered) -> Search:
    """As Spark defines it: both sides in lower case, then LIKE."""
    lowered = ((n, parse_like(one.text.lower(), one.escape)) for n, one in patterns)
    search = LikeSearch(_grouped(lowered))
    return lambda text: search.found(text.lower())


def _rlike(patterns: Numbered) -> Search:
    return RegexSearch(_grouped(patterns)).found


def _compiled(pattern: Pattern) -> LikePattern:
    """As whoever accepted the pattern has compiled it; parsing it again takes much longer."""
    compiled = pattern.matcher
    assert isinstance(compiled, LikePattern)
    return compiled


def _grouped(numbered: Iterable[tuple[int, T]]) -> dict[T, list[int]]:
    """The numbers of each thing: what stands twice is searched for once."""
    groups: dict[T, list[int]] = {}
    for number, one in numbered:
        groups.setdefault(one, []).append(number)
    return groups


# So few patterns of a kind are tried one by one, since that is faster for texts of 200 characters.
_KINDS: tuple[tuple[PatternKind, int, Callable[[Numbered], Search]], ...] = (
    ("LIKE", 3, _like),
    ("ILIKE", 3, _ilike),
    ("RLIKE", 1, _rlike),
)
