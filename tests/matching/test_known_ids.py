"""Ids that stay in Arrow are those of a list."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.matching import Matches
from headgate.matching.known_ids import KnownIds, LivingPositions, as_known_ids
from tests.scale import case_count, seed

NAMED = ["low", "high"]
NAMES = ["a", "Zoë", "two words", "𝄞", "x" * 300]


def draw(random: Random) -> tuple[KnownIds, list[str]]:
    """Ids in a few arrays, in another order, and some that came later; and the same as a list."""
    arrays, flat = [], []
    for part in range(random.randrange(4)):
        names = [f"{random.choice(NAMES)}{part}-{n}" for n in range(random.randrange(6))]
        flat += names
        arrays.append(pa.array([name.encode() for name in names], pa.large_binary()))
    rows = None
    if random.random() < 0.7:
        rows = np.array(random.sample(range(len(flat)), random.randrange(len(flat) + 1)), np.int64)
        flat = [flat[row] for row in rows.tolist()]
    ids = KnownIds(arrays, rows)
    for number in range(random.randrange(4)):
        ids.append(f"later{number}")
        flat.append(f"later{number}")
    return ids, flat


def test_agree_with_a_list() -> None:
    random = Random(seed(6))
    for _ in range(case_count(300)):
        ids, expected = draw(random)
        assert len(ids) == len(expected)
        assert list(ids) == expected
        assert ids[1:4] == expected[1:4]
        assert ids.measure_longest() >= max((len(name.encode()) for name in expected), default=0)
        positions = np.array([random.randrange(len(expected)) for _ in expected], np.int64)
        chosen = [expected[position] for position in positions.tolist()]
        both: list[Any] = [positions, positions.astype(np.int32)]
        for numbers in both:
            taken = ids.take(numbers)
            assert taken.type == pa.string()
            assert taken.to_pylist() == ids.list_at(numbers) == chosen
        for place in range(-len(expected), len(expected)):
            assert ids[place] == expected[place]
        for place in (len(expected), -len(expected) - 1):
            with pytest.raises(IndexError):
                ids[place]


def test_positions_are_those_of_a_dict() -> None:
    ids = KnownIds([pa.array([b"a", b"b", b"c"], pa.large_binary())])
    positions = LivingPositions(ids)
    assert len(positions) == 3
    assert positions._positions is None
    del positions["b"]
    positions["d"] = 3
    assert dict(positions) == {"a": 0, "c": 2, "d": 3}
    assert len(positions) == 3
    assert "b" not in positions
    with pytest.raises(KeyError):
        positions["b"]


@pytest.mark.parametrize(
    "known",
    [["low", "high"], ("low", "high"), pa.array(["low", "high"]), as_known_ids(["low", "high"])],
)
def test_matches_take_ids_in_every_form(known: object) -> None:
    matches = Matches(np.array([0, 2, 2, 3]), np.array([1, 0, 1]), known)  # type: ignore[arg-type]
    assert [matches[event] for event in range(3)] == [["low", "high"], [], ["high"]]
    assert matches.ids().to_pylist() == [["low", "high"], [], ["high"]]
    assert matches.ids().type == pa.list_(pa.string())
    assert "low, high" in matches._repr_html_()


def test_bytes_that_are_no_text_of_arrow_are_refused() -> None:
    """Python knows halves of surrogate pairs, UTF-8 does not."""
    ids = KnownIds([pa.array(["\ud800".encode("utf-8", "surrogatepass")], pa.large_binary())])
    assert ids[0] == "\ud800"
    with pytest.raises(pa.ArrowInvalid):
        ids.take(np.array([0]))
