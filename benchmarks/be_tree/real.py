"""Real names and texts: their number, and the matching probability (section 8.6.10)."""

from __future__ import annotations

from benchmarks.be_tree.contestants import EVERYBODY, GRYPHON, PROPAGATION
from benchmarks.be_tree.macro import EQUALITY_ONLY, IN_ORDER, PROBABILITIES, less, order
from benchmarks.be_tree.sweep import Sweep
from benchmarks.be_tree.workloads import (
    derived_names,
    derived_texts,
    matching,
    names,
    texts,
)

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
            make=make(matching, operators=level),
            kinds=EVERYBODY,
            claims=(order("section 8.8, as for synthetic data", IN_ORDER[False]),),
        )
        for source, make in (("names", derived_names), ("texts", derived_texts))
        for level in ("low", "medium", "high")
    ),
)
