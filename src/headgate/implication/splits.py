"""How exact matching divides a query: the parts that the stream's boxes hold, and the rest."""

from __future__ import annotations

from headgate.implication.pair import PredicatePair
from headgate.implication.paper.compare import subtract_box
from headgate.implication.paper.part import ComparisonCounter, Part, to_parts
from headgate.implication.paper.stream_predicate import StreamPredicate


def split_query(pair: PredicatePair, most: int) -> list[Part]:
    """The disjoint parts of all query boxes; the largest boxes of the stream cut first.

    Past `most` parts the division stops, so that some parts may be only partly held.
    """
    stream = StreamPredicate(pair.space, pair.stream_boxes, None)
    held: list[Part] = []
    pending = to_parts(pair.query_boxes)
    for at in range(len(stream)):
        number = stream.number_at(at)
        rest: list[Part] = []
        for part in pending:
            pieces = subtract_box(stream, number, part, ComparisonCounter())
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
