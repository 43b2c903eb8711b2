"""What a paper, or a goal of ours, claims of contestants, and whether it held here.

A verdict is computed from the measurements alone, and reads `paper: what is claimed; here: what was
measured`. One contestant is before another where it was faster in every turn, each taken next to
the other's; where the turns differ it is a tie, which speaks neither for a claim nor against it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from statistics import median, pstdev, quantiles
from typing import ClassVar, Literal

from benchmarks.harness.experiment import Claim
from benchmarks.harness.result import Measurement, Result, Spread, format_digits

ROUNDING = 0.05  # of a power, by terms of lower order
TOLERANCE = 0.2  # of a power, as Spark estimates what its state takes


@dataclass(frozen=True, slots=True)
class BaseClaim(ABC):
    """A claim with its source, such as a figure of a paper, and who says it."""

    wording: ClassVar[str] = ""  # of the claim `c` on the result `r`
    source: str
    claimant: str = field(default="paper", kw_only=True)

    def verdict(self, result: Result) -> str:
        """Return what is claimed, and how that compares with a result."""
        outcome = self.compare(result) or "not measured"
        return f"{self.claimant}: {self.statement(result)}; here: {outcome}"

    def statement(self, result: Result) -> str:
        """Return what is claimed, in words."""
        return self.wording.format(c=self, r=result)

    @abstractmethod
    def compare(self, result: Result) -> str:
        """Return how the result compares; empty where nothing was measured."""


@dataclass(frozen=True, slots=True)
class PairClaim(BaseClaim):
    """A claim about a contestant and another one, judged at each size at which both ran."""

    name: str
    other: str

    def compare(self, result: Result) -> str:
        judged = []
        for size in result.sizes:
            first, second = (result.find(name, size) for name in (self.name, self.other))
            # A contestant that was left out at a size is not judged there.
            outcome = first and second and self.judge(first, second)
            if outcome:
                is_held, details = outcome
                judged.append(f"{_format_outcome(is_held)} at {size:,}{details}")
        return "; ".join(judged)

    @abstractmethod
    def judge(self, first: Measurement, second: Measurement) -> tuple[bool, str] | None:
        """Return whether it held, with the figures; None where there are too few of them."""


@dataclass(frozen=True, slots=True)
class AtSizes:
    """A claim about some of the sizes."""

    claim: Claim
    sizes: tuple[int, ...]

    @property
    def source(self) -> str:
        return self.claim.source

    def verdict(self, result: Result) -> str:
        measurements = tuple(m for m in result.measurements if m.size in self.sizes)
        return self.claim.verdict(replace(result, measurements=measurements))


@dataclass(frozen=True, slots=True)
class Order(BaseClaim):
    """The contestants from the fastest to the slowest, at all sizes or at some of them.

    Those that were left out are passed over. The claim is held at a size where each is before the
    next, not held where one is before another that should be before it, and else undecided.
    """

    wording: ClassVar[str] = "{c.order}"
    names: tuple[str, ...]
    sizes: tuple[int, ...] = ()

    @property
    def order(self) -> str:
        return " < ".join(self.names)

    def compare(self, result: Result) -> str:
        outcomes: dict[str, list[str]] = {"held": [], "undecided": [], "not held": []}
        for size in self.sizes or result.sizes:
            # In the claimed order, without those that were left out.
            measured = [m for name in self.names if (m := result.find(name, size))]
            if len(measured) > 1:
                outcome = _judge_order(measured)
                order = "" if outcome == "held" else f" ({_describe_order(measured)})"
                outcomes[outcome].append(f"{size:,}{order}")
        return "; ".join(f"{outcome} at {', '.join(at)}" for outcome, at in outcomes.items() if at)


@dataclass(frozen=True, slots=True)
class Reduction(BaseClaim):
    """A contestant takes so many percent less time than another (Equation 24), or up to so many."""

    wording: ClassVar[str] = "{c.name} takes up to {c.percent:g} % less time than {c.other}"
    name: str
    other: str
    percent: float

    def compare(self, result: Result) -> str:
        measured = [m for size in result.sizes if (m := result.find(self.name, size))]
        ratios = [ratio for m in measured if (ratio := result.ratio(m, self.other))]
        return _describe_percents(100 - 100 / ratio.median for ratio in ratios)


@dataclass(frozen=True, slots=True)
class Growth(BaseClaim):
    """The time of a contestant grows by so many percent, from the first size to the last."""

    wording: ClassVar[str] = "the time of {c.name} grows by {c.percent:g} %"
    name: str
    percent: float

    def compare(self, result: Result) -> str:
        figures = _figures(result, self.name)
        if not {result.sizes[0], result.sizes[-1]} <= set(figures):
            return ""
        growth = figures[result.sizes[-1]] / figures[result.sizes[0]]
        return _describe_percents([100 * growth - 100])


@dataclass(frozen=True, slots=True)
class Near(BaseClaim):
    """A contestant is as good as another but for so many percent, or better."""

    wording: ClassVar[str] = "{c.name} within {c.percent:g} % of {c.other}"
    name: str
    other: str
    percent: float

    def compare(self, result: Result) -> str:
        pairs = _pairs(result, self.name, self.other)
        above = [(size, 100 * own / other - 100) for size, own, other in pairs]
        judged = (
            f"{_format_outcome(n <= self.percent)} at {size:,} ({n:+.2f} %)" for size, n in above
        )
        return "; ".join(judged)


@dataclass(frozen=True, slots=True)
class Faster(PairClaim):
    """A contestant is at least so many times as fast as another, in the median of the turns."""

    wording: ClassVar[str] = "{c.name} at least {c.times:g} times as fast as {c.other}"
    times: float

    def judge(self, first: Measurement, second: Measurement) -> tuple[bool, str]:
        ratio = Spread.of(_ratios(second, first))
        limits = f"{format_digits(ratio.low)}–{format_digits(ratio.high)}"
        return ratio.median >= self.times, f": {ratio.median:.3f} ({limits})"


@dataclass(frozen=True, slots=True)
class Alike(PairClaim):
    """Two contestants take the same time: the middle half of their ratios has 1 in it."""

    wording: ClassVar[str] = "the time of {c.name}, divided by that of {c.other}, is 1, noise aside"

    def judge(self, first: Measurement, second: Measurement) -> tuple[bool, str] | None:
        if len(first.seconds) < 2:
            return None
        # The middle half of the turns, so that single slow turns do not count.
        low, middle, high = quantiles(_ratios(first, second), n=4)
        return low <= 1 <= high, f": {middle:.3f} (quartiles {low:.3f}–{high:.3f})"


@dataclass(frozen=True, slots=True)
class PartOf(PairClaim):
    """A contestant counts at most such a part of another, in the median of the turns."""

    wording: ClassVar[str] = "{c.name} at most {c.part:.2g} of {c.other}"
    part: float
    claimant: str = field(default="goal", kw_only=True)

    def judge(self, first: Measurement, second: Measurement) -> tuple[bool, str]:
        parts = [own / other for own, other in zip(first.seconds, second.seconds, strict=True)]
        details = f": {median(parts):.2f} ({min(parts):.2f}–{max(parts):.2f})"
        return median(parts) <= self.part, details


@dataclass(frozen=True, slots=True)
class LessSpread(PairClaim):
    """The turns of a contestant differ by at most such a part of what those of another do."""

    wording: ClassVar[str] = "spread of {c.name} at most {c.part:.2f} of that of {c.other}"
    part: float
    claimant: str = field(default="goal", kw_only=True)

    def judge(self, first: Measurement, second: Measurement) -> tuple[bool, str] | None:
        spreads = [max(m.seconds) - min(m.seconds) for m in (first, second)]
        if not spreads[1]:
            return None
        part = spreads[0] / spreads[1]
        deviation = pstdev(first.seconds) / pstdev(second.seconds)
        return part <= self.part, f": {part:.2f} (standard deviation {deviation:.2f})"


@dataclass(frozen=True, slots=True)
class Trend(BaseClaim):
    """The figure of a contestant rises, or falls, with the size; or its distance to another's."""

    name: str
    direction: Literal["rises", "falls"]
    apart_from: str | None = None

    def statement(self, result: Result) -> str:
        distance = f"the distance of {self.name} from {self.apart_from}"
        figure = distance if self.apart_from else self.name
        return f"{figure} {self.direction} with {result.size_label}"

    def compare(self, result: Result) -> str:
        figures = _figures(result, self.name)
        if self.apart_from:
            others = _figures(result, self.apart_from)
            figures = {n: abs(figures[n] - others[n]) for n in figures if n in others}
        values = list(figures.values())
        if len(values) < 2:
            return ""
        rises = self.direction == "rises"
        # Held at each step, or only between the first and the last size; the latter is said apart.
        if {later > earlier for earlier, later in pairwise(values)} == {rises}:
            outcome = "held"
        elif (values[-1] > values[0]) == rises:
            outcome = "held from end to end, not at each step"
        else:
            outcome = "not held"
        return f"{outcome} ({_join(values)})"


