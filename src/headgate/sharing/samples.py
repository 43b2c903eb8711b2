"""Samples of a stream: drawn from a file of its events, or from statistics of its attributes.

Statistics take attributes for independent of each other, so a sample of real rows is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from string import ascii_lowercase
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate._toml import TomlTable
from headgate.errors import EventError, did_you_mean
from headgate.events.assembly import convert_column, find_violations
from headgate.events.conversion import make_python_rule
from headgate.events.files import read_events
from headgate.schema import Attribute, Boolean, Double, Interval, Stream, String, successor

MAX_SAMPLE_ROWS = 10_000
SAMPLE_SEED = 1
MAX_LISTED_VALUES = 1_000  # of a CHECK, to draw from them directly

Uniform = npt.NDArray[np.float64]  # from 0 to 1, one for each row


def read_sample(
    path: str | PathLike[str],
    stream: Stream,
    max_rows: int = MAX_SAMPLE_ROWS,
    seed: int = SAMPLE_SEED,
) -> pa.Table:
    """Draw a sample of a file of events, each row as likely as any other.

    Parameters
    ----------
    path
        A file of JSON lines, CSV or Parquet. What is not an event of the stream is left out.
    stream
        The stream of these events.
    max_rows
        The most rows to return; of a shorter file all.
    seed
        The same seed draws the same rows.

    Returns
    -------
    pyarrow.Table
        A column for every attribute of the stream.

    Raises
    ------
    EventError
        The file cannot be read, or has no event of the stream.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql")
    >>> trades = queries.schema.stream("trades")
    >>> hg.sharing.read_sample("examples/trades/events.jsonl", trades, max_rows=3).num_rows
    3
    """
    # Every row gets a random key, and the rows with the lowest keys are kept: a uniform sample in
    # one pass, however the file is cut into batches.
    random = np.random.default_rng(seed)
    sample = pa.table({a.name: pa.array([], a.type.arrow) for a in stream})
    keys = np.empty(0)
    dead = ""
    for batch in read_events(path, stream):
        dead = dead or next((letter.reason for letter in batch.dead), "")
        rows = pa.Table.from_batches([batch.table])
        if not rows.num_rows:
            continue
        sample = pa.concat_tables([sample, rows.cast(sample.schema)]) if sample.num_rows else rows
        keys = np.concatenate((keys, random.random(rows.num_rows)))
        if len(keys) > max_rows:
            # Partitioning takes linear time; sorting restores the order of the file.
            chosen = np.sort(np.argpartition(keys, max_rows)[:max_rows])
            sample, keys = sample.take(chosen), keys[chosen]
    if not sample.num_rows:
        why = f"; the first line that was refused: {dead}" if dead else ""
        raise EventError(f"{path}: no event of stream {stream.name} to draw a sample from{why}")
    return sample


def draw_sample(
    stream: Stream, table: TomlTable, row_count: int = MAX_SAMPLE_ROWS, seed: int = SAMPLE_SEED
) -> pa.Table:
    """Draw rows by a table of statistics, the same ones for the same seed."""
    tables = dict(_find_tables(stream, table))
    arrays = []
    for place, attribute in enumerate(stream):
        # Each attribute has a generator of its own, so that the statistics of one do not change
        # what is drawn for another.
        random = np.random.default_rng([seed, place])
        statistics = tables.get(attribute.name, table.get_table(attribute.name))
        array = _draw_values(attribute, statistics, random, row_count)
        share = _read_null_share(attribute, statistics)
        statistics.check_all_used()
        nulls = pa.array(random.random(row_count) < share)
        arrays.append(pc.if_else(nulls, pa.scalar(None, array.type), array))
    return pa.Table.from_arrays(arrays, names=list(stream.names))


def _find_tables(
    stream: Stream, table: TomlTable, prefix: str = ""
) -> Iterator[tuple[str, TomlTable]]:
    """Yield the table of each attribute; a dotted name may be written as nested tables."""
    for key, inner in table.get_tables().items():
        name = prefix + key
        attribute = stream.get(name)
        if attribute is not None:
            yield attribute.name, inner
        elif any(known.lower().startswith(f"{name}.".lower()) for known in stream.names):
            yield from _find_tables(stream, inner, f"{name}.")
        else:
            hint = did_you_mean(name, stream.names)
            raise table.make_error(key, f"no attribute `{name}` in stream {stream.name}", hint)


def _draw_values(
    attribute: Attribute, statistics: TomlTable, random: np.random.Generator, row_count: int
) -> Any:
    if "values" in statistics:
        return _draw_listed(attribute, statistics, random.random(row_count))
    if "letters" in statistics and isinstance(attribute.type, String):
        count = statistics.get_integer("letters", 0)
        texts = random.choice(list(ascii_lowercase), (row_count, count))
        return pa.array(["".join(text) for text in texts], attribute.type.arrow)
    if "min" in statistics or "max" in statistics:
        return _draw_between(attribute, statistics, random.random(row_count))
    return _draw_from_domain(attribute, statistics, random.random(row_count))


def _draw_listed(attribute: Attribute, statistics: TomlTable, chances: Uniform) -> Any:
    """Draw values by their weights; equally often where these are left out."""
    values = statistics.get_values("values")
    if not values:
        raise statistics.make_error("values", "`values` is empty", "give at least one")
    weights = statistics.get_values("weights") if "weights" in statistics else [1] * len(values)
    if len(weights) != len(values):
        hint = f"there are {len(values)} values"
        raise statistics.make_error("weights", f"`weights` has {len(weights)} numbers", hint)
    for number, weight in enumerate(weights):
        if type(weight) not in (int, float) or not (math.isfinite(weight) and weight >= 0):
            hint = "give numbers that are 0 or more"
            raise statistics.make_error(("weights", number), f"`weights` holds {weight!r}", hint)
    if not sum(weights):
        raise statistics.make_error("weights", "all weights are 0", "give one above 0")
    # Inverse of the distribution: value i has the chances between ends i-1 and i, scaled to 1.
    ends = np.cumsum(np.array(weights, np.float64))
    places = np.searchsorted(ends / ends[-1], chances, side="right")
    return _convert_values(attribute, statistics, "values", values).take(places)


def _draw_between(attribute: Attribute, statistics: TomlTable, chances: Uniform) -> Any:
    """Draw everything between `min` and `max` equally often."""
    if isinstance(attribute.type, String | Boolean):
        key = "min" if "min" in statistics else "max"
        hint = "give `values`" + (
            ", or how many `letters` it has" * isinstance(attribute.type, String)
        )
        raise statistics.make_error(key, f"`{key}` has no meaning for a {attribute.type}", hint)
    for key in ("min", "max"):
        if key not in statistics:
            raise statistics.make_missing_error(key)
    low = _convert_values(attribute, statistics, "min", [statistics.get_value("min")])[0].as_py()
    high = _convert_values(attribute, statistics, "max", [statistics.get_value("max")])[0].as_py()
    if isinstance(attribute.type, Double):
        if not low <= high < math.inf or low == -math.inf:
            raise statistics.make_error(
                "min", f"`min` is {low} and `max` {high}", "`min` must be the lower one"
            )
        return pa.array(low + (high - low) * chances, attribute.type.arrow)
    # Everything but DOUBLE is drawn by ordinals, which count the values of a type one by one.
    interval = Interval(attribute.type.ordinal(low), successor(attribute.type.ordinal(high)))
    if interval.is_empty:
        raise statistics.make_error(
            "min", f"`min` is {low} and `max` {high}", "`min` must be the lower one"
        )
    return _draw_ordinals(attribute, interval, chances)


def _draw_from_domain(attribute: Attribute, statistics: TomlTable, chances: Uniform) -> Any:
    """Draw all values of a CHECK equally often."""
    if isinstance(attribute.type, Boolean):
        return pa.array(chances < 0.5)
    # A short list is drawn from by position, one bounded interval by ordinal.
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
    is_text = isinstance(attribute.type, String)
    needed = "how many `letters` it has" if is_text else "`min` and `max`"
    raise statistics.make_error(
        (), f"there are no statistics of `{attribute.name}`", f"give its `values`, or {needed}"
    )


def _draw_ordinals(attribute: Attribute, interval: Interval, chances: Uniform) -> Any:
    low, high = interval.low, interval.high
    assert isinstance(low, int)
    assert isinstance(high, int)
    # Python integers, as ordinals of DECIMAL exceed 64 bits; `min` guards against rounding up.
    ordinals = [
        low + min(int(chance * (high - low)), high - low - 1) for chance in chances.tolist()
    ]
    values = [attribute.type.value(ordinal) for ordinal in ordinals]
    return pa.array(values, attribute.type.arrow)


def _convert_values(
    attribute: Attribute, statistics: TomlTable, key: str, values: list[Any]
) -> Any:
    """Convert values of the file to the attribute's type; one that does not fit is an error."""
    column = convert_column(attribute, make_python_rule(attribute), values)
    wrong = [*column.unfit.items(), *find_violations(column.array, attribute)]
    if wrong:
        row, reason = wrong[0]
        place = (key, row) if isinstance(statistics.get_value(key), list) else (key,)
        raise statistics.make_error(place, reason, f"it is declared {attribute.type}")
    return column.array


def _read_null_share(attribute: Attribute, statistics: TomlTable) -> float:
    share = statistics.get_number("nulls", 0.0)
    if not 0 <= share <= 1:
        raise statistics.make_error(
            "nulls", f"`nulls` is {share}", "give a share of all rows, from 0 to 1"
        )
    if share and not attribute.nullable:
        hint = "leave `nulls` out"
        raise statistics.make_error("nulls", f"`{attribute.name}` is declared NOT NULL", hint)
    return share
