"""A plan as a picture: peers, and streams as paths beside each other on the links they take."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.plots.figures import check_plot_path, save_figure
from headgate.plots.network.lanes import Lane, make_lanes
from headgate.plots.network.layout import place_peers
from headgate.plots.network.legend import (
    SOURCE_STYLE,
    SUPER_PEER_STYLE,
    TAP_STYLE,
    THIN_PEER_STYLE,
    WIDENED_STYLE,
    make_legend_handles,
)
from headgate.sharing.network import Network
from headgate.sharing.plan import Plan
from headgate.sharing.shared_streams import SharedStream, list_shared_streams

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Point = tuple[float, float]

POINTS_PER_INCH = 72  # points
MAX_SMALL_NETWORK = 16  # peers that there is much room for
MAX_NETWORK_INCHES = 16.0  # inches of a network
MIN_HEIGHT_INCHES = 4.5  # inches that the legend needs
MARGIN_INCHES = 0.5  # inches
LEGEND_INCHES = 3.4  # inches
MAX_INSIDE_LETTERS = 4  # letters that have room in a circle


def plot_plan(plan: Plan, path: Path) -> None:
    """Write a picture of a plan."""
    check_plot_path(path)
    from matplotlib.figure import Figure

    found = list_shared_streams(plan)
    drawing = _Drawing.of(plan.network, found)
    width, height = drawing.size
    figure = Figure(figsize=(width + LEGEND_INCHES, max(height, MIN_HEIGHT_INCHES)), dpi=150)
    axes = figure.add_axes((0, 0, width / (width + LEGEND_INCHES), 1))
    axes.set_xlim(0, width)
    rim = max(0.0, MIN_HEIGHT_INCHES - height) / 2
    axes.set_ylim(-rim, height + rim)
    axes.set_axis_off()
    drawing.draw(axes, {origin.peer for origin in plan.origins.values()})
    _add_legend(figure, make_legend_handles(found, drawing.widest), width / (width + LEGEND_INCHES))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script without a font
        save_figure(figure, path)


@dataclass(frozen=True)
class _Drawing:
    """Places are in inches, so that what is so many points wide lies beside each other."""

    network: Network
    streams: Sequence[SharedStream]
    positions: Mapping[str, Point]
    size: Point
    radius: float
    widest: float

    @staticmethod
    def of(network: Network, found: Sequence[SharedStream]) -> _Drawing:
        """The first source is on the left."""
        raw = place_peers(network)
        xs, ys = zip(*raw.values(), strict=True)
        across, up = max(xs) - min(xs), max(ys) - min(ys)
        is_small = len(raw) <= MAX_SMALL_NETWORK
        scale = min(1.7 if is_small else 1.15, MAX_NETWORK_INCHES / max(across, up, 1.0))
        first = next((course.nodes[0] for course in found), "")
        is_turned = first in raw and raw[first][0] > (min(xs) + max(xs)) / 2
        at = {
            name: (
                MARGIN_INCHES + scale * (max(xs) - x if is_turned else x - min(xs)),
                MARGIN_INCHES + scale * (y - min(ys)),
            )
            for name, (x, y) in raw.items()
        }
        size = 2 * MARGIN_INCHES + scale * across, 2 * MARGIN_INCHES + scale * up
        radius = 0.2 if is_small else min(0.15, 0.13 * scale)
        return _Drawing(network, found, at, size, radius, 40 * radius)

    def draw(self, axes: Axes, sources: set[str]) -> None:
        for link in self.network.links:
            (x, y), (to_x, to_y) = (self.positions[end] for end in link.ends)
            axes.plot([x, to_x], [y, to_y], color="#dddddd", linewidth=1, zorder=1)
        for number, beside in make_lanes(self.network, self.streams, self.widest).items():
            ends = self.network.links[number].ends
            is_last = any(self.network.nodes[end].is_thin for end in ends)
            for lane in beside:
                way = _LanePath.of(self.positions[ends[0]], self.positions[ends[1]], lane)
                self._draw_lane(axes, lane, way)
                if lane.is_first and not (is_last and len(self.positions) > MAX_SMALL_NETWORK):
                    self._draw_marks(axes, lane, way)
        for name in self.network.nodes:
            self._draw_node(axes, name, is_source=name in sources)

    def _draw_lane(self, axes: Axes, lane: Lane, way: _LanePath) -> None:
        """From end to end, with an arrow head on it."""
        xs, ys = zip(way.point(0.0), way.point(way.length), strict=True)
        axes.plot(xs, ys, color=lane.colour, linewidth=lane.width, zorder=2)
        axes.plot(
            *way.point(0.6 * way.length),
            marker=(3, 0, way.angle - 90),
            markersize=1.3 * lane.width + 20 * self.radius,
            markeredgewidth=0,
            color=lane.colour,
            zorder=3,
        )

    def _draw_marks(self, axes: Axes, lane: Lane, way: _LanePath) -> None:
        """What happens where a stream begins."""
        assert lane.stream is not None
        size = 36 * self.radius + 0.4 * lane.width
        at = self.radius + 0.6 * size / POINTS_PER_INCH
        for is_so, style in (
            (lane.stream.is_tap, TAP_STYLE),
            (lane.stream.is_widened, WIDENED_STYLE),
        ):
            if is_so:
                axes.plot(*way.point(at), color=lane.colour, markersize=size, zorder=5, **style)
                at += 1.3 * size / POINTS_PER_INCH

    def _draw_node(self, axes: Axes, name: str, *, is_source: bool) -> None:
        from matplotlib.patheffects import withStroke

        x, y = self.positions[name]
        is_thin = self.network.nodes[name].is_thin
        style = (THIN_PEER_STYLE if is_thin else SUPER_PEER_STYLE) | (
            SOURCE_STYLE if is_source else {}
        )
        size = 2 * self.radius * POINTS_PER_INCH * (0.72 if is_thin else 1)
        axes.plot(x, y, markersize=size, zorder=4, **style)
        is_inside = len(name) <= MAX_INSIDE_LETTERS
        axes.annotate(
            name,
            (x, y if is_inside else y - 1.1 * self.radius),
            ha="center",
            va="center" if is_inside else "top",
            fontsize=max(4.5, 43 * self.radius),
            color="white" if is_source and is_inside else "black",
            path_effects=[] if is_inside else [withStroke(linewidth=2, foreground="white")],
            parse_math=False,
            zorder=6,
        )


@dataclass(frozen=True, slots=True)
class _LanePath:
    """The line of a lane, from where its stream comes to where it goes."""

    start: Point
    along: Point
    length: float

    @staticmethod
    def of(one: Point, other: Point, lane: Lane) -> _LanePath:
        length = math.dist(one, other) or 1.0
        x, y = (other[0] - one[0]) / length, (other[1] - one[1]) / length
        first, sign = (one, 1) if lane.is_forward else (other, -1)
        aside = lane.offset / POINTS_PER_INCH
        return _LanePath((first[0] - y * aside, first[1] + x * aside), (sign * x, sign * y), length)

    def point(self, way: float) -> Point:
        """So many inches from the start."""
        return self.start[0] + way * self.along[0], self.start[1] + way * self.along[1]

    @property
    def angle(self) -> float:
        return math.degrees(math.atan2(self.along[1], self.along[0]))


def _add_legend(figure: Figure, handles: list[Line2D], left: float) -> None:
    drawn = figure.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(left, 0.5),
        frameon=False,
        fontsize=8,
        handlelength=2.6,
        labelspacing=0.7,
    )
    for text in drawn.get_texts():
        text.set_parse_math(False)
