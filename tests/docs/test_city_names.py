"""The example of the city names prints what its page says, and finds what it says it finds."""

from __future__ import annotations

import doctest
import random
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import headgate as hg
from examples.city_names import find

EXAMPLE = Path(__file__).parents[2] / "examples" / "city_names"
COMMAND = re.compile(r"^\$ python examples/city_names/find.py (.*)\n((?:.+\n)*?)```", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's command prints what stands below it."""
    (actual,) = COMMAND.findall((EXAMPLE / "README.md").read_text(encoding="utf-8"))
    arguments, expected = actual
    monkeypatch.setattr(sys, "argv", ["find.py", *shlex.split(arguments)])
    runpy.run_path(str(EXAMPLE / "find.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(expected, printed, FLAGS), printed


def test_where() -> None:
    """A city's grams are in up to three parts, and a repeated pair accepts both letters."""
    assert find.make_where("Oslo") == "(g_os = 'l' AND g_sl = 'o')"
    assert find.make_where("Paris") == "(g_pa = 'r' AND g_ar = 'i' AND g_ri = 's')"
    assert find.make_where("Manhattan E").count(" OR ") == 2
    assert "g_an IN ('h', '_')" in find.make_where("Manhattan E")


@pytest.mark.slow
def test_one_letter() -> None:
    """Of names with six grams or more and a letter changed, 99 in 100 lead to their city."""
    cities = [city for city in find.list_city_names()[:4_000] if len(find.find_grams(city)) >= 6]
    index = hg.build_index(find.make_queries(cities))
    dice = random.Random(1)
    matches = index.match([find.make_event(changed(city, dice)) for city in cities])
    hits = sum(city in matches[i] for i, city in enumerate(cities))
    assert hits / len(cities) > 0.99
    assert matches.total / len(cities) < 20


def changed(city: str, dice: random.Random) -> str:
    """With a letter replaced, left out or put in."""
    text, letter = find.normalise(city), dice.choice(find.LETTERS[:-1])
    at = dice.randrange(len(text))
    return dice.choice(
        (
            text[:at] + letter + text[at + 1 :],
            text[:at] + text[at + 1 :],
            text[:at] + letter + text[at:],
        )
    )
