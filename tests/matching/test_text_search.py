"""The search for many patterns at once finds what trying each pattern finds, text by text."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.workloads import generate_pattern_rules
from headgate.matching.encoding import text_search
from headgate.matching.encoding.text_search import TextSearch
from headgate.predicate import Matches, Pattern, iter_atoms
from headgate.predicate.atoms import PatternKind
from headgate.predicate.pattern import LikePattern, PatternRefused
from tests.scale import at_least, case_count, seed

# The Kelvin sign, the long s, the sharp s and the dotted I have cases that are not one to one.
LETTERS = ("a", "b", "ab", "aA", "k", "\u212a", "s", "ſ", "ß", "İ", "i\u0307", "Σ")
ODDITIES = ("\n", "\r\n", "\0", "😀", "e\u0301", "|", "\\", "%", "_")
LIKE_PIECES = (*LETTERS, "\n", "\0", "😀", "\u0301", "%", "_", r"\%", r"\_", r"\\", "|%", "||")
REGEX_PIECES = (
    *("a", "b", "k", "[Kk]", "(?i:k)", "(?i:s)", "(?i)ks", "([Ss])", "(k|K)", "ß", "İ", "😀", "."),
    *(
        ".*",
        ".*",
        "(?s).*",
        "^",
        "$",
        "|",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "(",
        ")",
        r"\b",
        r"\B",
        r"\n",
    ),
    *(r"\w", r"\W", r"\s", r"\x00", r"\p{L}", "[^k]", "[a-k]", r"\u212a", r"\.*", r"\["),
)

TEXTS = st.lists(
    st.lists(st.sampled_from(LETTERS + ODDITIES), max_size=6).map("".join), min_size=4, max_size=8
)


def is_accepted(pattern: Pattern) -> bool:
    try:
        return pattern.matcher is not None
    except PatternRefused:
        return False


def patterns(kind: PatternKind, pieces: Sequence[str]) -> st.SearchStrategy[list[Pattern]]:
    """So many patterns of a kind that they are searched for together."""
    ends = st.sampled_from(("", "%", "%", "_") if kind != "RLIKE" else ("", "", ".*"))
    middle = st.lists(st.sampled_from(pieces), max_size=3).map("".join)
    texts = st.tuples(ends, middle, ends).map("".join)
    drawn = st.builds(Pattern, st.just(kind), texts, st.sampled_from("\\\\|aİ"))
    return st.lists(drawn.filter(is_accepted), min_size=5, max_size=20)


def one_by_one(patterns: Sequence[Pattern], texts: Sequence[str]) -> list[list[int]]:
    return [
        [n for n, pattern in enumerate(patterns) if pattern.matcher.matches(text)] for text in texts
    ]


def searched(patterns: Sequence[Pattern], texts: Sequence[str]) -> list[list[int]]:
    starts, numbers = TextSearch(patterns).match(texts)
    assert starts.dtype == numbers.dtype == np.int64
    assert (len(starts), starts[0], starts[-1]) == (len(texts) + 1, 0, len(numbers))
    return [result.tolist() for result in np.split(numbers, starts[1:-1])] if len(texts) else []


def of_kind(kind: PatternKind, *texts: str) -> list[Pattern]:
    return [Pattern(kind, text) for text in texts]


@given(patterns("LIKE", LIKE_PIECES), patterns("ILIKE", LIKE_PIECES), TEXTS)
def test_oracle_like(like: list[Pattern], ilike: list[Pattern], texts: list[str]) -> None:
    """LIKE and ILIKE, with any escape, over letters whose cases are not one to one."""
    listed = [*ilike, *like]
    assert searched(listed, texts) == one_by_one(listed, texts)


@given(patterns("RLIKE", REGEX_PIECES), TEXTS)
def test_oracle_rlike(listed: list[Pattern], texts: list[str]) -> None:
    """RLIKE, among them what RE2 folds by Unicode where Java does not."""
    assert searched(listed, texts) == one_by_one(listed, texts)


@pytest.mark.parametrize("alphabet", ["ab", "aA\u212ak", "ab%_\\\n\0", "ßsSſiIİ"])
def test_oracle_thousands(alphabet: str) -> None:
    """Thousands of short patterns of all kinds: nested, overlapping, many of them twice."""
    random = Random(seed(7))
    drawn = [
        Pattern(
            random.choice(("LIKE", "ILIKE", "RLIKE")),
            "".join(random.choice(alphabet + "%_") for _ in range(random.randrange(7))),
        )
        for _ in range(case_count(4_000))
    ]
    accepted = [pattern for pattern in drawn if is_accepted(pattern)]
    assert len(accepted) > len(set(accepted)) > 400
    texts = ["".join(random.choices(alphabet, k=n)) for n in [*range(12), 40, 200]]
    positions = searched(accepted, texts)
    assert positions == one_by_one(accepted, texts)
    assert sum(map(len, positions)) > at_least(1_000)


def test_agree_on_rules() -> None:
    """On the workload of log rules, whose patterns are of every kind."""
    rules = generate_pattern_rules(100, seed=1)
    actual = {
        a.pattern for q in rules.queries() for a in iter_atoms(q.where) if isinstance(a, Matches)
    }
    listed = sorted(actual, key=str)
    events = rules.events(60, matching=0.5, seed=2)
    texts = [str(text) for name in ("process", "path") for text in events.column(name).to_pylist()]
    expected = one_by_one(listed, texts)
    assert searched(listed, texts) == expected
    assert {listed[n].kind for numbers in expected for n in numbers} == {"LIKE", "ILIKE", "RLIKE"}


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("kind", ["LIKE", "ILIKE", "RLIKE"])
def test_few_patterns(kind: PatternKind, count: int) -> None:
    """No pattern, one, and as many as are still tried one by one, or just no longer."""
    listed = of_kind(kind, "ab", "%b%", "_b", "%", "a")[:count]
    texts = ["ab", "AB", "a", "%", ""]
    assert searched(listed, texts) == one_by_one(listed, texts)


def test_no_texts() -> None:
    """Without texts there is one start, and no number."""
    assert searched(of_kind("LIKE", "a%", "b%", "c%", "d%", "e%"), []) == []


def test_shapes_of_like() -> None:
    """A literal anywhere, at the start, at the end, alone, in pieces, and none at all."""
    listed = of_kind("LIKE", "%ab%", "ab%", "%ab", "ab", "a%b", "_b%", "%a_b%", "%", "_%", "__", "")
    assert searched(listed, ["ab", "xab", "abx", "aabb", "", "b"]) == [
        [0, 1, 2, 3, 4, 5, 7, 8, 9],
        [0, 2, 7, 8],
        [0, 1, 5, 7, 8],
        [0, 4, 6, 7, 8],
        [7, 10],
        [7, 8],
    ]


def test_a_prefix_that_is_also_a_suffix_may_overlap_itself() -> None:
    """`aba` starts and ends `ababa`; as `aba%aba` it would need six characters."""
    listed = of_kind("LIKE", "aba%", "%aba", "aba%aba", "%bab%", "ababa")
    assert searched(listed, ["ababa", "abaaba"]) == [[0, 1, 3, 4], [0, 1, 2]]


def test_lower_case_may_be_longer() -> None:
    """`İ` in lower case is two characters, of which `_` takes one."""
    listed = of_kind("ILIKE", "İ", "_", "__", "i%", "%\u0307", "%İ%")
    assert searched(listed, ["İ", "i\u0307", "xİ"]) == [
        [0, 2, 3, 4, 5],
        [0, 2, 3, 4, 5],
        [4, 5],
    ]


def test_patterns_without_a_literal() -> None:
    """Where no pattern has a literal there is nothing to pass over the text for."""
    listed = of_kind("LIKE", "%", "_", "_%", "__%", "")
    assert searched(listed, ["", "a", "ab"]) == [[0, 4], [0, 1, 2], [0, 2, 3]]


def test_escapes() -> None:
    """An escape of ILIKE stays as it is written; only the pattern is put in lower case."""
    listed = [Pattern("ILIKE", f"%{escape}%B%", escape) for escape in "|!^~"]
    assert searched(listed, ["a%b", "%", "|%B"]) == [[0, 1, 2, 3], [], [0, 1, 2, 3]]


def test_the_same_pattern_many_times() -> None:
    """Each has its own number, also where two texts mean the same pattern."""
    listed = of_kind("LIKE", "%a%", "%a%", "%%a%", "b", "b", "%a%b", "%a%b", "_%", "%_")
    assert searched(listed, ["ab", "b"]) == [[0, 1, 2, 5, 6, 7, 8], [3, 4, 7, 8]]
    assert searched(of_kind("RLIKE", "a", "a", "(a)", ".*a"), ["a", "b"]) == [[0, 1, 2, 3], []]


def test_one_literal_needs_no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns of one literal are decided by the pass alone."""
    listed = of_kind("LIKE", "%a%", "a%", "%a", "a", "%b%", "c%")
    search = TextSearch(listed)
    monkeypatch.setattr(LikePattern, "matches", None)
    assert search.match(["a", "xa", "bac"])[1].tolist() == [0, 1, 2, 3, 0, 2, 0, 4]


