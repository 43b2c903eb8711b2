"""Values as numbers for the tree: the *point* where one lies, its hash *key*, and its *label*.

Points ascend with the values and are 64 bits wide, so that an interval of values lies inside the
interval of its points, whatever the type. Two values may share a point: where the tree leads by it,
the leaf checks the predicate. Ordinals are their own points where they fit (`fits_in_64_bits`); the
point of a text is its first eight bytes, and of a wide decimal the nearest number that fits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from headgate.events.columns import MAX_CODED_DIGITS
from headgate.schema import DecimalType, Ordinal, String, Type

MIN_POINT, MAX_POINT = -(1 << 63), (1 << 63) - 1
TEXT_BYTES = 8  # of a text that make its point
LABEL_STRIDE = 1 << 32  # between the labels of neighbours at first


def fits_in_64_bits(type_: Type) -> bool:
    """Return whether the ordinals of a type fit into 64 bits, so that they are their own points."""
    wide = isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS
    return not wide and not isinstance(type_, String)


def to_point(ordinal: Ordinal) -> int:
    """Return the point of an ordinal.

    >>> to_point(7), to_point(10**30) == MAX_POINT, to_point("ab") < to_point("b")
    (7, True, True)
    """
    if isinstance(ordinal, str):
        text = ordinal.encode(errors="surrogatepass")[:TEXT_BYTES]
        return int.from_bytes(text.ljust(TEXT_BYTES, b"\0"), "big") + MIN_POINT
    return min(max(ordinal, MIN_POINT), MAX_POINT)


def to_key(ordinal: Any) -> int:
    """Return the key that an ordinal is hashed by: itself where it is its own point."""
    return (
        hash(ordinal)
        if isinstance(ordinal, str) or not MIN_POINT <= ordinal <= MAX_POINT
        else ordinal
    )


def widen(low: int, high: int, least: int, most: int) -> tuple[int, int]:
    """Return a domain that reaches from `least` to `most` too, and has doubled where it grew.

    Each time it grows, what lies below an attribute is inserted again, so it grows seldom. A domain
    of which nothing is known yet is the point `MAX_POINT` alone.

    >>> widen(10, 19, 5, 12), widen(10, 19, 12, 100), widen(MAX_POINT, MAX_POINT, 5, 7)
    ((0, 19), (10, 100), (5, 7))
    """
    if low == MAX_POINT:
        return least, most
    # by as much as it spans, or further where that does not reach
    span = high - low + 1
    if least < low:
        low = max(min(least, low - span), MIN_POINT)
    if most > high:
        high = min(max(most, high + span), MAX_POINT)
    return low, high


class Labels:
    """Numbers for the values of a column that do not fit into 64 bits, which ascend with them.

    A value's label is that of the greatest constant that is not above it. A new constant gets a
    label between its neighbours', so that what is labelled already keeps its label, until there is
    no room between two of them.

    >>> labels = Labels()
    >>> [labels.add(text) for text in ("m", "z", "a", "n")], labels.label("b") == labels.label("a")
    ([False, False, False, False], True)
    >>> [labels.label(text) for text in "Aamnz"] == sorted(labels.label(text) for text in "nzmaA")
    True
    >>> labels.label("A") == MIN_POINT
    True
    """

    def __init__(self) -> None:
        self._constants: list[Any] = []
        self._labels: list[int] = []

    def add(self, constant: Any) -> bool:
        """Add a constant; return whether all got new labels because there was no room."""
        place = bisect_left(self._constants, constant)
        if place < len(self._constants) and self._constants[place] == constant:
            return False
        before, after = self._labels[max(0, place - 1) : place], self._labels[place : place + 1]
        # halfway between its neighbours; at an end, a stride beyond the last
        low = before[0] if before else (after[0] if after else 0) - 2 * LABEL_STRIDE
        high = after[0] if after else low + 2 * LABEL_STRIDE
        label = (low + high) // 2
        self._constants.insert(place, constant)
        self._labels.insert(place, label)
        if low < label and abs(label) < -MIN_POINT // 2:
            return False
        # no number is left between the neighbours: all are spread out again
        self._labels = [LABEL_STRIDE * number for number in range(len(self._labels))]
        return True

    def label(self, ordinal: Any) -> int:
        """Return the label of a value."""
        place = bisect_right(self._constants, ordinal)
        return self._labels[place - 1] if place else MIN_POINT
