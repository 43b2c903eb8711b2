"""The network file: every key is read, and every mistake has its line and a hint."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from headgate._toml import read_toml
from headgate.errors import NetworkError, PipelineError
from headgate.sharing.network import Link
from headgate.sharing.network_file import Arrival, Departure, NetworkFile, read_network
from headgate.sharing.planning import plan_network
from headgate.sharing.samples import MAX_SAMPLE_ROWS, draw_sample

WHOLE = """\
files = ["schema.sql"]
sql = "CREATE QUERY inline AS SELECT a FROM s WHERE a > 3;"
strategy = "share"
method = "hsr"
load = 0.5
[nodes]
super = ["A", "B"]
thin = ["p", "q"]
[applications]
west = ["A", "p"]
[[links]]
ends = ["A", "B"]
cost = 2
bandwidth = 1e6
[[links]]
ends = ["A", "p"]
[[links]]
ends = ["q", "B"]
[streams.S]
peer = "p"
rate = 100
row_bytes = 40
sample = "rows.jsonl"
[streams.t]
peer = "B"
rate = 0.5
[streams.t.statistics]
flag = { nulls = 0.25 }
text = { letters = 7 }
[streams.t.statistics.deep.inside]
values = [1, 2]
weights = [3, 1]
[[queries]]
id = "inline"
target = "q"
[[queries]]
id = "declared"
target = "q"
[[queries]]
leave = "inline"
[[queries]]
id = "here"
target = "A"
sql = "SELECT * FROM t WHERE flag"
[[queries]]
file = "rules.jsonl"
"""
SCHEMA = """\
CREATE STREAM s (a INT CHECK (a BETWEEN 0 AND 9), b STRING);
CREATE STREAM t (flag BOOLEAN, text STRING, deep.inside BIGINT,
    side STRING CHECK (side IN ('buy', 'sell')),
    day DATE CHECK (day BETWEEN '2026-01-01' AND '2026-12-31'));
