"""Groups of jobs that read one stream each, split in two as long as that saves reading.

Whoever comes to a planner alone never pays for reading the source once more, though several
together would. Here each group is asked as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.sharing.content import Content, content_of, united
from headgate.sharing.sampled import Sampled, count
from headgate.sharing.subscription import Subscription

Group = list[Subscription]


def split(groups: Sequence[Group], sampled: Sampled) -> list[Group]:
    """The same jobs in groups that cost no more together."""
    ahead, found = list(groups), []
    while ahead:
        group = ahead.pop()
        halves = halved(group) if len(group) > 1 else ()
        if halves and sum(read(half, sampled) for half in halves) < read(group, sampled):
            ahead += halves
        else:
            found.append(group)
    return found


def halved(group: Group) -> tuple[Group, Group]:
    """Two groups around jobs that have little in common; the others join where they add less.

    Of groups that it adds the same to, it joins the one that has fewer rows.
    """
    first = max(group, key=lambda one: one.count)
    second = max(group, key=lambda one: (one is not first, count(one.rows & ~first.rows)))
    halves: tuple[Group, Group] = [first], [second]
    rows = np.array([first.rows, second.rows])
    for one in group:
        if one is first or one is second:
            continue
        sizes = np.bitwise_count(rows).sum(axis=1)
        more = np.bitwise_count(rows | one.rows).sum(axis=1) - sizes
        chosen = int(np.lexsort((sizes, more))[0])
        halves[chosen].append(one)
        rows[chosen] |= one.rows
    return halves


def read(group: Group, sampled: Sampled) -> float:
    """Bytes for each row of the source: one reads it and writes the stream, all read that.

    A job alone just reads the source.
    """
    source = sampled.width(sampled.stream.names)
    if len(group) == 1:
        return source
    return source + (1 + len(group)) * row_share(shared(group, sampled), sampled)


def shared(group: Group, sampled: Sampled) -> Content:
    return united([content_of(one) for one in group], sampled)


def row_share(content: Content, sampled: Sampled) -> float:
    """Bytes of a content for each row of the source."""
    return content.count / sampled.size * sampled.width(content.columns)