def test_pieces_are_tried_where_the_rarest_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several pieces the longest leads to a pattern, unless very many patterns have it."""
    listed = of_kind("LIKE", *(f"%{n}-%powershell%" for n in range(1_000, 3_000)), "%a%needle%")
    tried: list[LikePattern] = []
    search = TextSearch(listed)
    monkeypatch.setattr(LikePattern, "matches", lambda self, _: tried.append(self))
    search.match(["a powershell without a number", "1234-", "a", "needle"])
    assert [pattern.substrings for pattern in tried] == [("1234-", "powershell"), ("a", "needle")]


def test_halves_of_surrogate_pairs() -> None:
    """LIKE takes them for characters; RLIKE raises, whether many are searched for or one."""
    texts = ["\ud800", "a\ud83d", "\U0001f600"]
    listed = of_kind("LIKE", "%\ud83d", "%\ud83d%", "\ud800", "_", "%\ude00%", "a%")
    assert searched(listed, texts) == one_by_one(listed, texts)
    for count in (1, 5):
        with pytest.raises(UnicodeEncodeError):
            searched(of_kind("RLIKE", "a", "b", "c", "d", "e")[:count], texts)


@pytest.mark.parametrize("room", [1, 100, 2_000, 1 << 20])
def test_texts_that_come_again(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are the same whether they are remembered, forgotten in between, or never kept."""
    monkeypatch.setattr(text_search, "_MAX_REMEMBERED", room)
    monkeypatch.setattr(text_search, "_MAX_TEXT", 30)
    random = Random(seed(11))
    listed = [
        *of_kind("LIKE", "%a%", "a%b", "%ab%ba%", "_%", "b_%", "%\ud83d%"),
        *of_kind("ILIKE", "%A%", "a%", "%B", "AB"),
    ]
    search = TextSearch(listed)
    known = ["".join(random.choices("abAB_", k=random.randrange(40))) for _ in range(60)]
    for _ in range(case_count(40)):
        texts = random.choices([*known, "\ud83d"], k=12)
        starts, numbers = search.match(texts)
        matching = [part.tolist() for part in np.split(numbers, starts[1:-1])]
        assert matching == one_by_one(listed, texts)


