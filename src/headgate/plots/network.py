"""The figure of a plan: peers, and streams as paths next to each other on the links they take."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import shorten
from headgate.plots.figures import (
    GREY,
    POINTS_PER_INCH,
    Fonts,
    check_plot_path,
    save_figure,
)
from headgate.plots.network_labels import Line, Surroundings, place_names
from headgate.plots.network_layout import (
    FAINT_COLOURS,
    OTHERS_COLOUR,
    SOURCE_COLOUR,
    STRONG_COLOURS,
    Lane,
    choose_colours,
    compute_width,
    find_largest_rate,
    make_lanes,
    place_peers,
)
from headgate.sharing.network import Network
from headgate.sharing.plan import Plan
from headgate.sharing.shared_streams import SharedStream, list_shared_streams

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Point = tuple[float, float]

MAX_SMALL_NETWORK = 16  # peers that are drawn large
MAX_NETWORK_INCHES = 16.0  # inches of a network
MIN_HEIGHT_INCHES = 4.5  # inches that the legend needs
MARGIN_INCHES = 0.5  # inches
LEGEND_INCHES = 3.4  # inches
INSIDE_SHARE = 0.85  # of the width of its sign that a name may take to be written inside
NAME_HEIGHT = 1.2  # of a name outside of its sign, in sizes of its letters

Style = dict[str, Any]

MAX_NAMED_QUERIES = 2  # queries of a stream
MAX_LABEL_LENGTH = 30  # letters of their names

SUPER_PEER_STYLE: Style = {
    "marker": "o",
    "markerfacecolor": "white",
    "markeredgecolor": SOURCE_COLOUR,
}
THIN_PEER_STYLE: Style = {
    "marker": "s",
    "markerfacecolor": "white",
    "markeredgecolor": SOURCE_COLOUR,
}
SOURCE_STYLE: Style = {"markerfacecolor": SOURCE_COLOUR}
TAP_STYLE: Style = {"marker": "o", "markerfacecolor": "white", "markeredgewidth": 1.6}
WIDENED_STYLE: Style = {"marker": "D", "markeredgecolor": "white", "markeredgewidth": 0.8}


def plot_plan(plan: Plan, path: Path) -> None:
    """Write the figure of a plan.

    Parameters
    ----------
    plan
        The plan.
    path
        A file that ends in .png, .svg or .pdf.

    Raises
    ------
    UsageError
        The file cannot be written, or matplotlib is not installed.
    """
    check_plot_path(path)
    from matplotlib.figure import Figure

    streams = list_shared_streams(plan)
    drawing = _Drawing.of(plan.network, streams)
    width, height = drawing.size
    figure = Figure(figsize=(width + LEGEND_INCHES, max(height, MIN_HEIGHT_INCHES)), dpi=150)
    axes = figure.add_axes((0, 0, width / (width + LEGEND_INCHES), 1))
    axes.set_xlim(0, width)
    # A low network is centred in the height that the legend needs.
    rim = max(0.0, MIN_HEIGHT_INCHES - height) / 2
    axes.set_ylim(-rim, height + rim)
    axes.set_axis_off()
    sources = {origin.peer for origin in plan.origins.values()}
    _add_legend(
        figure, make_legend_handles(streams, drawing.widest), width / (width + LEGEND_INCHES)
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script without a font
        drawing.draw(axes, sources, ((0.0, -rim), (width, height + rim)))
        save_figure(figure, path)


@dataclass(frozen=True)
class _Drawing:
    """A network and its streams; positions are in inches, so that widths in points fit them."""

    network: Network
    streams: Sequence[SharedStream]
    positions: Mapping[str, Point]
    size: Point
    radius: float
    widest: float

    @staticmethod
    def of(network: Network, streams: Sequence[SharedStream]) -> _Drawing:
        """Lay out a network so that the first source is on the left."""
        peers = place_peers(network)
        xs, ys = zip(*peers.values(), strict=True)
        across, up = max(xs) - min(xs), max(ys) - min(ys)
        is_small = len(peers) <= MAX_SMALL_NETWORK
        # Inches for a link: small networks are drawn large, huge ones are fitted in.
        scale = min(1.7 if is_small else 1.15, MAX_NETWORK_INCHES / max(across, up, 1.0))
        # Mirrored where the first source would be in the right half.
        first = next((stream.nodes[0] for stream in streams), "")
        is_turned = first in peers and peers[first][0] > (min(xs) + max(xs)) / 2
        positions = {
            name: (
                MARGIN_INCHES + scale * (max(xs) - x if is_turned else x - min(xs)),
                MARGIN_INCHES + scale * (y - min(ys)),
            )
            for name, (x, y) in peers.items()
        }
        size = 2 * MARGIN_INCHES + scale * across, 2 * MARGIN_INCHES + scale * up
        radius = 0.2 if is_small else min(0.15, 0.13 * scale)
        return _Drawing(network, streams, positions, size, radius, 40 * radius)

    def draw(self, axes: Axes, sources: set[str], rim: tuple[Point, Point]) -> None:
        """Draw links, then streams on them, then nodes, and at last names beside all of these."""
        lines: list[Line] = []
        for link in self.network.links:
            (x, y), (to_x, to_y) = (self.positions[end] for end in link.ends)
            axes.plot([x, to_x], [y, to_y], color="#dddddd", linewidth=1, zorder=1)
            lines.append(Line((x, y), (to_x, to_y), 1 / POINTS_PER_INCH))
        for number, lanes in make_lanes(self.network, self.streams, self.widest).items():
            ends = self.network.links[number].ends
            # In a large network, marks on the short links to thin peers would cover each other.
            is_last = any(self.network.nodes[end].is_thin for end in ends)
            for lane in lanes:
                path = _LanePath.of(self.positions[ends[0]], self.positions[ends[1]], lane)
                self._draw_lane(axes, lane, path)
                ends_of_lane = path.point(0.0), path.point(path.length)
                lines.append(Line(*ends_of_lane, lane.width / POINTS_PER_INCH))
                if lane.is_first and not (is_last and len(self.positions) > MAX_SMALL_NETWORK):
                    self._draw_marks(axes, lane, path)
        for name in self.network.nodes:
            self._draw_node(axes, name, is_source=name in sources)
        self._write_names(axes, sources, Surroundings(lines, self.positions, self.radius, rim))

    def _draw_lane(self, axes: Axes, lane: Lane, path: _LanePath) -> None:
        """Draw a line from end to end, with an arrow head on it."""
        xs, ys = zip(path.point(0.0), path.point(path.length), strict=True)
        axes.plot(xs, ys, color=lane.colour, linewidth=lane.width, zorder=2)
        axes.plot(
            *path.point(0.6 * path.length),
            marker=(3, 0, path.angle - 90),
            markersize=1.3 * lane.width + 20 * self.radius,
            markeredgewidth=0,
            color=lane.colour,
            zorder=3,
        )

    def _draw_marks(self, axes: Axes, lane: Lane, path: _LanePath) -> None:
        """Draw what happens where a stream begins: a tap, a widening."""
        assert lane.stream is not None
        # Marks stand in a row behind the rim of the node.
        size = 36 * self.radius + 0.4 * lane.width
        at = self.radius + 0.6 * size / POINTS_PER_INCH
        for is_so, style in (
            (lane.stream.is_tap, TAP_STYLE),
            (lane.stream.is_widened, WIDENED_STYLE),
        ):
            if is_so:
                axes.plot(*path.point(at), color=lane.colour, markersize=size, zorder=5, **style)
                at += 1.3 * size / POINTS_PER_INCH

    def _draw_node(self, axes: Axes, name: str, *, is_source: bool) -> None:
        is_thin = self.network.nodes[name].is_thin
        style = (THIN_PEER_STYLE if is_thin else SUPER_PEER_STYLE) | (
            SOURCE_STYLE if is_source else {}
        )
        size = self._measure_sign(name) * POINTS_PER_INCH
        axes.plot(*self.positions[name], markersize=size, zorder=4, **style)

    def _measure_sign(self, name: str) -> float:
        """Return the width of the circle or square of a node, in inches."""
        return 2 * self.radius * (0.72 if self.network.nodes[name].is_thin else 1)

    def _write_names(self, axes: Axes, sources: set[str], surroundings: Surroundings) -> None:
        """Write each name in the sign of its node if it fits, and else next to it."""
        from matplotlib.patheffects import withStroke

        texts = {name: shorten(name, MAX_LABEL_LENGTH) for name in self.network.nodes}
        fonts, size = Fonts.of(texts.values()), max(4.5, 43 * self.radius)
        widths = {name: fonts.width(text, size) for name, text in texts.items()}
        height = NAME_HEIGHT * size / POINTS_PER_INCH
        outside = {
            name: (width, height)
            for name, width in widths.items()
            if width > INSIDE_SHARE * self._measure_sign(name)
        }
        places = place_names(outside, surroundings)
        for name, text in texts.items():
            is_outside = name in outside
            axes.annotate(
                text,
                places[name] if is_outside else self.positions[name],
                ha="center",
                va="center",
                fontsize=size,
                fontfamily=fonts.families,
                color="white" if name in sources and not is_outside else "black",
                # Where every place is taken, a white outline keeps a name apart from lines.
                path_effects=[withStroke(linewidth=2, foreground="white")] if is_outside else [],
                parse_math=False,
                zorder=6,
            )


@dataclass(frozen=True, slots=True)
class _LanePath:
    """The line of a lane, in the direction of its stream."""

    start: Point
    along: Point
    length: float

    @staticmethod
    def of(first_end: Point, second_end: Point, lane: Lane) -> _LanePath:
        length = math.dist(first_end, second_end) or 1.0
        x, y = (second_end[0] - first_end[0]) / length, (second_end[1] - first_end[1]) / length
        # The offset is to the left of the link, whichever way the stream flows.
        first, sign = (first_end, 1) if lane.is_forward else (second_end, -1)
        aside = lane.offset / POINTS_PER_INCH
        return _LanePath((first[0] - y * aside, first[1] + x * aside), (sign * x, sign * y), length)

    def point(self, distance: float) -> Point:
        """Return the point that is so many inches from the start."""
        return self.start[0] + distance * self.along[0], self.start[1] + distance * self.along[1]

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


def make_legend_handles(streams: Sequence[SharedStream], widest: float) -> list[Line2D]:
    """Return the streams that move most by name, then the signs, then widths and their rates."""
    from matplotlib.lines import Line2D

    def line(label: str, **style: Any) -> Line2D:
        return Line2D([], [], label=label, **style)

    colours = choose_colours(streams)
    # Only streams with a colour of their own can be distinguished, so only these are named.
    named = [
        stream for stream in streams if colours[stream.number] in (SOURCE_COLOUR, *STRONG_COLOURS)
    ]
    named.sort(key=lambda stream: (not stream.is_source, -stream.bytes_moved))
    handles = [
        line(_label_stream(stream), color=colours[stream.number], linewidth=3) for stream in named
    ]
    if len(named) < len(streams):
        more = f"{len(streams) - len(named):,} more streams"
        handles.append(line(more, color=FAINT_COLOURS[0], linewidth=3))
    sign: Style = {"linestyle": "none", "markersize": 9, "color": GREY}
    handles += [
        line(" ", linestyle="none"),
        line("super-peer", **sign | SUPER_PEER_STYLE),
        line("thin peer", **sign | THIN_PEER_STYLE),
        line("delivers a stream", **sign | THIN_PEER_STYLE | SOURCE_STYLE),
        line("taps another stream", **sign | TAP_STYLE),
        line("widened, for several queries", **sign | WIDENED_STYLE),
        line(" ", linestyle="none"),
    ]
    # Three sample widths, a factor of ten apart, serve as the scale.
    largest = find_largest_rate(streams)
    for size in (largest, largest / 10, largest / 100):
        width = compute_width(size, largest, widest)
        handles.append(line(f"{_format_bytes(size)}/s", color=OTHERS_COLOUR, linewidth=width))
    return handles


def _label_stream(stream: SharedStream) -> str:
    names = (stream.stream,) if stream.is_source else stream.members
    label = shorten(" ∨ ".join(names[:MAX_NAMED_QUERIES]), MAX_LABEL_LENGTH)
    more = f" ∨ {len(names) - MAX_NAMED_QUERIES:,} more" if len(names) > MAX_NAMED_QUERIES else ""
    return f"{label}{more}: {stream.rows.value:,.0f} rows/s"


def _format_bytes(size: float) -> str:
    """Return an amount of bytes with two digits.

    >>> _format_bytes(37_000), _format_bytes(130), _format_bytes(4_077_000)
    ('37 kB', '130 B', '4.1 MB')
    """
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{size:.2g} {unit}" if size < 10 else f"{size:.0f} {unit}"
