"""Which characters become which in lower case: what ILIKE does not tell apart."""

from __future__ import annotations

import sys
from functools import cache


@cache
def characters_by_lower_case() -> dict[str, str]:
    """Return by character all characters whose lower case has it; itself, where it is missing.

    >>> characters_by_lower_case()["k"], characters_by_lower_case()["i"]
    ('kK\u212a', 'iI\u0130')
    """
    originals: dict[str, str] = {}
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        lowered = character.lower()
        if lowered != character:
            for letter in lowered:
                originals[letter] = originals.get(letter, letter) + character
    return originals
