"""Query sets as immutable directories of arrays, which each machine verifies once and then maps.

A JSON manifest (`manifest`) lists the segments (`segments`): a base, and the steps that lead from
it to the present, each a few tombstones and a delta. All segments are Arrow files without
compression (`files`) of encoded queries (`arrays`). A directory appears by a rename, complete or
not at all (`write`), and a pointer file says which of the published ones is current (`publisher`).
What is large is mapped from a copy that the machine has made of it (`machine_cache`).
"""

from headgate.snapshot.manifest import fingerprint
from headgate.snapshot.publisher import open_current, publish, read_pointer
from headgate.snapshot.segments import Base, Delta, Segment, Tombstones
from headgate.snapshot.snapshot import Snapshot, is_complete, open_snapshot
from headgate.snapshot.write import EncodedSet, write_snapshot

__all__ = [
    "Base",
    "Delta",
    "EncodedSet",
    "Segment",
    "Snapshot",
    "Tombstones",
    "fingerprint",
    "is_complete",
    "open_current",
    "open_snapshot",
    "publish",
    "read_pointer",
    "write_snapshot",
]
