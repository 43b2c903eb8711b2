"""How many expressions a leaf may hold before it is cut.

The paper finds by experiment that leaves should be larger the more expressions match (section 8.5,
Table VI). On a machine of today reading on costs less than jumping to another leaf, so that what
counts is how many expressions an event matches, and no leaf should be small:

| expressions | match      | 5  | 20  | 40 | 80  | 160 | 400 |
|-------------|------------|----|-----|----|-----|-----|-----|
| 100,000     | 1 %        |    | 23  | 24 | 22  | 28  | 35  |
| 1,000,000   | 1 %        |    | 317 |    | 189 |     | 134 |
| 200,000     | 0.02 %     | 22 | 17  |    | 17  |     |     |

(µs an event by capacity, BEGen, uniform; `python -m benchmarks be-tree-capacity` gives the like.)
"""

from __future__ import annotations

from typing import Literal

TABLE_VI = ((0.01, 5), (0.1, 20), (float("inf"), 160))  # up to a matching rate, a capacity
FEWEST, PER_MATCH = 20, 1 / 25
ASSUMED_RATE = 0.01  # until enough events were seen
ENOUGH_EVENTS = 1_000


def capacity_for(
    chosen: int | Literal["table"] | None, expressions: int, events: int, matches: int
) -> int:
    """The capacity for so many expressions, of which `events` matched so many by now.

    >>> capacity_for(7, 1_000_000, 0, 0), capacity_for("table", 100, 2_000, 30_000)
    (7, 160)
    >>> capacity_for(None, 1_000, 0, 0), capacity_for(None, 1_000_000, 0, 0)
    (20, 400)
    """
    if isinstance(chosen, int):
        return chosen
    rate = ASSUMED_RATE
    if events >= ENOUGH_EVENTS and expressions:
        rate = matches / events / expressions
    if chosen == "table":
        return next(capacity for below, capacity in TABLE_VI if rate < below)
    return max(FEWEST, round(PER_MATCH * rate * expressions))
