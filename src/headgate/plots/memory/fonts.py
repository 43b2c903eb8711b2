"""Names in any script: which fonts have their characters, and how wide they become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

HARD_SPACE = "\N{NO-BREAK SPACE}"
POINTS = 72.0  # to an inch
WITHOUT_TEXT = ("cm", "STIX", "Last Resort")  # fonts of symbols, and of boxes with numbers


def printable(text: str) -> str:
    """A text on one line, whatever it holds."""
    return "".join(c if c.isprintable() or c == HARD_SPACE else f"\\u{ord(c):04x}" for c in text)


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

        return RendererAgg(1, 1, POINTS)  # type: ignore[no-untyped-call]

    def width(self, text: str, size: float, weight: str = "normal") -> float:
        """The width of a text in inches."""
        from matplotlib.font_manager import FontProperties

        font = FontProperties(family=self.families, size=size, weight=weight)
        width, _, _ = self._renderer.get_text_width_height_descent(text, font, False)
        return float(width) / POINTS
