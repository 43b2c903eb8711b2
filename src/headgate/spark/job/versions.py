"""The queries of a job: published versions, of which it takes up the newest that is sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headgate.errors import HeadgateError, JobError, SnapshotError
from headgate.events.batch import select_attributes
from headgate.snapshot import fingerprint, open_snapshot, pointed
from headgate.snapshot.manifest import NAME as MANIFEST
from headgate.spark.frames import listed
from headgate.spark.job.batch.rows import match_schema
from headgate.spark.job.query_plan import Asked, Wanted, asked, refusal


class Followed:
    """The versions under a root that `headgate publish` writes to.

    A version that is damaged, lacks a stream or an attribute to keep, or would change the columns
    of the output, is passed over with a note, and the job goes on with the one before: a bad
    publication must not stop a stream. Of a version that is taken up later than at the start, a
    continuous query that cannot run is passed over in the same way.
    """

    def __init__(
        self, root: Path, wanted: Wanted, columns: str | None, note: Callable[[str], None]
    ) -> None:
        self._root = root
        self._wanted = wanted
        self.columns = columns
        """The columns of a match, which never change; None until there is a stream to route."""
        self._note = note
        self._refused: int | None = None
        number = pointed(root)
        if number is None:
            raise JobError(
                f"{root}: nothing has been published there; headgate publish -q FILE --to {root}"
            )
        self._open(number)
        if self.now.refused:
            raise refusal(self.now)
        self._unbounded = set(self.now.unbounded)

    @property
    def version(self) -> int:
        """The version that was taken up last."""
        return self.now.version

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
                for error in self.now.refused:
                    self._note(f"version {number} runs without a query: {error}")
                self._note_unbounded()
        except HeadgateError as error:
            self._note(f"version {self.version} stays: {error}")
        return self.version

    def _note_unbounded(self) -> None:
        """Those that bounded memory is not enough for stay what they were at the start."""
        others = self._unbounded.symmetric_difference(self.now.unbounded)
        if others:
            ids = listed(sorted({one.id for one in others}))
            self._note(
                f"version {self.version} has other queries that need unbounded memory, which are "
                f"taken up at the next start: {ids}"
            )

    def _is_new(self, number: int) -> bool:
        """Also where the directory was deleted and published to anew under the same number."""
        return number != self.version or fingerprint(self.directory(number)) != self._fingerprint

    def asked(self, version: int) -> Asked:
        """What a version asks, be it one from before."""
        if version == self.version:
            return self.now
        snapshot = open_snapshot(self.directory(version), verify=False)
        return asked(snapshot, version, self._wanted)

    def ids(self, version: int) -> list[str]:
        """The ids of the queries that a version matches, by position."""
        routed = self.asked(version).routed
        if routed is None:
            return []
        found = open_snapshot(self.directory(version), verify=False).query_set()
        return [query.id for query in found.filters(routed.name)]

    def require(self, version: int) -> int:
        """The version, if it is still there: a batch that began under it must run under it."""
        if not (self.directory(version) / MANIFEST).exists():
            raise JobError(
                f"{self.directory(version)}: is gone, and a batch began under it; bring it back. "
                "Versions may be deleted once the job has finished a batch under a later one"
            )
        return version

    def _open(self, number: int) -> None:
        snapshot = open_snapshot(self.directory(number))
        if snapshot.version != number:
            raise SnapshotError(f"{snapshot.directory}: is version {snapshot.version}")
        found = asked(snapshot, number, self._wanted)
        columns = self._columns(found)
        if None not in (self.columns, columns) and columns != self.columns:
            raise JobError(
                f"with version {number} a match would have other columns than those in the output; "
                "keep other attributes, or give the new schema a job of its own"
            )
        self.columns = columns or self.columns
        self._fingerprint = fingerprint(snapshot.directory)
        self.now = found

    def _columns(self, found: Asked) -> str | None:
        if found.routed is None:
            return None
        kept = select_attributes(found.routed, self._wanted.keep)
        return str(match_schema(found.routed, kept))
