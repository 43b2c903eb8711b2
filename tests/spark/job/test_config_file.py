"""The pipeline file: every key is read, and every mistake has its line and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import PipelineError, shorten
from headgate.matching.asc.options import AscOptions
from headgate.spark.job.config import ContinuousConfig, Pipeline
from headgate.spark.job.config_file import read_pipeline

WHOLE = """\
name = "orders"

[queries]
files = ["schema.sql", "../rules.jsonl"]
stream = "orders"
index = "scan"

[source]
kind = "files"
path = "in/*.jsonl"
format = "jsonl"
files_per_trigger = 7
options = { pathGlobFilter = "*.x", recursiveFileLookup = false }

[sink]
kind = "jsonl"
path = "out"
keep = ["a", "b.c"]
compact_every = 0

[run]
checkpoint = "/var/state"
trigger = "1.5 minutes"
stop_when_idle = "10 s"
stop_after = "2 hours"
master = "local[1]"

[spark]
"spark.speculation" = true
sql.shuffle.partitions = 4
spark.executor.memory = "2g"
"""
SMALLEST = """\
[queries]
published = "queries"
[source]
kind = "files"
path = "in"
[sink]
kind = "parquet"
path = "out"
"""


def described(folder: Path, text: str) -> Pipeline:
    file = folder / "pipeline.toml"
    file.write_text(text)
    return read_pipeline(file)


def test_every_key(tmp_path: Path) -> None:
    actual = described(tmp_path, WHOLE)
    assert actual.name == "orders"
    assert actual.queries.files == (tmp_path / "schema.sql", tmp_path.parent / "rules.jsonl")
    assert (actual.queries.stream, actual.queries.index.kind) == ("orders", "scan")
    (source,) = actual.sources
    assert (source.stream, source.path) == (None, tmp_path / "in/*.jsonl")
    assert (source.format, source.files_per_trigger) == ("jsonl", 7)
    assert source.options == {"pathGlobFilter": "*.x", "recursiveFileLookup": "false"}
    assert (actual.sink.kind, actual.sink.path) == ("jsonl", tmp_path / "out")
    assert (actual.sink.keep, actual.sink.compact_every) == (("a", "b.c"), 0)
    assert actual.run.checkpoint == Path("/var/state")
    assert (actual.run.trigger, actual.run.stop_when_idle, actual.run.stop_after) == (90, 10, 7_200)
    assert actual.run.master == "local[1]"
    assert actual.spark == {
        "spark.speculation": "true",
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.memory": "2g",
    }


def test_what_is_left_out(tmp_path: Path) -> None:
    """As docs/reference/pipeline.md has it."""
    actual = described(tmp_path, SMALLEST)
    assert actual.name == "pipeline"
    assert actual.queries.published == tmp_path / "queries"
    assert (actual.queries.stream, actual.queries.index.kind) == (None, "auto")
    assert (actual.sources[0].format, actual.sources[0].files_per_trigger) == (None, 100)
    assert actual.continuous == ContinuousConfig(None, "update", expand=False)
    assert (actual.sink.keep, actual.sink.compact_every) == (None, 100)
    assert actual.run.checkpoint == tmp_path / "out" / "state"
    assert (actual.run.trigger, actual.run.stop_when_idle, actual.run.stop_after) == (1, None, None)
    assert actual.run.master == "local[*,4]"
    assert actual.spark == {}


@pytest.mark.parametrize(
    ("source", "run", "trigger"),
    [
        ('kind = "replay"\npath = "x.csv"', "", 0),
        ('kind = "replay"\npath = "x.csv"\nrows_per_second = 5', "", 1),
        ('kind = "rate"', 'trigger = "250 ms"', 0.25),
        ('kind = "files"\npath = "in"', 'trigger = "available"', "available"),
    ],
)
def test_triggers(tmp_path: Path, source: str, run: str, trigger: object) -> None:
    text = (
        f'[queries]\nfiles = ["q.sql"]\n[source]\n{source}\n[sink]\nkind = "memory"\n[run]\n{run}'
    )
    actual = described(tmp_path, text)
    assert actual.run.trigger == trigger
    assert actual.run.checkpoint is None


def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    actual = described(tmp_path, SMALLEST.replace('"in"', '"file:///data/in"'))
    assert actual.sources[0].path == Path("/data/in")


def test_options_of_spark_are_spelt_as_spark_does(tmp_path: Path) -> None:
    """Whoever reads them here finds them: a filter of names that nobody saw would repeat files."""
    options = """pathglobfilter = "*.x", MAXBYTESPERTRIGGER = 4096, "fs.file.buffer" = 3"""
    text = SMALLEST.replace('"in"', f'"in"\noptions = {{ {options} }}', 1)
    (source,) = described(tmp_path, text).sources
    assert source.options == {
        "pathGlobFilter": "*.x",
        "maxBytesPerTrigger": "4096",
        "fs.file.buffer": "3",
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind = ", "knid = ", "4: `knid` has no meaning in [source]"),
        ('"files"', '"file"', "4: no kind `file`; did you mean `files`?"),
        ('"parquet"', '"kafka"', "7: no kind `kafka`; there are `parquet`, `jsonl`, "),
        ('path = "in"', "path = 3", '5: `path` is 3; give a text, as in "…"'),
        ('path = "in"', 'path = ""', "5: `path` is empty"),
        ('path = "in"', "", "3: [source] has no `path`"),
        ('"in"', '"s3://bucket/in"', "5: `path` is at s3://, which cannot be read; give a path"),
        ('path = "in"', 'path = "in"\nfiles_per_trigger = true', "6: `files_per_trigger` is True"),
        ('path = "in"', 'path = "in"\nfiles_per_trigger = 0', "6: `files_per_trigger` is 0; the"),
        ('path = "in"', 'path = "in"\nformat = "xml"', "6: no format `xml`; there are `jsonl`"),
        ('path = "in"', 'path = "in"\nrows_per_second = 5', "6: `rows_per_second` has no meaning"),
        ('published = "queries"', "", "1: the queries are either `published` or in `files`"),
        ("published", "files = []\nindex = 'scan'\npublished", None),
        ("published", "files = ['x']\npublished", "3: the queries are either `published` or in"),
        ("published", "files = ['']\npublished", "2: `files` holds ''; give texts"),
        ("published", "index = 'scam'\npublished", "2: no index `scam`; did you mean `scan`?"),
        ('path = "out"', 'path = "out"\nkeep = "all"', "9: no keep `all`; there are `*`"),
        ('path = "out"', 'path = "out"\ncompact_every = 1', "9: `compact_every` is 1; the least"),
        ('path = "out"', 'path = "out"\nrows = 1', "9: `rows` has no meaning in [sink] here"),
        (
            'path = "out"',
            'path = "out"\n[run]\ntrigger = "1 week"',
            "10: `trigger` is `1 week`, not",
        ),
        ('path = "out"', 'path = "out"\n[run]\ntrigger = "avail"', "10: `trigger` is `avail`, not"),
        ('path = "out"', 'path = "out"\n[runs]\ntrigger = "1 s"', "9: `runs` has no meaning here"),
        ('path = "out"', 'path = "out"\n[[run]]', "`run` is [{}]; give a table, written [run]"),
        ("[sink]", "[sunk]", "6: `sunk` has no meaning; did you mean [sink]?"),
        ("[sink]", "[sink", "6: not TOML: "),
        ('kind = "files"', 'kind = "rate"', "5: `path` has no meaning in [source] here"),
        # texts that no file system or process takes
        ('"in"', '"in\\u0000"', "5: `path` holds a NUL character; "),
        ('"queries"', f'"{"x" * 5_000}"', "2: `published` cannot be used as a path: "),
        ('"queries"', '"loop"', "2: `published` cannot be used as a path: "),
        ("published", "files = ['a', \"b\\u0000\"]\npublished", "2: `files` holds a NUL"),
        # tables and lists where Spark takes texts
        (
            'path = "in"',
            'path = "in"\n[source.options]\npathGlobFilter = "*"\n[source.options.csv]\nsep = ";"',
            "8: `csv` in [source.options] is a table; an option is a text, a number, true or false",
        ),
        (
            'path = "in"',
            'path = "in"\noptions = { sep = ["a"] }',
            "6: `sep` in [source.options] is a list; ",
        ),
        (
            'path = "out"',
            'path = "out"\n[spark]\nsql.x = [1]',
            "10: `sql.x` in [spark] is a list; ",
        ),
        # numbers that Spark would refuse, or count as another, after it has started
        ('"in"', f'"in"\nfiles_per_trigger = {2**31}', "6: `files_per_trigger` is 2147483648; "),
        (
            '"in"',
            '"in"\noptions = { maxFilesPerTrigger = 0 }',
            "6: `maxFilesPerTrigger` is '0'; give a whole number from 1 to 2147483647",
        ),
        (
            '"in"',
            f'"in"\noptions = {{ maxBytesPerTrigger = {2**63} }}',
            "6: `maxBytesPerTrigger` is '9223372036854775808'; give a whole number from 1 to",
        ),
        ('"in"', '"in"\noptions = { latestFirst = "maybe" }', "give true or false"),
        ('"in"', '"in"\noptions = { maxFileAge = "a week" }', 'give a time, such as "5s" or "7d"'),
        ('"in"', '"in"\noptions = { cleanSource = "burn" }', 'give "archive", "delete" or "off"'),
        ('"in"', '"in"\noptions = { cleanSource = "archive" }', "give `sourceArchiveDir`"),
        (
            '"in"',
            '"in"\noptions = { pathGlobFliter = "*" }',
            "`pathGlobFliter` is no option of Spark's for files; did you mean `pathGlobFilter`",
        ),
        (
            '"in"',
            '"in"\noptions = { latestFirst = true, latestfirst = false }',
            "6: `latestfirst` is given twice",
        ),
        (
            'kind = "files"\npath = "in"',
            f'kind = "rate"\noptions = {{ numPartitions = {10**9} }}',
            "`numPartitions` is '1000000000'; give a whole number from 1 to 10000",
        ),
        ('"out"', f'"out"\ncompact_every = {10**30}', "9: `compact_every` is 1000"),
        ('"out"', '"out"\n[run]\nstop_after = "9000000 hours"', "10: `stop_after` is `9000000"),
        ('"out"', f'"out"\n[run]\ntrigger = "{"9" * 400} s"', "10: `trigger` is `999"),
        (
            '"out"',
            f'"out"\n[continuous]\nallow_unbounded = true\nmax_state_rows = {2**63}',
            "11: `max_state_rows` is 9223372036854775808; the most is 9,223,372,036,854,775,807",
        ),
        ('"out"', f'"out"\ncompact_every = {"1" * 5_000}', ": not TOML: "),
        # what Python's own reader of TOML cannot take
        ('"in"', f'"in"\noptions = {"[" * 5_000}{"]" * 5_000}', "6: not TOML that can be read: "),
        ('"in"', f'"in"\n{"a." * 5_000}b = 1', "6: not TOML that can be read: "),
    ],
    ids=lambda value: shorten(str(value)),
)
def test_mistakes(tmp_path: Path, old: str, new: str, said: str | None) -> None:
    """The line, what is wrong, and what to do."""
    assert old in SMALLEST
    text = SMALLEST.replace(old, new, 1)
    (tmp_path / "loop").symlink_to("loop")
    if said is None:
        described(tmp_path, text)
        return
    with pytest.raises(PipelineError) as caught:
        described(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/pipeline.toml:")
    assert said in message
    assert "; " in message or "not TOML" in message


@pytest.mark.parametrize("kind", ["rate", "replay"])
def test_a_rate_that_makes_no_sense(tmp_path: Path, kind: str) -> None:
    path = 'path = "in"\n' if kind == "replay" else ""
    source = f'[source]\nkind = "{kind}"\n{path}rows_per_second = {10**12}\n'
    with pytest.raises(PipelineError, match="`rows_per_second` is 1000000000000; the most is"):
        described(tmp_path, SMALLEST.replace('[source]\nkind = "files"\npath = "in"\n', source))


def with_options(lines: str, index: str = "asc") -> str:
    """The table of options stands on line 4."""
    queries = f'published = "queries"\nindex = "{index}"\n[queries.asc]\n{lines}\n'
    return SMALLEST.replace('published = "queries"\n', queries)


TWO_STREAMS = """\
[queries]
published = "queries"
stream = "orders"
[streams.payments]
kind = "replay"
path = "payments.csv"
[streams.Orders]
kind = "files"
path = "orders"
[continuous]
queries = ["paid", "late"]
mode = "complete"
expand = true
[sink]
kind = "parquet"
path = "out"
"""


def test_many_streams(tmp_path: Path) -> None:
    """By name, whatever their order in the file: Spark's checkpoint knows them by number."""
    actual = described(tmp_path, TWO_STREAMS)
    assert [(source.stream, source.kind) for source in actual.sources] == [
        ("Orders", "files"),
        ("payments", "replay"),
    ]
    assert actual.continuous == ContinuousConfig(("paid", "late"), "complete", expand=True)
    assert actual.run.trigger == 1, "not as fast as it goes, since a directory is listed each time"
    none = described(tmp_path, TWO_STREAMS.replace('["paid", "late"]', "[]"))
    assert none.continuous.queries == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[sink]", "[source]\n[sink]", "14: events come from [source] or from [streams.…]"),
        ("[streams.payments]", "[streams.ORDERS]", "[streams.ORDERS] and [streams.Orders]; the"),
        ('kind = "replay"\n', "", "4: [streams.payments] has no `kind`"),
        (
            'path = "orders"',
            'path = "orders"\nrows = 3',
            "10: `rows` has no meaning in [streams.Ord",
        ),
        ('path = "orders"', 'path = "."', "out lies in what the job reads"),
        (
            'mode = "complete"',
            'mode = "append"',
            "12: no mode `append`; there are `update`, `compl",
        ),
        ("expand = true", "expnd = true", "13: `expnd` has no meaning in [continuous] here; did"),
        ("[sink]", '[run]\ntrigger = "available"\n[sink]', 'a replay has no "available"'),
    ],
)
def test_mistakes_with_many_streams(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TWO_STREAMS
    with pytest.raises(PipelineError) as caught:
        described(tmp_path, TWO_STREAMS.replace(old, new, 1))
    assert said in str(caught.value)


def test_a_job_reads_something(tmp_path: Path) -> None:
    text = SMALLEST.replace('[source]\nkind = "files"\npath = "in"', "[streams]")
    with pytest.raises(PipelineError, match=r":3: \[streams\] has no stream; name one, as in"):
        described(tmp_path, text)


def test_options_of_an_index_that_adapts(tmp_path: Path) -> None:
    given = 'sequence = "macro"\nlookahead = false\nperiod = 500\nthreshold = 0.2\nsample = 100'
    actual = described(tmp_path, with_options(given + "\nmonitored = 20\nfewest = 3\nblock = 0"))
    assert actual.queries.index.options == AscOptions(
        sequence="macro",
        lookahead=False,
        period=500,
        threshold=0.2,
        sample=100,
        monitored=20,
        fewest=3,
        block=0,
    )
    assert described(tmp_path, with_options("threshold = 1")).queries.index.options == AscOptions(
        threshold=1
    )
    assert described(tmp_path, with_options("")).queries.index.options == AscOptions()
    assert described(tmp_path, SMALLEST).queries.index.options is None


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("perod = 5", "5: `perod` has no meaning in [queries.asc] here; did you mean `period`?"),
        ("max_bytes = 5", "5: `max_bytes` has no meaning in [queries.asc] here"),
        ('sequence = "mikro"', "5: no sequence `mikro`; did you mean `macro`?"),
        ("period = 0", "5: `period` is 0; the least is 1"),
        ("period = 1e3", "5: `period` is 1000.0; give a whole number"),
        (f"period = {10**20}", "5: `period` is 100000000000000000000; the most is 1,099"),
        ("block = -1", "5: `block` is -1; the least is 0"),
        ("lookahead = 1", "5: `lookahead` is 1; give true or false"),
        ("threshold = -0.1", "5: `threshold` is -0.1; give a number from 0 on"),
        ("threshold = nan", "5: `threshold` is nan; give a number from 0 on"),
        ("threshold = true", "5: `threshold` is true; give a number from 0 on"),
        ('threshold = "0.1"', "5: `threshold` is 0.1; give a number from 0 on"),
    ],
)
def test_mistakes_in_options(tmp_path: Path, option: str, said: str) -> None:
    with pytest.raises(PipelineError) as caught:
        described(tmp_path, with_options(option))
    assert f"pipeline.toml:{said}" in str(caught.value)


