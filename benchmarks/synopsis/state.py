"""What is stored after ever more micro-batches, by us and by Spark's own join.

Ours is read back from Spark's state store. Spark's join says itself how many bytes and rows it has,
with the store that Spark has by default. Sizes do not depend on time, so several queries run at
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

from benchmarks.harness.claims import Flat, Linear
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Look, Round, Unit
from benchmarks.synopsis.cases import CASES, Case
from benchmarks.synopsis.sides import OURS, SIDES, THEIRS, Paced, differences, session

BATCHES = (10, 30, 100, 300, 1_000)
ROWS = 10  # of each stream in a batch
AT_ONCE = 4
BYTES = Unit("bytes of state", "cost", 1.0, counted=True)


@dataclass(frozen=True, slots=True)
class State:
    """Bytes, and what they are: our values, or Spark's rows."""

    bytes: int
    things: int


Trace = Mapping[int, State]  # by the number of batches


def marks(scale: float) -> tuple[int, ...]:
    """Return after how many batches to look; at a small scale all differ."""
    return tuple(max(place, round(size * scale)) for place, size in enumerate(BATCHES, 1))


@lru_cache(maxsize=1)
def traces(scale: float, seed: int) -> Mapping[tuple[str, str], Trace]:
    """Return all queries on both sides."""
    with session() as spark, ThreadPoolExecutor(AT_ONCE) as pool:
        runs = list(product(CASES, SIDES))
        traced = pool.map(lambda run: trace(spark, run[0], run[1], marks(scale), seed), runs)
        return {(case.name, side): each for (case, side), each in zip(runs, traced, strict=True)}


def trace(spark: Any, case: Case, side: str, at: tuple[int, ...], seed: int) -> Trace:
    traced = {}
    with Paced(SIDES[side](spark, case, ROWS, seed)) as live:
        for batches in at:
            live.advance(batches - live.batches)
            traced[batches] = _ours(spark, case, live) if side == OURS else _theirs(live)
    return traced


def _ours(spark: Any, case: Case, live: Paced) -> State:
    """Return the parts of the state as the store has them, and what a run makes of these."""
    from headgate.stateful.runtime.running_query import RunningQuery

    reader = spark.read.format("statestore").option("stateVarName", "parts")
    stored = reader.option("batchId", live.batches - 1).load(str(live.checkpoint))
    # The state is stored in numbered parts, which are joined in their order.
    parts = {row.user_map_key.number: row.user_map_value.content for row in stored.collect()}
    state = b"".join(bytes(parts[number]) for number in sorted(parts))
    run = RunningQuery(case.query())
    run.restore(state)
    return State(len(state), run.stored.values)


def _theirs(live: Paced) -> State:
    operators = live.operators
    return State(
        sum(each["memoryUsedBytes"] for each in operators),
        sum(each["numRowsTotal"] for each in operators),
    )


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    batches = marks(scale)[BATCHES.index(size)]
    traced = traces(scale, seed)
    with session() as spark:
        contestants = tuple(
            Contestant(
                line(case, side),
                1,
                answer=partial(_answer, spark, case, side, seed, check=size == BATCHES[0]),
                run=partial(_bytes, traced[case.name, side][batches]),
                note=_note(traced[case.name, side][batches], side),
            )
            for case, side in product(CASES, SIDES)
        )
        yield Round(batches, contestants, partial(_facts, traced, size))


def line(case: Case, side: str) -> str:
    return f"{case.name}: {side}"


def _answer(spark: Any, case: Case, side: str, seed: int, *, check: bool) -> tuple[object, ...]:
    """Return whether both sides agree, once, as that takes some batches of its own."""
    return differences(spark, case, side, seed) if check else (0, 0)


def _bytes(state: State) -> int:
    return state.bytes


def _note(state: State, side: str) -> str:
    return f"{state.things:,} {'values' if side == OURS else 'rows'}"


def _facts(traced: Mapping[tuple[str, str], Trace], size: int) -> Mapping[str, Fact]:
    """Return what was stored in values and rows, from the first look to the last."""
    if size != BATCHES[-1]:
        return {}
    facts: dict[str, Fact] = {"events in a batch": 2 * ROWS}
    for case in CASES:
        values, rows = (
            " → ".join(f"{state.things:,}" for state in traced[case.name, side].values())
            for side in SIDES
        )
        facts[f"{case.name}, stored"] = f"values {values}; rows of {THEIRS} {rows}"
    return facts


STATE = Experiment(
    name="synopsis-state",
    title="State of bounded queries on Spark, by micro-batches",
    sizes=BATCHES,
    size_label="micro-batches",
    unit=BYTES,
    baseline="",
    prepare=_prepare,
    repeats=1,
    claims=(
        *(Flat(f"{c.name}, {OURS}", line(c, OURS)) for c in CASES),
        *(Linear(f"{c.name}, {THEIRS}", line(c, THEIRS)) for c in CASES),
    ),
    look=Look(panels=True),
)
