"""What the ASC paper's experiments evaluate: queries of Table 1 on D1, D2 and real data.

At scale 1 the synthetic data sets have 500,000 tuples, as in the paper. Its real data set, a
census of a million rows, is not used, because Q2 has 15 p-attributes and the census 10 attributes;
here are 25,192 network connections (NSL-KDD), given four times over, and the 336,776 flights of a
year, in their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.harness.experiment import MissingData
from benchmarks.workloads import (
    LARGE_SELECTIONS,
    SELECTION_SETS,
    RealSelections,
    SelectionSpec,
    draw_skewed_tuples,
    draw_uniform_tuples,
    generate_selections,
    select_connections,
    select_flights,
)
from headgate.queries import Query
from headgate.schema import Stream

TUPLES = 500_000
LARGE_TUPLES = 100_000
MIN_TUPLES = 2_000  # tuples, at any scale
TIMES_OVER = 4  # that the connections are given
VARIABLE = "HEADGATE_NSL_KDD"

Draw = Callable[[int, int], pa.Table]  # from a number of tuples and a seed


@dataclass(frozen=True, eq=False)
class Selections:
    """Queries, and the events that they are evaluated for."""

    stream: Stream
    queries: list[Query]
    events: pa.Table


Make = Callable[[float, int], Selections]  # from a scale and a seed


def d1(count: int, seed: int) -> pa.Table:
    return draw_uniform_tuples(count, seed=seed + 1)


def d2(count: int, seed: int) -> pa.Table:
    return draw_skewed_tuples(count, seed=seed + 1)


def make_skewed_draw(places: int) -> Draw:
    """Return a draw like D2, with values that gather elsewhere."""

    def draw(count: int, seed: int) -> pa.Table:
        return draw_skewed_tuples(count, places=places, seed=seed + 1)

    return draw


def scale_count(number: int, scale: float) -> int:
    return max(MIN_TUPLES, round(number * scale))


def synthetic(spec: SelectionSpec, draw: Draw, tuples: int = TUPLES) -> Make:
    def make(scale: float, seed: int) -> Selections:
        queries = generate_selections(spec, seed=seed)
        return Selections(queries.stream, queries.queries(), draw(scale_count(tuples, scale), seed))

    return make


def large(draw: Draw) -> Make:
    """Return a maker of 5,000 queries on 20 attributes."""

    def make(scale: float, seed: int) -> Selections:
        return synthetic(LARGE_SELECTIONS, draw, LARGE_TUPLES)(scale, seed)

    return make


def connections(scale: float, seed: int) -> Selections:
    real = select_connections(nsl_kdd_directory(), seed=seed)
    return _real(real, pa.concat_tables([real.table] * TIMES_OVER), scale)


def flights_of_a_year(scale: float, seed: int) -> Selections:
    real = select_flights(seed=seed)
    return _real(real, real.table, scale)


def _real(real: RealSelections, rows: pa.Table, scale: float) -> Selections:
    some = rows.slice(0, scale_count(rows.num_rows, min(1.0, scale)))
    return Selections(real.stream, real.queries, some.combine_chunks())


def nsl_kdd_directory() -> Path:
    """Return where the connections are, as the environment says."""
    directory = os.environ.get(VARIABLE)
    if directory is None:
        raise MissingData(
            f"the connections of NSL-KDD are not part of Headgate; set {VARIABLE} to a directory "
            "with its fields.csv and train_20_percent.csv"
        )
    return Path(directory)


Q1_ON_D1 = synthetic(SELECTION_SETS["Q1"], d1)
Q1_ON_D2 = synthetic(SELECTION_SETS["Q1"], d2)
