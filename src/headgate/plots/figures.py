"""A picture is a file that somebody asked for: whether it can be written is said beforehand."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#1f6f8b", "#d1793b", "#6a994e", "#666666"
SUFFIXES = (".png", ".svg", ".pdf")


def check_plot_path(path: Path) -> None:
    """Raises if no picture could be written there, before the work for it is done."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a file with the ending .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.parent}")
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib; pip install 'headgate[plot]', or ask for none")


def save_figure(figure: Figure, path: Path) -> None:
    """Write it; the ending of the path chooses the format."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"{path}: the plot cannot be written: {error.strerror}") from error
