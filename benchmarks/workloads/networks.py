"""Random networks of peers with a source and queries that overlap by so much, for sharing streams.

The network: super-peers form a small world: a ring, in which each is also linked with the next but
one, or with any other instead, one time in five ("Collective dynamics of small-world networks", but
for the ring itself, which stays). Each has one thin peer. Every link costs 1 a byte and takes any
number of bytes. One more thin peer, at the first super-peer, delivers
the stream `readings`: six integers, uniform and independent, a DOUBLE and a text.

The queries: there are one or more interests, each of them a place: two of the integers and a value
of each. A query follows one of them. Its condition is a box around that place, `… BETWEEN … AND …`
on both integers; each side is a tenth of the domain, times a factor between 1/√2 and √2, so that a
query wants 1 % of all rows on average. Its middle is off the place by up to a distance in each
direction, which is what makes the overlap. It puts out all columns, or all numbers, or what it
filters by and the DOUBLE. Its target is any thin peer. All choices are uniform, but for the factor,
whose logarithm is.

The `overlap` is the share of a query's rows that another query of the same interest wants, too, on
average over all pairs of them; with one interest these are all queries. Sizes differ, so that it is
0.81 at most; 0.02 is nearly by chance. Queries of different interests have hardly a row in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.errors import UsageError
from headgate.predicate import Column, Predicate
from headgate.queries import Output, Query, Source
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream
from headgate.sharing.network import Link, Network, Node
from headgate.sql import WhereReader

DOMAIN = 10_000  # values of an integer
INTEGERS = 6
SIDE = 0.1  # of the domain
MIN_OVERLAP, MAX_OVERLAP = 0.02, 0.81  # overlap
SOURCE = "source"
REWIRED = 0.2

Random = np.random.Generator

READINGS = Stream(
    "readings",
    (
        *(Attribute(f"x{i}", INT) for i in range(INTEGERS)),
        Attribute("value", DOUBLE),
        Attribute("label", STRING),
    ),
)


@dataclass(frozen=True, slots=True)
class NetworkedQueries:
    """A network whose peer `source` delivers READINGS, a sample of it, and each query's target."""

    network: Network
    sample: pa.Table
    queries: tuple[tuple[Query, str], ...]


def generate_networked_queries(
    nodes: int,
    queries: int,
    *,
    overlap: float = 0.5,
    interests: int = 1,
    rows: int = 4_096,
    seed: int,
) -> NetworkedQueries:
    """Return so many super-peers, and queries at their thin peers.

    >>> found = generate_networked_queries(50, 500, seed=1)
    >>> len(found.network.super_peers), len(found.queries)
    (50, 500)
    """
    if not MIN_OVERLAP <= overlap <= MAX_OVERLAP:
        raise UsageError(f"an overlap of {overlap}; from {MIN_OVERLAP} to {MAX_OVERLAP}")
    random = np.random.default_rng(seed)
    network = random_network(nodes, random)
    sample = readings(rows, random)
    wheres = _boxes(interests, queries, distance(overlap), random)
    targets = random.integers(0, nodes, queries)
    views = random.integers(0, 3, queries)
    read = WhereReader(READINGS).read
    made = (
        (_query(f"q{i}", read(text), _view(view, columns)), f"P{target}")
        for i, ((text, columns), target, view) in enumerate(
            zip(wheres, targets.tolist(), views.tolist(), strict=True)
        )
    )
    return NetworkedQueries(network, sample, tuple(made))


def random_network(nodes: int, random: Random) -> Network:
    """Return super-peers S0, S1, … with thin peers P0, P1, …, and `source` at S0."""
    links = [
        Link((f"S{first}", f"S{second}")) for first, second in sorted(_small_world(nodes, random))
    ]
    thin = [Link((f"P{i}", f"S{i}")) for i in range(nodes)]
    names = [*(Node(f"S{i}") for i in range(nodes)), *(Node(f"P{i}", True) for i in range(nodes))]
    return Network.of([*names, Node(SOURCE, True)], [*links, *thin, Link((SOURCE, "S0"))])


def _small_world(nodes: int, random: Random) -> set[tuple[int, int]]:
    ring = {(i, i + 1) for i in range(nodes - 1)} | ({(0, nodes - 1)} if nodes > 2 else set())
    links = set(ring)
    for first in range(nodes):
        anywhere = random.random() < REWIRED
        second = int(random.integers(nodes)) if anywhere else (first + 2) % nodes
        if first != second:
            links.add((min(first, second), max(first, second)))
    return links


def readings(rows: int, random: Random) -> pa.Table:
    """Return rows of the stream."""
    columns: dict[str, Any] = {
        f"x{i}": random.integers(0, DOMAIN, rows).astype(np.int32) for i in range(INTEGERS)
    }
    labels = [f"label {number:010}" for number in random.integers(0, 1_000_000, rows)]
    return pa.table(columns | {"value": random.random(rows), "label": labels})


@cache
def distance(overlap: float) -> float:
    """Return how far off its interest a query's middle may be, in sides, for such an overlap.

    By bisection, over pairs of queries that are drawn once.

    >>> round(distance(0.5), 2)
    0.43
    """
    random = np.random.default_rng(0)
    off, size = random.uniform(-1, 1, (2, 2, 100_000)), _factors((2, 2, 100_000), random)
    near, far = 0.0, 1 / SIDE
    for _ in range(40):
        middle = (near + far) / 2
        low, high = off * middle - size / 2, off * middle + size / 2
        common = np.maximum(0, np.minimum(*high) - np.maximum(*low)) / size[0]
        near, far = (middle, far) if common.prod(axis=0).mean() > overlap else (near, middle)
    return near


def _factors(shape: tuple[int, ...], random: Random) -> npt.NDArray[np.float64]:
    return np.asarray(2 ** random.uniform(-0.5, 0.5, shape))


def _boxes(
    interests: int, queries: int, away: float, random: Random
) -> list[tuple[str, tuple[str, str]]]:
    """Return conditions, each with the two attributes that it is about."""
    about = np.array([random.choice(INTEGERS, 2, replace=False) for _ in range(interests)])
    reach = min(0.5, SIDE * (away + 2**0.5 / 2))
    places = random.uniform(reach, 1 - reach, (interests, 2))
    interest = random.integers(0, interests, queries)
    middles = places[interest] + SIDE * away * random.uniform(-1, 1, (queries, 2))
    sides = SIDE * _factors((queries, 2), random)
    low = np.rint(DOMAIN * (middles - sides / 2)).astype(np.int64)
    high = np.rint(DOMAIN * (middles + sides / 2)).astype(np.int64) - 1
    conditions = []
    for columns, least, most in zip(
        about[interest].tolist(), low.tolist(), high.tolist(), strict=True
    ):
        names = f"x{columns[0]}", f"x{columns[1]}"
        parts = zip(names, least, most, strict=True)
        conditions.append((" AND ".join(f"{n} BETWEEN {a} AND {b}" for n, a, b in parts), names))
    return conditions


def _view(number: int, filtered: tuple[str, str]) -> tuple[str, ...]:
    """Return what a query puts out; nothing means all."""
    if number == 0:
        return ()
    return READINGS.names[:-1] if number == 1 else (*sorted(filtered), "value")


def _query(name: str, where: Predicate, outputs: tuple[str, ...]) -> Query:
    columns = [Output(n, Column(n, READINGS[n].type)) for n in outputs]
    return Query(name, (Source(READINGS, "readings"),), where, tuple(columns))
