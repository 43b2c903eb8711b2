"""Two-dimensional predicates as a picture: the stream's boxes, the query, its splits, what is new.

As Figures 2 to 5 of "Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.errors import UsageError
from headgate.implication.exact import find_uncovered
from headgate.implication.pair import PredicatePair
from headgate.implication.paper.stream_predicate import StreamPredicate, subtract_box
from headgate.implication.parts import ComparisonCounter, Part, Side, to_parts
from headgate.implication.relaxation import Relaxation
from headgate.implication.space import Dimension, Numbers
from headgate.plots.figures import BLUE, GREEN, GREY, ORANGE, check_plot_path, save_figure
from headgate.predicate.answer import Answer
from headgate.schema import Double, Ordinal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DRAWN_PARTS = 2_000
MAX_TICKS = 12
MAX_FLAT_LABEL = 6  # characters of a name that stands upright
MARGIN = 0.08  # of the width, for what has no end
MIN_RELATIVE_WIDTH = 1e-9  # of its value, for a width
MAX_SCALED_POSITION = 1e15  # that is drawn to scale

Style = dict[str, Any]
STREAM: Style = {"facecolor": BLUE + "22", "edgecolor": BLUE, "linewidth": 1.6}
SPLIT: Style = {"fill": False, "edgecolor": "black", "linewidth": 1.2, "linestyle": ":"}
MISSING: Style = {"facecolor": ORANGE + "44", "edgecolor": ORANGE, "linewidth": 0, "hatch": "///"}
NEEDLESS: Style = {"facecolor": "none", "edgecolor": GREY, "linewidth": 0, "hatch": "..."}
RELAXED: Style = {"fill": False, "edgecolor": GREEN + "aa", "linewidth": 5}
QUERY: Style = {"fill": False, "edgecolor": "black", "linewidth": 1.6, "linestyle": "--"}


def plot_relaxation(relaxation: Relaxation, path: Path) -> None:
    """Write a picture of a relaxation; the conditions must speak of exactly two attributes."""
    check_plot_path(path)
    pair, relaxed = relaxation.pair, relaxation.boxes
    if pair is None or relaxed is None:
        raise UsageError("these conditions are too many boxes to be drawn")
    dimensions = pair.space.dimensions
    if pair.conditions:
        raise UsageError("patterns and comparisons of attributes cannot be drawn; boxes can")
    if len(dimensions) != 2:
        named = ", ".join(dimension.column.name for dimension in dimensions) or "none"
        raise UsageError(
            f"a picture has two axes, so it needs conditions on two attributes; these have {named}"
        )
    from matplotlib.figure import Figure

    query, stream = pair.query_boxes, pair.stream_boxes
    before = {*to_parts(stream)}
    # From the back to the front; each layer is drawn over those before it.
    layers: dict[str, tuple[Iterable[Part], Style]] = {
        "stream": (before, STREAM),
        "too much": (find_uncovered(relaxed, stream.concat(query)), NEEDLESS),
        "missing in the stream": (find_uncovered(query, stream), MISSING),
        "splits of the query": (split_query(pair, MAX_DRAWN_PARTS), SPLIT),
        "the stream relaxed": ({*to_parts(relaxed)} - before, RELAXED),
        "query": (to_parts(query), QUERY),
    }
    drawn = {name: list(islice(parts, MAX_DRAWN_PARTS)) for name, (parts, _) in layers.items()}
    # `sides[d]` are the sides in dimension d of all boxes that are drawn.
    sides = [*zip(*chain(*drawn.values()), strict=True)] or [(), ()]
    figure = Figure(figsize=(8, 6), dpi=150, layout="constrained")
    drawing = _Drawing(figure.add_subplot(), *map(_Axis.of, dimensions, sides))
    for name, parts in drawn.items():
        drawing.draw_boxes(name, parts, layers[name][1])
    drawing.finish(_write_title(relaxation))
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)


def _write_title(relaxation: Relaxation) -> str:
    words = {Answer.YES: "covered", Answer.NO: relaxation.reason or "not covered"}
    verdict = words.get(relaxation.covered, "unknown")
    exact = (
        ""
        if relaxation.covered is Answer.YES or relaxation.exact
        else ", relaxed by more than is needed"
    )
    return f"{relaxation.method}: {verdict}{exact}"


@dataclass(frozen=True)
class _Axis:
    """A dimension from its first cut to its last; NULL and infinity lie in margins."""

    dimension: Dimension
    starts: Numbers
    stops: Numbers
    nulls: bool  # is there a margin for NULL?

    @staticmethod
    def of(dimension: Dimension, sides: Iterable[Side]) -> _Axis:
        nulls = dimension.nullable and any(
            low == 0 and high < dimension.count for low, high in sides
        )
        return _Axis(dimension, *_place_cells(dimension), nulls)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The first and the last cut, or where the values begin and end."""
        finite = [float(at) for at in (*self.starts, *self.stops) if math.isfinite(at)] or [0.0]
        return min(finite), max(finite)

    @cached_property
    def margin(self) -> float:
        first, last = self.ends
        is_point = last - first <= MIN_RELATIVE_WIDTH * max(abs(first), 1.0)
        return 1.0 if is_point else MARGIN * (last - first)

    @property
    def limits(self) -> tuple[float, float]:
        return self.ends[0] - self.margin * (1 + self.nulls), self.ends[1] + self.margin

    def span(self, side: Side) -> tuple[float, float]:
        """Return from where to where a side is drawn."""
        low, high = side
        bottom, top = self.limits
        # A side without NULL begins behind its margin; one that is only NULL fills just that.
        if self.nulls and low > 0:
            bottom += self.margin
        if self.nulls and high == 1:
            return bottom, bottom + self.margin
        return max(bottom, float(self.starts[low])), min(top, float(self.stops[high - 1]))

    def list_ticks(self) -> tuple[list[float], list[str]]:
        """Return cuts, each with the value that stands there, and NULL in its margin."""
        starts = self.starts[self.dimension.nullable :]
        cuts = [
            (float(start), self._name(cell.low))
            for start, cell in zip(starts, self.dimension.intervals, strict=True)
            if cell.low is not None
        ]
        # Neighbouring cuts may have the same name (`> 5` and `>= 5`); it is written once.
        named = [cut for at, cut in enumerate(cuts) if at == 0 or cut[1] != cuts[at - 1][1]]
        # Every n-th cut, so that there are not too many.
        marks = named[:: -(-len(named) // MAX_TICKS) or 1]
        if self.nulls:
            marks.append((self.limits[0] + self.margin / 2, "NULL"))
        return [place for place, _ in marks], [name for _, name in marks]

    def _name(self, cut: Ordinal) -> str:
        """Return the value at a cut; of two neighbouring doubles the one with fewer digits."""
        type_ = self.dimension.column.type
        if isinstance(cut, str):
            return cut.removesuffix("\0")
        if not isinstance(type_, Double):
            return str(type_.value(cut))
        return min((repr(type_.value(at)) for at in (cut, cut - 1)), key=len).removesuffix(".0")


def _place_cells(dimension: Dimension) -> tuple[Numbers, Numbers]:
    """Return where cells begin and end: to scale, or side by side where too far apart."""
    starts, stops = dimension.ends
    # The first cell of values has no beginning, and NULL lies before it.
    inner = starts[1 + dimension.nullable :]
    if np.isfinite(inner).all() and np.abs(inner).max(initial=0) < MAX_SCALED_POSITION:
        return starts, stops
    places = np.arange(len(starts), dtype=np.float64)
    places[: 1 + dimension.nullable] = -math.inf
    return places, np.append(places[1:], math.inf)


@dataclass(frozen=True)
class _Drawing:
    axes: Axes
    horizontal: _Axis
    vertical: _Axis

    def draw_boxes(self, label: str, parts: Iterable[Part], style: Style) -> None:
        """Draw parts alike; the first is named in the legend."""
        from matplotlib.patches import Rectangle

        for count, (across, up) in enumerate(parts):
            (left, right), (bottom, top) = self.horizontal.span(across), self.vertical.span(up)
            size = right - left, top - bottom
            named = label if count == 0 else None
            self.axes.add_patch(Rectangle((left, bottom), *size, label=named, **style))

    def finish(self, title: str) -> None:
        axes = self.axes
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        axes.set_xlim(*self.horizontal.limits)
        axes.set_ylim(*self.vertical.limits)
        places, names = self.horizontal.list_ticks()
        slant = 45 if max(map(len, names), default=0) > MAX_FLAT_LABEL else 0
        axes.set_xticks(places, names, fontsize=8, rotation=slant)
        axes.set_yticks(*self.vertical.list_ticks(), fontsize=8)
        axes.set_xlabel(self.horizontal.dimension.column.name)
        axes.set_ylabel(self.vertical.dimension.column.name)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)


def split_query(pair: PredicatePair, most: int) -> list[Part]:
    """Return the disjoint parts of all query boxes; the largest boxes of the stream cut first.

    Past `most` parts the division stops, so that some parts may be only partly held.
    """
    stream = StreamPredicate(pair.space, pair.stream_boxes, None)
    # `covered` lies inside boxes of the stream, `pending` in none of those so far.
    covered: list[Part] = []
    pending = to_parts(pair.query_boxes)
    for at in range(len(stream)):
        number = stream.number_at(at)
        uncovered: list[Part] = []
        for part in pending:
            pieces = subtract_box(stream, number, part, ComparisonCounter())
            uncovered += pieces
            # Something was cut off: what the part has in common with the box.
            if pieces != [part]:
                covered.append(_intersect(part, stream.parts[number]))
        pending = uncovered
        if len(covered) + len(pending) > most:
            break
    return covered + pending


def _intersect(part: Part, box: Part) -> Part:
    return tuple(
        (max(low, first), min(high, end))
        for (low, high), (first, end) in zip(part, box, strict=True)
    )
