"""The comparisons of a query as a picture: streams as boxes, arrows to the greater side.

As Figures 1 and 3 of "Characterizing Memory Requirements …", with what is at fault marked.
"""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import UsageError
from headgate.plots.figures import GREY, ORANGE, check_plot_path, save_figure
from headgate.plots.memory_geometry import (
    CONSTANT_SIZE,
    GAP,
    MARGIN,
    NAME_SIZE,
    PAD,
    SMALL_SIZE,
    TITLE_SIZE,
    ColumnLayout,
    Line,
    Point,
    format_constant,
    format_node,
    make_edge_line,
    make_limit_line,
    to_one_line,
)
from headgate.plots.memory_graph import PredicateGraph, build_predicate_graph
from headgate.plots.memory_layout import Slot, compute_places, get_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headgate.stateful.analysis.verdict import Verdict

MAX_DRAWN_LINES = 1_000  # nodes and links between neighbouring columns
MAX_PIXELS, DPI = 16_000, 130
MIN_WIDTH, LEGEND, LINE_HEIGHT = 6.0, 0.3, 0.2  # inches

FINITE, ENDLESS, BACKGROUND, DARK = "#cfdfc4", "#cbdfe6", "#f6f6f4", "#333333"
SIGNS = {"<=": "≤", ">=": "≥"}

Style = dict[str, Any]


def plot_comparisons(verdict: Verdict, path: Path) -> None:
    """Write a picture of the comparisons of a query, and of what is at fault."""
    check_plot_path(path)
    graph = build_predicate_graph(verdict)
    if len(graph.nodes) + graph.length > MAX_DRAWN_LINES:
        raise UsageError(f"{verdict.query.id} has too many comparisons to be drawn")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # in every font there is
        save_figure(draw_comparisons(graph), path)


def draw_comparisons(graph: PredicateGraph) -> Figure:
    """Return the picture of a graph, as large as it needs to be."""
    from matplotlib.figure import Figure

    drawing = _Drawing(ColumnLayout(graph, compute_places(graph)))
    figure = Figure(figsize=drawing.size, dpi=min(DPI, MAX_PIXELS / max(drawing.size)))
    drawing.draw(figure.add_axes((0, 0, 1, 1)))
    return figure


