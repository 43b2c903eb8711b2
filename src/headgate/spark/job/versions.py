"""The published versions of a job's queries: before each batch it takes up the newest sound one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headgate.errors import HeadgateError, JobError, SnapshotError
from headgate.events.batch import select_attributes
from headgate.snapshot import fingerprint, open_snapshot, read_pointer
from headgate.snapshot.manifest import MANIFEST_NAME
from headgate.spark.frames import join_first
from headgate.spark.job.batch.rows import build_match_schema
from headgate.spark.job.commit.claim import JOB_FILE
from headgate.spark.job.query_plan import QueryPlan, QuerySelection, build_refusal, plan_queries


class VersionFollower:
    """The versions under a root that `headgate publish` writes to.

    A version that is damaged, lacks a stream or an attribute to keep, or would change the columns
    of the output, is skipped with a note, and the job continues with the one before: a bad
    publication must not stop a stream. After the start, a continuous query of a new version that
    cannot run is skipped in the same way.
    """

    def __init__(
        self,
        root: Path,
        selection: QuerySelection,
        columns: str | None,
        note: Callable[[str], None],
        last_version: int | None = None,
    ) -> None:
        self._root = root
        self._selection = selection
        self.columns = columns
        """The columns of a match, which never change; None until there is a stream to route."""
        self._note = note
        self._skipped: int | None = None
        self._problem: str | None = None
        number = read_pointer(root)
        if number is None:
            raise JobError(
                f"{root}: nothing has been published there; headgate publish -q FILE --to {root}"
            )
        if last_version is not None:
            self._check_order(number, last_version)
        self._open(number)
        if self.current.refused:
            raise build_refusal(self.current)
        # unbounded queries have streaming queries of their own, which only a start can change
        self._unbounded = set(self.current.unbounded)

    @property
    def version(self) -> int:
        """The version that was taken up last."""
        return self.current.version

    def directory(self, version: int) -> Path:
        """Return where the snapshot of a version is."""
        return self._root / str(version)

    def take_newest(self) -> int:
        """Take up the newest sound version for a batch that begins now, and return it."""
        try:
            number = read_pointer(self._root)
            if number is not None and number != self._skipped and self._is_new(number):
                # until it is open it counts as skipped, so that a bad one is noted only once
                self._skipped = number
                self._check_order(number, self.version)
                self._open(number)
                self._skipped = None
                for error in self.current.refused:
                    self._note(f"version {number} runs without a query: {error}")
                self._note_unbounded()
        except HeadgateError as error:
            self._note_problem(f"version {self.version} stays: {error}")
        return self.version

    def _note_problem(self, problem: str) -> None:
        """Note why a version is not taken up, once and not before each batch."""
        if problem != self._problem:
            self._note(problem)
        self._problem = problem

    def _check_order(self, number: int, last: int) -> None:
        """Raise a JobError if a version is older than the last: a number means one version only."""
        if number < last:
            raise JobError(
                f"{self._root}: version {number} is current, and this job has used {last} already; "
                "publish the queries that you want, which gives them a greater number, or restore "
                "the directory if another one has come in its place"
            )

    def _note_unbounded(self) -> None:
        """Note unbounded queries that changed: they stay what they were at the start."""
        others = self._unbounded.symmetric_difference(self.current.unbounded)
        if others:
            ids = join_first(sorted({query.id for query in others}))
            self._note(
                f"version {self.version} has other queries that need unbounded memory, which are "
                f"taken up at the next start: {ids}"
            )

    def _is_new(self, number: int) -> bool:
        """Return whether a number is new, or its directory was deleted and published to again."""
        return number != self.version or fingerprint(self.directory(number)) != self._fingerprint

    def plan(self, version: int) -> QueryPlan:
        """Return what the job does with a version, be it an earlier one."""
        if version == self.version:
            return self.current
        snapshot = open_snapshot(self.directory(version))
        return plan_queries(snapshot, version, self._selection)

    def list_ids(self, version: int) -> list[str]:
        """Return the ids of the queries that a version matches, by position."""
        routed = self.plan(version).routed
        if routed is None:
            return []
        queries = open_snapshot(self.directory(version)).query_set()
        return [query.id for query in queries.filters(routed.name)]

    def require_version(self, version: int) -> int:
        """Return a version that a batch began under, or raise a JobError if it is gone."""
        if not (self.directory(version) / MANIFEST_NAME).exists():
            raise JobError(
                f"{self.directory(version)}: is gone, and a batch began under it; restore it. "
                "Versions may be deleted once the job has finished a batch under a later one"
            )
        return version

    def _open(self, number: int) -> None:
        """Make a version the current one, or raise and leave the current one as it is."""
        snapshot = open_snapshot(self.directory(number))
        if snapshot.version != number:
            raise SnapshotError(f"{snapshot.directory}: is version {snapshot.version}")
        plan = plan_queries(snapshot, number, self._selection)
        # checked before the plan becomes current, so that a bad version changes nothing
        columns = self._describe_columns(plan)
        if None not in (self.columns, columns) and columns != self.columns:
            raise JobError(
                f"with version {number} a match would have other columns than those in the output, "
                f"which {JOB_FILE} in the job's state lists; keep other attributes, or give the "
                "new schema a job of its own"
            )
        self.columns = columns or self.columns
        self._fingerprint = fingerprint(snapshot.directory)
        self.current = plan

    def _describe_columns(self, plan: QueryPlan) -> str | None:
        if plan.routed is None:
            return None
        attributes = select_attributes(plan.routed, self._selection.keep)
        return str(build_match_schema(plan.routed, attributes))
