"""Random predicates of boxes, as the stream-sharing paper matches them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.workloads import DisjunctionSpec, generate_disjunctions, place_in_one_space
from headgate.predicate import IsNull, Within, collect_columns, iter_atoms, to_dnf
from headgate.schema import DOUBLE

SPEC = DisjunctionSpec(20)


def ends(spec: DisjunctionSpec) -> list[float]:
    """Both ends of every side of 200 predicates."""
    collected = []
    for predicate in generate_disjunctions(200, spec, seed=1):
        for atom in iter_atoms(predicate):
            assert isinstance(atom, Within)
            (side,) = atom.values.intervals
            assert isinstance(side.low, int)
            assert isinstance(side.high, int)
            collected += [DOUBLE.value(side.low), DOUBLE.value(side.high - 1)]
    return collected


def test_seed() -> None:
    """The same seed gives the same predicates."""
    first, second, other = (generate_disjunctions(10, SPEC, seed=seed) for seed in (4, 4, 5))
    assert first == second != other


@pytest.mark.parametrize("values", [4, 6, 21])
def test_values(values: int) -> None:
    """Ends are among so many values between 0 and 100, and all of them occur."""
    result = ends(replace(SPEC, values=values))
    assert sorted(set(result)) == np.linspace(0, 100, values).tolist()


@pytest.mark.slow
def test_distributions() -> None:
    """Normal ends gather about the middle: a deviation of 25, without what lies outside."""
    uniform, normal = (np.array(ends(replace(SPEC, ends=one))) for one in ("uniform", "normal"))
    assert abs(uniform.mean() - 50) < 1
    assert abs(normal.mean() - 50) < 1
    assert abs(uniform.std() - 30) < 2
    assert abs(normal.std() - 23) < 1


def test_sides() -> None:
    """A box is finite in each dimension; possibly unbounded, it mentions each subset as often."""
    (bounded,) = generate_disjunctions(1, SPEC, seed=1)
    assert [len(part.box.sides) for part in to_dnf(bounded)] == [6] * 20
    (some,) = generate_disjunctions(1, DisjunctionSpec(7_000, 3, unbounded=True), seed=1)
    assert len(collect_columns(some)) == 3
    subsets = [frozenset(collect_columns(part)) for part in getattr(some, "parts", ())]
    counts = [subsets.count(one) for one in set(subsets)]
    assert len(counts) == 7
    assert 900 < min(counts) <= max(counts) < 1_100


def test_nulls() -> None:
    """The share asked for of all sides is IS NULL, and columns may be NULL then only."""
    spec = replace(SPEC, nulls=0.25)
    listed = [atom for one in generate_disjunctions(50, spec, seed=1) for atom in iter_atoms(one)]
    assert abs(np.mean([isinstance(atom, IsNull) for atom in listed]) - 0.25) < 0.03
    assert all(attribute.nullable for attribute in spec.stream)
    assert not any(attribute.nullable for attribute in SPEC.stream)


def test_drawn_boxes_are_kept() -> None:
    """Boxes on one dimension stay apart, where the predicate would merge them."""
    spec = DisjunctionSpec(50, 3, unbounded=True)
    disjunctions = generate_disjunctions(4, spec, seed=1)
    _, (boxes,) = place_in_one_space(spec.stream, disjunctions)
    assert [len(one) for one in boxes] == [50] * 4
    assert all(len(to_dnf(one)) < 50 for one in disjunctions)


def test_one_space() -> None:
    """All predicates have their boxes in one space, the largest first."""
    small = DisjunctionSpec(3, 2, ends="normal")
    queries, streams = (
        generate_disjunctions(5, small, seed=1),
        generate_disjunctions(4, replace(small, boxes=9), seed=2),
    )
    space, (ours, theirs) = place_in_one_space(small.stream, queries, streams)
    assert ([len(one) for one in ours], [len(one) for one in theirs]) == ([3] * 5, [9] * 4)
    assert [dimension.nullable for dimension in space.dimensions] == [False, False]
    for boxes in ours + theirs:
        volumes = space.volumes(boxes)[1]
        assert np.all(np.diff(volumes) <= 0)
