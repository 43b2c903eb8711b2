"""Exact matching (EM): query boxes are split until every part is held or one is not.

The split strategies differ in what they split next, and so in how many parts they keep: breadth
first all of one level, depth first those beside the way down, mixed those of all siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.implication.paper.compare import subtract_box
from headgate.implication.paper.part import ComparisonCounter, Part
from headgate.implication.paper.quick_check import Overlap, run_quick_check
from headgate.implication.paper.stream_predicate import StreamPredicate

MAX_STORED_SIDES = 2_000_000  # of parts that are stored

Strategy = Callable[[StreamPredicate, Part, ComparisonCounter], bool]


def match_em(
    stream: StreamPredicate,
    query: Iterable[Part],
    tally: ComparisonCounter,
    strategy: Strategy,
    *,
    check_first: bool,
) -> bool:
    """Algorithms 10 to 12 (section 3.5): does the stream hold all query boxes? Else relaxes it.

    Deviation: a query box that overlaps no box of the stream is a mismatch also where the quick
    check finds that out; the paper adds the box and still reports a match.
    """
    covered = True
    for part in query:
        quick = run_quick_check(stream, part, tally) if check_first else Overlap.OVERLAPPING
        if quick is Overlap.INSIDE:
            continue
        if quick is Overlap.APART or not strategy(stream, part, tally):
            covered = False
            stream.add(part)
    return covered


def split_breadth_first(stream: StreamPredicate, part: Part, tally: ComparisonCounter) -> bool:
    """Algorithm 10: all parts are compared with one box before any with the next.

    The parts can be exponentially many; past `MAX_STORED_SIDES` it declines.
    """
    parts = [part]
    for number in stream.candidates(part):
        rest: list[Part] = []
        for piece in parts:
            rest += subtract_box(stream, number, piece, tally)
            if len(rest) * len(part) > MAX_STORED_SIDES:
                raise ExpansionTooLarge(
                    f"breadth-first matching stores over {len(rest) - 1:,} parts; "
                    'the method "exact" stores few'
                )
        tally.store(len(rest) - tally.parts)
        parts = rest
        if not parts:
            return True
    tally.store(-tally.parts)
    return False


@dataclass(frozen=True, slots=True)
class _Frame:
    """Parts that still have to be matched, from which place on, and the box that left them over."""

    parts: list[Part]
    position: int
    left_by: int | None


def split_depth_first(stream: StreamPredicate, part: Part, tally: ComparisonCounter) -> bool:
    """Algorithm 11: a part's own pieces come before its siblings.

    Deviation: the queue of remaining predicates is last in, first out, as that of the parts is;
    and it is a place in the order of volume, or with an index its entries that are active.
    """
    frames = [_Frame([part], 0, None)]
    while frames:
        frame = frames[-1]
        if not frame.parts:
            _leave(stream, frames.pop())
            continue
        piece = frame.parts.pop()
        tally.store(-1 if frame.left_by is not None else 0)
        number = _next(stream, piece, frame.position)
        if number is None:
            _give_up(stream, frames, tally)
            return False
        rest = subtract_box(stream, number, piece, tally)
        if rest:
            tally.store(len(rest))
            frames.append(_Frame(rest, frame.position + 1, _enter(stream, number)))
    return True


def split_mixed(stream: StreamPredicate, part: Part, tally: ComparisonCounter) -> bool:
    """Algorithm 12: siblings are all compared before the pieces of the last of them.

    Deviations as in `split_depth_first`.
    """
    frames = [_Frame([part], 0, None)]
    while frames:
        frame = frames.pop()
        if not frame.parts:
            _leave(stream, frame)
            continue
        tally.store(-len(frame.parts) if frame.left_by is not None else 0)
        entered = None if frame.left_by is None else _enter(stream, frame.left_by)
        frames.append(_Frame([], 0, entered))
        for piece in frame.parts:
            number = _next(stream, piece, frame.position)
            if number is None:
                _give_up(stream, [f for f in frames if not f.parts], tally)
                return False
            rest = subtract_box(stream, number, piece, tally)
            if rest:
                tally.store(len(rest))
                frames.append(_Frame(rest, frame.position + 1, number))
    return True


def _next(stream: StreamPredicate, part: Part, position: int) -> int | None:
    """The box to compare a part with; None where none is left."""
    if stream.index is None:
        return stream.number_at(position) if position < len(stream) else None
    return next(iter(stream.candidates(part)), None)


def _enter(stream: StreamPredicate, number: int) -> int:
    """Leave a box out while the parts that it left over are matched with the others."""
    if stream.index is not None:
        stream.index.deactivate(number)
    return number


def _leave(stream: StreamPredicate, frame: _Frame) -> None:
    if stream.index is not None and frame.left_by is not None:
        stream.index.activate(frame.left_by)


def _give_up(stream: StreamPredicate, frames: Iterable[_Frame], tally: ComparisonCounter) -> None:
    for frame in frames:
        _leave(stream, frame)
    tally.store(-tally.parts)
