"""Exact matching (EM): query boxes are split until every part is held or one is not.

The split strategies differ in what they split next, and so in how many parts they store: breadth
first all of one level, depth first the siblings along one path, mixed those of all siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.implication.paper.stream_predicate import (
    Overlap,
    StreamPredicate,
    run_quick_check,
    subtract_box,
)
from headgate.implication.parts import ComparisonCounter, Part

MAX_STORED_SIDES = 2_000_000

Strategy = Callable[[StreamPredicate, Part, ComparisonCounter], bool]


def match_em(
    stream: StreamPredicate,
    query: Iterable[Part],
    counter: ComparisonCounter,
    strategy: Strategy,
    *,
    check_first: bool,
) -> bool:
    """Decide whether the stream holds all query boxes, and add those that it does not hold.

    Algorithms 10 to 12 (section 3.5). Deviation: a query box that overlaps no box of the stream is
    a mismatch also where the quick check finds that out; the paper adds the box and still reports a
    match.
    """
    covered = True
    for part in query:
        overlap = run_quick_check(stream, part, counter) if check_first else Overlap.OVERLAPPING
        if overlap is Overlap.INSIDE:
            continue
        # A mismatch adds the query box whole, not just the parts that are left (section 3.5).
        if overlap is Overlap.APART or not strategy(stream, part, counter):
            covered = False
            stream.add(part)
    return covered


def split_breadth_first(stream: StreamPredicate, part: Part, counter: ComparisonCounter) -> bool:
    """Compare all parts with one box before any with the next (Algorithm 10).

    The parts can be exponentially many; past `MAX_STORED_SIDES` it declines.
    """
    parts = [part]
    for number in stream.candidates(part):
        # What the boxes so far leave of the query box: all parts of one level.
        remaining: list[Part] = []
        for piece in parts:
            remaining += subtract_box(stream, number, piece, counter)
            if len(remaining) * len(part) > MAX_STORED_SIDES:
                raise ExpansionTooLarge(
                    f"breadth-first matching stores over {len(remaining) - 1:,} parts; "
                    'the method "exact" stores few'
                )
        counter.store(len(remaining) - counter.parts)
        parts = remaining
        if not parts:
            return True
    counter.store(-counter.parts)
    return False


@dataclass(frozen=True, slots=True)
class _Frame:
    """Parts that still have to be matched, from which position on, and the box that cut them."""

    parts: list[Part]
    position: int
    cut_by: int | None


def split_depth_first(stream: StreamPredicate, part: Part, counter: ComparisonCounter) -> bool:
    """Compare a part's own pieces before its siblings (Algorithm 11).

    Deviation: the queue of remaining predicates is last in, first out, as that of the parts is;
    and it is a position in the order of volume, or with an index its entries that are active.
    """
    frames = [_Frame([part], 0, None)]
    while frames:
        # The topmost frame holds siblings; a piece that is cut puts its own pieces on top of them.
        frame = frames[-1]
        if not frame.parts:
            _leave(stream, frames.pop())
            continue
        piece = frame.parts.pop()
        counter.store(-1 if frame.cut_by is not None else 0)
        # A part that no box is left to cut is a mismatch.
        number = _next_box(stream, piece, frame.position)
        if number is None:
            _abandon(stream, frames, counter)
            return False
        pieces = subtract_box(stream, number, piece, counter)
        if pieces:
            counter.store(len(pieces))
            frames.append(_Frame(pieces, frame.position + 1, _enter(stream, number)))
    return True


def split_mixed(stream: StreamPredicate, part: Part, counter: ComparisonCounter) -> bool:
    """Compare all siblings before the pieces of the last of them (Algorithm 12).

    Deviations as in `split_depth_first`.
    """
    frames = [_Frame([part], 0, None)]
    while frames:
        frame = frames.pop()
        if not frame.parts:
            _leave(stream, frame)
            continue
        counter.store(-len(frame.parts) if frame.cut_by is not None else 0)
        entered = None if frame.cut_by is None else _enter(stream, frame.cut_by)
        # An empty frame below the pieces: there the box that cut these siblings is active again.
        frames.append(_Frame([], 0, entered))
        for piece in frame.parts:
            number = _next_box(stream, piece, frame.position)
            if number is None:
                _abandon(stream, [f for f in frames if not f.parts], counter)
                return False
            pieces = subtract_box(stream, number, piece, counter)
            if pieces:
                counter.store(len(pieces))
                frames.append(_Frame(pieces, frame.position + 1, number))
    return True


def _next_box(stream: StreamPredicate, part: Part, position: int) -> int | None:
    """Return the box to compare a part with; None where none is left."""
    # With an index, boxes that cut before are inactive; without one the position counts (3.6).
    if stream.index is None:
        return stream.number_at(position) if position < len(stream) else None
    return next(iter(stream.candidates(part)), None)


def _enter(stream: StreamPredicate, number: int) -> int:
    """Leave a box out of the index while the parts that it cut are matched with the others."""
    if stream.index is not None:
        stream.index.deactivate(number)
    return number


def _leave(stream: StreamPredicate, frame: _Frame) -> None:
    if stream.index is not None and frame.cut_by is not None:
        stream.index.activate(frame.cut_by)


def _abandon(stream: StreamPredicate, frames: Iterable[_Frame], counter: ComparisonCounter) -> None:
    for frame in frames:
        _leave(stream, frame)
    counter.store(-counter.parts)
