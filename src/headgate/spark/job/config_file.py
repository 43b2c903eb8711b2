"""Reading the configuration of a job from a TOML file, with errors by line.

`docs/reference/pipeline.md` has the meaning of each key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, cast, get_args

from headgate._toml import TomlTable, read_toml
from headgate.errors import UsageError, did_you_mean, shorten
from headgate.events.file_access import FORMATS
from headgate.matching import KINDS as INDEX_KINDS
from headgate.matching.asc.options import MAX_WHOLE_NUMBER, AscOptions, SequenceKind
from headgate.spark.job.batch.links import is_glob
from headgate.spark.job.commit.compaction import DEFAULT_COMPACT_EVERY
from headgate.spark.job.config import (
    NO_QUERIES,
    ContinuousConfig,
    Pipeline,
    QueriesConfig,
    RunConfig,
    SharingConfig,
    SinkConfig,
    SourceConfig,
)
from headgate.spark.session.session import DEFAULT_MASTER
from headgate.spark.stateful.continuous_query import DEFAULT_STATE_ROWS
from headgate.spark.stateful.shard import Mode
from headgate.spark.worker import IndexConfig

SOURCE_KINDS = ("files", "replay", "rate")
SINK_KINDS = ("parquet", "jsonl", "console", "memory")
AVAILABLE = "available"
ASC_KEYS = (
    "sequence",
    "lookahead",
    "period",
    "threshold",
    "sample",
    "monitored",
    "fewest",
    "block",
)


@dataclass(frozen=True, slots=True)
class _OptionValues:
    """The values of one of Spark's options, and what to give instead of another."""

    pattern: str
    advice: str
    limit: int = 0  # of a whole number, which is at least 1


_FLAG = _OptionValues("true|false", "give true or false")
_ANY = _OptionValues("(?s:.+)", "give a text")
_INT = _OptionValues(r"\d{1,10}", f"give a whole number from 1 to {2**31 - 1}", 2**31 - 1)
_LONG = _OptionValues(r"\d{1,19}", f"give a whole number from 1 to {2**63 - 1}", 2**63 - 1)
_TASKS = _OptionValues(r"\d{1,5}", "give a whole number from 1 to 10000", 10_000)
_TIME = _OptionValues(r"\d{1,9} ?(us|ms|s|m|min|h|d)?", 'give a time, such as "5s" or "7d"')
# Spark finds a mistake in these only once it runs, and ignores names that it does not know.
SPARK_OPTIONS = {
    "files": {
        "pathGlobFilter": _ANY,
        "recursiveFileLookup": _FLAG,
        "maxFilesPerTrigger": _INT,
        "maxBytesPerTrigger": _LONG,
        "maxFileAge": _TIME,
        "latestFirst": _FLAG,
        "fileNameOnly": _FLAG,
        "cleanSource": _OptionValues("archive|delete|off", 'give "archive", "delete" or "off"'),
        "sourceArchiveDir": _ANY,
        "maxCachedFiles": _INT,
        "discardCachedInputRatio": _OptionValues(r"0(\.\d{1,9})?|1(\.0)?", "give a number up to 1"),
        "ignoreMissingFiles": _FLAG,
        "ignoreCorruptFiles": _FLAG,
        "basePath": _ANY,
    },
    "rate": {"rowsPerSecond": _LONG, "rampUpTime": _TIME, "numPartitions": _TASKS},
}

DEFAULT_TRIGGER = 1.0  # seconds
DEFAULT_FILES_PER_TRIGGER = 100
DEFAULT_CONSOLE_ROWS = 20


def read_pipeline(path: str | Path) -> Pipeline:
    """Return the configuration in a file; paths in it are relative to the file."""
    file = read_toml(Path(path))
    name = file.get_text("name", Path(path).stem)
    sharing = _read_sharing(file) if "sharing" in file else None
    # a network file has its own queries, so a job that shares streams needs no [queries]
    queries = (
        _read_queries(file.get_table("queries", required=True)) if sharing is None else NO_QUERIES
    )
    continuous = _read_continuous(file.get_table("continuous"))
    sources = _read_sources(file, may_lack=sharing is not None)
    sink = _read_sink(file.get_table("sink", required=True))
    run = _read_run(file.get_table("run"), sources, sink)
    # everything that the job writes must be outside of everything that it reads
    exchange = None if sharing is None else sharing.exchange
    for source in sources:
        _check_apart(file.get_table("sink"), source, sink.path, run.checkpoint, exchange)
    spark = _read_spark(file.get_table("spark"))
    file.check_all_used()
    return Pipeline(name, queries, continuous, sources, sink, run, spark, sharing)


def _read_sharing(file: TomlTable) -> SharingConfig:
    for other in ("queries", "continuous"):
        if other in file:
            raise file.make_error(
                other,
                f"[{other}] cannot be combined with [sharing]",
                "the queries of a network are in its file; leave one of the two out",
            )
    if "keep" in file.get_table("sink"):
        raise file.get_table("sink").make_error(
            "keep",
            "`keep` cannot be combined with [sharing]",
            "a query of a network says by itself what it selects",
        )
    table = file.get_table("sharing")
    config = SharingConfig(
        table.get_path("network"),
        table.get_optional_text("application"),
        table.get_optional_path("exchange"),
    )
    table.check_all_used()
    return config