CREATE STREAM idle (a INT);
CREATE QUERY declared AS SELECT * FROM s WHERE b = 'x';
CREATE QUERY counted AS SELECT count(*) FROM s;
CREATE QUERY unheard AS SELECT * FROM idle;
"""
RULES = [
    {"id": "r1", "stream": "s", "where": "a < 5", "metadata": {"target": "q"}},
    {"id": "r2", "stream": "t", "where": "flag", "metadata": {"target": "B"}},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.sql").write_text(SCHEMA)
    (tmp_path / "rules.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in RULES))
    rows = [{"a": n % 10, "b": "xyz"} for n in range(20)] + [{"a": 10}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "wrong.jsonl").write_text('{"a": 10}\n')
    (tmp_path / "bad.jsonl").write_text('{"id": "r", "stream": "s", "where": "a >"}\n')
    (tmp_path / "aimless.jsonl").write_text('{"id": "r", "stream": "s", "where": "a > 1"}\n')
    return tmp_path


def described(folder: Path, text: str) -> NetworkFile:
    file = folder / "network.toml"
    file.write_text(text)
    return read_network(file)


def drawn(folder: Path, text: str, stream: str) -> pa.Table:
    """The sample that statistics give."""
    listed = {one.sampled.stream.name: one for one in described(folder, text).published}
    table = (
        read_toml(folder / "network.toml")
        .get_table("streams")
        .get_table(stream)
        .get_table("statistics")
    )
    return draw_sample(listed[stream].sampled.stream, table)


def test_every_key(folder: Path) -> None:
    result = described(folder, WHOLE)
    assert (result.strategy, result.method, result.load_cost) == ("share", "hsr", 0.5)
    network = result.network
    assert {name: (n.is_thin, n.application) for name, n in network.nodes.items()} == {
        "A": (False, "west"),
        "B": (False, ""),
        "p": (True, "west"),
        "q": (True, ""),
    }
    assert network.links == (Link(("A", "B"), 2.0, 1e6), Link(("A", "p")), Link(("q", "B")))
    s, t = result.published
    assert (s.peer, s.sampled.rate, s.sampled.size) == ("p", 100, 20)
    assert s.sampled.measure_width(["a", "b"]) == pytest.approx(40)
    assert (t.peer, t.sampled.rate, t.sampled.size) == ("B", 0.5, MAX_SAMPLE_ROWS)
    assert [
        (change.query.id, change.target) if isinstance(change, Arrival) else change
        for change in result.changes
    ] == [
        ("inline", "q"),
        ("declared", "q"),
        Departure("inline", 39),
        ("here", "A"),
        ("r1", "q"),
        ("r2", "B"),
    ]
    planner = plan_network(result)
    assert set(planner.registered) == {"declared", "here", "r1", "r2"}
    assert (planner.strategy, planner.method, planner.load_cost) == ("share", "hsr", 0.5)
    assert plan_network(result, strategy="ship", method="hcr").strategy == "ship"


def test_what_is_left_out(folder: Path) -> None:
    """As docs/reference/network.md has it; one super-peer alone is a network."""
    result = described(
        folder,
        'files = ["schema.sql"]\n[nodes]\nsuper = ["A"]\n'
        '[streams.s]\npeer = "A"\nrate = 1\nsample = "rows.jsonl"\n',
    )
    assert (result.strategy, result.method, result.changes) == ("widen", "exact", ())
    assert math.isfinite(result.load_cost)
    assert result.published[0].sampled.measure_width(["a", "b"]) == 4 + 4 + 3


def test_statistics(folder: Path) -> None:
    """A sample has the values, weights and NULLs that were asked for, and is always the same."""
    table = drawn(folder, WHOLE, "t")
    assert table == drawn(folder, WHOLE, "t")
    columns = {name: Counter(table.column(name).to_pylist()) for name in table.column_names}
    assert set(columns["flag"]) == {True, False, None}
    assert columns["flag"][None] == pytest.approx(MAX_SAMPLE_ROWS / 4, abs=200)
    assert columns["deep.inside"][1] == pytest.approx(3 * MAX_SAMPLE_ROWS / 4, abs=200)
    assert set(columns["side"]) == {"buy", "sell"}
    assert {len(str(text)) for text in columns["text"]} == {7}
    assert len(columns["day"]) == 365


def test_numbers_between(folder: Path) -> None:
    """Both ends belong to it, whatever the type; TOML's dates and times are dates and times."""
    types = "n INT, m DECIMAL(4, 2), x DOUBLE, d DATE, at TIMESTAMP"
    text = f"""\
sql = "CREATE STREAM u ({types});"
[nodes]
super = ["A"]
[streams.u]
peer = "A"
rate = 1
[streams.u.statistics]
n = {{ min = -1, max = 1 }}
m = {{ min = 0.01, max = 0.03 }}
x = {{ min = 1, max = 2.5 }}
d = {{ min = 2026-01-01, max = "2026-01-02" }}
at = {{ min = 2026-01-01T00:00:00Z, max = 2026-01-01T00:00:00.000001Z }}
"""
    table = drawn(folder, text, "u")
    counts = {
        name: Counter(map(str, table.column(name).to_pylist())) for name in table.column_names
    }
    assert set(counts["n"]) == {"-1", "0", "1"}
    assert set(counts["m"]) == {"0.01", "0.02", "0.03"}
    assert all(1 <= float(x) <= 2.5 for x in counts["x"])
    assert len(counts["x"]) > MAX_SAMPLE_ROWS // 2
    assert set(counts["d"]) == {"2026-01-01", "2026-01-02"}
    assert len(counts["at"]) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('ends = ["A", "p"]', 'ends = ["A", "pp"]', "16: no node `pp`; did you mean `p`?"),
        ('ends = ["q", "B"]', 'ends = ["q"]', "18: `ends` lists 1; name two peers, as in"),
        ('ends = ["q", "B"]', 'ends = ["q", "p"]', "18: thin peer `p` is linked with `A` and `q`"),
        ('[[links]]\nends = ["q", "B"]', "", "8: thin peer `q` has no link; give it one, to its"),
        (
            'ends = ["q", "B"]',
            'ends = ["q", "B"]\n[[links]]\nends = ["q", "A"]',
            "20: thin peer `q` is linked with `B` and `A`; it forwards nothing",
        ),
        ('super = ["A", "B"]', 'super = ["A", "B", "C"]', "7: `C` cannot be reached from `A`; a"),
        ('super = ["A", "B"]', 'super = ["A", "A", "B"]', "7: node `A` is given twice"),
        ('thin = ["p", "q"]', 'thin = ["p", "q", "A"]', "8: node `A` is given twice"),
        ('super = ["A", "B"]', "super = []", "10: no node `A`; there are `p`, `q`"),
        ('ends = ["A", "B"]', 'ends = ["A", "A"]', "12: a link leads from `A` to itself; it"),
        ("[streams.S]", '[[links]]\nends = ["B", "A"]\n[streams.S]', "20: there are two links B–A"),
        ("cost = 2", "cost = -2", "12: the cost of link A–B is -2.0; give 0 or more"),
        ("cost = 2", 'cost = "2"', "13: `cost` is '2'; give a number"),
        ("cost = 2", "cots = 2", "13: `cots` has no meaning in [[links]] here; did you mean"),
        (
            "bandwidth = 1e6",
            "bandwidth = 0",
            "12: the bandwidth of link A–B is 0.0; give more than 0",
        ),
        ('ends = ["A", "p"]', 'ends = ["A", "p"]\nbandwidth = 100', "22: "),
        ("[nodes]", "[node]", "6: `node` has no meaning; did you mean [nodes]?"),
        ("west = [", 'east = ["A"]\nwest = [', "11: `A` is in applications `east` and `west`"),
        ('west = ["A"', 'west = ["X"', "10: no node `X`; there are"),
        ("rate = 100", "rate = -1", "21: the rate of stream s is -1.0; give rows per second"),
        (
            "rate = 100\n",
            "",
            "19: [streams.S] has no `rate`; docs/reference/network.md explains it",
        ),
        ("row_bytes = 40", "row_bytes = 0", "22: `row_bytes` is 0.0; give the bytes of a row"),
        ('peer = "p"', 'peer = "P"', "20: no node `P`; did you mean `p`?"),
        ("[streams.S]", "[streams.x]", "19: no stream `x` is declared; there are `s`, `t`"),
        ("[streams.t]", "[streams.s]", "24: [streams.S] and [streams.s]; the case of a name"),
        ('"rows.jsonl"', '"rows.csv"', "23: "),
        ('"rows.jsonl"', '"wrong.jsonl"', "23: "),
        ('sample = "rows.jsonl"\n', "", "19: stream s needs either a `sample` of its rows or"),
        ("rate = 0.5", 'rate = 0.5\nsample = "x"', "27: stream t needs either a `sample` of its"),
        ("flag = { nulls = 0.25 }", "flog = {}", "28: no attribute `flog` in stream t; did you"),
        ("nulls = 0.25", "nulls = 2", "28: `nulls` is 2.0; give a share of all rows"),
        ("nulls = 0.25", "min = 1", "28: `min` has no meaning for a BOOLEAN; give `values`"),
        ("letters = 7", "letters = -7", "29: `letters` is -7; the least is 0"),
        ("letters = 7", "max = 'z'", "29: `max` has no meaning for a STRING; give `values`, or"),
        (
            "text = { letters = 7 }\n",
            "",
            "27: there are no statistics of `text`; give its `values`, or how",
        ),
        ("values = [1, 2]", "values = []", "31: `values` is empty; give at least one"),
        ("values = [1, 2]", 'values = [1, "2"]', "31: `deep.inside` is '2', which is not a BIGINT"),
        ("values = [1, 2]", "min = 3", "30: [streams.t.statistics.deep.inside] has no `max`"),
        ("weights = [3, 1]", "weights = [3]", "32: `weights` has 1 numbers; there are 2 values"),
        (
            "weights = [3, 1]",
            "weights = [3, -1]",
            "32: `weights` holds -1; give numbers that are 0 or more",
        ),
        ("weights = [3, 1]", "weights = [0, 0]", "32: all weights are 0; give one above 0"),
        ("weights = [3, 1]", "wights = [3, 1]", "32: `wights` has no meaning in [streams.t.stat"),
        ('id = "declared"', 'id = "declare"', "37: no query `declare` is declared, and there is"),
        ('id = "declared"', 'id = "inline"', "37: query `inline` is registered already; it can"),
        (
            'id = "declared"',
            'id = "counted"',
            "37: query `counted` is not a filter (aggregate); only",
        ),
        ('id = "declared"', 'id = "unheard"', "37: no peer delivers stream idle, which query"),
        ('target = "q"', 'target = "qq"', "35: no node `qq`, which query `inline` is for; did"),
        (
            'target = "A"\n',
            "",
            "41: [[queries]] has no `target`; docs/reference/network.md explains it",
        ),
        (
            'leave = "inline"',
            'leave = "here"',
            "40: query `here` cannot leave: it is not registered here; there",
        ),
        ('leave = "inline"', "leave = 3", "40: `leave` is 3; give a text"),
        ("WHERE flag", "WHERE flog", "44: no attribute `flog` in stream t; did you mean `flag`?"),
        ("WHERE flag", "; SELECT 1", "44: `sql` holds more than one statement; give one SELECT"),
        ('file = "rules.jsonl"', 'file = "rule.jsonl"', "46: there is no file "),
        ('file = "rules.jsonl"', 'file = "aimless.jsonl"', "45: [[queries]] has no `target`"),
        ('file = "rules.jsonl"', 'file = "rules.jsonl"\ntarget = "x"', "47: no node `x`, which"),
        ("load = 0.5", "lode = 0.5", "5: `lode` has no meaning here; did you mean `load`?"),
        ('files = ["schema.sql"]', "", "2: no stream `s`; there are none"),
        ('"schema.sql"', '"schema.sql", "none.sql"', "1: there is no file "),
        ("a > 3;", "a > ;", "2: "),
        ("QUERY inline", "QUERY declared", "2: "),
        ('"share"', '"sharing"', "3: no strategy `sharing`; did you mean `share`?"),
        ('"hsr"', '"em"', "4: no method `em`; there are `exact`, `hsr`, `hcr`"),
        ("load = 0.5", "load = -0.5", "5: `load` is -0.5; give what a row that is read costs"),
        ("load = 0.5", "load = true", "5: `load` is True; give a number"),
    ],
)
def test_mistakes(folder: Path, old: str, new: str, said: str) -> None:
    """The line, what is wrong, and what to do."""
    assert old in WHOLE
    with pytest.raises(PipelineError) as caught:
        described(folder, WHOLE.replace(old, new, 1))
    message = str(caught.value).removeprefix(f"{folder}/network.toml:")
    assert message.startswith(said)
    assert len(message) > 25


def test_no_streams(folder: Path) -> None:
    text = 'files = ["schema.sql"]\n[nodes]\nsuper = ["A"]\n'
    with pytest.raises(PipelineError, match=r"there is no \[streams\]; docs/reference/network"):
        described(folder, text)
    with pytest.raises(PipelineError, match=r":4: \[streams\] has no stream; name one"):
        described(folder, text + "[streams]")


def test_a_bad_row_of_a_file_has_its_own_place(folder: Path) -> None:
    text = WHOLE.replace('file = "rules.jsonl"', 'file = "bad.jsonl"\ntarget = "q"')
    with pytest.raises(PipelineError, match=r"bad.jsonl:1:4: a value is expected at the end"):
        described(folder, text)


def test_no_room(folder: Path) -> None:
    """Where a query has no room, the line of the query is told, and the link."""
    text = WHOLE.replace('ends = ["q", "B"]', 'ends = ["q", "B"]\nbandwidth = 10')
    result = described(folder, text)
    with pytest.raises(
        NetworkError, match=r"network.toml:34: query `inline` has no room: link q–B has 10 bytes/s"
    ):
        plan_network(result)
