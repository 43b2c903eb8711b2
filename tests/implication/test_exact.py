"""Our own exact matching: kernels, their plain twin and the cells give the same answers."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from headgate.errors import ExpansionTooLarge
from headgate.implication.exact import (
    MAX_PLAIN_PAIRS,
    _search_by_kernel,
    find_uncovered,
    match_exact,
)
from headgate.implication.parts import ComparisonCounter, to_parts
from headgate.implication.space import Boxes, Space
from tests.implication.boxes import grid, random_box
from tests.scale import case_count, seed
from tests.strategies import Dice, Seeded


def drawn(dice: Dice, most: int) -> tuple[Space, Boxes, Boxes]:
    dimensions, size = 1 + dice.below(4), 2 + dice.below(9)
    wanted = [random_box(dice, dimensions, size) for _ in range(dice.below(4))]
    given = [random_box(dice, dimensions, size) for _ in range(dice.below(most))]
    space = Space.of((*wanted, *given))
    return space, space.boxes(wanted), space.boxes(given)


def test_agree_with_the_cells() -> None:
    """Covered, the relaxed union and what is left over, by kernel and plainly, cell by cell."""
    dice, covered = Seeded(seed(1)), 0
    for _ in range(case_count(1_500)):
        space, query, stream = drawn(dice, 25)
        needed, had = grid(to_parts(query), space), grid(to_parts(stream), space)
        matched = match_exact(query, stream)
        assert matched.covered == (not (needed & ~had).any())
        assert (grid(to_parts(matched.boxes), space) == needed | had).all()
        covered += matched.covered
        for parts in (
            list(find_uncovered(query, stream)),
            list(_search_by_kernel(query, stream, 10**9, ComparisonCounter())),
        ):
            left = grid(parts, space)
            assert (left == needed & ~had).all()
            volumes = [np.prod([high - low for low, high in part]) for part in parts]
            assert sum(volumes) == left.sum(), "parts overlap"
    assert covered > case_count(200)


def tiles(count: int, dimensions: int, side: int, seed: int) -> Boxes:
    """Boxes that tile a cube without gap or overlap."""
    random = np.random.default_rng(seed)
    done, pending = [], [(np.zeros(dimensions, int), np.full(dimensions, side), count)]
    while pending:
        low, high, parts = pending.pop()
        if parts == 1:
            done.append((low, high))
            continue
        axis = int(np.argmax((high - low) * random.uniform(0.5, 1, dimensions)))
        cut = low[axis] + max(1, int((high[axis] - low[axis]) * random.uniform(0.3, 0.7)))
        below, above = high.copy(), low.copy()
        below[axis] = above[axis] = cut
        pending += [(low, below, parts // 2), (above, high, parts - parts // 2)]
    result = random.permutation(np.array(done, np.int32))
    return Boxes(result[:, 0].copy(), result[:, 1].copy())


@pytest.mark.parametrize("count,dimensions", [(2_000, 2), (1_000, 3), (500, 6)])
def test_tiles_cover_and_one_less_does_not(count: int, dimensions: int) -> None:
    """Hundreds of tiles cover their cube exactly; without one of them exactly that one is left."""
    stream = tiles(count, dimensions, 4_000, seed=count)
    query = Boxes(np.zeros((1, dimensions), np.int32), np.full((1, dimensions), 4_000, np.int32))
    assert match_exact(query, stream).covered
    parts = list(find_uncovered(query, stream[1:]))
    (missing,) = to_parts(stream[:1])
    assert sum(np.prod([high - low for low, high in part]) for part in parts) == np.prod(
        [high - low for low, high in missing]
    )
    assert not match_exact(query, stream[1:]).covered
    assert match_exact(query, stream).parts < 100


def test_the_budget_is_kept() -> None:
    """Past its budget the search declines instead of going on for ever."""
    stream = tiles(1_000, 3, 4_000, seed=3)
    query = Boxes(np.zeros((1, 3), np.int32), np.full((1, 3), 4_000, np.int32))
    with pytest.raises(ExpansionTooLarge, match="no answer within 9,000 comparisons"):
        match_exact(query, stream, budget=9_000)
    with pytest.raises(ExpansionTooLarge, match="no answer within 9,000 comparisons"):
        list(find_uncovered(query, stream, budget=9_000))
    with pytest.raises(ExpansionTooLarge, match="no answer within 90 comparisons"):
        list(find_uncovered(query, stream[:MAX_PLAIN_PAIRS], budget=90))


def test_shares_too_small_for_a_float() -> None:
    """In hundreds of dimensions a box holds less of a part than a float can say; it still does."""
    dimensions, count = 200, MAX_PLAIN_PAIRS + 1
    starts = 10 * np.arange(count, dtype=np.int32)[:, None] + np.zeros(dimensions, np.int32)
    stream = Boxes(starts, starts + 1)
    query = Boxes(np.zeros((1, dimensions), np.int32), np.full((1, dimensions), 9_999, np.int32))
    result = list(islice(find_uncovered(query, stream), 50))
    held = [int(at) for at in stream.low[:, 0]]
    assert not any(all(low <= at < high for low, high in part) for part in result for at in held)


def test_nothing_and_everything() -> None:
    """Without dimensions a box is everything; without boxes a union is nothing."""
    none, one = (Boxes(np.zeros((n, 0), np.int32), np.zeros((n, 0), np.int32)) for n in (0, 1))
    assert match_exact(none, none).covered
    assert match_exact(none, one).covered
    assert match_exact(one, one).covered
    assert not match_exact(one, none).covered
    assert list(find_uncovered(one, none)) == [()]