def _read_queries(table: TomlTable) -> QueriesConfig:
    published = table.get_optional_path("published")
    files = tuple(table.resolve_path("files", name) for name in table.get_texts("files"))
    # exactly one of the two
    if (published is None) == (not files):
        raise table.make_error(
            "published",
            "the queries are either `published` or in `files`",
            "give one of the two",
        )
    index = table.get_choice("index", INDEX_KINDS, "auto")
    if "asc" in table and index != "asc":
        raise table.make_error(
            "asc",
            f"[queries.asc] has no meaning for index `{index}`",
            'give index = "asc", or leave it out',
        )
    config = QueriesConfig(
        published,
        files,
        table.get_flag("strict") if files else False,
        table.get_optional_text("stream"),
        IndexConfig(index, _read_asc(table.get_table("asc")) if index == "asc" else None),
    )
    table.check_all_used()
    return config


def _read_asc(table: TomlTable) -> AscOptions:
    """Return the options of an index of kind "asc"; each is checked, so that errors have a line."""
    # AscOptions would name no line, so each key is tried by itself first
    options: dict[str, Any] = {}
    for key, text in table.get_settings().items():
        if key not in ASC_KEYS:
            hint = did_you_mean(key, ASC_KEYS)
            raise table.make_error(key, f"`{key}` has no meaning in [queries.asc] here", hint)
        if key == "sequence":
            options[key] = table.get_choice(key, get_args(SequenceKind))
        elif key == "lookahead":
            options[key] = table.get_flag(key)
        elif key == "threshold":
            options[key] = _read_threshold(table, text)
        else:
            least = 0 if key == "block" else 1
            options[key] = table.get_optional_integer(key, least=least, limit=MAX_WHOLE_NUMBER)
        try:
            AscOptions(**{key: options[key]})
        except UsageError as error:
            raise table.make_error(key, str(error), "give a smaller one") from None
    return AscOptions(**options)


def _read_threshold(table: TomlTable, text: str) -> float:
    with suppress(ValueError):
        if not table.is_text("threshold") and (number := float(text)) >= 0:
            return number
    raise table.make_error(
        "threshold", f"`threshold` is {shorten(text)}", "give a number from 0 on"
    )


def _read_continuous(table: TomlTable) -> ContinuousConfig:
    allow = table.get_flag("allow_unbounded")
    if "max_state_rows" in table and not allow:
        raise table.make_error(
            "max_state_rows",
            "`max_state_rows` has no meaning without `allow_unbounded`",
            "give allow_unbounded = true, or leave it out",
        )
    config = ContinuousConfig(
        table.get_texts("queries") if "queries" in table else None,
        cast(Mode, table.get_choice("mode", get_args(Mode), "update")),
        table.get_flag("expand"),
        allow,
        table.get_integer("max_state_rows", DEFAULT_STATE_ROWS, least=1, limit=2**63 - 1),
    )
    table.check_all_used()
    return config


def _read_sources(file: TomlTable, *, may_lack: bool) -> tuple[SourceConfig, ...]:
    """Return the sources in the order of their names: Spark's checkpoint numbers them.

    A job that runs a plan may read only what other applications send.
    """
    if "streams" not in file and "source" not in file and may_lack:
        return ()
    if "streams" not in file:
        return (_read_source(None, file.get_table("source", required=True)),)
    if "source" in file:
        raise file.make_error(
            "source", "events come from [source] or from [streams.…]", "leave one of them out"
        )
    tables = file.get_table("streams").get_tables()
    if not tables:
        raise file.make_error(
            "streams", "[streams] has no stream", "name one, as in [streams.orders]"
        )
    # the order must not depend on the file: the checkpoint knows sources by their numbers
    names = sorted(tables, key=str.lower)
    for name, other in pairwise(names):
        if name.lower() == other.lower():
            hint = "the case of a name does not matter, so leave one of them out"
            raise file.make_error("streams", f"[streams.{name}] and [streams.{other}]", hint)
    return tuple(_read_source(name, tables[name]) for name in names)


def _read_source(stream: str | None, table: TomlTable) -> SourceConfig:
    kind = table.get_choice("kind", SOURCE_KINDS)
    # only the keys of its kind are read; any other key is then refused as unknown
    path, format, files, pace = None, None, 0, None
    options: dict[str, str] = {}
    if kind in ("files", "replay"):
        path = table.get_path("path")
    if kind == "files":
        format = table.get_choice("format", tuple(FORMATS)) if "format" in table else None
        files = table.get_integer("files_per_trigger", DEFAULT_FILES_PER_TRIGGER, least=1)
    if kind in ("replay", "rate"):
        pace = table.get_optional_integer("rows_per_second", least=1)
    if kind in ("files", "rate"):
        options = _read_options(table.get_table("options"), kind)
    table.check_all_used()
    return SourceConfig(stream, kind, path, format, files, pace, options)


