"""A plan becomes a picture, whatever its network."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from headgate.errors import UsageError
from headgate.plots.network import plot_plan
from headgate.plots.network_layout import place_peers
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.network_file import read_network
from headgate.sharing.plan import make_plan
from headgate.sharing.planning import plan_network

EXAMPLE = Path(__file__).parents[2] / "examples" / "sky" / "network.toml"
LONELY, OTHER = "a $x^2 世", "it's_very_long_and_$ends$"


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"plan.{ending}"
    plot_plan(make_plan(plan_network(read_network(EXAMPLE))), path)
    assert path.stat().st_size > 5_000


def test_what_a_picture_says(tmp_path: Path) -> None:
    """All peers and streams are named in it, and what signs mean."""
    from matplotlib import rc_context

    path = tmp_path / "plan.svg"
    with rc_context({"svg.fonttype": "none"}):
        plot_plan(make_plan(plan_network(read_network(EXAMPLE))), path)
    text = path.read_text()
    for said in ("SP0", "SP7", "P3", "vela ∨ vela_north: 127 rows/s", "vela_junior: 5 rows/s"):
        assert f">{said}<" in text
    assert "taps another stream" in text
    assert "widened, for several queries" in text


def test_odd_names_and_a_lonely_peer(tmp_path: Path) -> None:
    """Names are drawn as they are: no formulas, no trouble with letters that no font has."""
    text = f"""\
sql = "CREATE STREAM s (a INT);"
[nodes]
super = ["{LONELY}", "{OTHER}"]
[[links]]
ends = ["{LONELY}", "{OTHER}"]
[streams.s]
peer = "{LONELY}"
rate = 0
[streams.s.statistics]
a = {{ min = 0, max = 9 }}
[[queries]]
id = "$q$_\\u4e16"
sql = "SELECT * FROM s WHERE a > 3"
target = "{OTHER}"
[[queries]]
id = "at the source"
sql = "SELECT * FROM s WHERE a > 5"
target = "{LONELY}"
"""
    file = tmp_path / "network.toml"
    file.write_text(text, encoding="utf-8")
    plot_plan(make_plan(plan_network(read_network(file))), tmp_path / "plan.png")
    lines = text.replace(OTHER, LONELY).splitlines()
    file.write_text("\n".join([*lines[:2], f'super = ["{LONELY}"]', *lines[5:]]), encoding="utf-8")
    plot_plan(make_plan(plan_network(read_network(file))), tmp_path / "alone.png")


def test_an_ending_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ending"):
        plot_plan(make_plan(plan_network(read_network(EXAMPLE))), tmp_path / "plan.gif")


def test_places() -> None:
    """Neighbours are about a link apart, thin peers nearer; a ring is drawn as a ring."""
    names = [f"n{i}" for i in range(8)]
    ring = [Link((names[i], names[(i + 1) % 8])) for i in range(8)]
    network = Network.of(
        [*map(Node, names), Node("thin", is_thin=True)], [*ring, Link(("thin", "n0"))]
    )
    placed = place_peers(network)
    assert placed == place_peers(network)
    for link in ring:
        assert math.dist(placed[link.ends[0]], placed[link.ends[1]]) == pytest.approx(1, abs=0.35)
    assert math.dist(placed["thin"], placed["n0"]) == pytest.approx(0.6, abs=0.1)
    assert place_peers(Network.of([Node("one")], [])) == {"one": (0.0, 0.0)}
