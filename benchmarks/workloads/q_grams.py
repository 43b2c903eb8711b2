"""Strings as Boolean expressions, by their 3-grams (section 8.2.2 of the BE-Tree paper).

A pair of letters is an attribute, and the letter that follows it is its value. 'string' has the
grams str, tri, rin and ing, so it is `g_st = 'r' AND g_tr = 'i' AND g_ri = 'n' AND g_in = 'g'`.
Here letters are numbers, a to z from 0 and the filler 26; there are 27² attributes.

A pair may occur twice, with different letters after it, as `an` does in 'manhattan_east'. The paper
does not say what becomes of it. Here a query accepts any of these letters, by IN; an event, which
has one value for an attribute, has the first. So the event of a name satisfies the query of that
name, always.

A query that keeps only a share of its predicates also accepts names that are like it. Events are
some of the names, and if asked for, misspelt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.conjunctions import Conjunctions, Listed
from benchmarks.workloads.integer_events import EQUAL, IN, IntegerEvents, Numbers
from examples.city_names.find import (
    GRAM_ATTRIBUTES,
    GRAM_LENGTH,
    LETTERS,
    MIN_POPULATION,
    normalise,
    pick_distinct,
    read_cities,
)
from headgate.errors import UsageError
from headgate.schema import INT, Attribute, Stream

PAIRS = len(LETTERS) ** 2

Indices = npt.NDArray[np.int64]
Random = np.random.Generator

_CODES = np.full(128, -1, np.int64)
_CODES[[ord(letter) for letter in LETTERS]] = np.arange(len(LETTERS))


def make_gram_stream() -> Stream:
    """Return the stream `names`, with an attribute for each pair of letters."""
    return Stream("names", tuple(Attribute(name, INT) for name in GRAM_ATTRIBUTES))


def generate_gram_queries(
    names: Sequence[str], *, kept: float = 1.0, misspelt: float = 0.0, seed: int
) -> Conjunctions:
    """Return a query for each name, which keeps a share of its predicates, but one at least.

    Events are any of these names, a share of them misspelt in one letter.

    >>> next(generate_gram_queries(["String"], seed=1).where_clauses())
    'g_in = 6 AND g_ri = 13 AND g_st = 17 AND g_tr = 8'
    >>> next(generate_gram_queries(["Manhattan East"], kept=0.4, seed=2).where_clauses())
    'g_an IN (7, 26) AND g_as = 19 AND g_ea = 18 AND g_nh = 0 AND g_n_ = 4 AND g_ta = 13'
    """
    if not (0 <= kept <= 1 and 0 <= misspelt <= 1):
        raise UsageError(f"shares of {kept} kept and {misspelt} misspelt; they go from 0 to 1")
    if not names:
        raise UsageError("there are no names to make queries of")
    texts = [_long_enough(name) for name in names]
    # A share of each name's predicates makes its query; events are drawn from the whole names.
    predicates = _keep_predicates(
        _predicates(_grams_of(texts)), kept, np.random.default_rng([seed, 0])
    )

    def draw(count: int, random: Random) -> IntegerEvents:
        chosen = [texts[i] for i in random.integers(0, len(texts), count).tolist()]
        wrong = random.random(count) < misspelt
        pairs = zip(chosen, wrong.tolist(), strict=True)
        return make_gram_events([_misspelt(text, random) if bad else text for text, bad in pairs])

    lists = np.flatnonzero(predicates.counts > 1)
    first = np.cumsum(predicates.counts) - predicates.counts
    listed = np.repeat(predicates.counts > 1, predicates.counts)
    return Conjunctions(
        stream=make_gram_stream(),
        cardinality=len(LETTERS),
        offsets=_offsets(np.bincount(predicates.name, minlength=len(texts))),
        attribute=predicates.pair.astype(np.int32),
        operator=np.where(predicates.counts > 1, IN, EQUAL).astype(np.uint8),
        low=predicates.letters[first],
        high=predicates.letters[first + predicates.counts - 1],
        listed=Listed(lists, _offsets(predicates.counts[lists]), predicates.letters[listed]),
        draw_events=draw,
    )


def make_gram_events(names: Sequence[str]) -> IntegerEvents:
    """Return an event for each name: for each pair of letters the one that follows it first.

    >>> events = make_gram_events(["Rome", "of"])
    >>> events.offsets.tolist(), [events.stream.names[i] for i in events.attribute]
    ([0, 2, 2], ['g_om', 'g_ro'])
    """
    grams = _grams_of([normalise(name) for name in names])
    places, first = np.unique(grams.name * PAIRS + grams.pair, return_index=True)
    counts = np.bincount(places // PAIRS, minlength=len(names))
    attribute = (places % PAIRS).astype(np.int32)
    return IntegerEvents(make_gram_stream(), _offsets(counts), attribute, grams.letter[first])


@dataclass(frozen=True, eq=False)
class _Grams:
    """In name number `name[k]` the letter `letter[k]` follows the pair `pair[k]`."""

    name: Indices
    pair: Indices
    letter: Numbers


@dataclass(frozen=True, eq=False)
class _Predicates:
    """Predicate k, of a name and on a pair, accepts `counts[k]` of the letters, each ascending."""

    name: Indices
    pair: Indices
    counts: Indices
    letters: Numbers


def _long_enough(name: str) -> str:
    text = normalise(name)
    if len(text) < GRAM_LENGTH:
        raise UsageError(f"`{name}` has fewer than {GRAM_LENGTH} letters, so it has no gram")
    return text


def _grams_of(texts: Sequence[str]) -> _Grams:
    """Return the grams of all texts, in order."""
    codes = _CODES[np.frombuffer("".join(texts).encode(), np.uint8)]
    lengths = np.array([len(text) for text in texts], np.int64)
    name = np.repeat(np.arange(len(texts)), lengths)
    at = np.flatnonzero(name[GRAM_LENGTH - 1 :] == name[: 1 - GRAM_LENGTH])
    pair = codes[at] * len(LETTERS) + codes[at + 1]
    return _Grams(name[at], pair, codes[at + GRAM_LENGTH - 1].astype(np.int32))


def _predicates(grams: _Grams) -> _Predicates:
    size = len(LETTERS)
    distinct = np.unique((grams.name * PAIRS + grams.pair) * size + grams.letter)
    places, counts = np.unique(distinct // size, return_counts=True)
    letters = (distinct % size).astype(np.int32)
    return _Predicates(places // PAIRS, places % PAIRS, counts, letters)


def _keep_predicates(predicates: _Predicates, share: float, random: Random) -> _Predicates:
    """Return a share of the predicates, and of each name the likeliest one in any case."""
    chance = random.random(len(predicates.name))
    firsts = np.flatnonzero(np.diff(predicates.name, prepend=-1))
    likeliest = np.minimum.reduceat(chance, firsts)[predicates.name]
    keep = (chance < share) | (chance == likeliest)
    return replace(
        predicates,
        name=predicates.name[keep],
        pair=predicates.pair[keep],
        counts=predicates.counts[keep],
        letters=predicates.letters[np.repeat(keep, predicates.counts)],
    )


def _misspelt(text: str, random: Random) -> str:
    """Return the text with another letter, any but the filler, in the place of one of them."""
    at = int(random.integers(len(text)))
    others = LETTERS[:-1].replace(text[at], "")
    return text[:at] + others[random.integers(len(others))] + text[at + 1 :]


def _offsets(counts: Indices) -> Indices:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


# Texts from the names of real cities, which stand in for the titles of publications.

TEXT_LENGTH = 64  # letters, about as long as the titles in the BE-Tree paper


def list_city_texts(population: int = MIN_POPULATION) -> list[str]:
    """Return the first 64 letters of a city's name and its other names, where there are so many."""
    texts = (_join_names(city)[:TEXT_LENGTH] for city in read_cities(population))
    return pick_distinct(text for text in texts if len(text) == TEXT_LENGTH)


def _join_names(city: dict[str, Any]) -> str:
    others = (normalise(name) for name in city["alternatenames"] if name.isascii())
    return " ".join(dict.fromkeys((normalise(city["name"]), *others)))
