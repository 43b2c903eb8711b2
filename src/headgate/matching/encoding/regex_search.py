r"""Find which of very many regular expressions match a text: RE2 runs them as one automaton.

The automaton's states are made when texts first need them, and dropped when they fill their
memory; then they are made again. Where each text needs many new states, a search takes about as
long as trying the patterns one by one; and some times longer where many patterns begin with `^.*`
and go on with words that most texts contain.

A search can run out of memory altogether, and RE2's Python binding then says that nothing matched.
So to every automaton belongs one expression more, which every text matches: no match at all is a
failure, and the patterns are tried one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import re2

from headgate.predicate import Pattern
from headgate.predicate.pattern import to_re2

_MAX_BYTES = 64 << 20  # bytes for the states of one automaton
_MAX_INSTRUCTIONS = 100_000  # of one automaton: some hundreds of its largest states fit

_EVERY_TEXT = r"\A"
_ANYTHING = (to_re2(".*"), to_re2("(?s).*"))


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
        places = None if self._set is None else self._set.Match(text)
        if places is None:
            matching = (regex for regex in self._regexes if regex.pattern.matcher.matches(text))
        else:
            matching = (self._regexes[place] for place in places if place < len(self._regexes))
        return (number for regex in matching for number in regex.numbers)


def _sort_regexes(patterns: Mapping[Pattern, Sequence[int]]) -> list[_Regex]:
    """Return the patterns in the order of their text, so that neighbours share beginnings."""
    regexes = [_Regex(key, numbers, _core(key)) for key, numbers in patterns.items()]
    return sorted(regexes, key=lambda regex: regex.text)


def _core(pattern: Pattern) -> str:
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
    room = _MAX_INSTRUCTIONS
    for regex in regexes:
        size = re2.compile(regex.text, _options()).programsize
        if part and size > room:
            yield part
            part, room = [], _MAX_INSTRUCTIONS
        part.append(regex)
        room -= size
    if part:
        yield part


def _compile_set(regexes: Sequence[_Regex]) -> re2.Set | None:
    automaton = re2.Set.SearchSet(_options())
    for regex in regexes:
        automaton.Add(regex.text)
    automaton.Add(_EVERY_TEXT)
    try:
        automaton.Compile()
    except re2.error:
        return None
    return automaton


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_BYTES
    return options