@dataclass(frozen=True)
class _Drawing:
    """Coordinates are inches; upward they count from the middle of the boxes."""

    columns: ColumnLayout

    @property
    def graph(self) -> PredicateGraph:
        return self.columns.graph

    @cached_property
    def boxes(self) -> tuple[float, float]:
        """From where to where all boxes reach upward."""
        numbers = range(len(self.graph.boxes))
        spans = [self.columns.places.span(number) for number in numbers]
        header = LINE_HEIGHT * max(len(self.columns.list_header(number)) for number in numbers)
        return min(low for low, _ in spans) - PAD, max(high for _, high in spans) + PAD + header

    @cached_property
    def title(self) -> list[tuple[str, float, str]]:
        """The lines of the title, each with its size and weight."""
        headline, sentence = self.graph.headline, self.graph.sentence
        bold = [(line, TITLE_SIZE, "bold") for line in self._wrap(headline, TITLE_SIZE, "bold")]
        return bold + [(line, NAME_SIZE, "normal") for line in self._wrap(sentence, NAME_SIZE)]

    @cached_property
    def notes(self) -> list[str]:
        left_out = ", ".join(self.graph.left_out)
        return self._wrap(f"Not drawn: {left_out}", SMALL_SIZE) if left_out else []

    def _wrap(self, text: str, size: float, weight: str = "normal") -> list[str]:
        line = to_one_line(text)
        # Lines are broken by the average width of a letter, with 5 % to spare.
        letter = self.columns.fonts.width(line, size, weight) / max(1, len(line))
        return textwrap.wrap(line, int((self.width - 2 * MARGIN) / (1.05 * letter or 1)))

    @cached_property
    def width(self) -> float:
        return max(MIN_WIDTH, self.columns.all[-1].right + MARGIN)

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest place of the picture."""
        bottom, top = self.boxes
        below = MARGIN + LINE_HEIGHT * len(self.notes) + LEGEND
        return bottom - below, top + 2 * MARGIN + LINE_HEIGHT * (len(self.title) - 0.5)

    @property
    def size(self) -> Point:
        low, high = self.limits
        return self.width, high - low

    def draw(self, axes: Axes) -> None:
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(*self.limits)
        # From the back to the front: boxes, lines, nodes, then text.
        self._draw_streams(axes)
        self._draw_lines(axes)
        self._draw_nodes(axes)
        y = self.limits[1] - MARGIN
        for number, (text, size, weight) in enumerate(self.title):
            self._draw_text(axes, (MARGIN, y - LINE_HEIGHT * number), text, size, weight=weight)
        y = self.boxes[0] - MARGIN
        for number, text in enumerate(self.notes):
            self._draw_text(axes, (MARGIN, y - LINE_HEIGHT * number), text, SMALL_SIZE, color=GREY)
        self._draw_legend(axes)

    def _draw_text(self, axes: Axes, at: Point, text: str, size: float, **style: Any) -> None:
        families = self.columns.fonts.families
        placed: Style = {"va": "center", "zorder": 6, "parse_math": False} | style
        axes.text(*at, text, size=size, family=families, **placed)

    def _draw_streams(self, axes: Axes) -> None:
        bottom, top = self.boxes
        for number, column in enumerate(self.columns.all):
            dashes = "-" if self.graph.boxes[number].rows is None else "--"
            style: Style = {"fc": BACKGROUND, "ec": GREY, "lw": 1, "ls": dashes, "zorder": 1}
            _draw_box(axes, column.box, (bottom, top), style)
            for line, (text, size) in enumerate(self.columns.list_header(number)):
                at = sum(column.box) / 2, top - PAD / 2 - LINE_HEIGHT * (line + 0.5)
                weight = "normal" if line else "bold"
                self._draw_text(axes, at, text, size, ha="center", weight=weight)

    def _draw_nodes(self, axes: Axes) -> None:
        for number, node in enumerate(self.graph.nodes):
            slot, across = Slot(node.source, number), self.columns.all[node.source].nodes
            middle, half = self.columns.places.middle[slot], self.columns.places.heights[slot] / 2
            up = middle - half, middle + half
            # A broad frame behind the node, so that it shows around the node's own ring.
            if node.is_guilty:
                _draw_box(axes, across, up, {"fc": "none", "ec": ORANGE, "lw": 9, "zorder": 4})
            ring, width = ("black", 2.4) if node.is_output else (GREY, 0.8)
            fill = FINITE if node.bounded else ENDLESS
            _draw_box(axes, across, up, {"fc": fill, "ec": ring, "lw": width, "zorder": 5})
            at = sum(across) / 2, middle
            self._draw_text(axes, at, format_node(node), NAME_SIZE, ha="center")

    def _draw_lines(self, axes: Axes) -> None:
        for number, edge in enumerate(self.graph.edges):
            color, width = (ORANGE, 2.4) if edge.is_guilty else (DARK, 1.0)
            self._draw_line(axes, make_edge_line(self.columns, number), color, width)
        for limit in self.graph.limits:
            line = make_limit_line(self.columns, limit)
            self._draw_line(axes, line, GREY, 0.7)
            is_left = get_side(limit) == "left"
            x, y = line.points[0] if is_left else line.points[-1]
            at, side = ((x - GAP, y), "right") if is_left else ((x + GAP, y), "left")
            self._draw_text(axes, at, format_constant(limit), CONSTANT_SIZE, ha=side, color=GREY)

    def _draw_line(self, axes: Axes, line: Line, color: str, width: float) -> None:
        """Draw an arrow, or two lines for an equality; what is at fault lies over the others."""
        from matplotlib.patches import FancyArrowPatch, PathPatch
        from matplotlib.path import Path as Curve

        # Every three points after the first are the two controls and the end of a cubic curve.
        curve = Curve(line.points, [Curve.MOVETO] + [Curve.CURVE4] * (len(line.points) - 1))
        order = 3 if color == ORANGE else 2
        if line.sign in ("=", "IN"):
            # A white line over a broader one leaves two parallel lines.
            for stroke, thick in ((color, 1.6 + 1.4 * width), ("white", 1.6)):
                axes.add_patch(PathPatch(curve, fill=False, ec=stroke, lw=thick, zorder=order))
        else:
            head: Style = {"arrowstyle": "-|>", "mutation_scale": 8 + 2 * width, "shrinkB": 0}
            style: Style = {"shrinkA": 0, "zorder": order, "color": color, "lw": width}
            axes.add_patch(FancyArrowPatch(path=curve, **head, **style))
        around = {"boxstyle": "round,pad=0.08", "fc": "white", "ec": "none"}
        sign: Style = {"ha": "center", "color": color, "bbox": around, "zorder": 4}
        weight = "bold" if color == ORANGE else "normal"
        text = SIGNS.get(line.sign, line.sign)
        self._draw_text(axes, line.sign_at, text, SMALL_SIZE, weight=weight, **sign)

    def _draw_legend(self, axes: Axes) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        nodes = self.graph.nodes
        # Only what occurs in the picture is explained.
        handles: dict[str, Any] = {}
        if any(node.bounded for node in nodes):
            handles["finitely many values"] = Patch(fc=FINITE, ec=GREY)
        if not all(node.bounded for node in nodes):
            handles["infinitely many values"] = Patch(fc=ENDLESS, ec=GREY)
        if any(node.is_output for node in nodes):
            handles["output"] = Patch(fc="white", ec="black", lw=2.4)
        if self.graph.is_guilty:
            handles["at fault"] = Line2D([], [], color=ORANGE, lw=2.4)
        style: Style = {"frameon": False, "fontsize": SMALL_SIZE, "borderaxespad": 0}
        anchor = MARGIN, self.limits[0] + MARGIN / 2
        placed: Style = {"bbox_to_anchor": anchor, "bbox_transform": axes.transData}
        names = list(handles)
        axes.legend(handles.values(), names, loc="lower left", ncols=4, **style, **placed)


def _draw_box(
    axes: Axes, across: tuple[float, float], up: tuple[float, float], style: Style
) -> None:
    from matplotlib.patches import FancyBboxPatch

    (left, right), (bottom, top) = across, up
    corners = "round,pad=0,rounding_size=0.1"
    axes.add_patch(
        FancyBboxPatch((left, bottom), right - left, top - bottom, boxstyle=corners, **style)
    )