def test_a_text_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as there is room: then all answers are forgotten, and no long text has one."""
    monkeypatch.setattr(text_search, "_MAX_REMEMBERED", 200)
    monkeypatch.setattr(text_search, "_MAX_TEXT", 50)
    search = TextSearch(of_kind("LIKE", "%a%", "%b%", "%c%", "%d%", "%e%"))
    searched_texts: list[str] = []

    def note(text: str) -> list[int]:
        searched_texts.append(text)
        return []

    monkeypatch.setattr(search, "_search", note)
    search.match(["a", "b", "a"])
    search.match(["b", "x" * 51, "x" * 51])
    assert searched_texts == ["a", "b", "x" * 51, "x" * 51]
    search.match([f"{n}" for n in range(10)])
    assert len(search._remembered) <= 200 // text_search._COST
    search.match(["a"])
    assert searched_texts[-1] == "a"


def test_long_texts() -> None:
    """What stands at either end of a text of a million characters is found."""
    text = "start" + "ab\0\n" * 250_000 + "end"
    listed = [
        *of_kind("LIKE", "start%", "%end", "%tend%", "%b_\na%", "start%b%end", "st", "%d%x%"),
        *of_kind("ILIKE", "START%", "%END", "%TEND%", "%B_\nA%", "X%"),
        *of_kind("RLIKE", "^start", "end$", "b.a", r"b\x00\na", r"^[^e]*end$"),
    ]
    assert (
        searched(listed, [text])
        == one_by_one(listed, [text])
        == [[0, 1, 3, 4, 7, 8, 10, 12, 13, 15, 16]]
    )


def test_no_regex_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no regular expression matches, the automaton alone says so."""
    search = TextSearch(of_kind("RLIKE", "a", "b$", "c+"))
    monkeypatch.setattr(Pattern, "matcher", None)
    assert search.match(["x", "", "bx", "c"])[0].tolist() == [0, 0, 0, 0, 1]


