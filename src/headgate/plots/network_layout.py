"""Where a plan is drawn: the positions of peers, and of streams next to each other on a link.

Peers are as far from each other as there are links between them: stress majorization, after
Gansner, Koren and North, "Graph Drawing by Stress Majorization".
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.plots.figures import BLUE, GREEN, ORANGE
from headgate.sharing.network import Network
from headgate.sharing.shared_streams import SharedStream

Numbers = npt.NDArray[np.float64]

THIN_LINK_LENGTH = 0.6  # from a thin peer to its super-peer, in lengths of other links
MAX_SWEEPS = 300  # for small networks; large ones get fewer
MIN_SWEEPS = 30
MIN_STRESS_DECREASE = 1e-5  # in proportion, for another sweep
MAX_RESTARTED_PEERS = 150  # above, one start must do
RESTART_NOISE = (0.3, 0.6, 1.0, 1.0, 1.5, 1.5, 2.0, 2.0, 3.0, 3.0)
CROWDED_DISTANCE = 0.4  # in lengths of a link: closer peers are hard to tell apart
CROWDED_WEIGHT = 3  # crossings that are as bad as two such peers

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

MIN_WIDTH = 0.9  # points; thinner lines are not seen
GAP = 1.5  # points between two streams
MAX_WIDTH_FACTOR = 1.5  # times the widest stream, for sources and for merged streams
MAX_LANES = 6  # on a link; the rest are merged


def place_peers(network: Network) -> Mapping[str, tuple[float, float]]:
    """Return the position of each peer, in lengths of a link; the same for the same network.

    Of all starts, take the one after which fewest links cross and fewest peers are crowded.
    """
    names = list(network.nodes)
    if len(names) == 1:
        return {names[0]: (0.0, 0.0)}
    number = {name: at for at, name in enumerate(names)}
    # `links` is links × 2: the numbers of both ends. `distances` is peers × peers.
    links = np.array([[number[end] for end in link.ends] for link in network.links])
    distances = _compute_distances(network, names)
    random = np.random.default_rng(1)
    starts = [_scale_classically(distances, random)]
    if len(names) <= MAX_RESTARTED_PEERS:
        starts += [starts[0] + random.normal(0, noise, starts[0].shape) for noise in RESTART_NOISE]
    layouts = [_majorize_stress(start, distances) for start in starts]
    best = min(
        layouts,
        key=lambda layout: (
            _count_crossings(layout, links) + CROWDED_WEIGHT * _count_crowded(layout)
        ),
    )
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, best, strict=True)}


def _compute_distances(network: Network, names: list[str]) -> Numbers:
    """Return the links between each two peers, those of thin peers counted as shorter."""
    number = {name: at for at, name in enumerate(names)}
    near = [[number[other] for other, _ in network.neighbours[name]] for name in names]
    hops = np.zeros((len(names), len(names)))
    for start in range(len(names)):
        # Breadth first from each peer, since all links count as one.
        reached, ahead = {start: 0}, deque([start])
        while ahead:
            at = ahead.popleft()
            for other in near[at]:
                if other not in reached:
                    reached[other] = reached[at] + 1
                    ahead.append(other)
        hops[start, list(reached)] = list(reached.values())
    # Each thin end makes a way shorter by the same amount.
    thin = np.array([network.nodes[name].is_thin for name in names], np.float64)
    shorter = (1 - THIN_LINK_LENGTH) * (thin[:, None] + thin[None, :])
    np.fill_diagonal(shorter, 0.0)
    return hops - shorter


def _scale_classically(distances: Numbers, random: np.random.Generator) -> Numbers:
    """Return a start by classical multidimensional scaling; the longer side is horizontal."""
    size = len(distances)
    # Double centring of squared distances; the two largest eigenvalues span the plane.
    centre = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-centre @ (distances**2) @ centre / 2)
    positions: Numbers = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    # Signs of eigenvectors are arbitrary: the largest coordinate is made positive. The jitter parts
    # peers that would coincide.
    signs = np.sign(positions[np.abs(positions).argmax(axis=0), [0, 1]])
    jitter = random.normal(0, 0.01, positions.shape)
    return positions * np.where(signs == 0, 1.0, signs) + jitter


def _majorize_stress(positions: Numbers, distances: Numbers) -> Numbers:
    size = len(distances)
    # `weights` is peers × peers, 1 / distance² as in the paper. The Laplacian is singular (a layout
    # may be shifted), hence the pseudo-inverse, which is computed once for all sweeps.
    weights = np.where(
        np.eye(size, dtype=bool), 0.0, 1 / np.maximum(distances, THIN_LINK_LENGTH) ** 2
    )
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    before = np.inf
    # A sweep takes time with the square of the peers, so large networks get fewer of them.
    sweeps = MAX_SWEEPS * MAX_RESTARTED_PEERS**2 // max(size, MAX_RESTARTED_PEERS) ** 2
    for _ in range(max(MIN_SWEEPS, sweeps)):
        apart = _measure_distances(positions)
        # Stress never rises from sweep to sweep; stop where it hardly falls.
        stress = float((weights * (apart - distances) ** 2).sum())
        if stress >= before * (1 - MIN_STRESS_DECREASE):
            break
        before = stress
        pull = weights * distances / np.maximum(apart, 1e-9)
        positions = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ positions)
    return positions


def _measure_distances(positions: Numbers) -> Numbers:
    return np.asarray(np.linalg.norm(positions[:, None, :] - positions[None, :, :], axis=2))


def _count_crossings(positions: Numbers, links: npt.NDArray[np.int64]) -> int:
    """Count the pairs of links without a common peer that cross."""
    start, end = positions[links[:, 0]], positions[links[:, 1]]
    sides = [_find_sides(start, end, other) for other in (start, end)]
    # `parted[i, j]`: line i has the ends of link j on its two sides. Both ways, they cross.
    parted = sides[0] * sides[1] < 0
    # `ends` is links × end × end × links: equal where two links share a peer.
    ends = links[:, :, None, None] == links.T[None, None, :, :]
    return int((parted & parted.T & ~ends.any(axis=(1, 2))).sum()) // 2


def _find_sides(start: Numbers, end: Numbers, others: Numbers) -> Numbers:
    """Return on which side of each line each point is, by sign."""
    along, away = end - start, others[None, :, :] - start[:, None, :]
    return np.asarray(along[:, None, 0] * away[:, :, 1] - along[:, None, 1] * away[:, :, 0])


def _count_crowded(positions: Numbers) -> int:
    return int((_measure_distances(positions) < CROWDED_DISTANCE).sum() - len(positions)) // 2


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream on a link, `offset` points to the left of the middle, seen from its first end.

    `is_forward` says whether it flows away from that end. `stream` is None for merged streams.
    `is_first` is true on the first link of a stream.
    """

    stream: SharedStream | None
    is_forward: bool
    is_first: bool
    bytes: float
    colour: str
    width: float
    offset: float


