"""What all figures share: colours, the check of a file name, and saving."""

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
    """Raise UsageError if no figure can be written there, before the work for it is done."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a .png, .svg or .pdf file; give it such an ending")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.parent}; create it first")
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib; install it with: pip install 'headgate[plot]'")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's ending."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"{path}: the plot cannot be written: {error.strerror}") from error
