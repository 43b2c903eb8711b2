r"""Find which of very many LIKE, ILIKE and RLIKE patterns match a text: one pass for each kind.

A LIKE pattern is placed under one of its literals, without which it cannot match:

    'abc'                    looked up by the whole text
    '%abc%', 'abc%', '%abc'  decided by where the literal stands
    '%a%bc_d'                tried where the literal occurs
    '%', '_%'                tried on every text, since there is no literal

One pass finds every literal in a text: Aho and Corasick, "Efficient string matching: an aid to
bibliographic search" (1975), by `pyahocorasick`. `ahocorasick_rs` was as fast on 20,000 and 76,000
literals of log rules, and twice as fast on 100, where either takes a twentieth of the search.

RE2 runs all RLIKE patterns as one automaton. Its states are made when texts first need them, and
dropped when they fill their memory; then they are made again. Where each text needs many new
states, a search takes about as long as trying the patterns one by one; and some times longer where
many patterns begin with `^.*` and go on with words that most texts contain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import log2
from typing import TypeVar

import ahocorasick
import numpy as np
import numpy.typing as npt
import re2

from headgate.predicate import Pattern
from headgate.predicate.atoms import PatternKind, TextMatcher
from headgate.predicate.pattern import LikePattern, parse_like, to_re2
from headgate.predicate.pattern.like import Wildcard

T = TypeVar("T")

Search = Callable[[str], list[int]]
NumberedPatterns = list[tuple[int, Pattern]]
NumberedLike = tuple[LikePattern, Sequence[int]]

_MAX_REMEMBERED = 1 << 20  # characters and matches of the texts whose answers are remembered
_COST = 32  # of an answer itself, in the same unit
_MAX_TEXT = 1_000  # characters of one of them: longer ones hardly come again

_MAX_BYTES = 64 << 20  # bytes for the states of one automaton
_MAX_INSTRUCTIONS = 100_000  # of one automaton: some hundreds of its largest states fit

# A search can run out of memory altogether, and RE2's Python binding then says that nothing
# matched. So to every automaton belongs one expression more, which every text matches: no match at
# all is a failure, and the patterns are tried one by one.
_EVERY_TEXT = r"\A"
_ANYTHING = (to_re2(".*"), to_re2("(?s).*"))


class TextSearch:
    """A search for the patterns that match a text; a pattern's number is its place in the list.

    Guarantee: exactly those of which `pattern.matcher.matches` says so, in ascending order.

    Answers for texts that came before are remembered, up to about `_MAX_REMEMBERED` characters:
    the same names, hosts and paths come in batch after batch. Where none comes again, remembering
    takes a few hundredths of the search.

    >>> patterns = [Pattern("ILIKE", "%É%"), Pattern("RLIKE", "^[a-c]"), Pattern("LIKE", "b%")]
    >>> starts, numbers = TextSearch(patterns).match(["bé", "É", "x"])
    >>> starts.tolist(), numbers.tolist()
    ([0, 3, 4, 4], [0, 1, 2, 0])
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._tried: list[tuple[int, TextMatcher]] = []
        self._searches: list[Search] = []
        self._remembered: dict[str, list[int]] = {}
        self._room = _MAX_REMEMBERED  # what may still be remembered, about
        for kind, max_tried, prepare in _KINDS:
            numbered = [(n, pattern) for n, pattern in enumerate(patterns) if pattern.kind == kind]
            if len(numbered) <= max_tried:
                self._tried += ((n, pattern.matcher) for n, pattern in numbered)
            else:
                self._searches.append(prepare(numbered))

    def match(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return starts and numbers: text i matches `numbers[starts[i]:starts[i + 1]]`."""
        starts, numbers = [0], list[int]()
        for text in texts:
            matching = self._remembered.get(text)
            if matching is None:
                matching = self._search(text)
                self._remember(text, matching)
            numbers += matching
            starts.append(len(numbers))
        return np.array(starts, np.int64), np.array(numbers, np.int64)

    def _search(self, text: str) -> list[int]:
        matching = [number for number, test in self._tried if test.matches(text)]
        for search in self._searches:
            matching += search(text)
        matching.sort()
        return matching

    def _remember(self, text: str, matching: list[int]) -> None:
        """Remember an answer; when there is no more room, forget all and begin anew."""
        # Two threads may do this at a time: then only the room is not exact.
        if len(text) > _MAX_TEXT:
            return
        self._room -= _COST + len(text) + len(matching)
        if self._room < 0:
            self._remembered, self._room = {}, _MAX_REMEMBERED
        self._remembered[text] = matching


def _prepare_like(patterns: NumberedPatterns) -> Search:
    return LikeSearch(_group((n, _get_like(pattern)) for n, pattern in patterns)).match


def _prepare_ilike(patterns: NumberedPatterns) -> Search:
    """Prepare ILIKE as Spark defines it: both sides in lower case, then LIKE."""
    lowered = ((n, parse_like(pattern.text.lower(), pattern.escape)) for n, pattern in patterns)
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


@dataclass(slots=True, eq=False)
class _Literal:
    """A literal, and the numbers of the patterns that match only where it occurs."""

    text: str
    anywhere: list[int] = field(default_factory=list)
    at_start: list[int] = field(default_factory=list)
    at_end: list[int] = field(default_factory=list)
    tried: list[NumberedLike] = field(default_factory=list)

    def match(self, text: str, matching: list[int]) -> None:
        """Append the numbers of the patterns that match a text in which the literal occurs."""
        matching += self.anywhere
        if self.at_start and text.startswith(self.text):
            matching += self.at_start
        if self.at_end and text.endswith(self.text):
            matching += self.at_end
        for pattern, numbers in self.tried:
            if pattern.matches(text):
                matching += numbers


class LikeSearch:
    """A search for the LIKE patterns that match a text, each under the numbers given for it.

    Guarantee: exactly those of which `LikePattern.matches` says so. A search takes time linear in
    the text and in the occurrences of literals, and one try for each pattern of more pieces
    whose literal occurs. Memory is about a kilobyte for each pattern of a dozen characters.

    >>> from headgate.predicate.pattern import parse_like
    >>> patterns = ["%b%", "a%", "%c", "abc", "a%_c", "_%", "%x%"]
    >>> search = LikeSearch({parse_like(text): [n] for n, text in enumerate(patterns)})
    >>> sorted(search.match("abc"))
    [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, patterns: Mapping[LikePattern, Sequence[int]]) -> None:
        self._whole: dict[str, Sequence[int]] = {}
        self._tried: list[NumberedLike] = []
        literals: dict[str, _Literal] = {}
        pieces = [pattern.substrings for pattern in patterns]
        # by piece: how many patterns have it; a piece that many share leads to many of them
        shared = Counter(chain.from_iterable(pieces))
        for (pattern, numbers), literal_pieces in zip(patterns.items(), pieces, strict=True):
            if pattern.is_literal:
                self._whole[pattern.prefix] = numbers
            elif not literal_pieces:
                self._tried.append((pattern, numbers))
            else:
                text = _choose_rarest(literal_pieces, shared)
                _add_pattern(literals.setdefault(text, _Literal(text)), pattern, numbers)
        self._automaton = _build_automaton(literals.values())

    def match(self, text: str) -> list[int]:
        """Return the numbers of the patterns that match, in no order, each once."""
        matching = _try_patterns(self._tried, text)
        matching += self._whole.get(text, ())
        if self._automaton is not None:
            # a literal may occur often in the text, and its patterns are asked once
            for literal in {literal for _, literal in self._automaton.iter(text)}:
                literal.match(text, matching)
        return matching


def _choose_rarest(pieces: Sequence[str], shared: Mapping[str, int]) -> str:
    """Return the piece that should occur in the fewest texts: long, and in few other patterns."""
    if len(pieces) == 1:
        return pieces[0]
    return max(pieces, key=lambda piece: len(piece) - log2(shared[piece]))


def _add_pattern(literal: _Literal, pattern: LikePattern, numbers: Sequence[int]) -> None:
    match pattern.pieces:
        case (Wildcard.ANY_MANY, str(), Wildcard.ANY_MANY):
            literal.anywhere += numbers
        case (str(), Wildcard.ANY_MANY):
            literal.at_start += numbers
        case (Wildcard.ANY_MANY, str()):
            literal.at_end += numbers
        case _:
            literal.tried.append((pattern, numbers))


def _build_automaton(literals: Collection[_Literal]) -> ahocorasick.Automaton[_Literal] | None:
    """Return an automaton for the literals; None without any: the library cannot search then."""
    automaton: ahocorasick.Automaton[_Literal] = ahocorasick.Automaton()
    for literal in literals:
        automaton.add_word(literal.text, literal)
    automaton.make_automaton()
    return automaton if literals else None


def _try_patterns(patterns: Sequence[NumberedLike], text: str) -> list[int]:
    return [number for pattern, numbers in patterns if pattern.matches(text) for number in numbers]


@dataclass(frozen=True, slots=True)
class _Regex:
    """A pattern with its numbers, as RE2 may search for it among others."""

    pattern: Pattern
    numbers: Sequence[int]
    text: str


class RegexSearch:
    """A search for the RLIKE patterns that match a text, each under the numbers given for it.

    Guarantee: exactly those of which `pattern.matcher.matches` says so; as there, half of a
    surrogate pair in a text is an error. Patterns that are large together are divided among
    automata, each of which passes over the text once.

    >>> regexes = ["^a+$", "a{2}", "[b-d]", ".*"]
    >>> search = RegexSearch({Pattern("RLIKE", text): [n] for n, text in enumerate(regexes)})
    >>> sorted(search.match("aaa"))
    [0, 1, 3]
    """

    def __init__(self, patterns: Mapping[Pattern, Sequence[int]]) -> None:
        self._parts = [_Part(part) for part in _divide(_sort_regexes(patterns))]

    def match(self, text: str) -> list[int]:
        """Return the numbers of the patterns that match, in no order, each once."""
        return [number for part in self._parts for number in part.match(text)]


class _Part:
    """Patterns that one automaton finds; they are tried one by one if RE2 cannot build it."""

    def __init__(self, regexes: Sequence[_Regex]) -> None:
        self._regexes = regexes
        self._set = _compile_set(regexes)

    def match(self, text: str) -> Iterator[int]:
        # None if RE2 could not compile the set, or ran out of memory in this search
        places = None if self._set is None else self._set.Match(text)
        if places is None:
            matching = (regex for regex in self._regexes if regex.pattern.matcher.matches(text))
        else:
            # the place behind all patterns is that of `_EVERY_TEXT`
            matching = (self._regexes[place] for place in places if place < len(self._regexes))
        return (number for regex in matching for number in regex.numbers)


def _sort_regexes(patterns: Mapping[Pattern, Sequence[int]]) -> list[_Regex]:
    """Return the patterns in the order of their text, so that neighbours share beginnings."""
    regexes = [_Regex(key, numbers, _strip_anything(key)) for key, numbers in patterns.items()]
    return sorted(regexes, key=lambda regex: regex.text)


def _strip_anything(pattern: Pattern) -> str:
    """Return the pattern without `.*` at its ends, which matches the same texts.

    A thousand patterns that each begin with `.*` would make every state a thousand times larger.
    """
    text = to_re2(pattern.text)
    for anything in _ANYTHING:
        text = text.removeprefix(anything).removesuffix(anything)
    return text


def _divide(regexes: Sequence[_Regex]) -> Iterator[list[_Regex]]:
    """Divide patterns into parts of at most `_MAX_INSTRUCTIONS`, or of a single pattern."""
    part: list[_Regex] = []
    instructions_left = _MAX_INSTRUCTIONS
    for regex in regexes:
        # instructions of the compiled pattern, as RE2 counts them
        size = re2.compile(regex.text, _make_options()).programsize
        if part and size > instructions_left:
            yield part
            part, instructions_left = [], _MAX_INSTRUCTIONS
        part.append(regex)
        instructions_left -= size
    if part:
        yield part


def _compile_set(regexes: Sequence[_Regex]) -> re2.Set | None:
    automaton = re2.Set.SearchSet(_make_options())
    for regex in regexes:
        automaton.Add(regex.text)
    automaton.Add(_EVERY_TEXT)
    try:
        automaton.Compile()
    except re2.error:
        return None
    return automaton


def _make_options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_BYTES
    return options
