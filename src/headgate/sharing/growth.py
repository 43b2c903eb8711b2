"""What a new query would add to every hop of a tree, if it were served at its end.

All hops from the root down to it carry the rows and columns of the query then, too. Rows are those
of the sample; a hop that has them all, and the columns, costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.sharing.sampled import count
from headgate.sharing.subscription import Subscription
from headgate.sharing.tree import Tree


@dataclass(frozen=True, slots=True)
class Growth:
    """By hop: sample rows and bytes of a row that it lacks; and the costs of all hops up to it."""

    lacks: npt.NDArray[np.int64]
    wider: npt.NDArray[np.float64]
    traffic: npt.NDArray[np.float64]
    load: npt.NDArray[np.float64]


def growth(tree: Tree, wanted: Subscription) -> Growth:
    """Costs a second: bytes times what a byte costs on each link, and rows that are read more."""
    from headgate.sharing.kernels import grown

    arrays, size = tree.arrays, len(tree.hops)
    places = tree.sampled.places(wanted.outputs | wanted.attributes)
    scale = tree.sampled.rate / tree.sampled.size
    return Growth(
        *grown(
            arrays.rows[:size],
            arrays.count[:size],
            arrays.has[:size],
            arrays.width[:size],
            arrays.consumers[:size],
            arrays.parent[:size],
            arrays.link_cost[:size],
            wanted.rows,
            places,
            tree.sampled.widths,
            scale,
        )
    )


def growth_by_definition(tree: Tree, wanted: Subscription) -> Growth:
    """The same, hop by hop: what the kernel is tested against."""
    sampled = tree.sampled
    scale = sampled.rate / sampled.size
    found = Growth(*(np.zeros(len(tree.hops), kind) for kind in (np.int64, float, float, float)))
    for hop in tree:
        at, content = hop.number, hop.content
        if hop.parent is None or hop.link is None:
            continue
        both = count(content.rows | wanted.rows)
        missing = (wanted.outputs | wanted.attributes) - content.columns
        now, then = sampled.width(content.columns), sampled.width(content.columns | missing)
        cost = float(tree.arrays.link_cost[at])
        before = hop.parent.number
        found.lacks[at] = both - content.count
        found.wider[at] = then - now
        more = scale * (both * then - content.count * now)
        found.traffic[at] = found.traffic[before] + cost * more
        read = scale * (both - content.count) * len(hop.consumers)
        found.load[at] = found.load[before] + read
    return found
