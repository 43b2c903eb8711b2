"""What the signs, colours and widths in the picture of a plan mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headgate.errors import shorten
from headgate.plots.figures import GREY
from headgate.plots.network.lanes import FAINT, OTHERS, SOURCE, STRONG, colours, largest, width_of
from headgate.sharing.courses import SharedStream

if TYPE_CHECKING:
    from matplotlib.lines import Line2D

Style = dict[str, Any]

NAMED = 2  # queries of a stream
LONGEST = 30  # letters of their names

SUPER: Style = {"marker": "o", "markerfacecolor": "white", "markeredgecolor": SOURCE}
THIN: Style = {"marker": "s", "markerfacecolor": "white", "markeredgecolor": SOURCE}
DELIVERS: Style = {"markerfacecolor": SOURCE}
TAP: Style = {"marker": "o", "markerfacecolor": "white", "markeredgewidth": 1.6}
WIDENED: Style = {"marker": "D", "markeredgecolor": "white", "markeredgewidth": 0.8}


def legend(found: Sequence[SharedStream], widest: float) -> list[Line2D]:
    """Streams by name, those that move most; then the signs, and how wide is how much."""
    from matplotlib.lines import Line2D

    def line(label: str, **style: Any) -> Line2D:
        return Line2D([], [], label=label, **style)

    chosen = colours(found)
    named = [course for course in found if chosen[course.number] in (SOURCE, *STRONG)]
    named.sort(key=lambda course: (not course.is_source, -course.bytes_moved))
    handles = [line(_told(course), color=chosen[course.number], linewidth=3) for course in named]
    if len(named) < len(found):
        more = f"{len(found) - len(named):,} more streams"
        handles.append(line(more, color=FAINT[0], linewidth=3))
    sign: Style = {"linestyle": "none", "markersize": 9, "color": GREY}
    handles += [
        line(" ", linestyle="none"),
        line("super-peer", **sign | SUPER),
        line("thin peer", **sign | THIN),
        line("delivers a stream", **sign | THIN | DELIVERS),
        line("taps another stream", **sign | TAP),
        line("widened, for several queries", **sign | WIDENED),
        line(" ", linestyle="none"),
    ]
    most = largest(found)
    for size in (most, most / 10, most / 100):
        width = width_of(size, most, widest)
        handles.append(line(f"{_amount(size)}/s", color=OTHERS, linewidth=width))
    return handles


def _told(course: SharedStream) -> str:
    names = (course.stream,) if course.is_source else course.members
    told = shorten(" ∨ ".join(names[:NAMED]), LONGEST)
    more = f" ∨ {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{told}{more}: {course.rows.value:,.0f} rows/s"


def _amount(size: float) -> str:
    """Bytes, with two digits.

    >>> _amount(37_000), _amount(130), _amount(4_077_000)
    ('37 kB', '130 B', '4.1 MB')
    """
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{size:.2g} {unit}" if size < 10 else f"{size:.0f} {unit}"
