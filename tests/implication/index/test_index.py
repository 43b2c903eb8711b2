"""Every index of boxes gives the answers of `linear`, whatever was added and switched off."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import UsageError
from headgate.implication.index import BOX_INDEX_KINDS, BoxIndex, LinearIndex, build_box_index
from headgate.implication.space import Boxes

OTHERS = [kind for kind in BOX_INDEX_KINDS if kind != "linear"]
CASES, STEPS = 60, 60

Random = np.random.Generator


def some_boxes(random: Random, count: int, dimensions: int, cells: int) -> Boxes:
    """Boxes with some sides that span everything, as those of unmentioned columns do."""
    ends = np.sort(random.integers(0, cells + 1, (2, count, dimensions)), axis=0)
    ends[1] = np.maximum(ends[1], ends[0] + 1)
    whole = random.random((count, dimensions)) < random.choice([0, 0.3])
    ends[0][whole], ends[1][whole] = 0, cells + 1
    return Boxes(*ends.astype(np.int32))


def ask(random: Random, index: BoxIndex, oracle: LinearIndex, dimensions: int, cells: int) -> None:
    box = some_boxes(random, 1, dimensions, cells)
    point = random.integers(0, cells + 1, dimensions).tolist()
    low, high = box.low[0].tolist(), box.high[0].tolist()
    assert index.find_overlapping(low, high) == oracle.find_overlapping(low, high)
    assert index.find_overlapping(box.low[0], box.high[0]) == oracle.find_overlapping(low, high)
    assert index.find_containing(point) == oracle.find_containing(point)
    assert index.contains_point(tuple(point)) is oracle.contains_point(point)


def change(random: Random, index: BoxIndex, oracle: LinearIndex, added: Boxes) -> None:
    what = random.integers(0, 5)
    if what == 0:
        low, high = added.low[0].tolist(), added.high[0].tolist()
        assert index.add(low, high) == oracle.add(low, high) == len(oracle) - 1
    elif len(oracle):
        box = int(random.integers(0, len(oracle)))
        for one in (index, oracle):
            if what < 4:
                one.deactivate(box)
            else:
                one.activate(box)
    assert len(index) == len(oracle)


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("seed", range(CASES))
def test_agree_linear(kind: str, seed: int) -> None:
    """Answers are the same after every step of adding, deactivating and activating."""
    random = np.random.default_rng(seed)
    dimensions, cells = int(random.integers(0, 7)), int(random.integers(1, 40))
    boxes = some_boxes(random, int(random.choice([0, 1, 7, 9, 60, 300])), dimensions, cells)
    index, oracle = build_box_index(kind, boxes), LinearIndex(boxes)
    for _ in range(STEPS):
        ask(random, index, oracle, dimensions, cells)
        change(random, index, oracle, some_boxes(random, 1, dimensions, cells))


@pytest.mark.parametrize("kind", OTHERS)
def test_agree_growing(kind: str) -> None:
    """Ids and states outlive every new packing, also from nothing to hundreds."""
    random = np.random.default_rng(1)
    index, oracle = (
        build_box_index(kind, some_boxes(random, 0, 3, 20)),
        LinearIndex(some_boxes(random, 0, 3, 20)),
    )
    for step in range(700):
        box = some_boxes(random, 1, 3, 20)
        for one in (index, oracle):
            assert one.add(box.low[0], box.high[0]) == step
            if step % 3 == 0:
                one.deactivate(step // 2)
        if step % 20 == 0:
            ask(random, index, oracle, 3, 20)


@pytest.mark.parametrize("kind", BOX_INDEX_KINDS)
def test_nothing_active(kind: str) -> None:
    """With every box deactivated nothing is found, and everything again when they are back."""
    boxes = some_boxes(np.random.default_rng(2), 100, 2, 9)
    index = build_box_index(kind, boxes)
    for box in range(100):
        index.deactivate(box)
    assert index.find_overlapping((0, 0), (10, 10)) == []
    assert not index.contains_point((4, 4))
    for box in range(100):
        index.activate(box)
    assert index.find_overlapping((0, 0), (10, 10)) == list(range(100))


def test_unknown_kind() -> None:
    """A kind that is none is refused, with the nearest one as a hint."""
    with pytest.raises(UsageError, match=r"did you mean `?r-tree"):
        build_box_index("rtree", some_boxes(np.random.default_rng(0), 1, 1, 1))
