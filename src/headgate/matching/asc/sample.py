"""Some events of a period, drawn by chance, however many will come."""

from __future__ import annotations

import numpy as np

from headgate.matching.asc.order import Sample


class Sampled:
    """About one of n events by the rows that it is in; when there are twice as many as asked for,
    half of them go. Drawn with replacement, so that an event may be in it twice.

    Which ones is left to chance, since streams have rhythms: every fiftieth may be of one device.

    >>> some = Sampled()
    >>> for start in range(0, 1000, 10):
    ...     some.add(np.arange(start, start + 10, dtype=np.int32).reshape(1, 10), most=100)
    >>> found = some.events(most=100).ravel()
    >>> len(found), bool((np.diff(found) >= 0).all())
    (100, True)
    """

    def __init__(self, share: float = 1.0, seed: int = 0) -> None:
        self._pieces: list[Sample] = []
        self._count = 0
        self._share = share  # of the events, that is taken
        self._random = np.random.default_rng(seed)

    def add(self, rows: Sample, most: int) -> None:
        """Take some of a batch; `rows` has a row for each construct."""
        events = rows.shape[1]
        if self._share < 1:
            count = int(self._share * events + self._random.random())
            chosen = np.sort(self._random.integers(0, events, count))
            self.keep(np.ascontiguousarray(rows[:, chosen].T), most)
        else:
            self.keep(np.ascontiguousarray(rows.T), most)

    def keep(self, events: Sample, most: int) -> None:
        """Take all of these events."""
        if self._pieces and self._pieces[0].shape[1] != events.shape[1]:
            self._pieces, self._count = [], 0
        if len(events):
            self._pieces.append(events)
            self._count += len(events)
        while self._count > 2 * most:
            together = self._together()
            half = np.sort(self._random.permutation(len(together))[: len(together) // 2])
            self._pieces = [together[half]]
            self._count = len(half)
            self._share /= 2

    def events(self, most: int) -> Sample:
        """By event and construct, in the order in which they came; up to so many of them."""
        if not self._pieces:
            return np.empty((0, 0), np.int32)
        found = self._together()
        chosen = np.arange(min(most, len(found))) * len(found) // max(1, min(most, len(found)))
        return np.ascontiguousarray(found[chosen])

    @property
    def constructs(self) -> int:
        return self._pieces[0].shape[1] if self._pieces else 0

    def _together(self) -> Sample:
        return self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)

    def __len__(self) -> int:
        return self._count
