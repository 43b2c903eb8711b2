"""What went over each link: rows and bytes, beside what the plan expected of as many events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.predicate import Column
from headgate.schema import Stream
from headgate.sharing.plan import Delivery, Flow, Origin, Plan
from headgate.sharing.sampled_stream import Estimate, measure_bytes
from headgate.spark.job.sharing.plans import loaded

Moving = Origin | Flow | Delivery
"""What goes over links: a stream to where it begins, flows, and results."""

Key = tuple[str, str, str]
"""Where the plan is, what kind of thing moves, and its name or number."""

NOTHING = Estimate(0.0, 0.0, 0.0)

_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field("batch_id", pa.int64()),
    pa.field("plan", pa.string()),
    pa.field("stream", pa.string()),
    pa.field("start", pa.string()),
    pa.field("end", pa.string()),
    pa.field("flow", pa.int64()),
    pa.field("query_id", pa.string()),
    pa.field("rows", pa.int64()),
    pa.field("bytes", pa.int64()),
    pa.field("source_rows", pa.int64()),
    pa.field("share", pa.float64()),
    pa.field("share_low", pa.float64()),
    pa.field("share_high", pa.float64()),
    pa.field("row_bytes", pa.float64()),
)
SCHEMA = pa.schema(_FIELDS)


@dataclass(frozen=True, slots=True)
class Carried:
    """Rows, and the bytes of their attributes.

    >>> Carried(2, 10) + Carried(1, 5)
    Carried(rows=3, bytes=15)
    """

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Carried) -> Carried:
        return Carried(self.rows + other.rows, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class OnLink:
    """What went over a link, and the bytes that the plan expected, between their ends.

    Nothing is expected where a stream came from another application: how many events it had at its
    source is not known here.
    """

    rows: int = 0
    bytes: int = 0
    expected: Estimate | None = NOTHING

    def __add__(self, other: OnLink) -> OnLink:
        one, two = self.expected, other.expected
        both = None if one is None or two is None else _sum(one, two)
        return OnLink(self.rows + other.rows, self.bytes + other.bytes, both)

    def as_json(self) -> dict[str, Any]:
        expected = None
        if self.expected is not None:
            ends = self.expected.low, self.expected.value, self.expected.high
            expected = dict(zip(("low", "value", "high"), map(round, ends), strict=True))
        return {"rows": self.rows, "bytes": self.bytes, "expected_bytes": expected}


def key_of(path: str, moving: Moving) -> Key:
    if isinstance(moving, Flow):
        return path, "flow", str(moving.number)
    if isinstance(moving, Delivery):
        return path, "delivery", moving.query.id
    return path, "origin", moving.stream.name


def weighed(moving: Moving, rows: pa.Table, stream: Stream) -> Carried:
    """What rows take on the way; an attribute that a query puts out twice goes once."""
    if isinstance(moving, Delivery) and moving.query.outputs:
        columns = [o.expression for o in moving.query.outputs if isinstance(o.expression, Column)]
        places = {stream[column.name].name: at for at, column in enumerate(columns)}
        rows = pa.table([rows.column(at) for at in places.values()], names=list(places))
    return Carried(rows.num_rows, measure_bytes(rows, stream, rows.column_names))


def traffic(batch: int, carried: Mapping[Key, Carried]) -> pa.Table:
    """A row for each thing that moved over a link."""
    rows = []
    for line in _lines(carried):
        moving = line.moving
        start, end = _ends(moving)
        rows.append(
            {
                "batch_id": batch,
                "plan": line.digest,
                "stream": _stream(moving),
                "start": start,
                "end": end,
                "flow": moving.number if isinstance(moving, Flow) else None,
                "query_id": moving.query.id if isinstance(moving, Delivery) else None,
                "rows": line.carried.rows,
                "bytes": line.carried.bytes,
                "source_rows": line.source_rows,
                "share": line.share.value,
                "share_low": line.share.low,
                "share_high": line.share.high,
                "row_bytes": moving.row_bytes,
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def on_links(carried: Mapping[Key, Carried]) -> dict[str, OnLink]:
    """The sum over all that moved over a link, by its name."""
    found: defaultdict[str, OnLink] = defaultdict(OnLink)
    for line in _lines(carried):
        expected = None
        if line.source_rows is not None:
            expected = line.share.scale(line.source_rows * line.moving.row_bytes)
        found[line.link] += OnLink(line.carried.rows, line.carried.bytes, expected)
    return dict(found)


@dataclass(frozen=True, slots=True)
class _Line:
    """One thing that moved, out of how many events of its source, and which share was expected."""

    digest: str
    link: str
    moving: Moving
    carried: Carried
    source_rows: int | None
    share: Estimate


def _lines(carried: Mapping[Key, Carried]) -> Iterator[_Line]:
    """Also for what could have moved, and had no rows; not for results that stay at a node."""
    for path in dict.fromkeys(key[0] for key in carried):
        found = loaded(path)
        plan = found.plan
        for moving in _all(plan):
            own = carried.get(key_of(path, moving))
            if own is not None and moving.link is not None:
                source = carried.get((path, "origin", _stream(moving)))
                yield _Line(
                    found.digest,
                    str(plan.network.links[moving.link]),
                    moving,
                    own,
                    None if source is None else source.rows,
                    _share(moving, plan),
                )


def _all(plan: Plan) -> Iterator[Moving]:
    yield from plan.origins.values()
    yield from plan.flows
    yield from plan.deliveries


def _share(moving: Moving, plan: Plan) -> Estimate:
    """Of the events of its source, as the sample tells; all, of a source that gives none."""
    rate = plan.origins[_stream(moving)].rate
    if isinstance(moving, Origin) or not rate:
        return Estimate(1.0, 1.0, 1.0)
    return moving.rows.scale(1 / rate)


def _stream(moving: Moving) -> str:
    return moving.stream.name if isinstance(moving, Origin) else moving.stream


def _sum(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(one.low + other.low, one.value + other.value, one.high + other.high)


def _ends(moving: Moving) -> tuple[str, str]:
    if isinstance(moving, Origin):
        return moving.peer, moving.entry
    if isinstance(moving, Flow):
        return moving.start, moving.end
    return moving.node, moving.target
