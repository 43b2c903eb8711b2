"""A streaming query that takes a batch whenever it is told to, and waits between them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Semaphore
from types import TracebackType
from typing import Any, Self

from headgate.errors import HeadgateError

LOOK = 0.5  # seconds after which to look whether it still lives


def nowhere(rows: Any) -> None:
    """Compute a batch, and drop it."""
    rows.write.format("noop").mode("overwrite").save()


class Paced:
    """A batch has been taken when its state is committed and the next one waits at the gate."""

    def __init__(self, frame: Any, take: Callable[[Any], object] = nowhere) -> None:
        self._take = take
        self._open, self._here = Semaphore(0), Semaphore(0)
        self._ends = False
        self.batches = 0
        self.checkpoint = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint))
        self._query = writer.foreachBatch(self._batch).start()
        self._wait(float("inf"))

    def _batch(self, rows: Any, _: int) -> None:
        self._here.release()
        self._open.acquire()
        if not self._ends:
            self._take(rows)

    def advance(self, batches: int = 1, *, seconds: float = float("inf")) -> bool:
        """Take so many batches, unless that takes longer; says whether all were taken."""
        until = time.monotonic() + seconds
        for _ in range(batches):
            self._open.release()
            if not self._wait(until):
                return False
            self.batches += 1
        return True

    def _wait(self, until: float) -> bool:
        while not self._here.acquire(timeout=LOOK):
            if self._query.exception() is not None:
                raise HeadgateError(f"a streaming query ended: {self._query.exception()}")
            if time.monotonic() > until:
                return False
        return True

    @property
    def operators(self) -> list[dict[str, Any]]:
        """What Spark says of its state after the last batch."""
        return list(self._query.lastProgress["stateOperators"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ends = True
        self._open.release(1_000)
        self._query.stop()
        shutil.rmtree(self.checkpoint, ignore_errors=True)
