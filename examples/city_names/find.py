"""Finds cities by names that are not quite right, with a standing query for each city.

    python examples/city_names/find.py NAME…

A pair of letters is an attribute, and the letter after it is its value. So 'string' is the event
`{"g_st": "r", "g_tr": "i", "g_ri": "n", "g_in": "g"}`. The query of a city has such predicates in
up to three parts, one behind the other, and asks for one part of them. A wrong letter spoils three
grams in a row, which lie in two parts at most: the third still holds.
"""

from __future__ import annotations

import sys

import pyarrow as pa

import headgate as hg
from benchmarks.workloads import city_names
from benchmarks.workloads.q_grams import gram_stream, grams
from headgate.schema import STRING, Attribute

PARTS = 3
SHOWN = 5


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("which city? For instance: find.py Reykjavk")
    index = hg.build_index(standing_queries(city_names()))
    names = sys.argv[1:]
    for name, cities in zip(names, index.match([event(n) for n in names]).ids(), strict=True):
        found = cities.as_py()
        best = sorted(found, key=lambda city: (-likeness(name, city), city))[:SHOWN]
        shown = ", ".join(f"{city} ({likeness(name, city):.0%})" for city in best) or "none"
        print(f"{name}: {len(found)} candidates; {shown}")


def standing_queries(cities: list[str]) -> hg.QuerySet:
    """A query for each city, under its name."""
    attributes = tuple(Attribute(name, STRING) for name in gram_stream().names)
    rows = pa.table({"id": cities, "where": [where(city) for city in cities]})
    return hg.queries_from_dataframe(rows, hg.Stream("names", attributes), strict=True)


def where(city: str) -> str:
    """One part of the city's grams, whichever.

    >>> where("Reykjavik")[:43]
    "(g_re = 'y' AND g_ey = 'k') OR (g_yk = 'j' "
    """
    predicates = [_predicate(pair, letters) for pair, letters in grams(city).items()]
    parts = min(PARTS, max(1, len(predicates) // 2))
    ends = [len(predicates) * part // parts for part in range(parts + 1)]
    joined = (" AND ".join(predicates[ends[i] : ends[i + 1]]) for i in range(parts))
    return " OR ".join(f"({part})" for part in joined)


def _predicate(pair: str, letters: list[str]) -> str:
    if len(letters) == 1:
        return f"g_{pair} = '{letters[0]}'"
    listed = ", ".join(f"'{letter}'" for letter in letters)
    return f"g_{pair} IN ({listed})"


def event(name: str) -> dict[str, str]:
    """For each pair of letters the letter that follows it first."""
    return {f"g_{pair}": letters[0] for pair, letters in grams(name).items()}


def likeness(first: str, second: str) -> float:
    """The share of grams that both have, of those that one of them has."""
    one, two = _grams(first), _grams(second)
    return len(one & two) / len(one | two)


def _grams(name: str) -> set[str]:
    return {pair + letter for pair, letters in grams(name).items() for letter in letters}


if __name__ == "__main__":
    main()