@dataclass(frozen=True, slots=True)
class TimesAsMany(BaseClaim):
    """A contestant counts so many times as much as another, in the median over the sizes."""

    wording: ClassVar[str] = "{c.name} {c.times:.2f} times as many as {c.other}"
    name: str
    other: str
    times: float

    def compare(self, result: Result) -> str:
        counts = [(own, other) for _, own, other in _pairs(result, self.name, self.other) if other]
        if not counts:
            return ""
        ratios = [own / other for own, other in counts]
        middle, low, high = map(format_digits, (median(ratios), min(ratios), max(ratios)))
        outcome = _format_outcome(median(ratios) >= self.times)
        return f"{outcome}: {middle} ({low}–{high}): {_join_pairs(counts)}"


@dataclass(frozen=True, slots=True)
class NeverAbove(BaseClaim):
    """A contestant never counts more than another does, or than that and so much on top."""

    wording: ClassVar[str] = "{c.name} at most {c.limit}"
    name: str
    other: str
    on_top: float = 0.0

    @property
    def limit(self) -> str:
        return f"{self.other} and {self.on_top:g}" if self.on_top else self.other

    def compare(self, result: Result) -> str:
        pairs = _pairs(result, self.name, self.other)
        outcome = _format_outcome(all(own <= other + self.on_top for _, own, other in pairs))
        shown = (
            f"{format_digits(own)} of {format_digits(other)} at {size:,}"
            for size, own, other in pairs
        )
        return f"{outcome} ({'; '.join(shown)})" if pairs else ""


