"""Every key and element of a TOML text has the line on which it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate._toml import KeyPath, find_lines

ROOT = Path(__file__).parents[1]
ODD = '''\
a = 1 # [x] = "
"b.c" = {d = [1, 2.5, {e = 'x]'}], f."g h" = 1979-05-27 07:32:00}
[t.u] # a table
x = """
[no]
k = 3 ""\\"""""
y = [
  ["a", "b"], # c
  [],
]
[[p]]
q = 1
[[p]]
q = -1e5
[[p.r]]
z = """x"""
[p.s]
"ü" = \'\'\' "\'\'\'
[p.s.v]
'''


def places(value: Any, at: KeyPath = ()) -> Iterator[KeyPath]:
    """All there are in what was read."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*at, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*at, key))


@pytest.mark.parametrize(
    "text",
    [ODD, ODD.replace("\n", "\r\n"), ODD.rstrip(), "", "\n\n", "a = 1"]
    + [path.read_text() for path in sorted(ROOT.glob("examples/*/*.toml"))],
)
def test_every_place_has_its_line(text: str) -> None:
    """No place is missing, none is invented, and a key stands on its line."""
    result = find_lines(text)
    assert set(result) == set(places(tomllib.loads(text)))
    lines = text.splitlines()
    for place, line in result.items():
        assert not isinstance(place[-1], str) or place[-1] in lines[line - 1]


def test_elements() -> None:
    result = find_lines(ODD)
    assert result["t", "u", "y", 1] == 9
    assert (result["p", 0], result["p", 1], result["p", 1, "r", 0, "z"]) == (11, 13, 16)
    assert (result["p", 1, "s", "ü"], result["p", 1, "s", "v"]) == (18, 19)
