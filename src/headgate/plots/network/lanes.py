"""Streams beside each other on a link: how wide each is drawn, in which colour, and where."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.plots.figures import BLUE, GREEN, ORANGE
from headgate.sharing.courses import SharedStream
from headgate.sharing.network import Network

STRONG = (BLUE, ORANGE, GREEN, "#8e5ea2", "#c0392b", "#2a9d8f", "#b5892b", "#3f51b5", "#d16ba5")
FAINT = ("#9bbfcb", "#e2b999", "#b5cca8", "#c6b0d1", "#dda79f", "#9ccbc4")
SOURCE, OTHERS = "#333333", "#bbbbbb"

LEAST = 0.9  # points, for what would be too thin to be seen
GAP = 1.5  # points between two streams
MORE = 1.5  # times the widest stream, for sources and for several together
MOST = 6  # streams on a link that are told apart


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream on a link: `offset` is points to the left, for who goes from one end to the other.

    `is_forward` says whether it goes that way. `course` is None for several that are not told
    apart. `is_first` is true on the first link of a course.
    """

    course: SharedStream | None
    is_forward: bool
    is_first: bool
    bytes: float
    colour: str
    width: float
    offset: float


def colours(found: Sequence[SharedStream]) -> Mapping[int, str]:
    """By number: strong ones for what moves most, each once; faint ones, of few, for the rest."""
    chosen = {course.number: SOURCE for course in found if course.is_source}
    others = sorted(
        (course for course in found if not course.is_source),
        key=lambda course: course.bytes_moved,
        reverse=True,
    )
    chosen |= {c.number: colour for c, colour in zip(others, STRONG, strict=False)}
    near: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for course in others[len(STRONG) :]:
        used = sum((near[node] for node in course.nodes), Counter[str]())
        colour = min(FAINT, key=lambda one: used[one])
        chosen[course.number] = colour
        for node in course.nodes:
            near[node][colour] += 1
    return chosen


def lanes(
    network: Network, found: Sequence[SharedStream], widest: float
) -> Mapping[int, tuple[Lane, ...]]:
    """By link. Widths go with the root of the rate, so that small streams are seen, too."""
    chosen = colours(found)
    most = largest(found)
    raw: defaultdict[int, list[Lane]] = defaultdict(list)
    for course in found:
        for step, link in enumerate(course.links):
            is_forward = network.links[link].ends[0] == course.nodes[step]
            size = course.bytes.value
            width = width_of(size, most, widest)
            colour = chosen[course.number]
            raw[link].append(Lane(course, is_forward, step == 0, size, colour, width, 0.0))
    return {link: tuple(_beside(_few(each, most, widest))) for link, each in raw.items()}


def largest(found: Sequence[SharedStream]) -> float:
    """Bytes a second that are drawn widest; a source may have more, and looks no wider."""
    shown = [course for course in found if not course.is_source] or found
    return max((course.bytes.value for course in shown), default=0.0)


def width_of(size: float, most: float, widest: float) -> float:
    """Points.

    >>> width_of(25.0, 100.0, 8.0), width_of(1000.0, 100.0, 8.0)
    (4.0, 12.0)
    """
    wide = widest * math.sqrt(size / most) if most else LEAST
    return min(max(LEAST, wide), MORE * widest)


def _few(found: list[Lane], most: float, widest: float) -> list[Lane]:
    """Those that carry most; the rest, in each direction, as one."""
    if len(found) <= MOST:
        return found
    kept = sorted(found, key=lambda lane: -lane.bytes)[: MOST - 2]
    rest = [lane for lane in found if lane not in kept]
    for is_forward in (True, False):
        size = sum(lane.bytes for lane in rest if lane.is_forward is is_forward)
        if any(lane.is_forward is is_forward for lane in rest):
            width = width_of(size, most, widest)
            kept.append(Lane(None, is_forward, False, size, OTHERS, width, 0.0))
    return kept


def _beside(found: list[Lane]) -> Iterator[Lane]:
    """The bundle lies on the middle of the link, each direction on its own left.

    Two streams that go together over several links keep their sides.
    """
    ordered = sorted(found, key=_side)
    at = -(sum(lane.width for lane in found) + GAP * (len(found) - 1)) / 2
    for lane in ordered:
        yield Lane(
            lane.course,
            lane.is_forward,
            lane.is_first,
            lane.bytes,
            lane.colour,
            lane.width,
            at + lane.width / 2,
        )
        at += lane.width + GAP


def _side(lane: Lane) -> tuple[bool, float]:
    """For who goes with the stream, from right to left: by number, several together last."""
    number = math.inf if lane.course is None else lane.course.number
    return lane.is_forward, number if lane.is_forward else -number