def test_options_of_an_index_that_is_another(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r":4: \[queries.asc\] has no meaning for index .scan."):
        described(tmp_path, with_options("period = 5", index="scan"))


@pytest.mark.parametrize(
    ("source", "run", "said"),
    [
        ("rate", 'trigger = "available"', 'a rate has no "available"; give `stop_after`'),
        ("replay", 'trigger = "available"', 'a replay has no "available"; a replay ends by itself'),
        ("replay", 'trigger = "0 s"', 'a paced replay has no trigger of 0; try "1 second"'),
    ],
)
def test_triggers_that_make_no_sense(tmp_path: Path, source: str, run: str, said: str) -> None:
    path = 'path = "x"\nrows_per_second = 1' if source == "replay" else ""
    text = f'[queries]\nfiles = ["q"]\n[source]\nkind = "{source}"\n{path}\n'
    with pytest.raises(PipelineError, match=said.replace("`", ".")):
        described(tmp_path, f'{text}[sink]\nkind = "memory"\n[run]\n{run}\n')


@pytest.mark.parametrize("place", ["in/out", "in"])
def test_a_job_does_not_read_what_it_writes(tmp_path: Path, place: str) -> None:
    for source in ("in", "in/*.jsonl"):
        text = SMALLEST.replace('"in"', f'"{source}"').replace('"out"', f'"{place}"')
        with pytest.raises(PipelineError, match="lies in what the job reads"):
            described(tmp_path, text)


def test_the_master_is_no_setting(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r":10: the master is not among .*give it in \[run\]"):
        described(tmp_path, SMALLEST + '[spark]\nmaster = "local"\n')


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"no\.toml: cannot be read"):
        read_pipeline(tmp_path / "no.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PipelineError, match="is not UTF-8"):
        read_pipeline(tmp_path / "binary.toml")
