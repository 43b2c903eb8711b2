"""What the signs, colours and widths in the picture of a plan mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headgate.errors import shorten
from headgate.plots.figures import GREY
from headgate.plots.network.lanes import (
    FAINT_COLOURS,
    OTHERS_COLOUR,
    SOURCE_COLOUR,
    STRONG_COLOURS,
    choose_colours,
    compute_width,
    find_largest_rate,
)
from headgate.sharing.shared_streams import SharedStream

if TYPE_CHECKING:
    from matplotlib.lines import Line2D

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


def make_legend_handles(found: Sequence[SharedStream], widest: float) -> list[Line2D]:
    """Streams by name, those that move most; then the signs, and how wide is how much."""
    from matplotlib.lines import Line2D

    def line(label: str, **style: Any) -> Line2D:
        return Line2D([], [], label=label, **style)

    chosen = choose_colours(found)
    named = [
        course for course in found if chosen[course.number] in (SOURCE_COLOUR, *STRONG_COLOURS)
    ]
    named.sort(key=lambda course: (not course.is_source, -course.bytes_moved))
    handles = [
        line(_label_stream(course), color=chosen[course.number], linewidth=3) for course in named
    ]
    if len(named) < len(found):
        more = f"{len(found) - len(named):,} more streams"
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
    most = find_largest_rate(found)
    for size in (most, most / 10, most / 100):
        width = compute_width(size, most, widest)
        handles.append(line(f"{_format_bytes(size)}/s", color=OTHERS_COLOUR, linewidth=width))
    return handles


def _label_stream(course: SharedStream) -> str:
    names = (course.stream,) if course.is_source else course.members
    told = shorten(" ∨ ".join(names[:MAX_NAMED_QUERIES]), MAX_LABEL_LENGTH)
    more = f" ∨ {len(names) - MAX_NAMED_QUERIES:,} more" if len(names) > MAX_NAMED_QUERIES else ""
    return f"{told}{more}: {course.rows.value:,.0f} rows/s"


def _format_bytes(size: float) -> str:
    """Bytes, with two digits.

    >>> _format_bytes(37_000), _format_bytes(130), _format_bytes(4_077_000)
    ('37 kB', '130 B', '4.1 MB')
    """
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{size:.2g} {unit}" if size < 10 else f"{size:.0f} {unit}"