def choose_colours(streams: Sequence[SharedStream]) -> Mapping[int, str]:
    """Return the colour of each stream, by number: strong for what moves most, faint for the rest.

    Each strong colour is used once; a faint one is the rarest at the nodes of the stream.
    """
    chosen = {stream.number: SOURCE_COLOUR for stream in streams if stream.is_source}
    others = sorted(
        (stream for stream in streams if not stream.is_source),
        key=lambda stream: stream.bytes_moved,
        reverse=True,
    )
    chosen |= {
        stream.number: colour for stream, colour in zip(others, STRONG_COLOURS, strict=False)
    }
    # By node, how often each faint colour is used there.
    near: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for stream in others[len(STRONG_COLOURS) :]:
        used = sum((near[node] for node in stream.nodes), Counter[str]())
        colour = min(FAINT_COLOURS, key=lambda faint: used[faint])
        chosen[stream.number] = colour
        for node in stream.nodes:
            near[node][colour] += 1
    return chosen


def make_lanes(
    network: Network, streams: Sequence[SharedStream], widest: float
) -> Mapping[int, tuple[Lane, ...]]:
    """Return the lanes of each link; widths go with the root of the rate."""
    chosen = choose_colours(streams)
    most = find_largest_rate(streams)
    # By link, its lanes before they are merged and placed.
    raw: defaultdict[int, list[Lane]] = defaultdict(list)
    for stream in streams:
        for step, link in enumerate(stream.links):
            is_forward = network.links[link].ends[0] == stream.nodes[step]
            size = stream.bytes.value
            width = compute_width(size, most, widest)
            colour = chosen[stream.number]
            raw[link].append(Lane(stream, is_forward, step == 0, size, colour, width, 0.0))
    return {
        link: tuple(_arrange_lanes(_merge_small_lanes(each, most, widest)))
        for link, each in raw.items()
    }


def find_largest_rate(streams: Sequence[SharedStream]) -> float:
    """Return the bytes per second that are drawn widest; a source with more is hardly wider."""
    shown = [stream for stream in streams if not stream.is_source] or streams
    return max((stream.bytes.value for stream in shown), default=0.0)


def compute_width(size: float, most: float, widest: float) -> float:
    """Return the width of a line in points.

    >>> compute_width(25.0, 100.0, 8.0), compute_width(1000.0, 100.0, 8.0)
    (4.0, 12.0)
    """
    wide = widest * math.sqrt(size / most) if most else MIN_WIDTH
    return min(max(MIN_WIDTH, wide), MAX_WIDTH_FACTOR * widest)


def _merge_small_lanes(lanes: list[Lane], most: float, widest: float) -> list[Lane]:
    """Return the lanes that carry most, and the rest merged, one for each direction."""
    if len(lanes) <= MAX_LANES:
        return lanes
    # Two lanes are left for the merged streams, one for each direction.
    shown = sorted(lanes, key=lambda lane: -lane.bytes)[: MAX_LANES - 2]
    merged = [lane for lane in lanes if lane not in shown]
    for is_forward in (True, False):
        size = sum(lane.bytes for lane in merged if lane.is_forward is is_forward)
        if any(lane.is_forward is is_forward for lane in merged):
            width = compute_width(size, most, widest)
            shown.append(Lane(None, is_forward, False, size, OTHERS_COLOUR, width, 0.0))
    return shown


def _arrange_lanes(lanes: list[Lane]) -> Iterator[Lane]:
    """Place the lanes around the middle of the link, each direction on its own left.

    Two streams that go together over more than one link keep their sides.
    """
    # `at` is the right edge of the next lane, in points from the middle of the link.
    ordered = sorted(lanes, key=_make_lane_key)
    at = -(sum(lane.width for lane in lanes) + GAP * (len(lanes) - 1)) / 2
    for lane in ordered:
        yield replace(lane, offset=at + lane.width / 2)
        at += lane.width + GAP


def _make_lane_key(lane: Lane) -> tuple[bool, float]:
    """Order lanes from right to left along the stream: by number, merged ones last."""
    number = math.inf if lane.stream is None else lane.stream.number
    return lane.is_forward, number if lane.is_forward else -number
