"""The algebra of patterns: automata agree with matchers, and a "no" holds for all short texts."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import Pattern, PatternKind
from headgate.predicate.pattern import PatternRefused
from headgate.predicate.pattern.alphabet import build_alphabet
from headgate.predicate.pattern.automaton import Automaton, Symbol
from headgate.predicate.texts import TextCondition, _build_automaton, find_text
from headgate.schema import EVERYTHING, Interval, ValueSet
from tests.scale import at_least, case_count, seed
from tests.strategies import Seeded, pick

LETTERS = "abAİΣσ\n\r _-"
SHORT = ["".join(letters) for length in range(5) for letters in product("abA\n\r-", repeat=length)]
SPECIAL = ["Σ", "aΣ", "aΣa", "İ", "i̇", "σς", "\r\n", "a\r\n", "\u2028", "𝔸", "é", "a_b%"]


KINDS: tuple[PatternKind, ...] = ("LIKE", "LIKE", "ILIKE", "RLIKE")


def random_pattern(dice: Seeded) -> Pattern:
    """A short pattern of any kind, over few letters so that patterns meet."""
    kind = pick(dice, KINDS)
    if kind == "RLIKE":
        pattern = Pattern("RLIKE", random_regex(dice, 2))
        try:
            pattern.matcher.matches("")
        except PatternRefused:
            return random_pattern(dice)
        return pattern
    pieces = [pick(dice, (*"abAb%%_-", "σ")) for _ in range(dice.below(5))]
    return Pattern(kind, "".join(pieces))


def random_regex(dice: Seeded, depth: int) -> str:
    """A regular expression that we accept: classes, groups, counts, anchors and boundaries."""
    start = pick(dice, ("", "", "^", r"\b"))
    end = pick(dice, ("", "", "$", r"\b", r"\z"))
    return start + random_part(dice, depth) + end


def random_part(dice: Seeded, depth: int) -> str:
    if depth == 0:
        return pick(
            dice,
            (
                "a",
                "b",
                "-",
                ".",
                r"\w",
                "[ab]",
                "[^a]",
                r"\s",
                "A",
                r"\r",
                "(?i:a)",
                r"\p{Lu}",
            ),
        )
    parts = [random_part(dice, depth - 1) for _ in range(1 + dice.below(2))]
    form = pick(dice, ("{}", "({})", "(?:{})?", "(?:{})*", "(?:{}){{1,2}}", "(?:{}|b)", "(?:{}|)"))
    return form.format("".join(parts))


def random_values(dice: Seeded) -> ValueSet:
    """A set of texts: everything, or some ranges."""
    if dice.below(2):
        return EVERYTHING
    ends = sorted({random_text(dice) for _ in range(2 * (1 + dice.below(2)))})
    values = ValueSet.of(*(Interval(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)))
    return values.complement() if dice.below(2) else values


def random_text(dice: Seeded) -> str:
    return "".join(pick(dice, LETTERS) for _ in range(dice.below(5)))


def accepts(automaton: Automaton, symbols: list[Symbol]) -> bool:
    """Run an automaton, and hold what it says on the way to what it says at the end."""
    state, is_dead, is_settled = automaton.start, False, False
    for symbol in symbols:
        is_dead |= automaton.is_dead(state)
        is_settled |= automaton.is_settled(state)
        state = automaton.step(state, symbol)
    answer = automaton.accepts(state)
    assert not (is_dead and answer), symbols
    assert not (is_settled and not answer), symbols
    return answer


def to_symbols(text: str) -> list[Symbol]:
    """A text as letters, with the lower case that the whole text has."""
    lowered, symbols = text.lower(), []
    for character in text:
        size = len(character.lower())
        symbols.append(Symbol(character, lowered[:size]))
        lowered = lowered[size:]
    return symbols


@pytest.mark.parametrize("shard", range(3))
def test_agree_automaton_and_matcher(shard: int) -> None:
    """An automaton accepts exactly the texts that its pattern matches, or its set holds."""
    dice, accepted = Seeded(seed(shard)), 0
    for _ in range(case_count(600)):
        pattern = random_pattern(dice)
        values = random_values(dice)
        automaton, ranges = _build_automaton(pattern), _build_automaton(values)
        assert automaton is not None
        assert ranges is not None
        for text in (*SPECIAL, *(random_text(dice) for _ in range(20))):
            symbols = to_symbols(text)
            matches = pattern.matcher.matches(text)
            accepted += matches
            assert accepts(automaton, symbols) == matches, (pattern, text)
            assert accepts(ranges, symbols) == (text in values), (values, text)
    assert accepted > at_least(2_000)


@pytest.mark.parametrize("shard", range(3))
def test_alphabet_stands_for_all_characters(shard: int) -> None:
    """Every character is read as one of the alphabet is, from whatever state."""
    dice = Seeded(seed(shard) + 10)
    for _ in range(case_count(300)):
        patterns = [random_pattern(dice) for _ in range(2)]
        automata = [a for a in map(_build_automaton, patterns) if a is not None]
        symbols = build_alphabet(automata)
        states = [a.start for a in automata]
        for character in pick(dice, (LETTERS, "kKKÅåÅ", "zZ\u2029\x85😀")):
            reached = [
                tuple(a.step(s, symbol) for a, s in zip(automata, states, strict=True))
                for symbol in symbols
            ]
            symbol = Symbol(character, character.lower())
            states = [a.step(s, symbol) for a, s in zip(automata, states, strict=True)]
            assert tuple(states) in reached, (patterns, character)


@pytest.mark.parametrize("shard", range(3))
def test_oracle_find_text(shard: int) -> None:
    """A "yes" has its text; no text up to four letters contradicts a "no"; nothing stays open."""
    dice, answers = Seeded(seed(shard) + 20), Counter[Answer]()
    for _ in range(case_count(1_500)):
        condition = TextCondition(
            random_values(dice),
            frozenset(random_pattern(dice) for _ in range(dice.below(4))),
            frozenset(random_pattern(dice) for _ in range(dice.below(4))),
        )
        answer, text = find_text(condition)
        answers[answer] += 1
        if answer is Answer.YES:
            assert text is not None
            assert condition.holds(text), condition
        elif answer is Answer.NO:
            wrong = next((t for t in (*SHORT, *SPECIAL) if condition.holds(t)), None)
            assert wrong is None, (condition, wrong)
    assert answers[Answer.NO] > at_least(150), answers
    assert answers[Answer.UNKNOWN] <= case_count(1_500) // 200, answers


@pytest.mark.parametrize(
    "matched, unmatched, answer",
    [
        (["LIKE %abc%", "LIKE %xyz%"], [], "yes"),
        (["ILIKE %.exe", "ILIKE %.dll"], [], "no"),
        (["ILIKE %.EXE", "LIKE %.Exe"], ["LIKE %a%"], "yes"),
        (["LIKE a%"], ["LIKE a_%", "LIKE a"], "no"),
        (["LIKE a%b%c"], ["RLIKE b"], "no"),
        (["RLIKE ^[a-z]{3}$", "LIKE ____%"], [], "yes"),  # a line terminator behind it
        ([r"RLIKE ^[a-z]{3}\z", "LIKE ____%"], [], "no"),
        ([r"RLIKE \bfoo\b"], ["LIKE %foo%"], "no"),
        (["LIKE foo%"], [r"RLIKE \bfoo\b"], "yes"),
        (["LIKE foo %"], [r"RLIKE \bfoo\b"], "no"),
        (["ILIKE straße"], ["LIKE straße"], "yes"),
        (["LIKE %Σ%", "ILIKE %ς%"], [], "yes"),
        (["ILIKE %K%"], ["LIKE %k%", "LIKE %K%"], "yes"),  # the Kelvin sign
    ],
)
def test_answers(matched: list[str], unmatched: list[str], answer: str) -> None:
    """Answers that can be checked by eye."""
    sides = [
        frozenset(
            Pattern(kind, text.removeprefix(kind + " "))
            for text in side
            for kind in KINDS[1:]
            if text.startswith(kind + " ")
        )
        for side in (matched, unmatched)
    ]
    assert find_text(TextCondition(EVERYTHING, *sides))[0] == answer


def test_escapes_of_ilike_are_read_in_lower_case() -> None:
    """`_bAb` with the escape A is `_bab`, as the matcher has it; nothing is escaped."""
    pattern = Pattern("ILIKE", "_bAb", "A")
    answer, text = find_text(TextCondition(EVERYTHING, frozenset({pattern})))
    assert answer is Answer.YES
    assert text is not None
    assert pattern.matcher.matches(text)


def test_many_patterns_are_quick() -> None:
    """Of two hundred patterns only those take part that a text violates."""
    contained = frozenset(Pattern("ILIKE", f"%word{n}%") for n in range(20))
    refused = frozenset(Pattern("ILIKE", f"%other{n}%.exe") for n in range(200))
    ends = frozenset({Pattern("LIKE", "%.exe"), Pattern("LIKE", "%.dll")})
    assert find_text(TextCondition(EVERYTHING, contained, refused))[0] is Answer.YES
    assert find_text(TextCondition(EVERYTHING, contained | ends, refused))[0] is Answer.NO
