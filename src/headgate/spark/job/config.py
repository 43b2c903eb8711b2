"""What a pipeline file describes: what a job reads, asks, writes, and how it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headgate.matching.asc.options import AscOptions

Mode = Literal["update", "complete"]


@dataclass(frozen=True, slots=True)
class Queries:
    """Where the standing queries are: a directory that is published to, or files.

    `stream` is the one whose filters are routed. `asc` are the options of an index of that kind,
    and None for another.
    """

    published: Path | None
    files: tuple[Path, ...]
    strict: bool
    stream: str | None
    index: str
    asc: AscOptions | None


NO_QUERIES = Queries(None, (), strict=False, stream=None, index="auto", asc=None)


@dataclass(frozen=True, slots=True)
class Sharing:
    """The file of a network whose plan is run; what of it, if it has several applications.

    `exchange` is the directory of the streams that cross between them.
    """

    network: Path
    application: str | None
    exchange: Path | None


@dataclass(frozen=True, slots=True)
class Continuous:
    """How joins, aggregates and DISTINCT queries run; `queries` is None for all that can.

    Those that bounded memory is not enough for may run on Spark's own join, where `allow_unbounded`
    says so, until Spark keeps more than `most_state_rows` for one.
    """

    queries: tuple[str, ...] | None
    mode: Mode
    expand: bool
    allow_unbounded: bool = False
    most_state_rows: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
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
class Sink:
    """Where matches go; `keep` is None for all attributes of the event."""

    kind: str
    path: Path | None
    keep: tuple[str, ...] | None
    compact_every: int
    rows: int


@dataclass(frozen=True, slots=True)
class Run:
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
    queries: Queries
    continuous: Continuous
    sources: tuple[Source, ...]
    sink: Sink
    run: Run
    spark: dict[str, str]
    sharing: Sharing | None = None
