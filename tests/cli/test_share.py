"""`headgate share plan`, `compare` and `advise`: plans, comparisons, JSON, figures and errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.app import app
from headgate.errors import HeadgateError, NetworkError, UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "sky"
LINK = '{ ends = ["SP5", "SP7"] }'
LAST = '{ ends = ["P2", "SP7"] }'


@pytest.fixture
def network(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    return tmp_path / "network.toml"


def changed(network: Path, old: str, new: str) -> Path:
    text = network.read_text()
    assert old in text
    network.write_text(text.replace(old, new, 1))
    return network


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["share", *map(str, arguments)])


def run_json(*arguments: object) -> dict[str, Any]:
    """The JSON of a command that goes well: an object on stdout, and nothing else."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    answer = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return answer


def refused(*arguments: object) -> HeadgateError:
    result = run(*arguments)
    assert isinstance(result.exception, HeadgateError), result.output
    assert result.stdout == ""
    return result.exception


def test_the_plan(network: Path) -> None:
    """Streams as a tree, how each query came, every link, and totals."""
    result = run("plan", network)
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[0].startswith("photons  P0 → SP4  1,000 rows/s")
    assert lines[1].startswith("└── vela ∨ vela_north  SP4 → SP5 → SP1  127 rows/s")
    assert lines[2].startswith("    filtered at SP4, widened: (ra BETWEEN")
    assert lines[3].startswith("    ├── vela_junior  SP5 → SP7 → P2")
    assert (
        "vela_north   P3      widens the stream of vela from SP4 to SP1, by SP1 → SP3 → P3" in lines
    )
    assert any(line.split() == ["SP4–SP5", "6,082", "4,077"] for line in lines)
    assert lines[-4] == "3 queries (widen, exact)"
    assert "before" in lines[-3]


def test_as_json(network: Path) -> None:
    answer = run_json("plan", network)
    assert list(answer) == [
        "strategy",
        "method",
        "queries",
        "streams",
        "links",
        "before",
        "after",
        "refused_before",
    ]
    chosen = [query["chosen"] for query in answer["queries"]]
    assert [one["kind"] for one in chosen] == ["new", "tap", "widen"]
    assert (chosen[1]["of"], chosen[1]["node"]) == (["vela"], "SP5")
    assert answer["queries"][2]["others"][0]["kind"] == "widen"
    widened = answer["streams"][1]
    assert (widened["of"], widened["members"]) == (0, ["vela", "vela_north"])
    assert widened["nodes"] == ["SP4", "SP5", "SP1"]
    assert widened["rows"]["low"] < widened["rows"]["value"] < widened["rows"]["high"]
    link = next(link for link in answer["links"] if link["ends"] == ["SP4", "SP5"])
    assert link["before"]["value"] > link["after"]["value"] > 0
    assert link["bandwidth"] is None
    for when in ("before", "after"):
        moved = sum(link["cost"] * link[when]["value"] for link in answer["links"])
        assert answer[when]["traffic"] == pytest.approx(moved)


def test_strategy_and_method(network: Path) -> None:
    """The command line has the last word."""
    answer = run_json("plan", network, "--strategy", "filter")
    assert answer["strategy"] == "filter"
    assert answer["before"] == answer["after"]
    relaxed = run_json("plan", network, "--method", "hcr")
    (where,) = [s["where"] for s in relaxed["streams"] if len(s["members"]) == 2]
    assert " OR " not in where


def test_compare(network: Path) -> None:
    answer = run_json("compare", network)["strategies"]
    names = [(one["strategy"], one["method"]) for one in answer]
    assert names[:3] == [("ship", "exact"), ("filter", "exact"), ("share", "exact")]
    assert names[3:6] == [("widen", "exact"), ("widen", "hsr"), ("widen", "hcr")]
    assert names[6:] == [("optimum", "exact")]
    assert answer[6]["traffic"] is None
    assert answer[6]["total"] <= min(one["total"] for one in answer[:6])
    traffic = [one["traffic"] for one in answer]
    assert traffic[0] > traffic[1] >= traffic[2] >= traffic[3]
    shown = run("compare", network).stdout
    assert "widen, hcr" in shown
    assert "100%" in shown


def test_explain(network: Path) -> None:
    answer = run_json("plan", network, "--explain", "vela_north")
    assert answer["chosen"]["kind"] == "widen"
    totals = [one["total"] for one in (answer["chosen"], *answer["others"])]
    assert totals == sorted(totals)
    shown = run("plan", network, "--explain", "vela_north").stdout
    assert "vela_north, for P3" in shown
    assert "✓  widens the stream of vela from SP4 to SP1" in shown
    assert "a new stream, filtered at SP4" in shown
    assert "did you mean `vela_north`?" in str(refused("plan", network, "--explain", "vela_nort"))


