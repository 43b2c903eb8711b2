"""Rules of many tenants on the readings of their devices, as a platform for sensors has them.

| shape      | a rule                                                                              |
|------------|-------------------------------------------------------------------------------------|
| `either`   | tenant = … AND device = … AND (one range OR another)                                |
| `between`  | tenant = … AND device = … AND temperature BETWEEN …                                 |
| `listed`   | tenant IN (2 to 5) AND status IN (2 to 4), mostly AND model IN (2 to 8), and a range |
| `excluded` | status <> … AND model NOT IN (2 to 8) and a narrow range, mostly of a named tenant   |

A device's number is its own within a tenant only, so many tenants have a device of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.dice import Dice
from headgate.queries import Query
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream

Shape = Literal["either", "between", "listed", "excluded"]

TENANTS, DEVICES, MODELS = 100, 200, 60
STATUSES = "idle running paused charging faulty offline updating unknown".split()
MISSING = 0.03  # of the readings have no humidity
STREAM = Stream(
    "readings",
    (
        Attribute("tenant", STRING),
        Attribute("device", STRING),
        Attribute("model", INT),
        Attribute("status", STRING),
        Attribute("temperature", DOUBLE),
        Attribute("humidity", DOUBLE),
        Attribute("pressure", INT),
    ),
)
MEASURED = {"temperature": (-20.0, 60.0), "humidity": (0.0, 100.0), "pressure": (950, 1050)}


@dataclass(frozen=True, eq=False)
class DeviceRules:
    """Clauses on the stream of readings."""

    clauses: tuple[str, ...]
    stream: Stream = STREAM

    def __len__(self) -> int:
        return len(self.clauses)

    def where_clauses(self) -> Iterator[str]:
        return iter(self.clauses)

    def queries(self) -> list[Query]:
        """Return each clause as a query, with the ids rule0, rule1, …"""
        return bind_queries(self.stream, self.clauses, "rule")


def generate_device_rules(count: int, shape: Shape, *, seed: int) -> DeviceRules:
    """Return rules of a shape.

    Law: the first n clauses of a seed are the same whatever the count.

    >>> generate_device_rules(1, "either", seed=1).clauses[0]
    "tenant = 't51' AND device = 'd190' AND (pressure < 962 OR temperature < -7.3)"
    """
    dice = Dice(seed)
    return DeviceRules(tuple(_SHAPES[shape](dice) for _ in range(count)))


def generate_readings(count: int, *, seed: int) -> pa.Table:
    """Return events with independent values, uniform in every attribute."""
    random = np.random.default_rng(seed)
    columns = {
        "tenant": [f"t{number}" for number in random.integers(0, TENANTS, count).tolist()],
        "device": [f"d{number}" for number in random.integers(0, DEVICES, count).tolist()],
        "model": random.integers(0, MODELS, count),
        "status": np.array(STATUSES)[random.integers(0, len(STATUSES), count)],
        "temperature": np.round(random.uniform(*MEASURED["temperature"], count), 1),
        "humidity": pa.array(
            np.round(random.uniform(*MEASURED["humidity"], count), 1),
            mask=random.random(count) < MISSING,
        ),
        "pressure": random.integers(*MEASURED["pressure"], count),
    }
    arrays = [pa.array(columns[a.name]).cast(a.type.arrow) for a in STREAM]
    return pa.Table.from_arrays(arrays, names=list(STREAM.names))


def _either(dice: Dice) -> str:
    return f"{_device(dice)} AND ({_tail(dice)} OR {_tail(dice)})"


def _between(dice: Dice) -> str:
    return f"{_device(dice)} AND {_range('temperature', 0.2, dice)}"


def _listed(dice: Dice) -> str:
    parts = [
        f"tenant IN ({_draw(lambda: _tenant(dice), dice.whole(2, 5))})",
        f"status IN ({_draw(lambda: _status(dice), dice.whole(2, 4))})",
    ]
    if dice.chance(0.7):
        parts.append(f"model IN ({_draw(lambda: _model(dice), dice.whole(2, 8))})")
    return " AND ".join((*parts, _range(dice.one_of(list(MEASURED)), 0.3, dice)))


def _excluded(dice: Dice) -> str:
    parts = [
        f"status <> {_status(dice)}",
        f"model NOT IN ({_draw(lambda: _model(dice), dice.whole(2, 8))})",
        _range(dice.one_of(list(MEASURED)), 0.05, dice),
    ]
    if dice.chance(0.6):
        parts.insert(0, f"tenant = {_tenant(dice)}")
    return " AND ".join(parts)


_SHAPES: dict[Shape, Callable[[Dice], str]] = {
    "either": _either,
    "between": _between,
    "listed": _listed,
    "excluded": _excluded,
}


def _device(dice: Dice) -> str:
    return f"tenant = {_tenant(dice)} AND device = 'd{dice.whole(0, DEVICES - 1)}'"


def _tenant(dice: Dice) -> str:
    return f"'t{dice.whole(0, TENANTS - 1)}'"


def _status(dice: Dice) -> str:
    return f"'{dice.one_of(STATUSES)}'"


def _model(dice: Dice) -> str:
    return str(dice.whole(0, MODELS - 1))


def _draw(draw: Callable[[], str], count: int) -> str:
    """Return literals for IN; one that is drawn twice stands there once."""
    return ", ".join(dict.fromkeys(draw() for _ in range(count)))


def _tail(dice: Dice) -> str:
    """Return a range that is open at one end, and holds a fifth of the values."""
    name = dice.one_of(list(MEASURED))
    low, high = MEASURED[name]
    share = 0.1 + 0.1 * dice.fraction()
    if dice.chance(0.5):
        return f"{name} < {_number(name, low + share * (high - low))}"
    return f"{name} > {_number(name, high - share * (high - low))}"


def _range(name: str, share: float, dice: Dice) -> str:
    """Return a range of that share of the values, anywhere."""
    low, high = MEASURED[name]
    start = low + (1 - share) * dice.fraction() * (high - low)
    ends = start, start + share * (high - low)
    return f"{name} BETWEEN {_number(name, ends[0])} AND {_number(name, ends[1])}"


def _number(name: str, value: float) -> str:
    return str(round(value)) if name == "pressure" else f"{value:.1f}"
