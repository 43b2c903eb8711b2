"""The data sets of section 8.2, as functions from what varies to queries.

Where Tables III and V leave a parameter alone it has our default, which is theirs but for this:
every query has three predicates at least, so that the matching probability can be controlled by
Zipf's law too, and three of an event's fifteen attributes are its own, so that no two events are
the same. The real names are those of cities, and long texts are the other names that cities have,
in the place of DBLP's authors and titles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from benchmarks.be_tree.sweep import Make
from benchmarks.workloads import (
    Conjunctions,
    generate_begen,
    generate_begen_of_names,
    generate_gram_queries,
    list_city_texts,
)
from benchmarks.workloads.begen import OF_NAMES, BegenSpec
from examples.city_names.find import list_city_names

ZIPF = 1.0
PER_QUERY = 10_000  # a matching probability of 1 % is 100 in so many queries

Options = Callable[[int], dict[str, Any]]


def vary_nothing(_: int) -> dict[str, Any]:
    return {}


def vary_matching(value: int) -> dict[str, Any]:
    """Return the option by which so many of 10,000 queries match."""
    return {"matching": value / PER_QUERY}


def synthetic(options: Options = vary_nothing, *, zipf: float = 0.0, **fixed: Any) -> Make:
    """Return BEGen's queries; `options` says what a value means, `fixed` what does not vary."""

    def make(value: int, count: int, seed: int) -> Conjunctions:
        chosen: dict[str, Any] = {"extra": 3, "fewest": 3, "operators": "medium", "zipf": zipf}
        return generate_begen(count, BegenSpec(**chosen | fixed | options(value)), seed=seed)

    return make


def names(_: int, count: int, seed: int) -> Conjunctions:
    """Return a city each, all of its grams; events are cities too."""
    return generate_gram_queries(every_name()[:count], seed=seed)


def texts(_: int, count: int, seed: int) -> Conjunctions:
    """Return a city and its other names each, all of its grams; events are such, too."""
    return generate_gram_queries(every_text()[:count], seed=seed)


def derive_from_names(options: Options = vary_nothing, **fixed: Any) -> Make:
    """Return queries derived from the names of cities, with a matching probability."""

    def make(value: int, count: int, seed: int) -> Conjunctions:
        return generate_begen_of_names(
            every_name(), count, replace(OF_NAMES, **fixed | options(value)), seed=seed
        )

    return make


def derive_from_texts(options: Options = vary_nothing, **fixed: Any) -> Make:
    """Return the same from texts, with more predicates."""

    def make(value: int, count: int, seed: int) -> Conjunctions:
        chosen: dict[str, Any] = {"predicates": 15, "attributes": 22}
        return generate_begen_of_names(
            every_text(), count, replace(OF_NAMES, **chosen | fixed | options(value)), seed=seed
        )

    return make


@cache
def every_name() -> list[str]:
    return list_city_names(5_000)


@cache
def every_text() -> list[str]:
    return list_city_texts(5_000)
