"""What all figures share: colours, fonts, the check of a file name, and saving."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#1f6f8b", "#d1793b", "#6a994e", "#666666"
SUFFIXES = (".png", ".svg", ".pdf")
POINTS_PER_INCH = 72.0
WITHOUT_TEXT = ("cm", "STIX", "Last Resort")  # fonts of symbols, and of boxes with numbers


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


@dataclass(frozen=True)
class Fonts:
    """The usual font, and for the characters that it lacks installed ones that have them."""

    characters: frozenset[str]

    @staticmethod
    def of(texts: Iterable[str]) -> Fonts:
        return Fonts(frozenset(character for text in texts for character in text))

    @cached_property
    def families(self) -> list[str]:
        from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

        # Greedily: each installed font that has some character still lacking, in a fixed order.
        usual = FontProperties()
        lacking = {ord(c) for c in self.characters} - {*get_font(findfont(usual)).get_charmap()}
        families = [usual.get_name()]
        for font in sorted(fontManager.ttflist, key=lambda font: (font.name, font.fname)):
            if not lacking:
                break
            if font.name.startswith(WITHOUT_TEXT) or font.name in families:
                continue
            had = lacking & {*get_font(font.fname).get_charmap()}
            families += [font.name] if had else []
            lacking -= had
        return families

    @cached_property
    def _renderer(self) -> Any:
        from matplotlib.backends.backend_agg import RendererAgg

        return RendererAgg(1, 1, POINTS_PER_INCH)  # type: ignore[no-untyped-call]

    def width(self, text: str, size: float, weight: str = "normal") -> float:
        """Return the width of a text in inches."""
        from matplotlib.font_manager import FontProperties

        font = FontProperties(family=self.families, size=size, weight=weight)
        width, _, _ = self._renderer.get_text_width_height_descent(text, font, False)
        return float(width) / POINTS_PER_INCH
