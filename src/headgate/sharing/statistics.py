"""A sample of a stream of which only statistics are known: each attribute is drawn by itself.

That attributes are independent is the weakest thing about it: a sample of real rows is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import did_you_mean
from headgate.events.assemble import fill
from headgate.events.check import violations
from headgate.events.convert import python_rule
from headgate.schema import Attribute, Boolean, Double, Interval, Stream, String, successor
from headgate.sharing.sample_file import MAX_SAMPLE_ROWS, SAMPLE_SEED
from headgate.toml_file import Table

MAX_LISTED_VALUES = 1_000  # values of a CHECK that are listed

Uniform = npt.NDArray[np.float64]


def draw_sample(
    stream: Stream, table: Table, row_count: int = MAX_SAMPLE_ROWS, seed: int = SAMPLE_SEED
) -> pa.Table:
    """So many rows by a table of statistics, the same ones whenever it is asked."""
    given = dict(_find_tables(stream, table))
    arrays = []
    for place, attribute in enumerate(stream):
        random = np.random.default_rng([seed, place])
        known = given.get(attribute.name, table.table(attribute.name))
        array = _draw_values(attribute, known, random, row_count)
        share = _read_null_share(attribute, known)
        known.end()
        nulls = pa.array(random.random(row_count) < share)
        arrays.append(pc.if_else(nulls, pa.scalar(None, array.type), array))
    return pa.Table.from_arrays(arrays, names=list(stream.names))


def _find_tables(stream: Stream, table: Table, prefix: str = "") -> Iterator[tuple[str, Table]]:
    """The tables of attributes; a dotted name may be written as a table inside a table."""
    for key, inner in table.tables().items():
        name = prefix + key
        attribute = stream.get(name)
        if attribute is not None:
            yield attribute.name, inner
        elif any(known.lower().startswith(f"{name}.".lower()) for known in stream.names):
            yield from _find_tables(stream, inner, f"{name}.")
        else:
            hint = did_you_mean(name, stream.names)
            raise table.error(key, f"no attribute `{name}` in stream {stream.name}", hint)


def _draw_values(
    attribute: Attribute, known: Table, random: np.random.Generator, row_count: int
) -> Any:
    if "values" in known:
        return _draw_listed(attribute, known, random.random(row_count))
    if "letters" in known and isinstance(attribute.type, String):
        count = known.whole("letters", 0)
        texts = random.choice(list(ascii_lowercase), (row_count, count))
        return pa.array(["".join(text) for text in texts], attribute.type.arrow)
    if "min" in known or "max" in known:
        return _draw_between(attribute, known, random.random(row_count))
    return _draw_from_domain(attribute, known, random.random(row_count))


def _draw_listed(attribute: Attribute, known: Table, chances: Uniform) -> Any:
    """Values by their weights; equally often where these are left out."""
    values = known.values("values")
    if not values:
        raise known.error("values", "`values` is empty", "give at least one")
    weights = known.values("weights") if "weights" in known else [1] * len(values)
    if len(weights) != len(values):
        hint = f"there are {len(values)} values"
        raise known.error("weights", f"`weights` has {len(weights)} numbers", hint)
    for number, weight in enumerate(weights):
        if type(weight) not in (int, float) or not (math.isfinite(weight) and weight >= 0):
            hint = "give numbers from 0 on"
            raise known.error(("weights", number), f"`weights` holds {weight!r}", hint)
    if not sum(weights):
        raise known.error("weights", "all weights are 0", "give one above 0")
    ends = np.cumsum(np.array(weights, np.float64))
    places = np.searchsorted(ends / ends[-1], chances, side="right")
    return _convert_values(attribute, known, "values", values).take(places)


def _draw_between(attribute: Attribute, known: Table, chances: Uniform) -> Any:
    """Everything between two values equally often."""
    if isinstance(attribute.type, String | Boolean):
        key = "min" if "min" in known else "max"
        hint = "give `values`" + (
            ", or how many `letters` it has" * isinstance(attribute.type, String)
        )
        raise known.error(key, f"`{key}` has no meaning for a {attribute.type}", hint)
    for key in ("min", "max"):
        if key not in known:
            raise known.lacks(key)
    low = _convert_values(attribute, known, "min", [known.value("min")])[0].as_py()
    high = _convert_values(attribute, known, "max", [known.value("max")])[0].as_py()
    if isinstance(attribute.type, Double):
        if not low <= high < math.inf or low == -math.inf:
            raise known.error("min", f"`min` is {low} and `max` {high}", "the lower one is `min`")
        return pa.array(low + (high - low) * chances, attribute.type.arrow)
    interval = Interval(attribute.type.ordinal(low), successor(attribute.type.ordinal(high)))
    if interval.is_empty:
        raise known.error("min", f"`min` is {low} and `max` {high}", "the lower one is `min`")
    return _draw_ordinals(attribute, interval, chances)


def _draw_from_domain(attribute: Attribute, known: Table, chances: Uniform) -> Any:
    """All values of a CHECK equally often."""
    if isinstance(attribute.type, Boolean):
        return pa.array(chances < 0.5)
    listed = attribute.domain.finite_ordinals(MAX_LISTED_VALUES)
    if listed:
        values = [attribute.type.value(ordinal) for ordinal in listed]
        places = (chances * len(values)).astype(np.int64)
        return pa.array(values, attribute.type.arrow).take(places)
    whole = attribute.domain.only_interval
    if (
        whole is not None
        and not whole.infinite_ends
        and not isinstance(attribute.type, Double | String)
    ):
        return _draw_ordinals(attribute, whole, chances)
    what = "how many `letters` it has" if isinstance(attribute.type, String) else "`min` and `max`"
    raise known.error((), f"nothing is said of `{attribute.name}`", f"give its `values`, or {what}")


def _draw_ordinals(attribute: Attribute, interval: Interval, chances: Uniform) -> Any:
    low, high = interval.low, interval.high
    assert isinstance(low, int)
    assert isinstance(high, int)
    ordinals = [
        low + min(int(chance * (high - low)), high - low - 1) for chance in chances.tolist()
    ]
    values = [attribute.type.value(ordinal) for ordinal in ordinals]
    return pa.array(values, attribute.type.arrow)


def _convert_values(attribute: Attribute, known: Table, key: str, values: list[Any]) -> Any:
    """Values of the file as those of the attribute; one that cannot be is an error."""
    column = fill(attribute, python_rule(attribute), values)
    wrong = [*column.unfit.items(), *violations(column.array, attribute)]
    if wrong:
        row, reason = wrong[0]
        place = (key, row) if isinstance(known.value(key), list) else (key,)
        raise known.error(place, reason, f"it is declared {attribute.type}")
    return column.array


def _read_null_share(attribute: Attribute, known: Table) -> float:
    share = known.number("nulls", 0.0)
    if not 0 <= share <= 1:
        raise known.error("nulls", f"`nulls` is {share}", "a share of all rows is from 0 to 1")
    if share and not attribute.nullable:
        hint = "leave `nulls` out"
        raise known.error("nulls", f"`{attribute.name}` is declared NOT NULL", hint)
    return share
