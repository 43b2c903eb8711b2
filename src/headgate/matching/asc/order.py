"""The order in which constructs are evaluated, and how to find one from a sample of events.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.constructs import TextConstruct
from headgate.matching.asc.kernels.evaluate import (
    EVALUATED,
    MAX_ARROW_TARGETS,
    TALLY_SIZE,
    PackedOrder,
    evaluate_events,
)
from headgate.matching.asc.kernels.sequences import (
    MonitoredSample,
    find_arrows,
    find_macro_sequence,
    improve_sequence,
)
from headgate.matching.asc.options import AscOptions

RANDOM_SAMPLE_EVENTS = 500  # by which the first order is found, before any event has come
MIN_WORK, MAX_WORK = 1 << 24, 1 << 30  # words that may be looked at to find an order
MIN_LOOKAHEAD_EVENTS = 100  # events that looking ahead needs

Numbers = npt.NDArray[np.int64]
Sample = npt.NDArray[np.int32]  # by event and construct: the row that the event is in


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationOrder:
    """A macro-sequence of constructs, by number, and the micro-arrow of each row, −1 for none.

    The first `cover` constructs cover all queries but those with nothing but text patterns.
    """

    sequence: tuple[int, ...]
    cover: int = 0
    arrows: npt.NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))

    @property
    def packed(self) -> PackedOrder:
        """The order as kernels read it: arrows lead to places in the sequence."""
        sequence = np.array(self.sequence, np.int64)
        if not self.arrow_count:
            return PackedOrder(sequence, self.arrows[:0])
        # by construct: its place in the sequence, for those that an arrow can lead to
        place_of = np.full(max(self.sequence) + 2, -1, np.int16)  # the last is for none
        place_of[sequence[:MAX_ARROW_TARGETS]] = np.arange(len(sequence[:MAX_ARROW_TARGETS]))
        return PackedOrder(sequence, place_of[self.arrows])

    @property
    def arrow_count(self) -> int:
        """The number of micro-arrows."""
        return int((self.arrows >= 0).sum())

    def adjust_to(self, plain: Numbers, of_texts: Numbers) -> EvaluationOrder:
        """Return the same order for other constructs: those that are new come last."""
        now = {*plain.tolist(), *of_texts.tolist()}
        if now == {*self.sequence}:
            return self
        in_use = [number for number in self.sequence if number in plain]
        new = [number for number in plain.tolist() if number not in self.sequence]
        # arrows to constructs that are gone lead nowhere
        arrows = np.where(np.isin(self.arrows, plain), self.arrows, -1).astype(np.int16)
        cover = sum(number in plain for number in self.sequence[: self.cover])
        return EvaluationOrder((*in_use, *new, *of_texts.tolist()), cover, arrows)


def find_used_constructs(bitmaps: Bitmaps) -> tuple[Numbers, Numbers]:
    """Return the constructs that some query uses: of values and pairs, and of text patterns."""
    used = np.flatnonzero(bitmaps.usage.any(axis=1))
    of_texts = np.array([isinstance(bitmaps.constructs[n], TextConstruct) for n in used], np.bool_)
    return used[~of_texts], used[of_texts]


def find_order(
    bitmaps: Bitmaps, sample: Sample, options: AscOptions, *, thorough: bool
) -> EvaluationOrder:
    """Return the best order for the events of a sample, as the options have it.

    Looking ahead takes time; one that is not `thorough` is then a macro-sequence, step by step.
    Constructs of patterns have no regions to learn about, and come last: to make their rows takes
    longer than to evaluate all others.
    """
    if sample.shape[1] != len(bitmaps.constructs):  # of other constructs
        sample = np.empty((0, len(bitmaps.constructs)), np.int32)
    plain, of_texts = find_used_constructs(bitmaps)
    if not len(plain):
        return EvaluationOrder(tuple(of_texts.tolist()))
    # A sequence by the paper, on as many events as the time allows.
    counted = np.bitwise_or.reduce(bitmaps.usage[plain], axis=0, initial=0)
    work = min(MAX_WORK, max(MIN_WORK, 4 * options.period * len(plain) * bitmaps.words))
    sample = _thin(sample, len(plain) ** 2 * bitmaps.words, work)
    begin, end = _split_periods(len(sample), len(plain), options.monitored)
    monitored = MonitoredSample(bitmaps.bits, bitmaps.usage, counted, sample, begin, end)
    sequence, cover, selectivity = find_macro_sequence(monitored, plain)
    # Then a better one by looking ahead, which takes longer for each event.
    ahead = options.lookahead and thorough
    if ahead:
        sample = _thin(sample, len(plain) ** 3 * bitmaps.words, work)
        ahead = len(sample) >= MIN_LOOKAHEAD_EVENTS
    if ahead:
        begin, end = _split_periods(len(sample), len(plain), None)
        monitored = monitored._replace(sample=sample, begin=begin, end=end)
        sequence = improve_sequence(monitored, sequence)
        cover = _measure_cover(monitored, sequence)
    arrows = np.empty(0, np.int16)
    if options.sequence == "hybrid" and ahead == options.lookahead:
        arrows = find_arrows(monitored, sequence, cover, selectivity, options.fewest, ahead)
    return EvaluationOrder((*sequence.tolist(), *of_texts.tolist()), cover, arrows)


def measure_cost(bitmaps: Bitmaps, order: EvaluationOrder, sample: Sample) -> int:
    """Return how many constructs the events of a sample evaluate, without those of patterns."""
    plain = find_used_constructs(bitmaps)[0]
    # patterns are left out: their rows last no longer than a batch
    table, packed = bitmaps.table(), order.adjust_to(plain, plain[:0]).packed
    at, words = np.ascontiguousarray(sample.T), max(1, bitmaps.words)
    tally, seen = np.zeros(TALLY_SIZE, np.int64), np.full(64 * words, -1, np.int64)
    max_matches = len(bitmaps) + len(table.always)
    out, offsets = (
        np.empty(max(1 << 16, max_matches), np.int64),
        np.empty(len(sample) + 1, np.int64),
    )
    row = 0
    while row < len(sample):
        row = evaluate_events(
            table, at, row, len(sample), packed, words, max_matches, seen, out, offsets, tally
        )
    return int(tally[EVALUATED])


def _thin(sample: Sample, words_per_event: int, max_words: int) -> Sample:
    """Return as many of the events as a search can take, if it may look at so many words.

    That is what it takes to evaluate a few periods: a fraction of a second.
    """
    step = max(1, -(-len(sample) * words_per_event // max_words))
    return np.ascontiguousarray(sample[::step])


def _measure_cover(monitored: MonitoredSample, sequence: Numbers) -> int:
    """Return how many constructs at the beginning of a sequence cover all queries that count."""
    # (constructs, words): the queries that use it or one before it
    covered = np.bitwise_or.accumulate(monitored.usage[sequence], axis=0)
    return 1 + int(np.argmax(((monitored.counted & ~covered) == 0).all(axis=1)))


def _split_periods(events: int, constructs: int, monitored: int | None) -> tuple[Numbers, Numbers]:
    """Return where the events of each step begin and end; the last has only one construct left."""
    begin = np.zeros(max(1, constructs), np.int64)
    if monitored is None:
        return begin, np.full(len(begin), events)
    # τ events for each step but the last, which has no choice
    size = min(monitored, events // max(1, constructs - 1))
    begin = np.minimum(np.arange(len(begin)) * size, events)
    return begin, np.minimum(begin + size, events)


def draw_random_sample(bitmaps: Bitmaps, seed: int = 0) -> Sample:
    """Return events in random regions, as if all regions of a construct were equally likely."""
    random = np.random.default_rng(seed)
    sample = np.zeros((RANDOM_SAMPLE_EVENTS, len(bitmaps.constructs)), np.int32)
    for number in find_used_constructs(bitmaps)[0].tolist():
        construct = bitmaps.constructs[number]
        assert not isinstance(construct, TextConstruct)
        # not the row of NULL, which is the first
        sample[:, number] = random.choice(construct.rows[1:], RANDOM_SAMPLE_EVENTS)
    return sample
