"""Names in 27 letters: a to z, and `_` for whatever else there is."""

from __future__ import annotations

import re
import unicodedata

LETTERS = "abcdefghijklmnopqrstuvwxyz_"
FILLER = "_"

_WITHOUT_ACCENT = str.maketrans(  # what Unicode does not take apart
    {"æ": "ae", "œ": "oe", "ø": "o", "ß": "ss", "þ": "th", "ð": "d", "đ": "d", "ł": "l"}
    | {"ı": "i", "ħ": "h", "ŋ": "ng", "ŧ": "t", "ə": "e"}
)
_MARKS = re.compile(r"[\u0300-\u036f'’ʻʼ‘]+")
_OTHERS = re.compile(r"[^a-z]+")


def normalised(name: str) -> str:
    """Lower case without accents; any run of other characters is one filler, and none at the ends.

    >>> normalised("Saint-Étienne"), normalised("  L'Aquila (AQ)"), normalised("Łódź")
    ('saint_etienne', 'laquila_aq', 'lodz')
    """
    plain = unicodedata.normalize("NFKD", name.lower().translate(_WITHOUT_ACCENT))
    return _OTHERS.sub(FILLER, _MARKS.sub("", plain)).strip(FILLER)
