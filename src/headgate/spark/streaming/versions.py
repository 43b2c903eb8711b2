"""The queries of a job: published versions, of which it takes up the newest that is sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headgate.errors import HeadgateError, JobError, SnapshotError
from headgate.events.batch import used_attributes
from headgate.snapshot import Snapshot, open_snapshot, pointed


class Followed:
    """The versions under a root that `headgate publish` writes to.

    A version that is damaged, or lacks the stream or an attribute to keep, is passed over with a
    note, and the job goes on with the one before: a bad publication must not stop a stream.
    """

    def __init__(
        self,
        root: Path,
        stream: str | None,
        keep: tuple[str, ...] | None,
        note: Callable[[str], None],
    ) -> None:
        self._root = root
        self._wanted = stream
        self._keep = keep
        self._note = note
        self._refused: int | None = None
        number = pointed(root)
        if number is None:
            raise JobError(
                f"{root}: nothing has been published there; headgate publish -q FILE --to {root}"
            )
        self._open(number)

    @property
    def version(self) -> int:
        """The version that was taken up last."""
        return self._version

    @property
    def stream(self) -> str:
        return self._stream

    def directory(self, version: int) -> Path:
        return self._root / str(version)

    def newest(self) -> int:
        """The version for a batch that begins now."""
        try:
            number = pointed(self._root)
            if number is not None and number not in (self._version, self._refused):
                self._refused = number
                self._open(number)
        except HeadgateError as error:
            self._note(f"version {self._version} stays: {error}")
        return self._version

    def count(self, version: int) -> int:
        """How many queries a version has."""
        return len(self.snapshot(version))

    def snapshot(self, version: int) -> Snapshot:
        return open_snapshot(self.directory(version), verify=False)

    def _open(self, number: int) -> None:
        snapshot = open_snapshot(self.directory(number))
        if snapshot.version != number:
            raise SnapshotError(f"{snapshot.directory}: is version {snapshot.version}")
        stream = snapshot.schema.the_stream(self._wanted)
        used_attributes(stream, self._keep)  # an error if one is not there
        self._stream = stream.name
        self._version = number