@dataclass(frozen=True, slots=True)
class SameCounts(BaseClaim):
    """Two contestants count the same at every size."""

    wording: ClassVar[str] = "{c.name} as much as {c.other}"
    name: str
    other: str

    def compare(self, result: Result) -> str:
        counts = [(own, other) for _, own, other in _pairs(result, self.name, self.other)]
        outcome = _format_outcome(all(own == other for own, other in counts))
        return f"{outcome} ({_join_pairs(counts)})" if counts else ""


@dataclass(frozen=True, slots=True)
class Power(BaseClaim):
    """From the second last size to the last, a count grows like this power of it, or less."""

    wording: ClassVar[str] = (
        "{c.name} grows at most like {r.size_label} to the power of {c.power:g}"
    )
    name: str
    power: float

    def compare(self, result: Result) -> str:
        counts = [(size, count) for size, count in _figures(result, self.name).items() if count]
        if len(counts) < 2:
            return ""
        power = _compute_power(*counts[-2:])
        return f"{_format_outcome(power <= self.power + ROUNDING)}: {power:.2f}"


@dataclass(frozen=True, slots=True)
class SameAnswers(BaseClaim):
    """By the facts that begin like this, there were at least so many answers, and all the same.

    Contestants that disagree are not measured at all.
    """

    wording: ClassVar[str] = "the same on {c.pairs:,} pairs"
    fact: str
    pairs: int

    def compare(self, result: Result) -> str:
        counts = [fact for name, fact in result.facts.items() if name.startswith(self.fact)]
        agreed = sum(int(count) for count in counts)
        return f"{_format_outcome(agreed >= self.pairs * result.scale)}: on {agreed:,}"


