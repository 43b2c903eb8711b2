"""Patterns that few texts match: the list holds what the matcher accepts, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate.atoms import Pattern, PatternKind
from headgate.predicate.narrowing import prefix_range
from headgate.schema import STRING
from headgate.stateful.analysis.lines import is_finite

ALPHABET = "abkKsS1ıİßſ\u212a\n\r\u2028é"
PATTERNS: list[tuple[PatternKind, str]] = [
    ("LIKE", "ab"),
    ("ILIKE", "ak1"),
    ("ILIKE", "ss"),
    ("ILIKE", "ß"),
    ("ILIKE", "i\u0307"),
    ("RLIKE", "^(a|bk)$"),
    ("RLIKE", "^ab$"),
    ("RLIKE", "^(?:a|)$"),
    ("RLIKE", "^a|b$"),
    ("RLIKE", "^(a|b)"),
    ("RLIKE", "^(a|b.)$"),
]


@pytest.mark.parametrize(("kind", "text"), PATTERNS)
@given(st.text(ALPHABET, max_size=4))
def test_the_list_is_what_matches(kind: PatternKind, text: str, candidate: str) -> None:
    """Characters with unusual cases, and line ends, are among the candidates."""
    pattern = Pattern(kind, text)
    texts, exact = prefix_range(pattern)
    matches = pattern.matcher.matches(candidate)
    assert candidate in texts or not matches
    if exact:
        assert (candidate in texts) == matches


def test_which_patterns_have_few_texts() -> None:
    """Others have an open end, a wildcard, or case that depends on more than one character."""
    few = [t for kind, t in PATTERNS if is_finite(prefix_range(Pattern(kind, t))[0], STRING)]
    assert few == ["ab", "ak1", "ss", "ß", "^(a|bk)$", "^ab$", "^(?:a|)$"]