BROKEN = {
    "it runs out of memory in a search": ("Match", lambda _set, _text: None),
    "it cannot be made": ("Compile", lambda _set: (_ for _ in ()).throw(re2.error("too large"))),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_regexes_are_tried_where_their_automaton_fails(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure, which RE2 reports as no match, is never taken for one."""
    name, broken = BROKEN[reason]
    monkeypatch.setattr(re2.Set, name, broken)
    listed = of_kind("RLIKE", "a+", "^b", "[ab]{2}", "", "c")
    assert searched(listed, ["ab", "b", ""]) == [[0, 2, 3], [1, 3], [3]]


def test_regexes_with_little_room_for_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that need more states than fit are searched all the same, and nothing is tried."""
    random = Random(seed(3))
    monkeypatch.setattr(text_search, "_MAX_BYTES", 4 << 20)
    listed = of_kind("RLIKE", *(f"a.{{{n}}}b.*(ab|ba){{{n % 7}}}" for n in range(20, 60)))
    texts = ["".join(random.choices("abc", k=400)) for _ in range(20)]
    expected = one_by_one(listed, texts)
    search = TextSearch(listed)
    monkeypatch.setattr(Pattern, "matcher", None)
    assert search.match(texts)[1].tolist() == [n for numbers in expected for n in numbers]


@pytest.mark.parametrize("largest", [1, 40, 1_000])
def test_regexes_in_parts(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the patterns are divided among automata, all of them are found, in order."""
    monkeypatch.setattr(text_search, "_MAX_INSTRUCTIONS", largest)
    listed = of_kind("RLIKE", *(f"x{n}|{n}$" for n in range(60)))
    texts = ["x1", "7", "x59 and 23", "", "x"]
    assert searched(listed, texts) == one_by_one(listed, texts)


def test_largest_regexes() -> None:
    """The largest patterns that are accepted are searched for together."""
    listed = of_kind("RLIKE", r"\p{L}{200}", "a" * 10_000, "[0-9]")
    texts = ["é" * 200, "é" * 199 + "1", "a" * 10_000, ""]
    positions = searched(listed, texts)
    assert positions == one_by_one(listed, texts) == [[0], [2], [0, 1], []]
