"""What is shown of an order that adapts: in the summary, in an explanation, and as a picture."""

from __future__ import annotations

import json
from contextlib import suppress
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from headgate.cli.order import plot_batches
from headgate.cli.watch import open_view
from headgate.matching.asc.monitor import Period
from headgate.plots.evaluation_order import plot_periods
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.progress import BatchResult, OrderReport, RunStats
from tests.cli.test_commands import objects, run

STREAM = "CREATE STREAM s (a INT, b INT, t STRING);\n"
MATCH = ("match", "-q", "q.sql")
PNG = b"\x89PNG"
PIPELINE = """
[queries]
files = ["q.sql"]
index = "{index}"
[source]
kind = "rate"
[sink]
kind = "memory"
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clauses = [f"a = {n} AND b < {n % 7}" for n in range(110)]
    _write("few.sql", [*clauses[:9], "t LIKE 'x%'"])
    _write("q.sql", clauses)
    # so many patterns in a query are not for bitmaps
    _write("keyed.sql", [*clauses, " OR ".join(f"t LIKE '{letter}%'" for letter in "uvwxyz")])
    wide = ", ".join(f"a{n} INT" for n in range(12))
    queries = (f"CREATE QUERY q{n} AS SELECT * FROM w WHERE a{n} = 1;" for n in range(12))
    Path("wide.sql").write_text(f"CREATE STREAM w ({wide});" + "\n".join(queries))
    Path("w.jsonl").write_text('{"a0": 1}\n{"a1": 2}\n')
    values = [number % 200 for number in range(3_000)]
    pq.write_table(pa.table({"a": values, "b": values[::-1]}), "e.parquet")


def _write(name: str, clauses: list[str]) -> None:
    queries = (f"CREATE QUERY q{n} AS SELECT * FROM s WHERE {w};" for n, w in enumerate(clauses))
    Path(name).write_text(STREAM + "\n".join(queries))


def test_the_summary_tells_the_order() -> None:
    """After the first thousand events there is an order that has seen some."""
    order, rearranged = run(*MATCH, "e.parquet", "--index", "asc").stdout.splitlines()[-2:]
    assert order.startswith(("order: a, b; ", "order: b, a; "))
    assert " of 2 constructs for an event, " in order
    assert order.endswith(" % dropped")
    assert rearranged == "rearranged: 1 time, last after 1,000 events: the first events came"


def test_an_order_of_many_constructs_is_shortened() -> None:
    """Few events leave the first order as it is, and none cost nothing."""
    command = ("match", "-q", "wide.sql", "w.jsonl", "--index", "asc")
    order, rearranged = run(*command).stdout.splitlines()[-2:]
    assert " and 4 more; 12 of 12 constructs for an event, 50 % dropped" in order
    assert rearranged == "rearranged: never"
    order, _ = run(*command, "--limit", "0").stdout.splitlines()[-2:]
    assert order.endswith(" and 4 more")


def test_no_query_is_nothing_to_evaluate() -> None:
    Path("none.sql").write_text(STREAM)
    result = run("match", "-q", "none.sql", "e.parquet", "--index", "asc")
    order, rearranged = result.stdout.splitlines()[-2:]
    assert order == "order: nothing to evaluate; 0 of 0 constructs for an event, 100 % dropped"
    assert rearranged.startswith("rearranged: ")


def test_the_order_is_reported_if_auto_chose_it() -> None:
    assert "order: " in run(*MATCH, "e.parquet").stdout


@pytest.mark.parametrize("kind", ["scan", "keyed"])
def test_other_indexes_have_no_order_to_tell(kind: str) -> None:
    assert "order: " not in run(*MATCH, "e.parquet", "--index", kind).stdout


@pytest.mark.parametrize("kind", ["asc", "auto"])
def test_the_order_over_time_is_plotted(kind: str) -> None:
    """Also where auto has chosen the index; what matches stays the same, and so does the JSON."""
    plain = run(*MATCH, "e.parquet", "--format", "json")
    result = run(*MATCH, "e.parquet", "--index", kind, "--order-plot", "o.png", "--format", "json")
    assert objects(result.stdout) == objects(plain.stdout)
    assert result.stderr.endswith("the order over time is in o.png\n")
    assert Path("o.png").read_bytes().startswith(PNG)


def test_no_event_makes_no_plot() -> None:
    result = run(*MATCH, "e.parquet", "--index", "asc", "--limit", "0", "--order-plot", "o.png")
    assert result.stderr == "note: there were no events, so the order is not plotted\n"
    assert not Path("o.png").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--index", "scan"], "--order-plot needs the index asc, not scan"),
        (["--index", "be_tree"], "--order-plot needs the index asc, not be_tree"),
        (["--engine", "spark"], "--order-plot works with --engine local only; leave out --engine"),
        (
            ["--semantics", "exact"],
            "--order-plot shows how rows are matched, not conditions; leave out --semantics",
        ),
        (
            ["--order-plot", "o.gif"],
            "o.gif: a plot is a .png, .svg or .pdf file; give it such an ending",
        ),
        (["--order-plot", "no/o.png"], "no/o.png: there is no directory no; create it first"),
        (["-q", "few.sql"], "auto chose scan, because there are fewer than 100 queries"),
        (["-q", "keyed.sql"], "auto chose keyed, because there were at least 100 queries"),
    ],
)
def test_where_there_is_no_order_a_plot_is_refused_early(arguments: list[str], said: str) -> None:
    """Before any event is read: the file of events does not even exist."""
    queries = [] if "-q" in arguments else ["-q", "q.sql"]
    result = run("match", *queries, "none.parquet", "--order-plot", "o.png", *arguments)
    assert said in str(result.exception)
    assert result.stdout == ""


def test_a_plot_that_cannot_be_written_is_reported() -> None:
    Path("o.png").mkdir()
    result = run(*MATCH, "e.parquet", "--index", "asc", "--order-plot", "o.png")
    assert str(result.exception) == "o.png: the plot cannot be written: Is a directory"


def test_explain_shows_the_order() -> None:
    """Where `asc` holds the query, and nowhere else."""
    explain = ("explain", "-q", "few.sql", "q1", "--index")
    *_, result, order = run(*explain, "asc").stdout.splitlines()
    assert result.startswith("index      asc: a bit in each of ")
    assert order.startswith(("order      a, b, ", "order      b, a, "))
    assert order.endswith("t LIKE; it adapts to the events")
    output = json.loads(run(*explain, "asc", "--format", "json").stdout)
    assert sorted(output["order"]) == ["a", "b", "t LIKE"]
    assert "order" not in json.loads(run(*explain, "keyed", "--format", "json").stdout)
    assert "order" not in run(*explain, "keyed").stdout


def _batch(number: int, rows: int, why: str | None = None) -> BatchResult:
    order = OrderReport(["b", "a"], 0.5, 1.25, 0.0, why)
    return BatchResult(number, 1, Counts(rows=rows, dead=2), 0.1, {}, order)


def test_a_job_plots_its_batches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch is a period; also those before a failure, and none without events."""
    drawn: list[Any] = []
    monkeypatch.setattr(
        "headgate.plots.evaluation_order.plot_periods", lambda *one: drawn.append(one)
    )
    with suppress(KeyError), plot_batches(Path("o.png"), "job") as remember:
        remember(_batch(0, 10, "the first events came"))
        remember(BatchResult(1, 1, Counts(), 0.1, {}))
        remember(_batch(2, 5))
        raise KeyError
    [(periods, path, title)] = drawn
    assert list(periods) == [
        Period(10, 10, 0.5, 1.25, 0.0, "the first events came"),
        Period(15, 5, 0.5, 1.25, 0.0),
    ]
    assert (path, title) == (Path("o.png"), "job")
    with plot_batches(Path("o.png"), "job"):
        pass
    with plot_batches(None, "job") as remember:
        remember(_batch(0, 10))
    assert len(drawn) == 1
    assert capsys.readouterr().err.splitlines() == [
        "the order over time is in o.png",
        "note: there were no events, so the order is not plotted",
    ]


