r"""Patterns as automata, which read a text letter by letter: the base of the algebra of patterns.

LIKE, ILIKE and what we accept of RLIKE are regular languages, and so is a set of texts that is
given by ranges. Each becomes an automaton with one method, `step`, and states that are numbers or
short values, so that a product of many is a tuple. `texts` searches such products.

A *symbol* is a character and its lower case, because ILIKE reads a text in lower case. Two
characters are special: `İ` has two characters in lower case, and what `Σ` becomes depends on its
neighbours, so that it is two symbols, one for each of `σ` and `ς`. A sequence of symbols may
therefore be no text: whoever needs to be sure tries the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from headgate.predicate.pattern.character_set import MAX_CODE_POINT, SURROGATES, WORD, CharacterSet
from headgate.predicate.pattern.java_regex import compile_re2, translate
from headgate.predicate.pattern.like import ANY_MANY, ANY_ONE, LikePattern, parse_like
from headgate.predicate.pattern.regex_tree import (
    Alternation,
    Concatenation,
    Letter,
    Place,
    RegexTree,
    Repetition,
)

MAX_SYMBOLS = 2_000  # of a pattern, beyond which it has no automaton
MAX_KNOWN_STEPS = 50_000  # of an automaton, beyond which it forgets them


class Symbol(NamedTuple):
    """A letter of a text: the character, and what ILIKE reads instead of it."""

    character: str
    lowered: str


class Automaton(Protocol):
    """A deterministic automaton whose states are made as they are reached.

    `is_dead(state)` and `is_settled(state)` say that no, or every, continuation is accepted. They
    may miss some. `distance` is a guess of how many letters acceptance is away. `ignore_case`: it
    reads lower case. `work` counts what steps cost beyond one unit each, whether or not a step was
    taken before, so that budgets do not depend on what else was decided.
    """

    start: Any
    ignore_case: bool
    work: int

    def step(self, state: Any, symbol: Symbol) -> Any: ...

    def accepts(self, state: Any) -> bool: ...

    def is_dead(self, state: Any) -> bool: ...

    def is_settled(self, state: Any) -> bool: ...

    def distance(self, state: Any) -> int: ...

    def character_sets(self) -> Iterable[CharacterSet]:
        """Return sets of characters: those with the same memberships are read alike."""

    def lower_characters(self) -> Iterable[str]:
        """Return the characters that matter in the lower case of a text."""


class LikeAutomaton:
    """LIKE or ILIKE; a state is the set of positions in the pattern, as bits.

    Bit p: p symbols lie behind us. `%` is no symbol: the position at which it stands stays reached.
    """

    def __init__(self, pattern: LikePattern, *, ignore_case: bool) -> None:
        self.start = 1
        self.work = 0
        self.ignore_case = ignore_case
        self.loops = 0  # the positions at which a `%` stands
        self.any_one = 0  # the positions before a `_`
        self.literals: dict[str, int] = {}  # by character the positions before it
        at = 0
        for piece in pattern.pieces:
            if piece is ANY_MANY:
                self.loops |= 1 << at
            elif piece is ANY_ONE:
                self.any_one |= 1 << at
                at += 1
            elif isinstance(piece, str):
                for character in piece:
                    self.literals[character] = self.literals.get(character, 0) | 1 << at
                    at += 1
        self.length = at
        self.accepting = 1 << at

    def step(self, state: int, symbol: Symbol) -> int:
        for character in symbol.lowered if self.ignore_case else symbol.character:
            passed = state & (self.literals.get(character, 0) | self.any_one)
            state = state & self.loops | passed << 1
            # What can be matched from before a reached `%` can be matched from it, too.
            reached = state & self.loops
            if reached:
                state &= -1 << reached.bit_length() - 1
        return state

    def accepts(self, state: int) -> bool:
        return state & self.accepting != 0

    def is_dead(self, state: int) -> bool:
        return state == 0

    def is_settled(self, state: int) -> bool:
        return state & self.loops & self.accepting != 0

    def distance(self, state: int) -> int:
        return self.length + 1 - state.bit_length()

    def character_sets(self) -> Iterable[CharacterSet]:
        if not self.ignore_case:
            yield from (_points(character) for character in self.literals)

    def lower_characters(self) -> Iterable[str]:
        return self.literals if self.ignore_case else ()


class RangesAutomaton:
    """The texts of a value set, given by its cuts; a state is a text, or whether all are inside.

    It remembers the text as long as a cut begins with it.
    """

    ignore_case = False

    def __init__(self, cuts: tuple[str, ...], *, starts_inside: bool) -> None:
        self.cuts = cuts
        self.starts_inside = starts_inside
        self.work = 0
        self.start = self._state("")

    def _state(self, text: str) -> str | bool:
        at = bisect_right(self.cuts, text)
        if at < len(self.cuts) and self.cuts[at].startswith(text):
            return text
        return self._holds(at)

    def _holds(self, cuts_below: int) -> bool:
        return (cuts_below + self.starts_inside) % 2 == 1

    def step(self, state: str | bool, symbol: Symbol) -> str | bool:
        return state if isinstance(state, bool) else self._state(state + symbol.character)

    def accepts(self, state: str | bool) -> bool:
        return state if isinstance(state, bool) else self._holds(bisect_right(self.cuts, state))

    def is_dead(self, state: str | bool) -> bool:
        return state is False

    def is_settled(self, state: str | bool) -> bool:
        return state is True

    def distance(self, state: str | bool) -> int:
        return int(not self.accepts(state))

    def character_sets(self) -> Iterable[CharacterSet]:
        return (_points(character) for character in {c for cut in self.cuts for c in cut})

    def lower_characters(self) -> Iterable[str]:
        return ()


class _Surroundings(NamedTuple):
    """What places depend on: is this the start, and the character before or behind?"""

    at_start: bool = False
    after_word: bool = False
    after_return: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    """From one node of the graph to another: past a character, a place, or nothing."""

    target: int
    label: CharacterSet | Place | None


class RegexAutomaton:
    r"""What `Matcher.find` of Java says of a text; a state is a set of nodes and its surroundings.

    The graph is Thompson's. A place is passed where it holds, which depends on the characters
    around it, so that edges past places are taken when the next character is known.
    """

    ignore_case = False
    SETTLED = (0, _Surroundings())  # found: no start has these surroundings

    def __init__(self, tree: RegexTree) -> None:
        self.edges: list[list[_Edge]] = [[]]
        self.places: set[Place] = set()
        self.sets: dict[CharacterSet, None] = {}
        self.final = self._build(tree, 0)
        self.start = (1, _Surroundings(at_start=True))
        self.begins_at_start = self._check_start()
        self.work = 0
        self._steps: dict[tuple[Any, str], tuple[Any, int]] = {}
        self._closures: dict[Any, int] = {}

    def _node(self) -> int:
        if len(self.edges) > MAX_SYMBOLS:
            raise NoAutomaton
        self.edges.append([])
        return len(self.edges) - 1

    def _connect(self, source: int, label: CharacterSet | Place | None, target: int) -> int:
        self.edges[source].append(_Edge(target, label))
        return target

    def _build(self, tree: RegexTree, source: int) -> int:
        """Add a tree behind a node; return the node behind the tree."""
        if isinstance(tree, Letter):
            members = _resolve_categories(tree.members)
            self.sets[members] = None
            return self._connect(source, members, self._node())
        if isinstance(tree, Place):
            return self._build_place(tree, source)
        if isinstance(tree, Concatenation):
            for part in tree.parts:
                source = self._build(part, source)
            return source
        if isinstance(tree, Alternation):
            target = self._node()
            for part in tree.parts:
                first = self._connect(source, None, self._node())
                self._connect(self._build(part, first), None, target)
            return target
        return self._build_repetition(tree, source)

    def _build_repetition(self, tree: Repetition, source: int) -> int:
        for _ in range(tree.low):
            source = self._build(tree.part, source)
        target = self._node()
        if tree.high is None:
            # A loop with a node of its own, so that nothing else joins it.
            loop = self._connect(source, None, self._node())
            self._connect(self._build(tree.part, loop), None, loop)
            return self._connect(loop, None, target)
        for _ in range(tree.high - tree.low):
            self._connect(source, None, target)
            source = self._build(tree.part, source)
        return self._connect(source, None, target)

    def _build_place(self, place: Place, source: int) -> int:
        self.places.add(place)
        if place is not Place.LAST_LINE_END:
            return self._connect(source, place, self._node())
        # Nothing follows a `$`, so that the line terminator behind it may be read: any but `\n`,
        # `\r\n`, or a `\n` that is no part of `\r\n`, which the edge past the place sees to.
        end, after_return, not_after_return = self._node(), self._node(), self._node()
        self._connect(source, _OTHER_TERMINATORS, end)
        self._connect(source, _RETURN, after_return)
        self._connect(after_return, _NEWLINE, end)
        self._connect(source, place, not_after_return)
        self._connect(not_after_return, _NEWLINE, end)
        self.sets.update(dict.fromkeys((_OTHER_TERMINATORS, _RETURN, _NEWLINE)))
        target = self._node()
        self._connect(source, Place.END, target)
        return self._connect(end, Place.END, target)

    def _close(self, nodes: int, before: _Surroundings, behind: str) -> int:
        """Return all nodes that are reached without a character; `behind` is the next, if any."""
        key = (nodes, before, bool(behind) and behind in WORD, bool(behind))
        known = self._closures.get(key)
        if known is not None:
            return known
        closed, pending = nodes, list(_iter_bits(nodes))
        while pending:
            for edge in self.edges[pending.pop()]:
                is_open = edge.label is None or (
                    isinstance(edge.label, Place) and _holds(edge.label, before, behind)
                )
                if is_open and not closed >> edge.target & 1:
                    closed |= 1 << edge.target
                    pending.append(edge.target)
        self._closures[key] = closed
        return closed

    def step(self, state: Any, symbol: Symbol) -> Any:
        if state == self.SETTLED:
            return state
        key = (state, symbol.character)
        known = self._steps.get(key)
        if known is None:
            if len(self._steps) > MAX_KNOWN_STEPS:
                self._steps.clear()
                self._closures.clear()
            known = self._steps[key] = self._compute_step(state, symbol.character)
        target, nodes = known
        self.work += nodes
        return target

    def _compute_step(self, state: Any, character: str) -> tuple[Any, int]:
        """Return the next state, and how many nodes were visited for it."""
        nodes, before = state
        # The search may begin at any character: node 0 is always there.
        closed = self._close(nodes | 1, before, character)
        visited = closed.bit_count()
        if closed >> self.final & 1:
            return self.SETTLED, visited
        target = 1
        for node in _iter_bits(closed):
            for edge in self.edges[node]:
                if isinstance(edge.label, CharacterSet) and character in edge.label:
                    target |= 1 << edge.target
        # Only what some place depends on is remembered.
        surroundings = _Surroundings(
            after_word=bool(self.places & _WORD_PLACES) and character in WORD,
            after_return=Place.LAST_LINE_END in self.places and character == "\r",
        )
        return (target, surroundings), visited

    def accepts(self, state: Any) -> bool:
        if state == self.SETTLED:
            return True
        nodes, before = state
        return self._close(nodes | 1, before, "") >> self.final & 1 == 1

    def is_dead(self, state: Any) -> bool:
        # Where every way begins at the start of the text, nothing begins later.
        nodes, before = state
        return nodes == 1 and not before.at_start and self.begins_at_start

    def _check_start(self) -> bool:
        """Return whether all ways from node 0 lead past the start of the text."""
        reached, pending = {0}, [0]
        while pending:
            node = pending.pop()
            if node == self.final:
                return False
            for edge in self.edges[node]:
                if isinstance(edge.label, CharacterSet):
                    return False
                if edge.label is not Place.START and edge.target not in reached:
                    reached.add(edge.target)
                    pending.append(edge.target)
        return True

    def is_settled(self, state: Any) -> bool:
        return bool(state == self.SETTLED)

    def distance(self, state: Any) -> int:
        return int(not self.accepts(state))

    def character_sets(self) -> Iterable[CharacterSet]:
        yield from self.sets
        if self.places & _WORD_PLACES:
            yield WORD

    def lower_characters(self) -> Iterable[str]:
        return ()


class NoAutomaton(Exception):
    """A pattern has no automaton, because it is too long."""


@lru_cache(maxsize=1_000)
def _resolve_categories(members: CharacterSet) -> CharacterSet:
    """Return a set with the categories of Unicode spelled out, as RE2 knows them."""
    if not members.categories:
        return members
    ranges = []
    for low, high in ((0, SURROGATES[0]), (SURROGATES[1], MAX_CODE_POINT + 1)):
        text = "".join(map(chr, range(low, high)))
        runs = compile_re2(f"{members.text}+").finditer(text)
        ranges += [(low + run.start(), low + run.end() - 1) for run in runs]
    return CharacterSet.of(*ranges)


def _holds(place: Place, before: _Surroundings, behind: str) -> bool:
    """Return whether this is such a place; `behind` is the next character, empty at the end."""
    if place is Place.START:
        return before.at_start
    if place is Place.END:
        return not behind
    if place is Place.LAST_LINE_END:
        return not before.after_return
    is_boundary = before.after_word != (bool(behind) and behind in WORD)
    return is_boundary == (place is Place.BOUNDARY)


def _iter_bits(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _points(characters: str) -> CharacterSet:
    return CharacterSet.of(*((ord(character), ord(character)) for character in characters))


_WORD_PLACES = {Place.BOUNDARY, Place.NOT_BOUNDARY}
_NEWLINE, _RETURN = _points("\n"), _points("\r")
_OTHER_TERMINATORS = _points("\r\x85\u2028\u2029")


@lru_cache(maxsize=20_000)
def build_like_automaton(pattern: str, escape: str, *, ignore_case: bool) -> Automaton:
    """Return the automaton of LIKE or ILIKE; raise NoAutomaton for a very long pattern."""
    if len(pattern) > MAX_SYMBOLS:
        raise NoAutomaton
    text = pattern.lower() if ignore_case else pattern
    return LikeAutomaton(parse_like(text, escape), ignore_case=ignore_case)


@lru_cache(maxsize=2_000)
def build_regex_automaton(pattern: str) -> Automaton:
    """Return the automaton of RLIKE; raise NoAutomaton where there is none."""
    return RegexAutomaton(translate(pattern).tree)
