"""Events a second when so many have gone by, by us and by Spark's own join.

Each side is brought to the same length of the stream off the clock; then they take turns, a
micro-batch each, while the other one waits. Who is not there within the time is left out, with how
far it got.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic

from headgate.bench.claims import Faster
from headgate.bench.experiment import Contestant, Experiment, Fact, Prepare, Round, Unit
from headgate.bench.synopsis.cases import CASES, Case
from headgate.bench.synopsis.claims import Steady
from headgate.bench.synopsis.paced import Paced
from headgate.bench.synopsis.sides import OURS, SIDES, THEIRS, differences, session

# events before, and in a batch
BY_KEY = {100_000: 100_000, 300_000: 100_000, 1_000_000: 100_000}
BY_NONE = {4_000: 4_000, 20_000: 4_000, 100_000: 20_000, 1_000_000: 20_000}
LIMIT = 120.0  # seconds to get to a size
NOISE = 20  # percent


def batches_of(case: Case) -> dict[int, int]:
    """Without an equality every row is compared with every other, so batches are small at first."""
    return BY_KEY if case.has_equality else BY_NONE


def prepare(case: Case) -> Prepare:
    """The two sides of a case; the scale shrinks the batches, and not their number."""

    @contextmanager
    def prepared(size: int, scale: float, seed: int) -> Iterator[Round]:
        batch = batches_of(case)[size]
        events, batches = max(2, round(batch * scale) // 2 * 2), size // batch
        with session() as spark, ExitStack() as stack:
            contestants, facts = [], dict[str, Fact]()
            for side in SIDES:
                live = stack.enter_context(Paced(SIDES[side](spark, case, events // 2, seed)))
                late = _late(live, batches, events)
                if late:
                    facts[f"at {events * batches:,}, {side} is left out"] = late
                    continue
                answer = partial(differences, spark, case, side, seed)
                note = f"batches of {events:,}"
                contestants.append(Contestant(side, events, answer, live.advance, note=note))
            yield Round(events * batches, tuple(contestants), lambda: facts)

    return prepared


def _late(live: Paced, batches: int, events: int) -> str:
    """Why a side does not get to a length of the stream; nothing where it does."""
    began = last = monotonic()
    rate = 0.0
    for _ in range(batches):
        if not live.advance(seconds=LIMIT - (monotonic() - began)):
            return (
                f"in {LIMIT:,.0f} s it had taken {live.batches * events:,}, "
                f"the last batch of them at {rate:,.0f} a second"
            )
        rate, last = events / (monotonic() - last), monotonic()
    return ""


def throughput(case: Case) -> Experiment:
    how = "an equality" if case.has_equality else "no equality"
    return Experiment(
        name=f"synopsis-{case.name.partition('_')[0]}",
        title=f"{case.name} on Spark, by {how}, as the stream gets longer",
        sizes=tuple(batches_of(case)),
        size_label="events before",
        unit=Unit("thousand events per second", "rate", 1e-3),
        baseline=THEIRS,
        prepare=prepare(case),
        repeats=5 if case.has_equality else 3,
        claims=(
            Faster("three times as fast", OURS, THEIRS, 3, says="goal"),
            Steady("as fast as at first", OURS, NOISE),
        ),
    )


THROUGHPUT = tuple(map(throughput, CASES))
