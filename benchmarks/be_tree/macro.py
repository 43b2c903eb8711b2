"""BE-Tree against the others while one thing varies (sections 8.6.1 to 8.6.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.be_tree.contestants import (
    ADVANCED_GRYPHON,
    APP,
    AUTO,
    BATCH,
    BE_TREE,
    EVERYBODY,
    GRYPHON,
    K_INDEX,
    PROPAGATION,
    SCAN,
    SIFT,
    VECTORISED,
    Kind,
)
from benchmarks.be_tree.sweep import QUERIES, Sweep
from benchmarks.be_tree.workloads import (
    ZIPF,
    Options,
    derive_from_names,
    derive_from_texts,
    names,
    synthetic,
    texts,
    vary_matching,
    vary_nothing,
)
from benchmarks.harness.claims import Growth, Order, Reduction
from benchmarks.harness.experiment import Claim

SIZES = (10_000, 20_000, 50_000, 100_000)
PROBABILITIES = (1, 10, 100, 300, 900)  # of 10,000

IN_ORDER = {  # section 8.8, the first two categories
    False: (BE_TREE, ADVANCED_GRYPHON, K_INDEX, PROPAGATION, APP, SIFT),
    True: (BE_TREE, PROPAGATION, ADVANCED_GRYPHON, K_INDEX, APP, SIFT),
}
EQUALITY_ONLY = (BE_TREE, ADVANCED_GRYPHON, GRYPHON, PROPAGATION, K_INDEX)  # the third


def order(source: str, kinds: tuple[Kind, ...], sizes: tuple[int, ...] = ()) -> Order:
    return Order(source, tuple(kind.name for kind in kinds), sizes)


def less(source: str, other: Kind, percent: float) -> Reduction:
    return Reduction(f"{source}, against {other.name}", BE_TREE.name, other.name, percent)


def both(
    name: str,
    subject: str,
    label: str,
    values: tuple[int, ...],
    options: Options,
    *,
    claims: dict[bool, tuple[Claim, ...]] | None = None,
    ranking: tuple[Kind, ...] | None = None,
    queries: int | None = QUERIES,
    **fixed: Any,
) -> Iterator[Sweep]:
    """Return a sweep with uniform attributes, and one by Zipf's law with its own order."""
    for zipf in (False, True):
        ranked = order("section 8.8", ranking or IN_ORDER[zipf])
        yield Sweep(
            name=f"{name}-zipf" if zipf else name,
            title=f"BE-Tree paper: {subject}, {'by Zipf’s law' if zipf else 'uniform'}",
            label=label,
            values=values,
            make=synthetic(options, zipf=ZIPF if zipf else 0.0, **fixed),
            kinds=EVERYBODY,
            claims=(ranked, *(claims or {}).get(zipf, ())),
            queries=queries,
        )


FASTER_THAN_SIFT = order("our own goal", (BE_TREE, VECTORISED))

DISTRIBUTION = Sweep(
    name="distribution",
    title="BE-Tree paper: from uniform attributes to few popular ones",
    label="hundredths of Zipf's exponent",
    values=(1, 50, 100, 150),
    make=synthetic(lambda value: {"zipf": value / 100}),
    kinds=EVERYBODY,
    claims=(
        order("section 8.8, uniform", IN_ORDER[False], (1,)),
        order("section 8.8, Zipf", IN_ORDER[True], (100,)),
        *(
            order(f"section 8.6.1, uniform, {kind.name}", (kind, SCAN), (1,))
            for kind in EVERYBODY
            if kind not in (SCAN, AUTO, BATCH)
        ),
        *(
            order(f"section 8.6.1, Zipf, {kind.name}", (SCAN, kind), (100,))
            for kind in (K_INDEX, APP, SIFT)
        ),
    ),
)

LARGE = tuple(
    Sweep(
        name="large-zipf" if zipf else "large",
        title=f"BE-Tree and counting, up to a million, {'by Zipf’s law' if zipf else 'uniform'}",
        label="queries",
        values=(100_000, 300_000, 1_000_000),
        make=synthetic(zipf=zipf),
        kinds=(BE_TREE, AUTO, BATCH, VECTORISED, SIFT),
        claims=(FASTER_THAN_SIFT,),
        queries=None,
    )
    for zipf in (0.0, ZIPF)
)

