"""Values as numbers for the tree: the *point* where a value lies, and the *key* it is hashed by.

Points ascend with the values and are 64 bits wide, so that an interval of values lies inside the
interval of its points, whatever the type. Two values may share a point: what the tree finds by it
is checked in the leaf. Ordinals are their own points where they fit (`is_exact`); a text is known
by its first eight bytes, and a wide decimal by the nearest number that fits.
"""

from __future__ import annotations

from typing import Any

from headgate.events.columns import WIDEST_CODED
from headgate.schema import DecimalType, Ordinal, String, Type

LEAST, MOST = -(1 << 63), (1 << 63) - 1
WIDTH = 8


def is_exact(type_: Type) -> bool:
    """Are the ordinals of a type their own points?"""
    wide = isinstance(type_, DecimalType) and type_.precision > WIDEST_CODED
    return not wide and not isinstance(type_, String)


def point_of(ordinal: Ordinal) -> int:
    """The point of an ordinal.

    >>> point_of(7), point_of(10**30) == MOST, point_of("ab") < point_of("b")
    (7, True, True)
    """
    if isinstance(ordinal, str):
        text = ordinal.encode(errors="surrogatepass")[:WIDTH]
        return int.from_bytes(text.ljust(WIDTH, b"\0"), "big") + LEAST
    return min(max(ordinal, LEAST), MOST)


def key_of(ordinal: Any) -> int:
    """What an ordinal is hashed by: itself where it is its own point."""
    return hash(ordinal) if isinstance(ordinal, str) or not LEAST <= ordinal <= MOST else ordinal


def widened(low: int, high: int, least: int, most: int) -> tuple[int, int]:
    """A domain that reaches from `least` to `most` too, and has doubled where it grew.

    Each time it grows the tree is put in order below an attribute, so it grows seldom. A domain of
    which nothing is known yet is the point `MOST` alone.

    >>> widened(10, 19, 5, 12), widened(10, 19, 12, 100), widened(MOST, MOST, 5, 7)
    ((0, 19), (10, 100), (5, 7))
    """
    if low == MOST:
        return least, most
    span = high - low + 1
    if least < low:
        low = max(min(least, low - span), LEAST)
    if most > high:
        high = min(max(most, high + span), MOST)
    return low, high
