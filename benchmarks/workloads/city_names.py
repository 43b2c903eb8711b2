"""Texts from the names of real cities, which stand in for the titles of publications."""

from __future__ import annotations

from typing import Any

from examples.city_names.find import MIN_POPULATION, normalise, pick_distinct, read_cities

TEXT_LENGTH = 64  # letters, about as long as the titles in the BE-Tree paper


def list_city_texts(population: int = MIN_POPULATION) -> list[str]:
    """Return the first 64 letters of a city's name and its other names, where there are so many."""
    texts = (_join_names(city)[:TEXT_LENGTH] for city in read_cities(population))
    return pick_distinct(text for text in texts if len(text) == TEXT_LENGTH)


def _join_names(city: dict[str, Any]) -> str:
    others = (normalise(name) for name in city["alternatenames"] if name.isascii())
    return " ".join(dict.fromkeys((normalise(city["name"]), *others)))