def test_who_has_left_is_not_explained(network: Path) -> None:
    network.write_text(network.read_text() + '[[queries]]\nleave = "vela"\n')
    assert "query `vela` has left the network" in str(refused("plan", network, "--explain", "vela"))
    assert [query["id"] for query in run_json("plan", network)["queries"]] == [
        "vela_junior",
        "vela_north",
    ]


def test_improve(network: Path) -> None:
    """Here nothing can be better, and nothing becomes worse."""
    assert run_json("plan", network, "--improve", "2")["after"] == pytest.approx(
        run_json("plan", network)["after"]
    )


def test_plot(network: Path, tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    assert run("plan", network, "--plot", picture).exit_code == 0
    assert picture.stat().st_size > 10_000
    assert "ending" in str(refused("plan", network, "--plot", tmp_path / "plan.gif"))
    assert "no directory" in str(refused("plan", network, "--plot", tmp_path / "none" / "plan.png"))


def test_no_room(network: Path) -> None:
    """A query that no way has room for is an error; another way is taken where there is one."""
    changed(network, LINK, LINK.replace(" }", ", bandwidth = 10 }"))
    routes = {
        query["id"]: query["chosen"]["route"] for query in run_json("plan", network)["queries"]
    }
    assert routes["vela_junior"][-3:] == ["SP6", "SP7", "P2"]
    shown = run("plan", network).stdout
    assert "bandwidth" in shown
    changed(network, LAST, LAST.replace(" }", ", bandwidth = 10 }"))
    error = refused("plan", network)
    assert isinstance(error, NetworkError)
    assert "query `vela_junior` has no room: link P2–SP7 has 10 bytes/s left" in str(error)


def test_no_room_without_sharing(network: Path) -> None:
    """What is possible only by sharing has no before; a comparison says of each why not."""
    changed(network, 'ends = ["SP4", "SP5"]', 'bandwidth = 4_100, ends = ["SP4", "SP5"]')
    changed(network, 'ends = ["SP0", "SP4"]', 'bandwidth = 100, ends = ["SP0", "SP4"]')
    answer = run_json("plan", network)
    assert answer["before"] is None
    assert "query `vela_north` has no room: every way to P3 is full" in answer["refused_before"]
    shown = run("plan", network).stdout
    assert "without sharing: " in shown
    assert "(widen, exact)\ntraffic " in shown
    compared = run_json("compare", network)["strategies"]
    assert [one["refused"] is None for one in compared][1:4] == [False, False, True]
    assert "has no room" in run("compare", network).stdout


def test_options_only_where_they_apply() -> None:
    """A comparison is about all strategies, and advice about no network."""
    for arguments in (("compare", "n.toml", "--strategy", "ship"), ("advise", "n.toml"), ("plan",)):
        assert run(*arguments).exit_code == 2, arguments


@pytest.mark.parametrize(
    "arguments,said",
    [(("--sample", "x.jsonl"), "which queries?"), (("-q", "q.sql"), "which events?")],
)
def test_advice_needs_queries_and_a_sample(arguments: tuple[str, ...], said: str) -> None:
    error = refused("advise", *arguments)
    assert isinstance(error, UsageError)
    assert said in str(error)


def test_many(tmp_path: Path) -> None:
    """Tables are cut, and say so; JSON is not."""
    queries = "".join(
        f'[[queries]]\nid = "q{n}"\ntarget = "B"\nsql = "SELECT * FROM s WHERE a = {n}"\n'
        for n in range(60)
    )
    file = tmp_path / "network.toml"
    file.write_text(
        'sql = "CREATE STREAM s (a INT);"\n[nodes]\nsuper = ["A", "B"]\n'
        '[[links]]\nends = ["A", "B"]\n[streams.s]\npeer = "A"\nrate = 10\n'
        f"[streams.s.statistics]\na = {{ min = 0, max = 99 }}\n{queries}"
    )
    shown = run("plan", file, "--strategy", "filter").stdout
    assert "… and 20 more; --format json lists them all" in shown
    assert "… and 21 streams more; --format json has them" in shown
    assert len(run_json("plan", file)["queries"]) == 60


def test_rearranged_the_order_is_forgotten(network: Path) -> None:
    """By the option, or by the key of the file."""
    text = network.read_text()
    start, *tables = text.split("[[queries]]")
    collected = []
    for order in (tables, tables[::-1]):
        network.write_text("[[queries]]".join([start, *order]))
        collected.append(run_json("plan", network, "--strategy", "share", "--rearrange")["links"])
        network.write_text("rearrange = true\n" + "[[queries]]".join([start, *order]))
        collected.append(run_json("plan", network, "--strategy", "share")["links"])
    assert all(links == collected[0] for links in collected)
