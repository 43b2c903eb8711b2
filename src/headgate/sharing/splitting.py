"""Groups of jobs that read one stream each, split in two as long as that saves reading.

Whoever comes to a planner alone never pays for reading the source once more, though several
together would. Here each group is asked as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.sharing.content import Content, make_content, unite_contents
from headgate.sharing.sampled import SampledStream, count_bits
from headgate.sharing.subscription import Subscription

Group = list[Subscription]


def split_groups(groups: Sequence[Group], sampled: SampledStream) -> list[Group]:
    """The same jobs in groups that cost no more together."""
    ahead, found = list(groups), []
    while ahead:
        group = ahead.pop()
        halves = halve_group(group) if len(group) > 1 else ()
        if halves and sum(
            compute_bytes_read(half, sampled) for half in halves
        ) < compute_bytes_read(group, sampled):
            ahead += halves
        else:
            found.append(group)
    return found


def halve_group(group: Group) -> tuple[Group, Group]:
    """Two groups around jobs that have little in common; the others join where they add less.

    Of groups that it adds the same to, it joins the one that has fewer rows.
    """
    first = max(group, key=lambda one: one.count)
    second = max(group, key=lambda one: (one is not first, count_bits(one.rows & ~first.rows)))
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


def compute_bytes_read(group: Group, sampled: SampledStream) -> float:
    """Bytes for each row of the source: one reads it and writes the stream, all read that.

    A job alone just reads the source.
    """
    source = sampled.measure_width(sampled.stream.names)
    if len(group) == 1:
        return source
    return source + (1 + len(group)) * compute_row_bytes(unite_group(group, sampled), sampled)


def unite_group(group: Group, sampled: SampledStream) -> Content:
    return unite_contents([make_content(one) for one in group], sampled)


def compute_row_bytes(content: Content, sampled: SampledStream) -> float:
    """Bytes of a content for each row of the source."""
    return content.count / sampled.size * sampled.measure_width(content.columns)
