"""A limit of processor time for one decision."""

from __future__ import annotations

import math
import time


class Deadline:
    """The end of so many seconds of the thread's processor time, from now on.

    >>> Deadline(100).is_over(), Deadline(0).is_over()
    (False, True)
    """

    def __init__(self, seconds: float) -> None:
        # The processor's clock is slow to read, and is never ahead of the other.
        self._soonest = time.perf_counter() + seconds
        self._end = time.thread_time() + seconds if seconds < math.inf else math.inf

    def is_over(self) -> bool:
        """Return whether the time is spent."""
        return time.perf_counter() >= self._soonest and time.thread_time() >= self._end


NO_DEADLINE = Deadline(math.inf)
