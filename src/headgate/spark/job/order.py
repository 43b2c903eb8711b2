"""The order in which the indexes of all tasks evaluate: found by the driver from what tasks count.

Indexes of kind "asc" count and sample while they match, and each task sends that back with its
report. The driver has an index over the same queries, which learns from all of them, and the order
that it finds is sent with the next batch. It is saved in a file, so that the first batch after a
restart already runs in it. Results never depend on the order: a batch that is replayed in another
one gives the same rows. So nothing that goes wrong here fails a batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headgate.matching.asc.options import AscOptions
from headgate.snapshot import fingerprint
from headgate.spark.frames import join_first
from headgate.spark.job.commit.output import write_atomically
from headgate.spark.job.progress import OrderReport
from headgate.spark.session.failure import explain_failure
from headgate.spark.worker import IndexConfig, load

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex
    from headgate.matching.asc.monitor import Statistics

Order = dict[str, Any]
"""What `AscIndex.publish` returns, and `follow` takes."""


@runtime_checkable
class OrderFollower(Protocol):
    """An index in a task that evaluates in an order which the driver finds from what it counts."""

    def follow(self, order: Order | None) -> None:
        """Evaluate in this order from now on; called once at the start of a task."""

    def take_statistics(self) -> Statistics:
        """Return what was counted and sampled since the last call, and start again with nothing."""

    def describe(self) -> dict[str, Any]:
        """Describe the index; `order` is the sequence that it evaluates in."""


class OrderCoordinator:
    """Finds the order for the indexes of all tasks, batch after batch, on the driver.

    `order` is the one for the next batch; None for the one that every index finds by itself before
    it has seen an event. There is an index for one version of the queries at a time, made when a
    batch under it has ended; the order is kept as far as both versions have the same constructs.
    """

    def __init__(self, path: Path, options: AscOptions, note: Callable[[str], None]) -> None:
        self._path = path
        self._options = options
        self._note = note
        self._index: AscIndex | None = None
        self._version = ""  # of the queries that the index is over, or cannot be made for
        self.order = self._restore()

    def learn(
        self, snapshot: str, stream: str, learned: Sequence[dict[str, Any]]
    ) -> OrderReport | None:
        """Learn from what the tasks of a batch counted; return None where there was no event.

        Never raises: on an error the order stays as it is, and a note says why.
        """
        try:
            statistics = _merge_statistics(learned, self._options.sample)
            if statistics is None:
                return None
            # all tasks of a batch run in the same order
            sequence = learned[0]["sequence"]
            why = self._rearrange(statistics, snapshot, stream)
            if why is not None and self.order is not None and self.order["sequence"] != sequence:
                self._note(f"the order is now {join_first(self.order['sequence'])}: {why}")
            return _build_report(sequence, statistics, why)
        except Exception as error:
            self._note(f"the order of evaluation stays as it is: {explain_failure(error)}")
            return None

    def _rearrange(self, statistics: Statistics, snapshot: str, stream: str) -> str | None:
        """Return why there is another order now, if there is."""
        index = self._load_index(snapshot, stream)
        if index is None or not index.learn(statistics):
            return None
        order = index.publish()
        # saved only when it changes: most batches leave it as it is
        if order != self.order:
            self.order = order
            self._save(order)
        last = index.monitor.last
        return None if last is None else last.rearranged

    def _load_index(self, snapshot: str, stream: str) -> AscIndex | None:
        """Return the index over a version; None where an attempt has failed already."""
        from headgate.matching.asc.index import AscIndex

        version = f"{snapshot} {fingerprint(Path(snapshot))}"
        if version != self._version:
            # set first, so that a version whose index cannot be built is not tried in every batch
            self._version, self._index = version, None
            # not from the worker's cache: this index learns, and is kept by the driver
            index = load(snapshot, stream, IndexConfig("asc", self._options)).index
            assert isinstance(index, AscIndex)
            if self.order is not None:
                index.resume(self.order)
            self._index = index
        return self._index

    def _save(self, order: Order) -> None:
        saved = {"kind": self._options.sequence, "order": order}
        try:
            write_atomically(self._path, json.dumps({**saved, "checksum": _checksum(saved)}))
        except OSError as error:
            self._note(f"{self._path}: cannot save the order for the next run: {error.strerror}")

    def _restore(self) -> Order | None:
        """Return the order of an earlier run, unless it is damaged or of another kind.

        Arrows lead from row to row of bitmaps without a check, so they must be just what was saved.
        """
        try:
            saved = json.loads(self._path.read_text(encoding="utf-8"))
            if saved.pop("checksum") != _checksum(saved):
                raise ValueError("its checksum is another")
            order: Order = saved["order"]
            if saved["kind"] == self._options.sequence:
                return order
            self._note(f"{self._path}: ignored, as it is of a {saved['kind']} sequence")
        except FileNotFoundError:
            pass
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as bad:
            self._note(f"{self._path}: ignored, as it was changed or damaged ({bad})")
        return None


def open_order(
    path: Path, index: IndexConfig, note: Callable[[str], None]
) -> OrderCoordinator | None:
    """Return the coordinator of a job whose index evaluates in an order that adapts, else None."""
    if not isinstance(index.options, AscOptions):
        return None
    return OrderCoordinator(path, index.options, note)


def _checksum(saved: dict[str, Any]) -> str:
    return blake2b(json.dumps(saved, sort_keys=True).encode(), digest_size=16).hexdigest()


def _merge_statistics(learned: Sequence[dict[str, Any]], max_sample: int) -> Statistics | None:
    """Return the statistics of all tasks, with a sample of bounded size from all of them."""
    from headgate.matching.asc.monitor import Statistics, sum_statistics

    merged = sum_statistics(Statistics.from_json(task["statistics"]) for task in learned)
    if merged is None:
        return None
    # every n-th event, so that each task keeps its share of the sample
    return replace(merged, sample=merged.sample[:: -(-len(merged.sample) // max_sample)])


def _build_report(sequence: list[str], statistics: Statistics, why: str | None) -> OrderReport:
    from headgate.matching.asc.monitor import Period

    batch = Period.from_tally(statistics.tally, before=0)
    return OrderReport(
        sequence, round(batch.dropping, 4), round(batch.cost, 3), round(batch.micro, 3), why
    )
