"""Streams beside each other on a link: how wide each is drawn, in which colour, and where."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.plots.figures import BLUE, GREEN, ORANGE
from headgate.sharing.network import Network
from headgate.sharing.shared_streams import SharedStream

STRONG_COLOURS = (
    BLUE,
    ORANGE,
    GREEN,
    "#8e5ea2",
    "#c0392b",
    "#2a9d8f",
    "#b5892b",
    "#3f51b5",
    "#d16ba5",
)
FAINT_COLOURS = ("#9bbfcb", "#e2b999", "#b5cca8", "#c6b0d1", "#dda79f", "#9ccbc4")
SOURCE_COLOUR, OTHERS_COLOUR = "#333333", "#bbbbbb"

MIN_WIDTH = 0.9  # points, for what would be too thin to be seen
GAP = 1.5  # points between two streams
MAX_WIDTH_FACTOR = 1.5  # times the widest stream, for sources and for several together
MAX_LANES = 6  # streams on a link that are told apart


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream on a link: `offset` is points to the left, for who goes from one end to the other.

    `is_forward` says whether it goes that way. `course` is None for several that are not told
    apart. `is_first` is true on the first link of a course.
    """

    stream: SharedStream | None
    is_forward: bool
    is_first: bool
    bytes: float
    colour: str
    width: float
    offset: float


def choose_colours(found: Sequence[SharedStream]) -> Mapping[int, str]:
    """By number: strong ones for what moves most, each once; faint ones, of few, for the rest."""
    chosen = {course.number: SOURCE_COLOUR for course in found if course.is_source}
    others = sorted(
        (course for course in found if not course.is_source),
        key=lambda course: course.bytes_moved,
        reverse=True,
    )
    chosen |= {c.number: colour for c, colour in zip(others, STRONG_COLOURS, strict=False)}
    near: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for course in others[len(STRONG_COLOURS) :]:
        used = sum((near[node] for node in course.nodes), Counter[str]())
        colour = min(FAINT_COLOURS, key=lambda one: used[one])
        chosen[course.number] = colour
        for node in course.nodes:
            near[node][colour] += 1
    return chosen


def make_lanes(
    network: Network, found: Sequence[SharedStream], widest: float
) -> Mapping[int, tuple[Lane, ...]]:
    """By link. Widths go with the root of the rate, so that small streams are seen, too."""
    chosen = choose_colours(found)
    most = find_largest_rate(found)
    raw: defaultdict[int, list[Lane]] = defaultdict(list)
    for course in found:
        for step, link in enumerate(course.links):
            is_forward = network.links[link].ends[0] == course.nodes[step]
            size = course.bytes.value
            width = compute_width(size, most, widest)
            colour = chosen[course.number]
            raw[link].append(Lane(course, is_forward, step == 0, size, colour, width, 0.0))
    return {
        link: tuple(_arrange_lanes(_merge_small_lanes(each, most, widest)))
        for link, each in raw.items()
    }


def find_largest_rate(found: Sequence[SharedStream]) -> float:
    """Bytes a second that are drawn widest; a source may have more, and looks no wider."""
    shown = [course for course in found if not course.is_source] or found
    return max((course.bytes.value for course in shown), default=0.0)


def compute_width(size: float, most: float, widest: float) -> float:
    """Points.

    >>> compute_width(25.0, 100.0, 8.0), compute_width(1000.0, 100.0, 8.0)
    (4.0, 12.0)
    """
    wide = widest * math.sqrt(size / most) if most else MIN_WIDTH
    return min(max(MIN_WIDTH, wide), MAX_WIDTH_FACTOR * widest)


def _merge_small_lanes(found: list[Lane], most: float, widest: float) -> list[Lane]:
    """Those that carry most; the rest, in each direction, as one."""
    if len(found) <= MAX_LANES:
        return found
    kept = sorted(found, key=lambda lane: -lane.bytes)[: MAX_LANES - 2]
    rest = [lane for lane in found if lane not in kept]
    for is_forward in (True, False):
        size = sum(lane.bytes for lane in rest if lane.is_forward is is_forward)
        if any(lane.is_forward is is_forward for lane in rest):
            width = compute_width(size, most, widest)
            kept.append(Lane(None, is_forward, False, size, OTHERS_COLOUR, width, 0.0))
    return kept


def _arrange_lanes(found: list[Lane]) -> Iterator[Lane]:
    """The bundle lies on the middle of the link, each direction on its own left.

    Two streams that go together over several links keep their sides.
    """
    ordered = sorted(found, key=_lane_order)
    at = -(sum(lane.width for lane in found) + GAP * (len(found) - 1)) / 2
    for lane in ordered:
        yield Lane(
            lane.stream,
            lane.is_forward,
            lane.is_first,
            lane.bytes,
            lane.colour,
            lane.width,
            at + lane.width / 2,
        )
        at += lane.width + GAP


def _lane_order(lane: Lane) -> tuple[bool, float]:
    """For who goes with the stream, from right to left: by number, several together last."""
    number = math.inf if lane.stream is None else lane.stream.number
    return lane.is_forward, number if lane.is_forward else -number