def _read_options(table: TomlTable, kind: str) -> dict[str, str]:
    """Return options of Spark as it spells them; it takes any case, and others do not."""
    known = {name.lower(): name for name in SPARK_OPTIONS[kind]}
    options = {}
    for key, text in table.get_options().items():
        name = known.get(key.lower(), key)
        # a name with a dot is a setting of Hadoop, of which there are very many
        if name not in SPARK_OPTIONS[kind] and "." not in key:
            hint = did_you_mean(key, SPARK_OPTIONS[kind])
            raise table.make_error(key, f"`{key}` is no option of Spark's for {kind}", hint)
        if name in options:
            raise table.make_error(key, f"`{key}` is given twice", "leave one of the two out")
        values = SPARK_OPTIONS[kind].get(name, _ANY)
        is_valid = re.fullmatch(values.pattern, text.lower() if name != "pathGlobFilter" else text)
        if not is_valid or (values.limit and not 1 <= int(text) <= values.limit):
            raise table.make_error(key, f"`{key}` is {shorten(text)!r}", values.advice)
        options[name] = text
    if options.get("cleanSource", "").lower() == "archive" and "sourceArchiveDir" not in options:
        hint = "give `sourceArchiveDir`"
        raise table.make_error("cleanSource", '`cleanSource` is "archive" without a place', hint)
    return options


def _read_sink(table: TomlTable) -> SinkConfig:
    kind = table.get_choice("kind", SINK_KINDS)
    path, every, rows = None, 0, 0
    if kind in ("parquet", "jsonl"):
        path = table.get_path("path")
        every = table.get_integer("compact_every", DEFAULT_COMPACT_EVERY)
        if every == 1:
            raise table.make_error(
                "compact_every", "`compact_every` is 1", "the least is 2; 0 is never"
            )
    if kind == "console":
        rows = table.get_integer("rows", DEFAULT_CONSOLE_ROWS)
    config = SinkConfig(kind, path, _read_keep(table), every, rows)
    table.check_all_used()
    return config


def _read_keep(table: TomlTable) -> tuple[str, ...] | None:
    """Return the attributes to keep; None for all of them, which is "*"."""
    if "keep" not in table:
        return None
    if table.is_text("keep"):
        table.get_choice("keep", ("*",))
        return None
    return table.get_texts("keep")


def _read_run(table: TomlTable, sources: Sequence[SourceConfig], sink: SinkConfig) -> RunConfig:
    checkpoint = table.get_optional_path("checkpoint")
    if checkpoint is None and sink.path is not None:
        # next to the output, so that both are moved or deleted together
        checkpoint = sink.path / "state"
    config = RunConfig(
        checkpoint,
        _read_trigger(table, sources),
        table.get_seconds("stop_when_idle"),
        table.get_seconds("stop_after"),
        table.get_text("master", DEFAULT_MASTER),
    )
    table.check_all_used()
    return config


def _check_apart(table: TomlTable, source: SourceConfig, *written: Path | None) -> None:
    """Raise an error if a job would read what it writes."""
    if source.kind != "files" or source.path is None:
        return
    # of a pattern, everything below its fixed part may be read
    parts = list(takewhile(lambda part: not is_glob(part), source.path.parts))
    read = source.path if source.path.is_dir() else Path(*parts)
    for place in written:
        if place is not None and place.is_relative_to(read):
            raise table.make_error(
                "path", f"{place} lies in what the job reads, {read}", "keep output and state apart"
            )


def _read_trigger(
    table: TomlTable, sources: Sequence[SourceConfig]
) -> float | Literal["available"]:
    text = table.get_optional_text("trigger")
    replays = [source for source in sources if source.kind == "replay"]
    paced = any(source.rows_per_second is not None for source in replays)
    if text is None:
        # a replay without a pace needs no pauses; anything else polls once a second
        only_replays = bool(replays) and len(replays) == len(sources)
        return 0.0 if only_replays and not paced else DEFAULT_TRIGGER
    if text == AVAILABLE:
        # only files have a last event that Spark knows in advance
        others = [source.kind for source in sources if source.kind != "files"]
        if not others:
            return "available"
        hint = "a replay ends by itself" if others[0] == "replay" else "give `stop_after`"
        raise table.make_error("trigger", f'a {others[0]} has no "available"', hint)
    seconds = table.parse_duration("trigger", text)
    if seconds == 0 and paced:
        raise table.make_error("trigger", "a paced replay has no trigger of 0", 'try "1 second"')
    return seconds


def _read_spark(table: TomlTable) -> dict[str, str]:
    """Return the settings of Spark; `spark.` may be left out before their names."""
    settings = table.get_settings()
    if "master" in settings or "spark.master" in settings:
        raise table.make_error("master", "the master is not among the settings", "give it in [run]")
    return {
        name if name.startswith("spark.") else f"spark.{name}": settings[name] for name in settings
    }
