"""LIKE against its definition."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate.pattern.errors import PatternRefused
from headgate.predicate.pattern.like import ANY_MANY, ANY_ONE, LikePattern, parse_like
from tests.oracles.operands import NotUnderstoodError
from tests.oracles.patterns import like, like_pieces

ESCAPES = st.sampled_from(["\\", "|", "a", "%", "_"])
PIECES = st.lists(
    st.sampled_from(["a", "b", "_", "%", "%%", "\\%", "\\_", "\\\\", "é", "\n", "😀"])
)
TEXTS = st.text(alphabet="ab_%\\é\n😀", max_size=10)


@given(PIECES.map("".join), TEXTS)
def test_oracle_matches_by_definition(pattern: str, text: str) -> None:
    assert parse_like(pattern).matches(text) is like(text, like_pieces(pattern, "\\"))


@given(st.text(alphabet="ab_%|\\", max_size=8), ESCAPES, TEXTS)
def test_oracle_with_any_escape(pattern: str, escape: str, text: str) -> None:
    try:
        result = parse_like(pattern, escape).matches(text)
    except PatternRefused:
        with pytest.raises(NotUnderstoodError):
            like_pieces(pattern, escape)
    else:
        assert result is like(text, like_pieces(pattern, escape))


@given(PIECES.map("".join), TEXTS)
def test_every_match_has_the_prefix_and_the_substrings(pattern: str, text: str) -> None:
    parsed = parse_like(pattern)
    for match in [parsed.example()] + [text] * parsed.matches(text):
        assert match.startswith(parsed.prefix)
        assert all(part in match for part in parsed.substrings)


@given(PIECES.map("".join))
def test_example_matches(pattern: str) -> None:
    parsed = parse_like(pattern)
    assert parsed.matches(parsed.example())
    assert parsed.is_literal is not any(piece in parsed.pieces for piece in (ANY_ONE, ANY_MANY))


@given(PIECES.map("".join))
def test_neither_literals_nor_percent_signs_touch(pattern: str) -> None:
    pieces = parse_like(pattern).pieces
    for left, right in pairwise(pieces):
        assert not (isinstance(left, str) and isinstance(right, str))
        assert not (left is ANY_MANY and right is ANY_MANY)


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        ("", ()),
        ("a", ("a",)),
        ("%%%", (ANY_MANY,)),
        ("a__%b", ("a", ANY_ONE, ANY_ONE, ANY_MANY, "b")),
        (r"\%a\\", ("%a\\",)),
    ],
)
def test_pieces(pattern: str, pieces: tuple[object, ...]) -> None:
    assert parse_like(pattern).pieces == pieces


@pytest.mark.parametrize(
    ("pattern", "escape", "reason", "offset"),
    [
        (r"ab\c", "\\", r"the escape character `\` may not precede `c`", 2),
        ("a\\", "\\", "the pattern may not end in its escape character `\\`", 1),
        ("a|b", "|", "the escape character `|` may not precede `b`", 1),
        ("100%", "%", "the pattern may not end in its escape character `%`", 3),
        ("a", "", "an escape of one character is needed, not ``", 0),
        ("a", "||", "an escape of one character is needed, not `||`", 0),
        ("a", "😀", "an escape of one character is needed, not `😀`", 0),
    ],
)
def test_refuses_by_name(pattern: str, escape: str, reason: str, offset: int) -> None:
    with pytest.raises(PatternRefused) as caught:
        parse_like(pattern, escape)
    assert (caught.value.reason, caught.value.offset) == (reason, offset)


def test_one_character_is_one_code_point() -> None:
    assert parse_like("_").matches("😀")
    assert not parse_like("_").matches("é".join("ab"))


def test_newlines_are_characters() -> None:
    assert parse_like("a%b_").matches("a\n\nb\n")


def test_many_wildcards_do_not_explode() -> None:
    """A matcher that takes placements back needs n to the 30th steps here."""
    assert not parse_like("%a" * 30 + "%b").matches("a" * 20_000)


def test_equal_patterns_are_equal_values() -> None:
    assert parse_like("a%%b") == LikePattern(("a", ANY_MANY, "b"))
    assert hash(parse_like("a%%b")) == hash(parse_like("a%b"))
