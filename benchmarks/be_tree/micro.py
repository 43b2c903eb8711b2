"""What BE-Tree's own parameters do: leaf capacity, scoring and directory (section 8.5)."""

from __future__ import annotations

from benchmarks.be_tree.contestants import AUTO, be_tree
from benchmarks.be_tree.macro import order
from benchmarks.be_tree.sweep import Sweep
from benchmarks.be_tree.workloads import (
    ZIPF,
    derived_names,
    derived_texts,
    matching,
    synthetic,
)

PROBABILITIES = (10, 100, 1_000)  # of 10,000
LABEL = "of 10,000 queries match"
CAPACITIES = {n: be_tree(f"capacity {n}", capacity=n) for n in (5, 20, 160)}
BY_MATCHES = be_tree("capacity by matches")
BEST = {10: 5, 100: 20, 1_000: 160}  # capacity for each of these, by Table VI
POPULARITY, HISTOGRAM = be_tree("popularity"), be_tree("histogram", scoring="histogram")
RANKED = be_tree("hybrid, equality first (Hy-R)", directory="ranked")
HYBRID = be_tree("hybrid (Hy)", directory="hybrid")
GENERIC = be_tree("generic (Gen)", directory="generic")

UNIFORM = {"": ("uniform", synthetic(matching))}
ZIPFS = {"-zipf": ("by Zipf’s law", synthetic(matching, zipf=ZIPF))}
REAL = {
    "-names": ("city names", derived_names(matching)),
    "-texts": ("long texts", derived_texts(matching)),
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
