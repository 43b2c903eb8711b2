"""Makes `data/` beside this file: a year of real flights as events, and the generated queries.

    python examples/flights/prepare.py [--flights N]

The events are JSON lines, two files for each month, so that a batch of one keeps two cores busy.
The generated queries and those of `queries.sql` are 10,000 together. Events that are there already
stay. Asked for another number of flights than before, this first removes `data/` with the output in
it, which belongs to the other flights.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.progress import track

import headgate as hg
from benchmarks.workloads import flight_lines, flight_queries, flights

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
FLIGHTS = 336_776
QUERIES = 10_000
SEED = 2013


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the data of the flights example.")
    parser.add_argument("--flights", type=_some, default=FLIGHTS, help="how many; default: all")
    count = min(parser.parse_args().flights, FLIGHTS)
    print(prepare_events(DATA, count))
    print(prepare_queries(DATA / "queries" / "generated.jsonl"))


def _some(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("give at least 1")
    return count


def prepare_events(data: Path, count: int) -> str:
    """A file for each half of a month, put in place whole and in order; says what was done."""
    done = data / "events.json"  # written last: it says that all of them are there
    what = json.dumps({"flights": count})
    if done.exists() and done.read_text() == what:
        return f"{count:,} flights are in {_shown(data / 'events')} already"
    shutil.rmtree(data, ignore_errors=True)
    table = flights(count)
    halves = [(month, half) for month in range(1, 13) for half in ("a", "b")]
    shown = sys.stdout.isatty()
    for month, half in track(halves, "writing flights", transient=True, disable=not shown):
        lines = flight_lines(half_month(table, month, half))
        write(data / "events" / f"2013-{month:02}{half}.jsonl", lines)
    done.write_text(what)
    return f"{count:,} flights written to {_shown(data / 'events')}, two files for each month"


def half_month(table: pa.Table, month: int, half: str) -> pa.Table:
    """The flights of a month up to its 15th, or after it."""
    day = pc.field("day")
    return table.filter((pc.field("month") == month) & (day <= 15 if half == "a" else day > 15))


def prepare_queries(file: Path) -> str:
    """As many queries as are missing from 10,000; says what was done."""
    readable = len(hg.read_queries(HERE / "schema.sql", HERE / "queries.sql", strict=True))
    rows = (
        {"id": id, "stream": "flights", "where": where}
        for id, where in flight_queries(QUERIES - readable, seed=SEED)
    )
    write(file, map(json.dumps, rows))
    return f"{QUERIES - readable:,} queries in {_shown(file)}, and {readable} in queries.sql"


def write(file: Path, lines: Iterable[str]) -> None:
    """The file appears once it is whole, so that nobody reads half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.replace(file)


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    main()