def test_a_batch_tells_a_person_what_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with open_view(True, cast(Any, None)) as view:
        view.show_batch(_batch(0, 10), RunStats())
        view.show_batch(BatchResult(1, 1, Counts(), 0.1, {}), RunStats())
    adaptive, plain = capsys.readouterr().out.splitlines()
    assert adaptive.endswith(", 0.10 s, 1.25 of 2 constructs for an event, 50 % dropped")
    assert plain.endswith(", 0.10 s")


def test_a_screen_has_columns_for_what_a_batch_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch without events leaves them empty; without an order there are none."""
    out = Console(file=StringIO(), width=120)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.live.Live.update", lambda _, shown: out.print(shown))
    with open_view(True, cast(Any, SimpleNamespace(name="job"))) as view:
        view.show_batch(BatchResult(0, 1, Counts(), 0.1, {}), RunStats())
        view.show_batch(_batch(1, 10), RunStats())
    lines = [line.split() for line in cast(StringIO, out.file).getvalue().splitlines()]
    titles = [line for line in lines if line[0] == "batch"]
    assert [line[-2:] for line in titles] == [["seconds", "events/s"], ["constructs", "dropped"]]
    assert ["1", "1", "12", "0", "2", "0.10", "120", "1.25", "50.0", "%"] in lines


def test_a_job_with_another_index_has_no_plot() -> None:
    """It is refused before Spark starts."""
    Path("p.toml").write_text(PIPELINE.format(index="auto"))
    result = run("run", "p.toml", "--order-plot", "o.png")
    assert str(result.exception).endswith('has auto; give index = "asc" in [queries]')


def test_a_plot_of_many_orders_lists_the_latest() -> None:
    """All of any number of periods is drawn, from the first that is remembered on."""
    many = [Period(1_000 * n, 100, 0.0, 2.0, 0.0, f"reason {n}") for n in range(1, 400)]
    for periods in (many, many[:1], [Period(5, 5, 0.0, 0.0, 0.0)]):
        plot_periods(periods, Path("o.svg"), title="many")
        assert "<svg" in Path("o.svg").read_text()
