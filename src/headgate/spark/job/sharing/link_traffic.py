"""The traffic on each link: rows and bytes, and what the plan expected of as many events."""

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
from headgate.spark.job.progress import LinkTraffic
from headgate.spark.job.sharing.exchange import load_plan

Moving = Origin | Flow | Delivery
"""What moves over links: a stream to its entry, flows, and results."""

TrafficKey = tuple[str, str, str]
"""The path of the plan, what kind of thing moves, and its name or number."""

# the columns of the folder `traffic`; `share` is what the plan expected of the source's rows
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
TRAFFIC_SCHEMA = pa.schema(_FIELDS)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Rows, and the bytes of their attributes.

    >>> Traffic(2, 10) + Traffic(1, 5)
    Traffic(rows=3, bytes=15)
    """

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.rows + other.rows, self.bytes + other.bytes)


def build_key(path: str, moving: Moving) -> TrafficKey:
    """Return the key under which the traffic of something that moves is summed."""
    if isinstance(moving, Flow):
        return path, "flow", str(moving.number)
    if isinstance(moving, Delivery):
        return path, "delivery", moving.query.id
    return path, "origin", moving.stream.name


def measure_traffic(moving: Moving, rows: pa.Table, stream: Stream) -> Traffic:
    """Return the size of rows on a link; an attribute that a query selects twice counts once."""
    if isinstance(moving, Delivery) and moving.query.outputs:
        expressions = [output.expression for output in moving.query.outputs]
        columns = [each for each in expressions if isinstance(each, Column)]
        # a dict keeps one place for each attribute, however often it is selected
        places = {stream[column.name].name: at for at, column in enumerate(columns)}
        rows = pa.table([rows.column(at) for at in places.values()], names=list(places))
    return Traffic(rows.num_rows, measure_bytes(rows, stream, rows.column_names))


def build_traffic_table(batch: int, traffic: Mapping[TrafficKey, Traffic]) -> pa.Table:
    """Return a row for each thing that moved over a link."""
    rows = []
    for line in _list_lines(traffic):
        moving = line.moving
        start, end = _find_ends(moving)
        rows.append(
            {
                "batch_id": batch,
                "plan": line.digest,
                "stream": _name_stream(moving),
                "start": start,
                "end": end,
                "flow": moving.number if isinstance(moving, Flow) else None,
                "query_id": moving.query.id if isinstance(moving, Delivery) else None,
                "rows": line.traffic.rows,
                "bytes": line.traffic.bytes,
                "source_rows": line.source_rows,
                "share": line.share.value,
                "share_low": line.share.low,
                "share_high": line.share.high,
                "row_bytes": moving.row_bytes,
            }
        )
    return pa.Table.from_pylist(rows, schema=TRAFFIC_SCHEMA)


def sum_by_link(traffic: Mapping[TrafficKey, Traffic]) -> dict[str, LinkTraffic]:
    """Return the sum over all that moved over each link, by its name."""
    sums: defaultdict[str, LinkTraffic] = defaultdict(LinkTraffic)
    for line in _list_lines(traffic):
        # without the rows at the source there is nothing to compare with
        expected = None
        if line.source_rows is not None:
            expected = line.share.scale(line.source_rows * line.moving.row_bytes)
        sums[line.link] += LinkTraffic(line.traffic.rows, line.traffic.bytes, expected)
    return dict(sums)


@dataclass(frozen=True, slots=True)
class _Line:
    """One thing that moved, the number of events at its source, and the expected share of them."""

    digest: str
    link: str
    moving: Moving
    traffic: Traffic
    source_rows: int | None
    share: Estimate


def _list_lines(traffic: Mapping[TrafficKey, Traffic]) -> Iterator[_Line]:
    """Yield what moved or could have moved over a link; not results that stay at a node."""
    for path in dict.fromkeys(key[0] for key in traffic):
        loaded = load_plan(path)
        plan = loaded.plan
        for moving in _list_moving(plan):
            # absent where the thing does not concern this application
            own = traffic.get(build_key(path, moving))
            if own is not None and moving.link is not None:
                source = traffic.get((path, "origin", _name_stream(moving)))
                yield _Line(
                    loaded.digest,
                    str(plan.network.links[moving.link]),
                    moving,
                    own,
                    None if source is None else source.rows,
                    _expect_share(moving, plan),
                )


def _list_moving(plan: Plan) -> Iterator[Moving]:
    yield from plan.origins.values()
    yield from plan.flows
    yield from plan.deliveries


def _expect_share(moving: Moving, plan: Plan) -> Estimate:
    """Return the share of the source's events that the sample predicts; all, if it gives none."""
    rate = plan.origins[_name_stream(moving)].rate
    # the origin is the whole stream; without a rate no share can be computed
    if isinstance(moving, Origin) or not rate:
        return Estimate(1.0, 1.0, 1.0)
    return moving.rows.scale(1 / rate)


def _name_stream(moving: Moving) -> str:
    return moving.stream.name if isinstance(moving, Origin) else moving.stream


def _find_ends(moving: Moving) -> tuple[str, str]:
    if isinstance(moving, Origin):
        return moving.peer, moving.entry
    if isinstance(moving, Flow):
        return moving.start, moving.end
    return moving.node, moving.target
