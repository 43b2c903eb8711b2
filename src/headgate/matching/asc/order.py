"""The order in which constructs are evaluated, and how one is found from a sample of events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.kernels.arrows import found_arrows
from headgate.matching.asc.kernels.evaluate import ARROWED, COUNTED, EVALUATED, Way, evaluate
from headgate.matching.asc.kernels.sequences import Monitored, improved_sequence, macro_sequence
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.texts import TextsOf

IMAGINED = 500  # events by which the first order is found, before any has come
LEAST_WORK, MOST_WORK = 1 << 24, 1 << 30  # words that may be looked at to find an order
FEWEST_AHEAD = 100  # events that looking ahead needs

Numbers = npt.NDArray[np.int64]
Sample = npt.NDArray[np.int32]  # by event and construct: the row that the event is in


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The macro-sequence by the numbers of constructs, the first `cover` of which cover all queries
    but those that ask for text patterns alone; and the micro-arrow of each row, −1 for none."""

    sequence: tuple[int, ...]
    cover: int = 0
    arrows: npt.NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))

    @property
    def way(self) -> Way:
        sequence = np.array(self.sequence, np.int64)
        if not self.micro:
            return Way(sequence, self.arrows[:0])
        place_of = np.full(max(self.sequence) + 2, -1, np.int16)  # the last is for none
        place_of[sequence[:ARROWED]] = np.arange(len(sequence[:ARROWED]))
        return Way(sequence, place_of[self.arrows])

    @property
    def micro(self) -> int:
        """The number of micro-arrows."""
        return int((self.arrows >= 0).sum())

    def over(self, plain: Numbers, of_texts: Numbers) -> Order:
        """The same for other constructs: those that are new come last."""
        now = {*plain.tolist(), *of_texts.tolist()}
        if now == {*self.sequence}:
            return self
        kept = [number for number in self.sequence if number in plain]
        new = [number for number in plain.tolist() if number not in self.sequence]
        arrows = np.where(np.isin(self.arrows, plain), self.arrows, -1).astype(np.int16)
        cover = sum(number in plain for number in self.sequence[: self.cover])
        return Order((*kept, *new, *of_texts.tolist()), cover, arrows)


def used_constructs(bitmaps: Bitmaps) -> tuple[Numbers, Numbers]:
    """The constructs that some query uses: those of values and pairs, and those of patterns."""
    used = np.flatnonzero(bitmaps.usage.any(axis=1))
    of_texts = np.array([isinstance(bitmaps.subjects[n], TextsOf) for n in used], np.bool_)
    return used[~of_texts], used[of_texts]


def found_order(bitmaps: Bitmaps, sample: Sample, options: AscOptions, *, thorough: bool) -> Order:
    """The sequence by the events of a sample, as the options have it.

    Looking ahead takes time; one that is not `thorough` is then a macro-sequence, step by step.
    Constructs of patterns have no regions to learn about, and come last: to make their rows takes
    longer than to evaluate all others.
    """
    if sample.shape[1] != len(bitmaps.subjects):  # of other constructs
        sample = np.empty((0, len(bitmaps.subjects)), np.int32)
    plain, of_texts = used_constructs(bitmaps)
    if not len(plain):
        return Order(tuple(of_texts.tolist()))
    counted = np.bitwise_or.reduce(bitmaps.usage[plain], axis=0, initial=0)
    work = min(MOST_WORK, max(LEAST_WORK, 4 * options.period * len(plain) * bitmaps.words))
    sample = _thinned(sample, len(plain) ** 2 * bitmaps.words, work)
    begin, end = _periods(len(sample), len(plain), options.monitored)
    monitored = Monitored(bitmaps.bits, bitmaps.usage, counted, sample, begin, end)
    sequence, cover, alone = macro_sequence(monitored, plain)
    ahead = options.lookahead and thorough
    if ahead:
        sample = _thinned(sample, len(plain) ** 3 * bitmaps.words, work)
        ahead = len(sample) >= FEWEST_AHEAD
    if ahead:
        begin, end = _periods(len(sample), len(plain), None)
        monitored = monitored._replace(sample=sample, begin=begin, end=end)
        sequence = improved_sequence(monitored, sequence)
        cover = _cover(monitored, sequence)
    arrows = np.empty(0, np.int16)
    if options.sequence == "hybrid" and ahead == options.lookahead:
        arrows = found_arrows(monitored, sequence, cover, alone, options.fewest, ahead)
    return Order((*sequence.tolist(), *of_texts.tolist()), cover, arrows)


def cost_of(bitmaps: Bitmaps, order: Order, sample: Sample) -> int:
    """How many constructs the events of a sample evaluate, those of patterns left out."""
    plain = used_constructs(bitmaps)[0]
    table, way = bitmaps.table(), order.over(plain, plain[:0]).way
    at, words = np.ascontiguousarray(sample.T), max(1, bitmaps.words)
    tally, seen = np.zeros(COUNTED, np.int64), np.full(64 * words, -1, np.int64)
    most = len(bitmaps) + len(table.always)
    out, offsets = np.empty(max(1 << 16, most), np.int64), np.empty(len(sample) + 1, np.int64)
    row = 0
    while row < len(sample):
        row = evaluate(table, at, row, len(sample), way, words, most, seen, out, offsets, tally)
    return int(tally[EVALUATED])


def _thinned(sample: Sample, each: int, most: int) -> Sample:
    """So few of the events that a search which does so much for each stays within its bound: about
    what it takes to evaluate a few periods, and a fraction of a second."""
    step = max(1, -(-len(sample) * each // most))
    return np.ascontiguousarray(sample[::step])


def _cover(monitored: Monitored, sequence: Numbers) -> int:
    """How many constructs at the beginning of a sequence cover all queries that count."""
    covered = np.bitwise_or.accumulate(monitored.usage[sequence], axis=0)
    return 1 + int(np.argmax(((monitored.counted & ~covered) == 0).all(axis=1)))


def _periods(events: int, constructs: int, monitored: int | None) -> tuple[Numbers, Numbers]:
    """Which events of a sample each step looks at; the last step has only one construct left."""
    begin = np.zeros(max(1, constructs), np.int64)
    if monitored is None:
        return begin, np.full(len(begin), events)
    size = min(monitored, events // max(1, constructs - 1))
    begin = np.minimum(np.arange(len(begin)) * size, events)
    return begin, np.minimum(begin + size, events)


def imagined_sample(bitmaps: Bitmaps, seed: int = 0) -> Sample:
    """Events in regions by chance, as if all regions of a construct were equally likely."""
    random = np.random.default_rng(seed)
    sample = np.zeros((IMAGINED, len(bitmaps.subjects)), np.int32)
    for number in used_constructs(bitmaps)[0].tolist():
        subject = bitmaps.subjects[number]
        assert not isinstance(subject, TextsOf)
        sample[:, number] = random.choice(subject.rows[1:], IMAGINED)
    return sample
