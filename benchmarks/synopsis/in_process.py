"""Tuples a second in one process, without Spark, by how many are pushed at once.

Q3, beside the same by hand: nine counts of each stream, in NumPy, which knows no types, no NULL and
no other query; and beside the obvious version, which takes rows one by one. Everybody begins with
Arrow tables of INT and gives the new joined rows of each push.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.claims import AtLeast
from benchmarks.harness.experiment import Answer, Contestant, Experiment, Round, Unit
from benchmarks.synopsis.cases import CASES

RUN, BY_HAND, ROW_BY_ROW = "Run.push", "NumPy, by hand", "row by row"
TUPLES = 4_000_000  # in a turn
FEWER = 20_000  # row by row
LOW, HIGH = 11, 19
VALUES = 40  # of each attribute
GOAL = 5

Push = Callable[[str, pa.Table], dict[int, int]]  # gives how often each A is put out anew


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Yield S and T in turn, so many tuples at once."""
    rows = max(1, round(size * scale))
    rng = np.random.default_rng(seed)
    tables = {
        stream: pa.table(
            {name: pa.array(rng.integers(0, VALUES, rows), pa.int32()) for name in names}
        )
        for stream, names in {"S": "ABC", "T": "DE"}.items()
    }
    contestants = [
        _contestant(name, make, tables, max(2, round(tuples * scale)))
        for name, make, tuples in (
            (RUN, _run, TUPLES),
            (BY_HAND, _by_hand, TUPLES),
            (ROW_BY_ROW, _row_by_row, FEWER),
        )
    ]
    yield Round(rows, tuple(contestants))


def _contestant(
    name: str, make: Callable[[], Push], tables: dict[str, pa.Table], tuples: int
) -> Contestant:
    """Return a contestant of about so many tuples a turn; the first ones are its answer."""
    push = make()
    # Two streams, each pushed `times` times, make about as many tuples as the turn should have.
    rows = min(tables["S"].num_rows, tuples // 2)
    pushed = {stream: table.slice(0, rows) for stream, table in tables.items()}
    times = max(1, tuples // (2 * rows))

    def run() -> None:
        for _ in range(times):
            for stream, table in pushed.items():
                push(stream, table)

    def answer() -> Answer:
        fresh = make()
        few = {stream: table.slice(0, 100) for stream, table in tables.items()}
        return tuple(fresh(stream, few[stream]) for stream in "STST")

    return Contestant(name, 2 * rows * times, answer, run, note=f"{2 * rows * times:,} tuples")


def _run() -> Push:
    from headgate.stateful.runtime.running_query import RunningQuery

    run = RunningQuery(CASES[0].query())

    def push(stream: str, table: pa.Table) -> dict[int, int]:
        results = run.push(stream, table)
        return dict(sorted(zip(*(c.to_pylist() for c in results.columns), strict=True)))

    return push


def _by_hand() -> Push:
    counts = {"S": np.zeros(HIGH + 1, np.int64), "T": np.zeros(HIGH + 1, np.int64)}

    def push(stream: str, table: pa.Table) -> dict[int, int]:
        values = table.column(0).to_numpy()
        # Only A and D from 11 to 19 can meet; new rows meet all earlier ones of the other stream.
        joined = values[(values >= LOW) & (values <= HIGH)]
        new = np.bincount(joined, minlength=HIGH + 1)
        results = new * counts["T" if stream == "S" else "S"]
        counts[stream] += new
        return {int(value): int(results[value]) for value in np.flatnonzero(results)}

    return push


def _row_by_row() -> Push:
    from benchmarks.synopsis.reference import ReferenceQuery

    run = ReferenceQuery(CASES[0].query())
    before: dict[int, int] = {}

    def push(stream: str, table: pa.Table) -> dict[int, int]:
        nonlocal before
        for row in table.to_pylist():
            run.push(stream, row)
        answer: Any = run.answer()
        now: dict[int, int] = {key[0]: times for key, times in answer.items()}
        # The reference answers with all rows so far; new is what exceeds the last answer.
        new = {a: now[a] - before.get(a, 0) for a in sorted(now) if now[a] != before.get(a, 0)}
        before = now
        return new

    return push


IN_PROCESS = Experiment(
    name="synopsis-process",
    title="Q3 in one process, by the tuples of a push",
    sizes=(1_000, 10_000, 100_000, 1_000_000),
    size_label="tuples of a push",
    unit=Unit("M tuples per second", "rate", 1e-6),
    baseline=BY_HAND,
    prepare=_prepare,
    repeats=5,
    claims=(AtLeast("five million tuples a second", RUN, GOAL),),
)