@dataclass(frozen=True, slots=True)
class AcrossSizes(BaseClaim):
    """A contestant at one size does better than another at another size."""

    wording: ClassVar[str] = "{c.name} at {c.size:,} before {c.other} at {c.other_size:,}"
    name: str
    size: int
    other: str
    other_size: int

    def compare(self, result: Result) -> str:
        own_figure = _figures(result, self.name).get(self.size)
        other_figure = _figures(result, self.other).get(self.other_size)
        if own_figure is None or other_figure is None:
            return ""
        is_better = (
            own_figure < other_figure
            if result.unit.better == "lower"
            else own_figure > other_figure
        )
        shown = f"{format_digits(own_figure)} and {format_digits(other_figure)} {result.unit.label}"
        return f"{_format_outcome(is_better)}: {shown}"


@dataclass(frozen=True, slots=True)
class PaysFrom(BaseClaim):
    """From which size on a contestant is before another one in the median, up to the last size."""

    wording: ClassVar[str] = "from which size on {c.name} is faster than {c.other}"
    name: str
    other: str
    claimant: str = field(default="question", kw_only=True)

    def compare(self, result: Result) -> str:
        first = None
        # From the greatest size down, as long as the contestant is faster.
        for size in reversed(result.sizes):
            measured = result.find(self.name, size)
            ratio = measured and result.ratio(measured, self.other)
            if not ratio or ratio.median <= 1:
                break
            first = size
        return "nowhere" if first is None else f"from {first:,} {result.size_label}"


@dataclass(frozen=True, slots=True)
class AtMost(BaseClaim):
    """A contestant takes at most so much at the greatest size."""

    wording: ClassVar[str] = "{c.name} at most {c.limit:g} {r.unit.label}"
    name: str
    limit: float
    claimant: str = field(default="goal", kw_only=True)

    def compare(self, result: Result) -> str:
        figure = _figures(result, self.name).get(result.sizes[-1])
        if figure is None:
            return ""
        outcome = _format_outcome(figure <= self.limit)
        return f"{outcome} at {result.sizes[-1]:,}: {format_digits(figure)}"


@dataclass(frozen=True, slots=True)
class AtLeast(BaseClaim):
    """A contestant reaches a rate at some size."""

    wording: ClassVar[str] = "at least {c.rate:g} {r.unit.label}"
    name: str
    rate: float
    claimant: str = field(default="goal", kw_only=True)

    def compare(self, result: Result) -> str:
        figures = _figures(result, self.name)
        shown = (f"{format_digits(figure)} at {size:,}" for size, figure in figures.items())
        outcome = _format_outcome(max(figures.values(), default=0.0) >= self.rate)
        return f"{outcome} ({', '.join(shown)})" if figures else ""


@dataclass(frozen=True, slots=True)
class Flat(BaseClaim):
    """A contestant counts the same at every size."""

    wording: ClassVar[str] = "the same at every size"
    name: str
    claimant: str = field(default="goal", kw_only=True)

    def compare(self, result: Result) -> str:
        values = _figures(result, self.name).values()
        return f"{_format_outcome(len(set(values)) == 1)} ({_join(values)})" if values else ""


