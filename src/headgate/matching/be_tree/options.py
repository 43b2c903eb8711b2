"""The options of a BE-Tree, and the capacity of its leaves.

The defaults are the paper's, where it has one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from headgate.errors import UsageError, did_you_mean

Directory = Literal["generic", "specialised", "hybrid", "ranked"]
Evaluation = Literal["direct", "lazy", "bitmap", "hybrid"]
Leaf = Literal["rows", "references"]
Construction = Literal["dynamic", "batch"]
Scoring = Literal["popularity", "histogram"]
Absent = Literal["strong", "weak"]
Bloom = Literal[0, 16, 32, 64]

_CHOICES = {
    "directory": Directory,
    "evaluation": Evaluation,
    "leaf": Leaf,
    "construction": Construction,
    "scoring": Scoring,
    "absent": Absent,
    "bloom": Bloom,
}
_SHARE_OPTIONS = ("alpha", "beta", "window", "exploit", "reinserted")
_MAX_WHOLE_NUMBER = 1 << 30

# Capacities of the paper, each below a share of expressions that match.
TABLE_VI = ((0.01, 5), (0.1, 20), (float("inf"), 160))
MIN_CAPACITY, CAPACITY_PER_MATCH = 20, 1 / 25
ASSUMED_MATCH_RATE = 0.01  # until enough events were seen
MIN_OBSERVED_EVENTS = 1_000


@dataclass(frozen=True, slots=True)
class BeTreeOptions:
    """The parameters of "Analysis and optimization for Boolean expression indexing".

    | option         | section      | meaning                                                     |
    |----------------|--------------|-------------------------------------------------------------|
    | `directory`    | 4.4, 8.5     | how the values of an attribute are clustered; `ranked` is   |
    |                |              | hybrid, with equality predicates used up first              |
    | `evaluation`   | 6.1          | how predicates are evaluated in leaves                      |
    | `leaf`         | 6.1          | predicates lie in the leaf (`rows`) or are referred to      |
    | `capacity`     | 4.2, Table VI| expressions of a leaf before it is cut; "table": by the     |
    |                |              | matching rate, as the paper says; None: by the number of    |
    |                |              | matches, as measured (`choose_capacity`)                    |
    | `min_size`     | 4.2          | expressions that a partition must have at least             |
    | `construction` | 8.3          | `batch` sees all queries of a build before it cuts          |
    | `scoring`      | 5.1          | loss of a new partition: 0, or from a histogram             |
    | `alpha`        | 5.1          | weight of loss against gain                                 |
    | `beta`         | 5.1          | weight of covered against subsumed predicates; None: by     |
    |                |              | Equation 15, from the false candidates seen                 |
    | `adapt`        | 5.2          | count false candidates, and recycle what ranks below        |
    |                |              | `threshold`                                                 |
    | `window`       | 5.2, 8.1     | operations before a node is judged, as a share of its size  |
    | `exploit`      | 5.2          | how often an insertion takes the best partition, not any    |
    | `reinserted`   | 5.2          | share of a full leaf that is inserted again before a cut    |
    | `bloom`        | 6.2          | bits of the filter on an expression's attributes; 0: none   |
    | `absent`       | 8.3          | whether `<>` and NOT IN hold for an absent attribute (weak) |
    | `seed`         |              | of what is left to chance: exploration and reinsertion      |

    Only `absent="weak"` changes what matches.
    """

    directory: Directory = "ranked"
    evaluation: Evaluation = "hybrid"
    leaf: Leaf = "rows"
    capacity: int | Literal["table"] | None = None
    min_size: int = 3
    construction: Construction = "dynamic"
    scoring: Scoring = "popularity"
    alpha: float = 0.5
    beta: float | None = 0.5
    adapt: bool = False
    threshold: float = 0.0
    window: float = 0.1
    exploit: float = 1.0
    reinserted: float = 0.0
    bloom: Bloom = 0
    absent: Absent = "strong"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in _CHOICES.items():
            value, known = getattr(self, name), get_args(kind)
            if value not in known:
                hint = did_you_mean(str(value), [str(choice) for choice in known])
                raise UsageError(f"a BE-Tree has no {name} `{value}`; {hint}")
        for name in _SHARE_OPTIONS:
            value = getattr(self, name)
            if not (_is_number(value) and 0 <= value <= 1) and (name, value) != ("beta", None):
                raise UsageError(f"`{name}` of a BE-Tree is a number from 0 to 1, not {value!r}")
        for name in ("capacity", "min_size", "seed"):
            value, least = getattr(self, name), 0 if name == "seed" else 1
            whole = isinstance(value, int) and least <= value <= _MAX_WHOLE_NUMBER
            if not whole and (name, value) not in (("capacity", None), ("capacity", "table")):
                raise UsageError(
                    f"`{name}` of a BE-Tree is a whole number from {least} to "
                    f"{_MAX_WHOLE_NUMBER:,}, not {value!r}"
                )
        if not _is_number(self.threshold) or not isinstance(self.adapt, bool):
            raise UsageError("`threshold` of a BE-Tree is a number, and `adapt` is True or False")

    def as_json(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def choose_capacity(
    chosen: int | Literal["table"] | None, expressions: int, events: int, matches: int
) -> int:
    """Return how many expressions a leaf may hold before it is cut.

    `chosen` is the option, and `matches` is how many of the `expressions` the `events` so far have
    matched in all. The paper finds by experiment that leaves should be larger the more expressions
    match (section 8.5, Table VI). On a machine of today reading on costs less than jumping to
    another leaf, so that what counts is how many expressions an event matches, and no leaf should
    be small:

    | expressions | match      | 5  | 20  | 40 | 80  | 160 | 400 |
    |-------------|------------|----|-----|----|-----|-----|-----|
    | 100,000     | 1 %        |    | 23  | 24 | 22  | 28  | 35  |
    | 1,000,000   | 1 %        |    | 317 |    | 189 |     | 134 |
    | 200,000     | 0.02 %     | 22 | 17  |    | 17  |     |     |

    (µs an event by capacity, BEGen, uniform; `python -m benchmarks be-tree-capacity` measures it.)

    >>> choose_capacity(7, 1_000_000, 0, 0), choose_capacity("table", 100, 2_000, 30_000)
    (7, 160)
    >>> choose_capacity(None, 1_000, 0, 0), choose_capacity(None, 1_000_000, 0, 0)
    (20, 400)
    """
    if isinstance(chosen, int):
        return chosen
    rate = ASSUMED_MATCH_RATE
    if events >= MIN_OBSERVED_EVENTS and expressions:
        rate = matches / events / expressions
    if chosen == "table":
        return next(capacity for below, capacity in TABLE_VI if rate < below)
    return max(MIN_CAPACITY, round(CAPACITY_PER_MATCH * rate * expressions))
