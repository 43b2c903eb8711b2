"""Contestants agree, warm up, and take turns."""

import pytest

from benchmarks import Disagreement, run_rounds
from benchmarks.harness.run import turns
from headgate.errors import UsageError
from tests.benchmarks.fakes import Track, experiment


def test_turns_rotate() -> None:
    """Contestants take turns, and each repeat starts with the next one."""
    track = Track()
    trio = [track.contestant(name, [1.0] * 3) for name in "ABC"]
    run_rounds(experiment(*trio), repeats=3, clock=track.clock)
    timed = [entry for entry in track.log if len(entry) == 1]
    assert "".join(timed) == "ABCBCACAB"


def test_answers_come_first() -> None:
    """All answer before the first is timed, and each is reset after its turn."""
    track = Track()
    duo = [track.contestant(name, [1.0]) for name in "AB"]
    run_rounds(experiment(*duo), repeats=1, clock=track.clock)
    assert track.log == ["A?", "B?", "A", "A.", "B", "B."]


def test_every_place() -> None:
    """In as many repeats as contestants, each one has every place once."""
    orders = list(turns(4, 4))
    assert all(sorted(places) == [0, 1, 2, 3] for places in zip(*orders, strict=True))


def test_only_the_run_is_timed() -> None:
    """Warming up and resetting are off the clock."""
    track = Track()
    duo = [track.contestant("A", [2.0, 3.0]), track.contestant("B", [4.0, 5.0])]
    result = run_rounds(experiment(*duo), clock=track.clock)
    assert [m.seconds for m in result.measurements] == [(2.0, 3.0), (4.0, 5.0)]


def test_disagreement() -> None:
    """A wrong answer is never timed, and the error shows both."""
    track = Track()
    right = track.contestant("A", [1.0], answer=(3, 7))
    wrong = track.contestant("B", [1.0], answer=(3, 8))
    with pytest.raises(Disagreement, match=r"answer 1 of A is 7, and of B 8; nothing was timed"):
        run_rounds(experiment(right, wrong), repeats=1, clock=track.clock)
    assert track.log == ["A?", "B?"]


def test_missing_answer() -> None:
    """A missing answer is a wrong one."""
    track = Track()
    duo = track.contestant("A", [1.0], answer=(3, 7)), track.contestant("B", [1.0], answer=(3,))
    with pytest.raises(Disagreement, match="A gives 2 answers and B 1"):
        run_rounds(experiment(*duo), repeats=1, clock=track.clock)


def test_settings() -> None:
    """Scale and seed reach the experiment, and the result remembers them."""
    track = Track()
    one = track.contestant("A", [1.0] * 2)
    result = run_rounds(experiment(one), scale=0.5, seed=7, clock=track.clock)
    assert result.sizes == (507,)
    assert (result.repeats, result.scale, result.seed) == (2, 0.5, 7)
    assert result.facts == {"a fact": 1_000}


def test_progress() -> None:
    """Progress is told in lines of text."""
    track, lines = Track(), list[str]()
    one = track.contestant("A", [1.0])
    run_rounds(experiment(one), repeats=1, progress=lines.append, clock=track.clock)
    assert lines == ["fake: preparing", "1,001: do all agree?", "1,001: A, 1 of 1"]


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_scale_is_refused(scale: float) -> None:
    """A scale that leaves no work is refused."""
    with pytest.raises(UsageError, match="scale"):
        run_rounds(experiment(), scale=scale)


def test_repeats_are_refused() -> None:
    """No repeats measure nothing."""
    with pytest.raises(UsageError, match="at least 1"):
        run_rounds(experiment(), repeats=0)
