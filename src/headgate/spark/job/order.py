"""The order in which the indexes of all tasks evaluate: found by the driver, and kept by it.

Indexes of kind "asc" count and sample while they match, and each task sends that back with its
report. The driver has an index over the same queries, which learns from all of them, and the order
that it finds goes out with the next batch. It is kept in a file, so that the first batch after a
restart runs in it already. Results never depend on the order: a batch that is replayed in another
one gives the same rows. So nothing that goes wrong here fails a batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.matching.asc.options import AscOptions
from headgate.snapshot import fingerprint
from headgate.snapshot.files import sync
from headgate.spark.frames import listed
from headgate.spark.session.failure import reason
from headgate.spark.worker import load

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex
    from headgate.matching.asc.statistics import Statistics

Order = dict[str, Any]
"""What `AscIndex.publish` returns, and `follow` takes."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a batch was evaluated: in which `sequence` of constructs, and what came of it.

    `dropping_ratio` is the share of events that the constructs left no query of, `evaluated` the
    constructs that an event took on average, `micro_ratio` the share of its steps that followed a
    micro-arrow. `rearranged` says why the next batch has another order, if it has.
    """

    sequence: list[str]
    dropping_ratio: float
    evaluated: float
    micro_ratio: float
    rearranged: str | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Leader:
    """Finds the order for the indexes of all tasks, batch after batch.

    `order` is the one for the next batch; None for that which every index finds by itself before it
    has seen an event. There is an index for one version of the queries at a time, made when a batch
    under it has ended; the order goes on, as far as both versions have the same constructs.
    """

    def __init__(self, path: Path, options: AscOptions, note: Callable[[str], None]) -> None:
        self._path = path
        self.options = options
        self._note = note
        self._index: AscIndex | None = None
        self._version = ""  # of the queries that the index is over, or cannot be made for
        self.order = self._kept()

    def learn(
        self, snapshot: str, stream: str, learned: Sequence[dict[str, Any]]
    ) -> Evaluation | None:
        """Take what the tasks of a batch have sent; None where there was no event.

        Never raises: the order stays as it is, and a note says why.
        """
        try:
            statistics = _merged(learned, self.options.sample)
            if statistics is None:
                return None
            sequence = learned[0]["sequence"]
            why = self._rearranged(statistics, snapshot, stream)
            if why is not None and self.order is not None and self.order["sequence"] != sequence:
                self._note(f"the order is now {listed(self.order['sequence'])}: {why}")
            return _evaluation(sequence, statistics, why)
        except Exception as error:
            self._note(f"the order of evaluation stays as it is: {reason(error)}")
            return None

    def _rearranged(self, statistics: Statistics, snapshot: str, stream: str) -> str | None:
        """Why there is another order now, if there is."""
        index = self._index_over(snapshot, stream)
        if index is None or not index.learn(statistics):
            return None
        found = index.publish()
        if found != self.order:
            self.order = found
            self._keep(found)
        last = index.monitor.last
        return None if last is None else last.rearranged

    def _index_over(self, snapshot: str, stream: str) -> AscIndex | None:
        """None where an attempt has failed already."""
        from headgate.matching.asc.index import AscIndex

        version = f"{snapshot} {fingerprint(Path(snapshot))}"
        if version != self._version:
            self._version, self._index = version, None
            made = load(snapshot, stream, "asc", self.options).index
            assert isinstance(made, AscIndex)
            if self.order is not None:
                made.resume(self.order)
            self._index = made
        return self._index

    def _keep(self, order: Order) -> None:
        """Have it on the disk, whole or not at all."""
        kept = {"kind": self.options.sequence, "order": order}
        draft = self._path.with_name(f".{self._path.name}")
        try:
            draft.write_text(json.dumps({**kept, "checksum": _checksum(kept)}), encoding="utf-8")
            sync(draft)
            os.replace(draft, self._path)
            sync(self._path.parent)
        except OSError as error:
            self._note(f"{self._path}: the order cannot be kept for the next run: {error.strerror}")

    def _kept(self) -> Order | None:
        """The order of an earlier run, unless it is damaged or of another kind.

        Arrows lead from row to row of bitmaps without a check: they must be just what was written.
        """
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if kept.pop("checksum") != _checksum(kept):
                raise ValueError("its checksum is another")
            order: Order = kept["order"]
            if kept["kind"] == self.options.sequence:
                return order
            self._note(f"{self._path}: passed over, as it is of a {kept['kind']} sequence")
        except FileNotFoundError:
            pass
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as bad:
            self._note(f"{self._path}: passed over, as it was changed or damaged ({bad})")
        return None


def _checksum(kept: dict[str, Any]) -> str:
    return blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=16).hexdigest()


def _merged(learned: Sequence[dict[str, Any]], most: int) -> Statistics | None:
    """The statistics of all tasks, with at most so many events, from each of them its share."""
    from headgate.matching.asc.statistics import Statistics, sum_statistics

    found = sum_statistics(Statistics.from_json(one["statistics"]) for one in learned)
    if found is None:
        return None
    return replace(found, sample=found.sample[:: -(-len(found.sample) // most)])


def _evaluation(sequence: list[str], statistics: Statistics, why: str | None) -> Evaluation:
    from headgate.matching.asc.monitor import Period

    batch = Period.from_tally(statistics.tally, before=0)
    return Evaluation(
        sequence, round(batch.dropping, 4), round(batch.cost, 3), round(batch.micro, 3), why
    )