@dataclass(frozen=True, slots=True)
class Linear(BaseClaim):
    """A contestant counts so many times as much as the size grows, in the second half of them."""

    wording: ClassVar[str] = "grows with the stream"
    name: str
    claimant: str = field(default="known", kw_only=True)

    def compare(self, result: Result) -> str:
        figures = list(_figures(result, self.name).items())
        if len(figures) < 2:
            return ""
        # At small sizes a constant part would hide the growth.
        power = _compute_power(figures[len(figures) // 2], figures[-1])
        shown = _join(figure for _, figure in figures)
        return (
            f"{_format_outcome(abs(power - 1) <= TOLERANCE)}, by the power of {power:.2f} ({shown})"
        )


@dataclass(frozen=True, slots=True)
class Steady(BaseClaim):
    """The rate of a contestant does not fall from the second last size to the last."""

    wording: ClassVar[str] = "does not fall with the stream"
    name: str
    percent: float
    claimant: str = field(default="goal", kw_only=True)

    def compare(self, result: Result) -> str:
        values = list(_figures(result, self.name).values())
        if len(values) < 2:
            return ""
        change = 100 * values[-1] / values[-2] - 100
        return f"{_format_outcome(change >= -self.percent)}: {change:+.0f} % ({_join(values)})"


def _format_outcome(is_held: bool) -> str:
    return "held" if is_held else "not held"


def _figures(result: Result, name: str) -> dict[int, float]:
    """Return the medians of a contestant by size, without the sizes at which it was left out."""
    measured = (result.find(name, size) for size in result.sizes)
    return {m.size: m.figure(result.unit).median for m in measured if m}


def _pairs(result: Result, name: str, other: str) -> list[tuple[int, float, float]]:
    """Return size and both medians wherever two contestants were measured."""
    first, second = _figures(result, name), _figures(result, other)
    return [(size, first[size], second[size]) for size in first if size in second]


def _compute_power(first: tuple[int, float], last: tuple[int, float]) -> float:
    """Return the exponent by which figures grow between two sizes."""
    return math.log(last[1] / first[1]) / math.log(last[0] / first[0])


def _join(figures: Iterable[float]) -> str:
    return ", ".join(map(format_digits, figures))


def _join_pairs(pairs: Iterable[tuple[float, float]]) -> str:
    return ", ".join(f"{format_digits(own)} and {format_digits(other)}" for own, other in pairs)


def _judge_order(measured: list[Measurement]) -> str:
    relations = {_relate(first, second) for first, second in combinations(measured, 2)}
    if ">" in relations:
        return "not held"
    return "undecided" if "≈" in relations else "held"


def _ratios(first: Measurement, second: Measurement) -> list[float]:
    """Return the time of one per piece of work, divided by that of the other, turn by turn."""
    turns = zip(first.seconds, second.seconds, strict=True)
    return [(own / first.work) / (other / second.work) for own, other in turns]


def _relate(first: Measurement, second: Measurement) -> str:
    """Return `<` where the first is faster in every turn, `>` where the second is, else `≈`."""
    turns = zip(first.seconds, second.seconds, strict=True)
    pairs = [(own / first.work, other / second.work) for own, other in turns]
    # Faster in every turn, each compared with the other's turn of the same repeat.
    if all(own < other for own, other in pairs):
        return "<"
    return ">" if all(own > other for own, other in pairs) else "≈"


def _describe_order(measured: list[Measurement]) -> str:
    """Return all by their medians, `≈` between neighbours that tie."""
    order = sorted(measured, key=lambda m: median(m.seconds) / m.work)
    parts = [order[0].contestant]
    for first, second in pairwise(order):
        parts.append("<" if _relate(first, second) == "<" else "≈")
        parts.append(second.contestant)
    return " ".join(parts)


def _describe_percents(percents: Iterable[float]) -> str:
    values = list(percents)
    if not values:
        return ""
    low, high = f"{format_digits(min(values))} %", f"{format_digits(max(values))} %"
    return low if low == high else f"from {low} to {high}"
