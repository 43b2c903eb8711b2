"""Some events of a period, spread evenly over it, however many will come."""

from __future__ import annotations

import numpy as np

from headgate.matching.asc.order import Sample


class Sampled:
    """Every n-th event by the rows that it is in; when they are too many, every other one goes.

    >>> some = Sampled()
    >>> for start in range(0, 12, 4):
    ...     some.add(np.arange(start, start + 4, dtype=np.int32).reshape(1, 4), most=4)
    >>> some.events.ravel().tolist()
    [0, 4, 8]
    """

    def __init__(self) -> None:
        self._pieces: list[Sample] = []
        self._step, self._seen = 1, 0
        self._count = 0

    def add(self, rows: Sample, most: int) -> None:
        """Take of a batch what is its turn; `rows` has a row for each construct."""
        first = -self._seen % self._step
        self._seen += rows.shape[1]
        self.keep(np.ascontiguousarray(rows[:, first :: self._step].T), most)

    def keep(self, events: Sample, most: int) -> None:
        """Take all of these events, as if it were their turn."""
        if self._pieces and self._pieces[0].shape[1] != events.shape[1]:
            self._pieces, self._count = [], 0
        if len(events):
            self._pieces.append(events)
            self._count += len(events)
        while self._count > max(1, most):
            self._pieces = [self.events[::2]]
            self._count = len(self._pieces[0])
            self._step *= 2

    @property
    def events(self) -> Sample:
        """By event and construct, in the order in which they came."""
        if not self._pieces:
            return np.empty((0, 0), np.int32)
        return self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)
