"""Texts are cut into statements where the tokens say so."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from headgate.sql.lexer import statements, tokens
from tests.scale import case_count, seed

PIECES = (
    *";;;;'\"`-*/+.<=>!(),\\\n\t ",
    *("--", "/*", "*/", "/*+", "''", '""', "``", "\\'", "\\\n", "r'", 'R"', "rr'", "1r'", "é'"),
    *(
        "a",
        "r",
        "R",
        "1",
        "1.",
        ".5",
        "1e5",
        "12L",
        "1bd",
        "x1",
        "_",
        "é",
        "٣",
        "²",
        "SELECT",
        "a = 1",
    ),
    *(
        "'a;b'",
        '"a;b"',
        "`a;b`",
        "-- a;b\n",
        "/* a;b */",
        "r'a\\'",
        "'a\\';'",
        "\r",
        "\x0b",
        "\u2028",
    ),
)


def cut_by_tokens(text: str) -> Iterator[tuple[int, str]]:
    """The statements between the tokens that are semicolons, the obvious way."""
    start, used = 0, False
    for token in tokens(text):
        if token.text == ";":
            if used:
                yield start, text[start : token.start]
            start, used = token.end, False
        elif not used:
            start, used = token.start, True
    if used:
        yield start, text[start:]


@pytest.mark.parametrize("shard", range(4))
def test_oracle_cut_by_tokens(shard: int) -> None:
    rng, texts_cut = random.Random(seed(shard)), 0
    for _ in range(case_count(10_000)):
        text = "".join(rng.choices(PIECES, k=rng.randrange(25)))
        expected = list(cut_by_tokens(text))
        assert list(statements(text)) == expected, text
        texts_cut += len(expected) > 1
    assert texts_cut > case_count(3_000)


@pytest.mark.parametrize("piece", ["a ", "(", "'a' ", "-- x\n", "' ", "1.", "r'", ";", "\\"])
def test_long_texts_are_cut_in_linear_time(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    whole = list(statements(text))
    assert len(whole) <= 1
    assert not whole or whole[0][1] == text[whole[0][0] :]
