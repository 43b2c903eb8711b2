"""The least that a new query would add to every hop of a tree, if it were served at its end.

All hops from the root down to it carry the rows of the query then, too, and its columns. A filter
must stand after each hop that carries more rows than its consumer wants, and what it reads must be
carried: what the query's own condition reads, unless all rows of the hop may be the query's; and
what the hop's filter reads, if there are more rows now. Rows are those of the sample; a hop that
has them all, and the columns, costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.sharing.sampled import count_bits
from headgate.sharing.subscription import Subscription
from headgate.sharing.tree import COLUMN_CARRIED, COLUMN_READ, StreamTree


@dataclass(frozen=True, slots=True)
class Growth:
    """By hop: sample rows and bytes of a row that it lacks; and the costs of all hops up to it."""

    missing_rows: npt.NDArray[np.int64]
    missing_bytes: npt.NDArray[np.float64]
    traffic: npt.NDArray[np.float64]
    load: npt.NDArray[np.float64]


def compute_growth(tree: StreamTree, wanted: Subscription, size: int) -> Growth:
    """Costs a second: bytes times what a byte costs on each link, and rows that are read more.

    Of the first so many hops.
    """
    from headgate.sharing.kernels import sum_growth

    arrays = tree.arrays
    column_use = np.zeros(len(tree.sampled.widths), np.uint8)
    column_use[tree.sampled.get_positions(wanted.attributes)] = COLUMN_READ
    column_use[tree.sampled.get_positions(wanted.outputs)] = COLUMN_CARRIED
    scale = tree.sampled.rate / tree.sampled.size
    return Growth(
        *sum_growth(
            arrays.rows[:size],
            arrays.count[:size],
            arrays.column_use[:size],
            arrays.width[:size],
            arrays.reader_count[:size],
            arrays.parent[:size],
            arrays.link_cost[:size],
            wanted.rows,
            column_use,
            tree.sampled.widths,
            scale,
        )
    )


def growth_by_definition(tree: StreamTree, wanted: Subscription) -> Growth:
    """The same, hop by hop: what the kernel is tested against."""
    sampled = tree.sampled
    scale = sampled.rate / sampled.size
    found = Growth(*(np.zeros(len(tree.hops), kind) for kind in (np.int64, float, float, float)))
    for hop in tree:
        at, content = hop.number, hop.content
        if hop.parent is None or hop.link is None:
            continue
        both = count_bits(content.rows | wanted.rows)
        names = content.columns | wanted.outputs
        if both > wanted.count:
            names |= wanted.attributes
        if both > content.count:
            names |= content.attributes
        now, then = sampled.measure_width(content.columns), sampled.measure_width(names)
        cost = float(tree.arrays.link_cost[at])
        before = hop.parent.number
        found.missing_rows[at] = both - content.count
        found.missing_bytes[at] = then - now
        more = scale * (both * then - content.count * now)
        found.traffic[at] = found.traffic[before] + cost * more
        read = scale * (both - content.count) * len(hop.consumers)
        found.load[at] = found.load[before] + read
    return found
