"""Rules of many tenants on the readings of their devices, as a platform for sensors has them.

| shape      | a rule                                                                            |
|------------|-----------------------------------------------------------------------------------|
| `either`   | tenant = … AND device = … AND (one range OR another)                              |
| `between`  | tenant = … AND device = … AND temperature BETWEEN …                               |
| `listed`   | tenant IN (2 to 5) AND status IN (2 to 4), mostly model IN (2 to 8), and a range  |
| `excluded` | status <> … AND model NOT IN (2 to 8), a narrow range, mostly also tenant = …     |

A device's number is its own within a tenant only, so many tenants have a device of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.dice import Dice
from headgate.queries import Query
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream

Shape = Literal["either", "between", "listed", "excluded"]

MODELS = 60
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
NAMES = tuple(MEASURED)


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many tenants there are, and how many devices each of them has.

    Ranges have ends with so many `decimals`: with few, many rules have the same end.
    """

    tenants: int = 100
    devices: int = 200
    decimals: int = 1


FLEET = Fleet()


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


def generate_device_rules(
    count: int, shape: Shape, fleet: Fleet = FLEET, *, seed: int
) -> DeviceRules:
    """Return rules of a shape.

    Law: the first n clauses of a seed are the same whatever the count.

    >>> generate_device_rules(1, "either", seed=1).clauses[0]
    "tenant = 't51' AND device = 'd190' AND (temperature < -4.4 OR humidity < 18.3)"
    """
    write = _SHAPES[shape]
    writer = _Writer(fleet, Dice(seed))
    return DeviceRules(tuple(write(writer) for _ in range(count)))


def generate_readings(count: int, fleet: Fleet = FLEET, *, seed: int) -> pa.Table:
    """Return events with independent values, uniform in every attribute."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "tenant": [f"t{number}" for number in random.integers(0, fleet.tenants, count).tolist()],
        "device": [f"d{number}" for number in random.integers(0, fleet.devices, count).tolist()],
        "model": random.integers(0, MODELS, count),
        "status": np.array(STATUSES)[random.integers(0, len(STATUSES), count)],
        "temperature": _measure("temperature", count, fleet, random),
        "humidity": pa.array(
            _measure("humidity", count, fleet, random), mask=random.random(count) < MISSING
        ),
        "pressure": random.integers(950, 1050, count),
    }
    arrays = [pa.array(columns[a.name]).cast(a.type.arrow) for a in STREAM]
    return pa.Table.from_arrays(arrays, names=list(STREAM.names))


def _measure(
    name: str, count: int, fleet: Fleet, random: np.random.Generator
) -> npt.NDArray[np.float64]:
    return np.round(random.uniform(*MEASURED[name], count), fleet.decimals)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the parts of a rule."""

    fleet: Fleet
    dice: Dice

    def tenant(self) -> str:
        return f"'t{self.dice.whole(0, self.fleet.tenants - 1)}'"

    def device(self) -> str:
        return f"'d{self.dice.whole(0, self.fleet.devices - 1)}'"

    def status(self) -> str:
        return f"'{self.dice.one_of(STATUSES)}'"

    def model(self) -> str:
        return str(self.dice.whole(0, MODELS - 1))

    def listed(self, draw: Callable[[], str], fewest: int, most: int) -> str:
        """Return literals for IN; one that is drawn twice stands there once."""
        count = self.dice.whole(fewest, most)
        return ", ".join(dict.fromkeys(draw() for _ in range(count)))

    def tail(self) -> str:
        """Return a range that is open at one end, and holds up to a fifth of the values."""
        name = self.dice.one_of(NAMES)
        low, high = MEASURED[name]
        share = 0.1 + 0.1 * self.dice.fraction()
        if self.dice.chance(0.5):
            return f"{name} < {self._number(name, low + share * (high - low))}"
        return f"{name} > {self._number(name, high - share * (high - low))}"

    def range(self, share: float, name: str = "") -> str:
        """Return a range of that share of the values of an attribute, anywhere."""
        name = name or self.dice.one_of(NAMES)
        low, high = MEASURED[name]
        start = low + (1 - share) * self.dice.fraction() * (high - low)
        ends = start, start + share * (high - low)
        return f"{name} BETWEEN {self._number(name, ends[0])} AND {self._number(name, ends[1])}"

    def _number(self, name: str, value: float) -> str:
        return str(round(value)) if name == "pressure" else f"{value:.{self.fleet.decimals}f}"


def _either(write: _Writer) -> str:
    device = f"tenant = {write.tenant()} AND device = {write.device()}"
    return f"{device} AND ({write.tail()} OR {write.tail()})"


def _between(write: _Writer) -> str:
    device = f"tenant = {write.tenant()} AND device = {write.device()}"
    return f"{device} AND {write.range(0.2, 'temperature')}"


def _listed(write: _Writer) -> str:
    parts = [
        f"tenant IN ({write.listed(write.tenant, 2, 5)})",
        f"status IN ({write.listed(write.status, 2, 4)})",
    ]
    if write.dice.chance(0.7):
        parts.append(f"model IN ({write.listed(write.model, 2, 8)})")
    return " AND ".join((*parts, write.range(0.3)))


def _excluded(write: _Writer) -> str:
    parts = [
        f"status <> {write.status()}",
        f"model NOT IN ({write.listed(write.model, 2, 8)})",
        write.range(0.05),
    ]
    if write.dice.chance(0.6):
        parts.insert(0, f"tenant = {write.tenant()}")
    return " AND ".join(parts)


_SHAPES: dict[Shape, Callable[[_Writer], str]] = {
    "either": _either,
    "between": _between,
    "listed": _listed,
    "excluded": _excluded,
}
