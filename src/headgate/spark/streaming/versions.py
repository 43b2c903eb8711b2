"""The queries of a job: published versions, of which it takes up the newest that is sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headgate.errors import HeadgateError, JobError, SnapshotError
from headgate.events.batch import used_attributes
from headgate.queries import QuerySet
from headgate.snapshot import fingerprint, open_snapshot, pointed
from headgate.snapshot.manifest import NAME as MANIFEST
from headgate.spark.streaming.rows import match_schema


class Followed:
    """The versions under a root that `headgate publish` writes to.

    A version that is damaged, lacks the stream or an attribute to keep, or would change the columns
    of the output, is passed over with a note, and the job goes on with the one before: a bad
    publication must not stop a stream.
    """

    def __init__(
        self,
        root: Path,
        stream: str | None,
        keep: tuple[str, ...] | None,
        columns: str | None,
        note: Callable[[str], None],
    ) -> None:
        self._root = root
        self._wanted = stream
        self._keep = keep
        self.columns = columns
        """The columns of a match, which never change; None until the first version is open."""
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
            if number is not None and number != self._refused and self._is_new(number):
                self._refused = number
                self._open(number)
                self._refused = None
        except HeadgateError as error:
            self._note(f"version {self._version} stays: {error}")
        return self._version

    def _is_new(self, number: int) -> bool:
        """Also where the directory was deleted and published to anew under the same number."""
        return number != self._version or fingerprint(self.directory(number)) != self._fingerprint

    def ids(self, version: int) -> list[str]:
        """The ids of the queries that a version matches, by position."""
        return [query.id for query in self._set(version).filters(self._stream)]

    def left_out(self) -> list[str]:
        """The ids of queries on the stream that are no filters."""
        return [
            query.id
            for query in self._set(self._version)
            if query.kind != "filter" and any(s.stream == self._stream for s in query.sources)
        ]

    def require(self, version: int) -> int:
        """The version, if it is still there: a batch that began under it must run under it."""
        if not (self.directory(version) / MANIFEST).exists():
            raise JobError(
                f"{self.directory(version)}: is gone, and a batch began under it; bring it back. "
                "Versions may be deleted once the job has finished a batch under a later one"
            )
        return version

    def _set(self, version: int) -> QuerySet:
        return open_snapshot(self.directory(version), verify=False).query_set()

    def _open(self, number: int) -> None:
        snapshot = open_snapshot(self.directory(number))
        if snapshot.version != number:
            raise SnapshotError(f"{snapshot.directory}: is version {snapshot.version}")
        stream = snapshot.schema.the_stream(self._wanted)
        columns = str(match_schema(stream, used_attributes(stream, self._keep)))
        if self.columns is not None and columns != self.columns:
            raise JobError(
                f"with version {number} a match would have other columns than those in the output; "
                "keep other attributes, or give the new schema a job of its own"
            )
        self.columns = columns
        self._stream = stream.name
        self._fingerprint = fingerprint(snapshot.directory)
        self._version = number
