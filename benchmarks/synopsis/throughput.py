"""Events a second when so many have gone by, by us and by Spark's own join.

Each side is brought to the same length of the stream off the clock; then they take turns, a
micro-batch each, while the other one waits. Who is not there within the time is left out, with how
far it got.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic

from benchmarks.harness.claims import Faster, Steady
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Prepare, Round, Unit
from benchmarks.synopsis.cases import CASES, Case
from benchmarks.synopsis.sides import OURS, SIDES, THEIRS, Paced, differences, session

# events before, and in a batch
LARGE = {2_000_000: 2_000_000, 4_000_000: 2_000_000, 8_000_000: 2_000_000}
SMALL = {4_000: 4_000, 20_000: 4_000, 100_000: 20_000, 1_000_000: 20_000}
LIMIT = 120.0  # seconds to get to a size
NOISE = 20  # percent
BATCHES = (10_000, 100_000, 1_000_000, 2_000_000)  # events
MIN_EVENTS_BEFORE = 1_000_000  # events that go before, however large the batches are
UNIT = Unit("thousand events per second", "rate", 1e-3)


def batches_of(case: Case) -> dict[int, int]:
    """Return batch sizes; small at first where every row is compared with every other."""
    return LARGE if _is_quick(case) else SMALL


def _is_quick(case: Case) -> bool:
    """Return whether Spark's join finds what meets without comparing all with all."""
    return case.has_equality or case.one_counts


def prepare(case: Case, plan: Mapping[int, tuple[int, int]]) -> Prepare:
    """Yield the two sides of a case; the plan has the events of a batch and how many go before.

    The scale shrinks the batches, and not their number.
    """

    @contextmanager
    def prepare_round(size: int, scale: float, seed: int) -> Iterator[Round]:
        batch, batches = plan[size]
        # Half of the events of a batch are for each stream.
        events = max(2, round(batch * scale) // 2 * 2)
        shown = max(2, round(size * scale))
        with session() as spark, ExitStack() as stack:
            contestants, facts = [], dict[str, Fact]()
            for side in SIDES:
                live = stack.enter_context(Paced(SIDES[side](spark, case, events // 2, seed)))
                # Off the clock: the stream gets to its length before the turns begin.
                reason = late(live, batches, events)
                if reason:
                    facts[f"at {shown:,}, {side} is left out"] = reason
                    continue
                answer = partial(differences, spark, case, side, seed)
                note = f"batches of {events:,}"
                contestants.append(Contestant(side, events, answer, live.advance, note=note))
            yield Round(shown, tuple(contestants), lambda: facts)

    return prepare_round


def late(live: Paced, batches: int, events: int) -> str:
    """Return why a side does not get to a length of the stream; nothing where it does."""
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


def make_throughput(case: Case) -> Experiment:
    plan = {size: (batch, size // batch) for size, batch in batches_of(case).items()}
    how = "an equality" if case.has_equality else "no equality"
    return Experiment(
        name=f"synopsis-{case.name.partition('_')[0]}",
        title=f"{case.name} on Spark, by {how}, as the stream gets longer",
        sizes=tuple(plan),
        size_label="events before",
        unit=UNIT,
        baseline=THEIRS,
        prepare=prepare(case, plan),
        repeats=5 if _is_quick(case) else 3,
        claims=(
            Faster("three times as fast", OURS, THEIRS, 3, claimant="goal"),
            Steady("as fast as at first", OURS, NOISE),
        ),
    )


THROUGHPUT = tuple(map(make_throughput, CASES))
BY_BATCH = Experiment(
    name="synopsis-batches",
    title="q3 on Spark after a million events, by the size of micro-batches",
    sizes=BATCHES,
    size_label="events in a batch",
    unit=UNIT,
    baseline=THEIRS,
    prepare=prepare(
        CASES[0], {size: (size, max(1, MIN_EVENTS_BEFORE // size)) for size in BATCHES}
    ),
    repeats=5,
    claims=(Faster("three times as fast", OURS, THEIRS, 3, claimant="goal"),),
)
