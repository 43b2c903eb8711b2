"""The description of a streaming job in a TOML file: what it reads, asks, writes, and how it runs.

`docs/reference/pipeline.md` has the meaning of each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, cast, get_args

from headgate._toml import TomlTable, read_toml
from headgate.errors import UsageError, did_you_mean, shorten
from headgate.events.file_access import FORMATS
from headgate.matching import KINDS as INDEXES
from headgate.matching.asc.options import AscOptions, SequenceKind
from headgate.spark.job.config import (
    NO_QUERIES,
    Continuous,
    Mode,
    Pipeline,
    Queries,
    Run,
    Sharing,
    Sink,
    Source,
)
from headgate.spark.job.sources import has_magic
from headgate.spark.session.session import MASTER
from headgate.spark.stateful.continuous_query import MOST_STATE_ROWS

__all__ = ["Pipeline", "read_pipeline"]

SOURCES = ("files", "replay", "rate")
SINKS = ("parquet", "jsonl", "console", "memory")
AVAILABLE = "available"
ASC = ("sequence", "lookahead", "period", "threshold", "sample", "monitored", "fewest", "block")

DEFAULT_TRIGGER = 1.0  # seconds


def read_pipeline(path: str | Path) -> Pipeline:
    """The job that a file describes; paths in it start from where the file is."""
    file = read_toml(Path(path))
    name = file.get_text("name", Path(path).stem)
    sharing = _sharing(file) if "sharing" in file else None
    queries = _queries(file.get_table("queries", required=True)) if sharing is None else NO_QUERIES
    continuous = _continuous(file.get_table("continuous"))
    sources = _sources(file, may_lack=sharing is not None)
    sink = _sink(file.get_table("sink", required=True))
    run = _run(file.get_table("run"), sources, sink)
    exchange = None if sharing is None else sharing.exchange
    for source in sources:
        _check_apart(file.get_table("sink"), source, sink.path, run.checkpoint, exchange)
    spark = _spark(file.get_table("spark"))
    file.check_all_used()
    return Pipeline(name, queries, continuous, sources, sink, run, spark, sharing)


def _sharing(file: TomlTable) -> Sharing:
    for other in ("queries", "continuous"):
        if other in file:
            raise file.make_error(
                other,
                f"[{other}] has no meaning beside [sharing]",
                "the queries of a network are in its file; leave one of the two out",
            )
    if "keep" in file.get_table("sink"):
        raise file.get_table("sink").make_error(
            "keep",
            "`keep` has no meaning beside [sharing]",
            "a query of a network says by itself what it selects",
        )
    table = file.get_table("sharing")
    found = Sharing(
        table.get_path("network"),
        table.get_optional_text("application"),
        table.get_optional_path("exchange"),
    )
    table.check_all_used()
    return found


def _queries(table: TomlTable) -> Queries:
    published = table.get_optional_path("published")
    files = tuple(table.resolve_path("files", name) for name in table.get_texts("files"))
    if (published is None) == (not files):
        raise table.make_error(
            "published",
            "the queries are either `published` or in `files`",
            "give one of the two",
        )
    index = table.get_choice("index", INDEXES, "auto")
    if "asc" in table and index != "asc":
        raise table.make_error(
            "asc",
            f"[queries.asc] has no meaning for index `{index}`",
            'give index = "asc", or leave it out',
        )
    found = Queries(
        published,
        files,
        table.get_flag("strict") if files else False,
        table.get_optional_text("stream"),
        index,
        _asc(table.get_table("asc")) if index == "asc" else None,
    )
    table.check_all_used()
    return found


def _asc(table: TomlTable) -> AscOptions:
    """Options are checked one by one, so that a mistake has its line."""
    given: dict[str, Any] = {}
    for key, text in table.get_settings().items():
        if key not in ASC:
            hint = did_you_mean(key, ASC)
            raise table.make_error(key, f"`{key}` has no meaning in [queries.asc] here", hint)
        if key == "sequence":
            given[key] = table.get_choice(key, get_args(SequenceKind))
        elif key == "lookahead":
            given[key] = table.get_flag(key)
        elif key == "threshold":
            given[key] = _threshold(table, text)
        else:
            given[key] = table.get_optional_integer(key, least=0 if key == "block" else 1)
        try:
            AscOptions(**{key: given[key]})
        except UsageError as error:
            raise table.make_error(key, str(error), "give a smaller one") from None
    return AscOptions(**given)


def _threshold(table: TomlTable, text: str) -> float:
    with suppress(ValueError):
        if not table.is_text("threshold") and (found := float(text)) >= 0:
            return found
    raise table.make_error(
        "threshold", f"`threshold` is {shorten(text)}", "give a number from 0 on"
    )


def _continuous(table: TomlTable) -> Continuous:
    allow = table.get_flag("allow_unbounded")
    if "most_state_rows" in table and not allow:
        raise table.make_error(
            "most_state_rows",
            "`most_state_rows` has no meaning without `allow_unbounded`",
            "give allow_unbounded = true, or leave it out",
        )
    found = Continuous(
        table.get_texts("queries") if "queries" in table else None,
        cast(Mode, table.get_choice("mode", get_args(Mode), "update")),
        table.get_flag("expand"),
        allow,
        table.get_integer("most_state_rows", MOST_STATE_ROWS, least=1),
    )
    table.check_all_used()
    return found


def _sources(file: TomlTable, *, may_lack: bool) -> tuple[Source, ...]:
    """In the order of their names: Spark's checkpoint knows them by their numbers.

    A job that runs a plan may read only what other applications send.
    """
    if "streams" not in file and "source" not in file and may_lack:
        return ()
    if "streams" not in file:
        return (_source(None, file.get_table("source", required=True)),)
    if "source" in file:
        raise file.make_error(
            "source", "events come from [source] or from [streams.…]", "leave one of them out"
        )
    tables = file.get_table("streams").get_tables()
    if not tables:
        raise file.make_error(
            "streams", "[streams] has no stream", "name one, as in [streams.orders]"
        )
    names = sorted(tables, key=str.lower)
    for name, other in pairwise(names):
        if name.lower() == other.lower():
            hint = "the case of a name does not matter, so leave one of them out"
            raise file.make_error("streams", f"[streams.{name}] and [streams.{other}]", hint)
    return tuple(_source(name, tables[name]) for name in names)


def _source(stream: str | None, table: TomlTable) -> Source:
    kind = table.get_choice("kind", SOURCES)
    path, format, files, pace = None, None, 0, None
    options: dict[str, str] = {}
    if kind in ("files", "replay"):
        path = table.get_path("path")
    if kind == "files":
        format = table.get_choice("format", tuple(FORMATS)) if "format" in table else None
        files = table.get_integer("files_per_trigger", 100, least=1)
    if kind in ("replay", "rate"):
        pace = table.get_optional_integer("rows_per_second", least=1)
    if kind in ("files", "rate"):
        options = table.get_table("options").get_settings()
    table.check_all_used()
    return Source(stream, kind, path, format, files, pace, options)


def _sink(table: TomlTable) -> Sink:
    kind = table.get_choice("kind", SINKS)
    path, every, rows = None, 0, 0
    if kind in ("parquet", "jsonl"):
        path = table.get_path("path")
        every = table.get_integer("compact_every", 100)
        if every == 1:
            raise table.make_error(
                "compact_every", "`compact_every` is 1", "the least is 2; 0 is never"
            )
    if kind == "console":
        rows = table.get_integer("rows", 20)
    found = Sink(kind, path, _keep(table), every, rows)
    table.check_all_used()
    return found


def _keep(table: TomlTable) -> tuple[str, ...] | None:
    """A list of attributes, or "*" for all of them."""
    if "keep" not in table:
        return None
    if table.is_text("keep"):
        table.get_choice("keep", ("*",))
        return None
    return table.get_texts("keep")


def _run(table: TomlTable, sources: Sequence[Source], sink: Sink) -> Run:
    checkpoint = table.get_optional_path("checkpoint")
    if checkpoint is None and sink.path is not None:
        checkpoint = sink.path / "state"
    found = Run(
        checkpoint,
        _trigger(table, sources),
        table.get_seconds("stop_when_idle"),
        table.get_seconds("stop_after"),
        table.get_text("master", MASTER),
    )
    table.check_all_used()
    return found


def _check_apart(table: TomlTable, source: Source, *written: Path | None) -> None:
    """A job must not read what it writes."""
    if source.kind != "files" or source.path is None:
        return
    parts = list(takewhile(lambda part: not has_magic(part), source.path.parts))
    read = source.path if source.path.is_dir() else Path(*parts)
    for place in written:
        if place is not None and place.is_relative_to(read):
            raise table.make_error(
                "path", f"{place} lies in what the job reads, {read}", "keep output and state apart"
            )


def _trigger(table: TomlTable, sources: Sequence[Source]) -> float | Literal["available"]:
    text = table.get_optional_text("trigger")
    replays = [source for source in sources if source.kind == "replay"]
    paced = any(source.rows_per_second is not None for source in replays)
    if text is None:
        only_replays = bool(replays) and len(replays) == len(sources)
        return 0.0 if only_replays and not paced else DEFAULT_TRIGGER
    if text == AVAILABLE:
        others = [source.kind for source in sources if source.kind != "files"]
        if not others:
            return "available"
        hint = "a replay ends by itself" if others[0] == "replay" else "give `stop_after`"
        raise table.make_error("trigger", f'a {others[0]} has no "available"', hint)
    seconds = table.parse_duration("trigger", text)
    if seconds == 0 and paced:
        raise table.make_error("trigger", "a paced replay has no trigger of 0", 'try "1 second"')
    return seconds


def _spark(table: TomlTable) -> dict[str, str]:
    """Settings of Spark; `spark.` may be left out before their names."""
    found = table.get_settings()
    for name in ("master", "spark.master"):
        if name in found:
            raise table.make_error(
                "master", "the master is not among the settings", "give it in [run]"
            )
    return {name if name.startswith("spark.") else f"spark.{name}": found[name] for name in found}
