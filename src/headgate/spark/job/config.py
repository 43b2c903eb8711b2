"""The configuration of a job: what it reads, which queries it runs, where it writes, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headgate.spark.stateful.continuous_query import DEFAULT_STATE_ROWS
from headgate.spark.stateful.shard import Mode
from headgate.spark.worker import IndexConfig


@dataclass(frozen=True, slots=True)
class QueriesConfig:
    """Where the standing queries are: a directory that is published to, or files.

    `stream` is the one whose filters are routed, by an index that `index` chooses.
    """

    published: Path | None
    files: tuple[Path, ...]
    strict: bool
    stream: str | None
    index: IndexConfig


NO_QUERIES = QueriesConfig(None, (), strict=False, stream=None, index=IndexConfig())


@dataclass(frozen=True, slots=True)
class SharingConfig:
    """The file of a network whose plan is run, and the application, if it has more than one.

    `exchange` is the directory of the streams that cross between applications.
    """

    network: Path
    application: str | None
    exchange: Path | None


@dataclass(frozen=True, slots=True)
class ContinuousConfig:
    """How joins, aggregates and DISTINCT queries run; `queries` is None for all that can.

    With `allow_unbounded`, those that bounded memory is not enough for run on Spark's own join,
    until Spark keeps more than `max_state_rows` rows for one.
    """

    queries: tuple[str, ...] | None
    mode: Mode
    expand: bool
    allow_unbounded: bool = False
    max_state_rows: int = DEFAULT_STATE_ROWS


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Where the events of a stream come from; None is the stream of the queries.

    A replay without `rows_per_second` is as fast as it can be.
    """

    stream: str | None
    kind: str
    path: Path | None
    format: str | None
    files_per_trigger: int
    rows_per_second: int | None
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """Where matches go; `keep` is None for all attributes of the event."""

    kind: str
    path: Path | None
    keep: tuple[str, ...] | None
    compact_every: int
    rows: int


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How it runs: `trigger` in seconds, or "available" for all there is and no more."""

    checkpoint: Path | None
    trigger: float | Literal["available"]
    stop_when_idle: float | None
    stop_after: float | None
    master: str


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A streaming job; its sources are in the order of their streams' names.

    With `sharing`, its queries are those of the network, and there are no others.
    """

    name: str
    queries: QueriesConfig
    continuous: ContinuousConfig
    sources: tuple[SourceConfig, ...]
    sink: SinkConfig
    run: RunConfig
    spark: dict[str, str]
    sharing: SharingConfig | None = None