MACRO = (
    DISTRIBUTION,
    *LARGE,
    *both(
        "size",
        "number of queries",
        "queries",
        SIZES,
        vary_nothing,
        queries=None,
        claims={
            False: (FASTER_THAN_SIFT, less("section 8.6.2", K_INDEX, 80)),
            True: (FASTER_THAN_SIFT, less("section 8.6.2", PROPAGATION, 63)),
        },
    ),
    *both(
        "dimensions",
        "number of attributes there are",
        "attributes",
        (50, 100, 400, 1_400),
        lambda value: {"dimensions": value},
        claims={
            False: (less("section 8.6.3", K_INDEX, 93),),
            True: (less("section 8.6.3", K_INDEX, 97),),
        },
    ),
    *both(
        "cardinality",
        "number of values of an attribute",
        "values",
        (48, 150, 1_000, 6_000, 150_000),
        lambda value: {"cardinality": value},
        queries=20_000,
        claims={  # there the enumerating could not run from 6,000 on; here they see regions
            False: (less("section 8.6.4", PROPAGATION, 66),),
            True: (less("section 8.6.4", PROPAGATION, 59),),
        },
    ),
    *both(
        "selectivity",
        "number of values, equality only",
        "values",
        (10, 6, 4, 2),
        lambda value: {"cardinality": value},
        operators="minimum",
        ranking=EQUALITY_ONLY,
        claims={
            False: (
                Growth("section 8.6.5, BE-Tree", BE_TREE.name, 1),
                Growth("section 8.6.5, Propagation", PROPAGATION.name, 80),
                Growth("section 8.6.5, k-index", K_INDEX.name, 27),
            ),
            True: (
                Growth("section 8.6.5, Propagation", PROPAGATION.name, 411),
                Growth("section 8.6.5, k-index", K_INDEX.name, 650),
            ),
        },
    ),
    *both(
        "ranges",
        "width of ranges",
        "percent of an attribute's values",
        (6, 12, 25, 50),
        lambda value: {"range_size": value / 100},
    ),
    *both(
        "query-event-size",
        "predicates of a query, and eight attributes more of an event",
        "predicates",
        (5, 7, 14, 30, 66),
        lambda value: {"predicates": value, "attributes": value + 8 + value // 10},
    ),
    *both(
        "query-size",
        "predicates of a query, of events with 81 attributes",
        "predicates",
        (5, 14, 30, 66),
        lambda value: {"predicates": value},
        attributes=81,
    ),
    *both(
        "event-size",
        "attributes of an event, with 5 predicates in a query",
        "attributes",
        (13, 30, 50, 81),
        lambda value: {"attributes": value},
        predicates=5,
        claims={
            False: (
                Growth("section 8.6.7, k-index", K_INDEX.name, 4160),
                Growth("section 8.6.7, BE-Tree, at most", BE_TREE.name, 200),
            )
        },
    ),
    *both(
        "equality",
        "share of equality",
        "percent of predicates",
        (20, 40, 60, 80, 100),
        lambda value: {"equality": value / 100},
        claims={
            False: (
                order("section 8.6.8, equality only", EQUALITY_ONLY, (100,)),
                less("section 8.6.8", GRYPHON, 88),
            )
        },
    ),
    *(
        sweep
        for level in ("low", "medium", "high")
        for sweep in both(
            f"matching-{level}",
            f"matching probability, {level} expressiveness",
            "of 10,000 queries match",
            PROBABILITIES,
            vary_matching,
            operators=level,
            claims={
                False: (order("section 8.6.9, below 1 %", (K_INDEX, PROPAGATION, SIFT), (1, 10)),)
            }
            if level != "high"
            else None,
            ranking=None if level != "high" else (BE_TREE, ADVANCED_GRYPHON, GRYPHON, SCAN),
        )
    ),
)


# Real names and texts: their number, and the matching probability (section 8.6.10).

REAL = (
    Sweep(
        name="names",
        title="BE-Tree paper: names of cities as 3-grams",
        label="queries",
        values=(10_000, 25_000, 50_000),
        make=names,
        kinds=EVERYBODY,
        claims=(
            order("section 8.8", EQUALITY_ONLY),
            less("section 8.6.10", GRYPHON, 37),
            less("section 8.6.10", PROPAGATION, 98),
        ),
        queries=None,
    ),
    Sweep(
        name="texts",
        title="BE-Tree paper: texts of 64 letters as 3-grams",
        label="queries",
        values=(4_000, 8_000, 16_000),
        make=texts,
        kinds=EVERYBODY,
        claims=(
            order("section 8.8", EQUALITY_ONLY),
            less("section 8.6.10", GRYPHON, 51),
            less("section 8.6.10", PROPAGATION, 99),
        ),
        queries=None,
    ),
    *(
        Sweep(
            name=f"{source}-matching-{level}",
            title=f"BE-Tree paper: matching probability of {source}, {level} expressiveness",
            label="of 10,000 queries match",
            values=PROBABILITIES[1:],
            make=make(vary_matching, operators=level),
            kinds=EVERYBODY,
            claims=(order("section 8.8, as for synthetic data", IN_ORDER[False]),),
        )
        for source, make in (("names", derive_from_names), ("texts", derive_from_texts))
        for level in ("low", "medium", "high")
    ),
)
