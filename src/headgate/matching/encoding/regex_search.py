r"""Which of very many regular expressions match a text? RE2 runs them all as one automaton.

The automaton's states are made when texts first need them, and forgotten when they fill their
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

_MEMORY = 64 << 20  # bytes for the states of one automaton
_LARGEST = 100_000  # instructions of one automaton: room for some hundreds of its largest states

_EVERY_TEXT = r"\A"
_ANYTHING = (to_re2(".*"), to_re2("(?s).*"))


@dataclass(frozen=True, slots=True)
class _Regex:
    """A pattern with its numbers, as RE2 may search for it among others."""

    pattern: Pattern
    numbers: Sequence[int]
    text: str


class RegexSearch:
    """Finds the RLIKE patterns that match a text, each of them under the numbers given for it.

    Guarantee: exactly those of which `pattern.compiled.matches` says so; as there, half of a
    surrogate pair in a text is an error. Patterns that are large together are divided among
    automata, each of which passes over the text once.

    >>> regexes = ["^a+$", "a{2}", "[b-d]", ".*"]
    >>> search = RegexSearch({Pattern("RLIKE", text): [n] for n, text in enumerate(regexes)})
    >>> sorted(search.found("aaa"))
    [0, 1, 3]
    """

    def __init__(self, patterns: Mapping[Pattern, Sequence[int]]) -> None:
        self._parts = [_Part(part) for part in _divided(_regexes(patterns))]

    def found(self, text: str) -> list[int]:
        """The numbers of the patterns that match, in no order, each once."""
        return [number for part in self._parts for number in part.found(text)]


class _Part:
    """Patterns that one automaton finds, or none where RE2 cannot make one of them."""

    def __init__(self, regexes: Sequence[_Regex]) -> None:
        self._regexes = regexes
        self._set = _compiled(regexes)

    def found(self, text: str) -> Iterator[int]:
        places = None if self._set is None else self._set.Match(text)
        if places is None:
            matching = (one for one in self._regexes if one.pattern.matcher.matches(text))
        else:
            matching = (self._regexes[place] for place in places if place < len(self._regexes))
        return (number for one in matching for number in one.numbers)


def _regexes(patterns: Mapping[Pattern, Sequence[int]]) -> list[_Regex]:
    """In the order of their text, so that those of one part have beginnings in common."""
    regexes = [_Regex(one, numbers, _core(one)) for one, numbers in patterns.items()]
    return sorted(regexes, key=lambda one: one.text)


def _core(pattern: Pattern) -> str:
    """The pattern without `.*` at its ends: it finds something in the same texts.

    A thousand patterns that each begin with `.*` would make every state a thousand times larger.
    """
    text = to_re2(pattern.text)
    for anything in _ANYTHING:
        text = text.removeprefix(anything).removesuffix(anything)
    return text


def _divided(regexes: Sequence[_Regex]) -> Iterator[list[_Regex]]:
    """Parts of at most `_LARGEST` instructions, or of a single pattern."""
    part: list[_Regex] = []
    room = _LARGEST
    for one in regexes:
        size = re2.compile(one.text, _options()).programsize
        if part and size > room:
            yield part
            part, room = [], _LARGEST
        part.append(one)
        room -= size
    if part:
        yield part


def _compiled(regexes: Sequence[_Regex]) -> re2.Set | None:
    automaton = re2.Set.SearchSet(_options())
    for one in regexes:
        automaton.Add(one.text)
    automaton.Add(_EVERY_TEXT)
    try:
        automaton.Compile()
    except re2.error:
        return None
    return automaton


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options
