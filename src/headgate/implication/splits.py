"""How exact matching divides a query: the parts that the stream's boxes hold, and the rest."""

from __future__ import annotations

from headgate.implication.pair import Pair
from headgate.implication.paper.compare import outside
from headgate.implication.paper.part import Part, Tally, parts_of
from headgate.implication.paper.stream_predicate import StreamPredicate


def splits(pair: Pair, most: int) -> list[Part]:
    """The disjoint parts of all query boxes; the largest boxes of the stream cut first.

    Past `most` parts the division stops, so that some parts may be only partly held.
    """
    stream = StreamPredicate(pair.space, pair.stream_boxes, None)
    held: list[Part] = []
    pending = parts_of(pair.query_boxes)
    for at in range(len(stream)):
        number = stream.at(at)
        rest: list[Part] = []
        for part in pending:
            pieces = outside(stream, number, part, Tally())
            rest += pieces
            if pieces != [part]:
                held.append(_common(part, stream.parts[number]))
        pending = rest
        if len(held) + len(pending) > most:
            break
    return held + pending


def _common(part: Part, box: Part) -> Part:
    return tuple(
        (max(low, first), min(high, end))
        for (low, high), (first, end) in zip(part, box, strict=True)
    )
