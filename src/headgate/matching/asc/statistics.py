"""What an index has counted and sampled, for somebody who finds the order for many of its kind."""

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
    """Counts and some events, by the rows of the bitmaps with this `fingerprint`."""

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
    def from_json(cls, found: dict[str, Any]) -> Self:
        rows = np.frombuffer(decompress(b64decode(found["sample"])), np.int32)
        sample = rows.reshape(found["events"], -1) if len(rows) else rows.reshape(0, 0)
        return cls(found["fingerprint"], np.array(found["tally"], np.int64), sample)


def sum_statistics(some: Iterable[Statistics]) -> Statistics | None:
    """Those that are about the same bitmaps as most others, together; None where there are none."""
    found = [one for one in some if len(one.sample)]
    if not found:
        return None
    (commonest, _), *_ = Counter(one.fingerprint for one in found).most_common(1)
    alike = [one for one in found if one.fingerprint == commonest]
    tally = np.sum([one.tally for one in alike], axis=0)
    return Statistics(commonest, tally, np.concatenate([one.sample for one in alike]))
