"""Random sets of conjunctions as bitmaps, and the same as the definitions read them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.constructs import TextConstruct
from headgate.matching.asc.order import Sample
from headgate.predicate.normal_form import to_conjunctions
from headgate.schema import INT, Attribute, Stream
from headgate.sql import parse_where

NAMES = "abcdefg"
SMALL = Stream("s", tuple(Attribute(name, INT) for name in NAMES))


@dataclass(frozen=True)
class PlainRegion:
    qrb: int
    cab: int


@dataclass(frozen=True)
class PlainConstruct:
    qub: int
    regions: tuple[PlainRegion, ...]


def random_bitmaps(random: Random, queries: int, attributes: int) -> Bitmaps:
    """Conjunctions of a few conditions; half of them leave again, and others take their slots."""
    bitmaps = Bitmaps()
    for position in range(2 * queries):
        names = random.sample(NAMES[:attributes], random.randint(1, min(3, attributes)))
        where = " AND ".join(random_condition(random, name) for name in names)
        bitmaps.add(position, to_conjunctions(parse_where(where, SMALL)))
        if random.random() < 0.1:
            bitmaps.settle()
    for position in random.sample(range(2 * queries), queries):
        bitmaps.drop(position)
    bitmaps.settle()
    return bitmaps


def random_condition(random: Random, name: str) -> str:
    low, high = sorted(random.choices(range(12), k=2))
    return random.choice(
        [
            f"{name} = {low}",
            f"{name} >= {low}",
            f"{name} < {high}",
            f"{name} BETWEEN {low} AND {high}",
            f"{name} <> {low}",
            f"{name} IN ({low}, {high})",
            f"{name} IS NULL",
        ]
    )


def random_sample(random: Random, bitmaps: Bitmaps, events: int) -> Sample:
    """The rows of random events, some regions more often than others."""
    sample = np.zeros((events, len(bitmaps.constructs)), np.int32)
    for number, construct in enumerate(bitmaps.constructs):
        assert not isinstance(construct, TextConstruct)
        weights = [random.random() ** 2 for _ in construct.rows]
        sample[:, number] = random.choices(construct.rows.tolist(), weights, k=events)
    return sample


def bitmap(words: np.ndarray) -> int:
    """Words as one number, the lowest slot in its lowest bit."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


def plain_constructs(bitmaps: Bitmaps) -> list[PlainConstruct]:
    """The constructs by the definitions' reading, with the same regions."""
    usage, alive = [bitmap(row) for row in bitmaps.usage], bitmap(bitmaps.alive)
    constructs = []
    for number, construct in enumerate(bitmaps.constructs):
        assert not isinstance(construct, TextConstruct)
        regions = []
        for row in construct.rows.tolist():
            qrb = bitmap(bitmaps.bits[row, : bitmaps.words]) & alive
            cab = sum(1 << j for j, qub in enumerate(usage) if j != number and qrb & qub)
            regions.append(PlainRegion(qrb, cab))
        constructs.append(PlainConstruct(usage[number], tuple(regions)))
    return constructs


def plain_events(bitmaps: Bitmaps, sample: Sample) -> list[list[int]]:
    """Events by the numbers of their regions."""
    regions = [
        {row: region for region, row in enumerate(construct.rows.tolist())}
        for construct in bitmaps.constructs
        if not isinstance(construct, TextConstruct)
    ]
    return [[regions[c][row] for c, row in enumerate(event)] for event in sample.tolist()]
