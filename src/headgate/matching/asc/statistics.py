"""What an index has counted and sampled, for the index that finds the order for many."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self
from zlib import compress, decompress

import numpy as np

from headgate.matching.asc.monitor import Tally
from headgate.matching.asc.order import Sample

MAX_SAMPLE_EVENTS = 500  # of the sample of one index, so that it stays small


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Counts and a sample of events, by the rows of the bitmaps with this `fingerprint`."""

    fingerprint: str
    tally: Tally
    sample: Sample

    def as_json(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint,
            "tally": self.tally.tolist(),
            "events": len(self.sample),
            "sample": b64encode(compress(self.sample.tobytes())).decode(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        rows = np.frombuffer(decompress(b64decode(data["sample"])), np.int32)
        sample = rows.reshape(data["events"], -1) if len(rows) else rows.reshape(0, 0)
        return cls(data["fingerprint"], np.array(data["tally"], np.int64), sample)


def sum_statistics(statistics: Iterable[Statistics]) -> Statistics | None:
    """Return the sum of those about the commonest bitmaps; None where there are none."""
    sampled = [part for part in statistics if len(part.sample)]
    if not sampled:
        return None
    (commonest, _), *_ = Counter(part.fingerprint for part in sampled).most_common(1)
    alike = [part for part in sampled if part.fingerprint == commonest]
    tally = np.sum([part.tally for part in alike], axis=0)
    return Statistics(commonest, tally, np.concatenate([part.sample for part in alike]))
