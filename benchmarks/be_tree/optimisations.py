"""Lazy and bitmap evaluation, leaves that fit the cache, and Bloom filters (section 8.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.be_tree.contestants import AUTO, be_tree
from benchmarks.be_tree.macro import order
from benchmarks.be_tree.sweep import Sweep
from benchmarks.be_tree.workloads import (
    ZIPF,
    Options,
    derive_from_names,
    derive_from_texts,
    synthetic,
    vary_matching,
    vary_nothing,
)
from benchmarks.harness.claims import Reduction

SIZES = (10_000, 20_000, 50_000, 100_000)
DIRECT = be_tree("direct", construction="batch", evaluation="direct")
LAZY = be_tree("lazy", construction="batch", evaluation="lazy")
BITMAP = be_tree("bitmap", construction="batch", evaluation="bitmap")
EVALUATIONS = (DIRECT, LAZY, BITMAP, AUTO)
# Leaves of rows have a kernel of their own, unless candidates are counted. With counting both kinds
# of leaves are read by one kernel; nothing ranks so low that it would be moved.
NEVER = -1e18
ROWS, REFERENCES = (
    be_tree(
        f"{leaf}, same kernel",
        leaf=leaf,
        construction="batch",
        evaluation="bitmap",
        adapt=True,
        threshold=NEVER,
    )
    for leaf in ("rows", "references")
)


def _evaluations(
    name: str, subject: str, label: str, values: tuple[int, ...], options: Options, **fixed: Any
) -> Iterator[Sweep]:
    for zipf in (0.0, ZIPF):
        where = "by Zipf’s law" if zipf else "uniform"
        yield Sweep(
            name=f"evaluation-{name}{'-zipf' if zipf else ''}",
            title=f"BE-Tree paper: how leaves are evaluated, {subject}, {where}",
            label=label,
            values=values,
            make=synthetic(options, zipf=zipf, **fixed),
            kinds=EVALUATIONS,
            claims=(order("section 8.7.1", (BITMAP, LAZY, DIRECT)),),
        )


def _bloom(evaluation: str, zipf: float) -> Sweep:
    kinds = {
        bits: be_tree(
            f"{bits or 'no'} bits", construction="batch", evaluation=evaluation, bloom=bits
        )
        for bits in (0, 16, 32, 64)
    }
    percent = {("lazy", False): 70, ("lazy", True): 50, ("bitmap", False): 21, ("bitmap", True): 16}
    less = percent[evaluation, bool(zipf)]
    where = "by Zipf’s law" if zipf else "uniform"
    return Sweep(
        name=f"bloom-{evaluation}{'-zipf' if zipf else ''}",
        title=f"BE-Tree paper: Bloom filters and {evaluation} evaluation, {where}",
        label="queries",
        values=SIZES,
        make=synthetic(
            vary_nothing, zipf=zipf, predicates=5, attributes=7, extra=1, matching=0.0005
        ),
        kinds=(*kinds.values(), AUTO),
        claims=(
            *(
                order(f"section 8.7.2, 32 bits against {kind.name}", (kinds[32], kind))
                for bits, kind in kinds.items()
                if bits != 32
            ),
            Reduction("section 8.7.2, time", kinds[32].name, kinds[0].name, less),
        ),
        queries=None,
    )


def _cache(zipf: float) -> Sweep:
    where = "by Zipf’s law" if zipf else "uniform"
    return Sweep(
        name=f"leaves{'-zipf' if zipf else ''}",
        title=f"BE-Tree paper: predicates in the leaf or referred to, {where}",
        label="queries",
        values=SIZES,
        make=synthetic(zipf=zipf),
        kinds=(ROWS, REFERENCES, BITMAP, AUTO),
        claims=(
            order("section 8.7.1, Figure 26", (ROWS, REFERENCES)),
            Reduction("section 8.7.1, Figure 26, time", ROWS.name, REFERENCES.name, 70),
        ),
        queries=None,
    )


def _real(name: str, make: Any) -> Sweep:
    return Sweep(
        name=f"evaluation-{name}",
        title=f"BE-Tree paper: how leaves are evaluated, {name} of cities",
        label="of 10,000 queries match",
        values=(10, 100, 1_000),
        make=make(vary_matching),
        kinds=EVALUATIONS,
        claims=(order("section 8.7.1", (BITMAP, LAZY, DIRECT)),),
    )


OPTIMISATIONS = (
    *_evaluations(
        "dimensions",
        "number of attributes there are",
        "attributes",
        (50, 400, 1_400),
        lambda value: {"dimensions": value},
    ),
    *_evaluations(
        "cardinality",
        "number of values of an attribute",
        "values",
        (48, 1_000, 150_000),
        lambda value: {"cardinality": value},
    ),
    *_evaluations(
        "matching",
        "matching probability",
        "of 10,000 queries match",
        (10, 100, 1_000),
        vary_matching,
    ),
    _real("names", derive_from_names),
    _real("texts", derive_from_texts),
    *_evaluations(
        "size",
        "predicates of a query, and about eight attributes more of an event",
        "predicates",
        (5, 14, 30, 66),
        lambda value: {"predicates": value, "attributes": value + 8 + value // 10},
    ),
    *(_cache(zipf) for zipf in (0.0, ZIPF)),
    *(_bloom(evaluation, zipf) for evaluation in ("lazy", "bitmap") for zipf in (0.0, ZIPF)),
)


# What BE-Tree's own parameters do: leaf capacity, scoring and directory (section 8.5).

PROBABILITIES = (10, 100, 1_000)  # of 10,000
LABEL = "of 10,000 queries match"
CAPACITIES = {n: be_tree(f"capacity {n}", capacity=n) for n in (5, 20, 160)}
BY_MATCHES = be_tree("capacity by matches")
BEST = {10: 5, 100: 20, 1_000: 160}  # capacity for each of these, by Table VI
POPULARITY, HISTOGRAM = be_tree("popularity"), be_tree("histogram", scoring="histogram")
RANKED = be_tree("hybrid, equality first (Hy-R)", directory="ranked")
HYBRID = be_tree("hybrid (Hy)", directory="hybrid")
GENERIC = be_tree("generic (Gen)", directory="generic")

UNIFORM = {"": ("uniform", synthetic(vary_matching))}
ZIPFS = {"-zipf": ("by Zipf’s law", synthetic(vary_matching, zipf=ZIPF))}
REAL = {
    "-names": ("city names", derive_from_names(vary_matching)),
    "-texts": ("long texts", derive_from_texts(vary_matching)),
}

MICRO = (
    *(
        Sweep(
            name=f"capacity{suffix}",
            title=f"BE-Tree paper: capacity of leaves, {where}",
            label=LABEL,
            values=PROBABILITIES,
            make=make,
            kinds=(*CAPACITIES.values(), BY_MATCHES, AUTO),
            claims=tuple(
                order(f"Table VI, {best} or {n} at {value:,}", (CAPACITIES[best], kind), (value,))
                for value, best in BEST.items()
                for n, kind in CAPACITIES.items()
                if n != best
            ),
        )
        for suffix, (where, make) in (UNIFORM | ZIPFS).items()
    ),
    *(
        Sweep(
            name=f"scoring{suffix}",
            title=f"BE-Tree paper: scoring of partitions, {where}",
            label=LABEL,
            values=PROBABILITIES,
            make=make,
            kinds=(POPULARITY, HISTOGRAM, AUTO),
            claims=(order("section 8.5, Figure 8", (POPULARITY, HISTOGRAM)),),
        )
        for suffix, (where, make) in (UNIFORM | ZIPFS).items()
    ),
    *(
        Sweep(
            name=f"directory{suffix}",
            title=f"BE-Tree paper: directories of values, {where}",
            label=LABEL,
            values=PROBABILITIES,
            make=make,
            kinds=(RANKED, HYBRID, GENERIC, AUTO),
            claims=(
                order("section 8.5, Figure 9, Hy", (RANKED, HYBRID)),
                order("section 8.5, Figure 9, Gen", (RANKED, GENERIC)),
            ),
        )
        for suffix, (where, make) in (UNIFORM | ZIPFS | REAL).items()
    ),
)
