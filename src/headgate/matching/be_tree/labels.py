"""Numbers for values that do not fit into 64 bits: labels that ascend with them, and stay.

A value's label is that of the greatest constant that is not above it. A new constant gets a label
between its neighbours', so that what is labelled already need not be labelled again, until there is
no room between two of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from headgate.matching.be_tree.domain import LEAST

STRIDE = 1 << 32


class Labels:
    """The constants of one column, ascending, and their labels.

    >>> labels = Labels()
    >>> [labels.add(text) for text in ("m", "z", "a", "n")], labels.of("b") == labels.of("a")
    ([False, False, False, False], True)
    >>> labels.of("a") < labels.of("m") < labels.of("n") < labels.of("z"), labels.of("A") == LEAST
    (True, True)
    """

    def __init__(self) -> None:
        self._constants: list[Any] = []
        self._labels: list[int] = []

    def add(self, constant: Any) -> bool:
        """Take in a constant; True if all got new labels because there was no room."""
        place = bisect_left(self._constants, constant)
        if place < len(self._constants) and self._constants[place] == constant:
            return False
        before, after = self._labels[max(0, place - 1) : place], self._labels[place : place + 1]
        low = before[0] if before else (after[0] if after else 0) - 2 * STRIDE
        high = after[0] if after else low + 2 * STRIDE
        label = (low + high) // 2
        self._constants.insert(place, constant)
        self._labels.insert(place, label)
        if low < label and abs(label) < -LEAST // 2:
            return False
        self._labels = [STRIDE * number for number in range(len(self._labels))]
        return True

    def of(self, ordinal: Any) -> int:
        """The label of a value."""
        place = bisect_right(self._constants, ordinal)
        return self._labels[place - 1] if place else LEAST
