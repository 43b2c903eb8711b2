"""Where the names of peers are written: next to their peers, off the lines and off each other.

Each name has candidates all around its peer. A candidate costs what it covers: a length of line,
other peers, other names, the rim of the picture; among those that cost the same, the name stands
below its peer. Names choose one after the other, and again while any of them improves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Point = tuple[float, float]

DIRECTIONS = 24
DISTANCES = (1.3, 1.8, 2.5)  # of a name from the middle of its peer, in radii
MAX_ROUNDS = 6
LINE_MARGIN = 0.03  # inches between a name and a line
# What is covered, in units of an inch of a line: a line at all, a peer, another name, and an inch
# beyond the rim.
LINE_COST, PEER_COST, NAME_COST, RIM_COST = 0.3, 2.0, 3.0, 30.0
FAR_COST, TURNED_COST = 0.05, 0.03  # so little that any line outweighs them


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is drawn, and its width; all in inches."""

    start: Point
    end: Point
    width: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What names must avoid: lines, peers, which are circles of one radius, and the rim.

    The rim is the lowest and the highest point of the picture.
    """

    lines: Sequence[Line]
    peers: Mapping[str, Point]
    radius: float
    rim: tuple[Point, Point]


def place_names(sizes: Mapping[str, Point], surroundings: Surroundings) -> Mapping[str, Point]:
    """Return the middle of each name, given its width and height; the same for the same picture."""
    candidates = {
        name: _list_candidates(surroundings.peers[name], size, surroundings.radius)
        for name, size in sizes.items()
    }
    obstacles = _Obstacles.of(surroundings)
    # What a candidate covers besides other names never changes, so it is computed once.
    fixed = {
        name: obstacles.measure(surroundings.peers[name], boxes)
        for name, boxes in candidates.items()
    }
    chosen = {name: int(costs.argmin()) for name, costs in fixed.items()}
    boxes = np.array([candidates[name][at] for name, at in chosen.items()]).reshape(-1, 4)
    for _ in range(MAX_ROUNDS):
        before = dict(chosen)
        for number, name in enumerate(sizes):
            is_near = _find_near(boxes[:, :2], boxes[:, 2:], candidates[name])
            is_near[number] = False
            overlaps = _overlap(candidates[name], boxes[is_near])
            costs = fixed[name] + NAME_COST * overlaps.sum(axis=1)
            chosen[name] = int(costs.argmin())
            boxes[number] = candidates[name][chosen[name]]
        if chosen == before:
            break
    return {
        name: (float(left + right) / 2, float(low + high) / 2)
        for name, (left, low, right, high) in zip(sizes, boxes, strict=True)
    }


def _list_candidates(peer: Point, size: Point, radius: float) -> Numbers:
    """Return boxes around a peer, as rows of left, low, right and high; the one below is first."""
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS - np.pi / 2
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # The point of the box that is nearest to the peer moves along the sides of the box.
    anchors = along / np.abs(along).max(axis=1, keepdims=True)
    half = np.array(size) / 2
    middles = np.concatenate(
        [np.array(peer) + distance * radius * along + anchors * half for distance in DISTANCES]
    )
    return np.concatenate([middles - half, middles + half], axis=1)


@dataclass(frozen=True, slots=True)
class _Obstacles:
    """Surroundings as arrays: ends of lines as rows, how far each spreads, and places of peers."""

    starts: Numbers
    ends: Numbers
    spread: Numbers
    peers: Numbers
    radius: float
    rim: Numbers

    @staticmethod
    def of(surroundings: Surroundings) -> _Obstacles:
        lines = surroundings.lines
        return _Obstacles(
            np.array([line.start for line in lines]).reshape(-1, 2),
            np.array([line.end for line in lines]).reshape(-1, 2),
            np.array([line.width / 2 + LINE_MARGIN for line in lines]).reshape(-1, 1),
            np.array(list(surroundings.peers.values())).reshape(-1, 2),
            surroundings.radius,
            np.array(surroundings.rim),
        )

    def measure(self, peer: Point, boxes: Numbers) -> Numbers:
        """Return what each box of a peer covers besides other names, and how odd its place is."""
        number = np.arange(len(boxes))
        # Below is best, then the nearer to below the better.
        turned = np.minimum(number % DIRECTIONS, -number % DIRECTIONS) / (DIRECTIONS / 2)
        costs: Numbers = TURNED_COST * turned + FAR_COST * (number // DIRECTIONS)
        costs += self._measure_lines(boxes)
        # A peer is covered where the nearest point of the box is within its circle.
        is_near = _find_near(self.peers - self.radius, self.peers + self.radius, boxes)
        others = self.peers[is_near & (self.peers != np.array(peer)).any(axis=1)]
        low, high = boxes[:, None, :2], boxes[:, None, 2:]
        apart = np.maximum(np.maximum(low - others, others - high), 0.0)
        covered = np.linalg.norm(apart, axis=2) < self.radius
        costs += PEER_COST * covered.sum(axis=1)
        # How far the box reaches over each side of the picture.
        start, end = self.rim
        beyond = np.maximum(start - boxes[:, :2], 0.0) + np.maximum(boxes[:, 2:] - end, 0.0)
        return np.asarray(costs + RIM_COST * beyond.sum(axis=1))

    def _measure_lines(self, boxes: Numbers) -> Numbers:
        """Return for each box the cost of the lines that it covers."""
        is_near = _find_near(
            np.minimum(self.starts, self.ends) - self.spread,
            np.maximum(self.starts, self.ends) + self.spread,
            boxes,
        )
        starts, along = self.starts[is_near], (self.ends - self.starts)[is_near]
        # Each box is grown by half of a line's width, after which the line is as thin as a hair.
        grown = self.spread[is_near][None]
        low, high = boxes[:, None, :2] - grown, boxes[:, None, 2:] + grown
        # Lines without a slope never cross the sides that they are parallel to.
        slope = np.where(np.abs(along) < 1e-12, 1e-12, along)[None]
        first, second = (low - starts[None]) / slope, (high - starts[None]) / slope
        # From and to which part of its length a line is inside: boxes × lines (Liang and Barsky).
        enters = np.maximum(np.minimum(first, second).max(axis=2), 0.0)
        leaves = np.minimum(np.maximum(first, second).min(axis=2), 1.0)
        inside = np.maximum(leaves - enters, 0.0) * np.linalg.norm(along, axis=1)[None]
        return np.asarray((inside + LINE_COST * (inside > 0)).sum(axis=1))


def _find_near(low: Numbers, high: Numbers, boxes: Numbers) -> npt.NDArray[np.bool_]:
    """Return what reaches into the rectangle around all boxes: the rest cannot be covered."""
    reaches = (high >= boxes[:, :2].min(axis=0)) & (low <= boxes[:, 2:].max(axis=0))
    return np.asarray(reaches.all(axis=1))


def _overlap(boxes: Numbers, others: Numbers) -> npt.NDArray[np.bool_]:
    """Return which boxes overlap which others."""
    is_left = boxes[:, None, 2:] <= others[None, :, :2]
    is_right = boxes[:, None, :2] >= others[None, :, 2:]
    return np.asarray(~(is_left | is_right).any(axis=2))
