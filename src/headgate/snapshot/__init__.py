"""A snapshot is an immutable directory of arrays on disk.

A JSON manifest (`manifest`) lists the segments (`segments`): a base, and the steps that lead from
it to the present, each a few tombstones and a delta (`step`). All segments are Arrow files without
compression, which are mapped into memory as they lie (`files`). A directory appears by a rename,
complete or not at all (`write`), and a pointer file says which of the published ones is current
(`publish`).
"""

from headgate.snapshot.manifest import fingerprint
from headgate.snapshot.publish import current, pointed, publish
from headgate.snapshot.segments import Base, Delta, Segment, Tombstones
from headgate.snapshot.snapshot import Snapshot, open_snapshot
from headgate.snapshot.write import write_snapshot

__all__ = [
    "Base",
    "Delta",
    "Segment",
    "Snapshot",
    "Tombstones",
    "current",
    "fingerprint",
    "open_snapshot",
    "pointed",
    "publish",
    "write_snapshot",
]
