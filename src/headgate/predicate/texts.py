"""Is there a text in a set of values that matches some patterns and not others?

An example is tried first; most often it will do. A pattern that it violates becomes an automaton,
and the next text to be tried is one that the automata so far leave. So few of many patterns take
part, a no is a proof, and a yes is a text that was tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import Pattern
from headgate.predicate.pattern import sample_regex
from headgate.predicate.pattern.automaton import (
    Automaton,
    NoAutomaton,
    RangesAutomaton,
    build_like_automaton,
    build_regex_automaton,
)
from headgate.predicate.pattern.like import ANY_MANY, LikePattern, parse_like
from headgate.predicate.pattern.product import Steps, StepsExhausted, search_product
from headgate.schema import EVERYTHING, ValueSet

MAX_PAIR_STEPS = 20_000  # of the automata of two patterns
MAX_TRIED_PAIRS = 1_000  # of patterns that may exclude each other
MAX_TEXTS = 1_000  # of a finite set, which are tried one by one
SEPARATORS = ("", "~", " ")  # between the examples of patterns in one text


@dataclass(frozen=True, slots=True)
class TextCondition:
    """The texts of a set that match all of some patterns and none of others."""

    values: ValueSet = EVERYTHING
    matched: frozenset[Pattern] = frozenset()
    unmatched: frozenset[Pattern] = frozenset()

    def violations(self, text: str) -> Iterator[Pattern | ValueSet]:
        """Yield what a text violates; nothing if it is one of these."""
        if text not in self.values:
            yield self.values
        yield from (pattern for pattern in self.matched if not pattern.matcher.matches(text))
        yield from (pattern for pattern in self.unmatched if pattern.matcher.matches(text))

    def holds(self, text: str) -> bool:
        """Return whether a text is one of these."""
        return next(self.violations(text), None) is None


@lru_cache(maxsize=100_000)
def find_text(condition: TextCondition) -> tuple[Answer, str | None]:
    """Return whether there is a text, and one.

    Unknown only past a budget.
    """
    if condition.matched & condition.unmatched:
        return Answer.NO, None
    texts = condition.values.finite_ordinals(MAX_TEXTS)
    if texts is not None:
        text = next((str(text) for text in texts if condition.holds(str(text))), None)
        return (Answer.NO if text is None else Answer.YES), text
    text = ""
    for text in _guess_texts(condition):
        if condition.holds(text):
            return Answer.YES, text
    return _search_text(condition, text)


def _search_text(condition: TextCondition, text: str) -> tuple[Answer, str | None]:
    """Search products of automata; each round, a pattern joins that the last text violates."""
    # Two patterns that exclude each other are the usual reason why there is no text.
    violated = (pattern for pattern in condition.unmatched if pattern.matcher.matches(text))
    pairs = islice(product(condition.matched, violated), MAX_TRIED_PAIRS)
    if any(implies_pattern(matched, unmatched) for matched, unmatched in pairs):
        return Answer.NO, None
    accepting: list[Automaton] = []
    rejecting: list[Automaton] = []
    joined: set[Pattern | ValueSet] = set()
    steps = Steps()
    while True:
        # A pattern without an automaton cannot join: if nothing else is violated, it is open.
        for part in sorted(condition.violations(text), key=_is_easy):
            automaton = None if part in joined else _build_automaton(part)
            if automaton is not None:
                joined.add(part)
                (rejecting if part in condition.unmatched else accepting).append(automaton)
                break
        else:
            is_open = next(condition.violations(text), None) is not None
            return (Answer.UNKNOWN, None) if is_open else (Answer.YES, text)
        try:
            example = search_product(accepting, rejecting, steps)
        except StepsExhausted:
            return Answer.UNKNOWN, None
        if example is None:
            return Answer.NO, None
        text = example


@lru_cache(maxsize=200_000)
def implies_pattern(inner: Pattern, outer: Pattern) -> bool:
    """Return whether all texts that match one pattern are known to match another."""
    # The example of the inner pattern refutes most.
    if not outer.matcher.matches(make_example(inner)):
        return False
    accepting, rejecting = _build_automaton(inner), _build_automaton(outer)
    if accepting is None or rejecting is None:
        return False
    try:
        return search_product([accepting], [rejecting], Steps(MAX_PAIR_STEPS)) is None
    except StepsExhausted:
        return False


def _is_easy(part: Pattern | ValueSet) -> bool:
    """Return whether a pattern can be met anywhere in a text; such seldom exclude each other."""
    return isinstance(part, Pattern) and part.text.startswith("%") and part.text.endswith("%")


def _build_automaton(part: Pattern | ValueSet) -> Automaton | None:
    try:
        if isinstance(part, ValueSet):
            return RangesAutomaton(part.cuts, starts_inside=part.starts_inside)
        if part.kind == "RLIKE":
            return build_regex_automaton(part.text)
        return build_like_automaton(part.text, part.escape, ignore_case=part.kind == "ILIKE")
    except NoAutomaton:
        return None


def _guess_texts(condition: TextCondition) -> Iterator[str]:
    """Yield texts that may do: examples of all patterns, each where it belongs in the text."""
    # What has to stand at the start or the end of the text stands there, the rest between.
    first: list[str] = []
    middle: list[str] = []
    last: list[str] = []
    for pattern in sorted(condition.matched, key=lambda pattern: (pattern.kind, pattern.text)):
        example = make_example(pattern)
        pieces = () if pattern.kind == "RLIKE" else _parse(pattern).pieces
        starts_free = not pieces or pieces[0] is ANY_MANY
        ends_free = not pieces or pieces[-1] is ANY_MANY
        (middle if starts_free and ends_free else last if starts_free else first).append(example)
    for order in (middle, middle[::-1]) if len(middle) > 1 else (middle,):
        for separator in SEPARATORS:
            # Of examples that lie in each other the longest is enough at an end.
            start = max(first, key=len, default="")
            end = max(last, key=len, default="")
            if first and not last:
                yield separator.join([start, *order, ""])
            yield separator.join([start, *order, end])
    yield from first
    intervals = condition.values.intervals
    yield from (str(interval.low) for interval in intervals[:1] if interval.low is not None)


def make_example(pattern: Pattern) -> str:
    """Return a text that a pattern matches, or probably matches."""
    if pattern.kind == "RLIKE":
        return sample_regex(pattern.text)
    return _parse(pattern).example()


def _parse(pattern: Pattern) -> LikePattern:
    """Parse LIKE, or ILIKE in lower case, as its matcher does."""
    text = pattern.text.lower() if pattern.kind == "ILIKE" else pattern.text
    return parse_like(text, pattern.escape)
