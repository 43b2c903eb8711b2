"""A plan becomes a picture, whatever its network."""

from __future__ import annotations

import math
import re
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from headgate.errors import UsageError
from headgate.plots.network import plot_plan
from headgate.plots.network_labels import Line, Surroundings, place_names
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


def draw_figure(file: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The figure of a network before it becomes a picture."""
    figures: list[Any] = []
    monkeypatch.setattr(
        "headgate.plots.network.save_figure", lambda figure, _: figures.append(figure)
    )
    plot_plan(make_plan(plan_network(read_network(file))), file.with_suffix(".png"))
    return figures[0]


def test_names_lie_on_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names too long for their circles are off lines, peers and each other, in the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for name in ("schema.sql", "queries.sql"):
        (tmp_path / name).write_text((EXAMPLE.parent / name).read_text())
    text = re.sub(r"\bSP(\d)\b", r"superpeer-\1", EXAMPLE.read_text())
    file = tmp_path / "network.toml"
    file.write_text(re.sub(r"\bP(\d)\b", r"peer-\1", text))
    figure = draw_figure(file, monkeypatch)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    axes = figure.axes[0]
    boxes = {text.get_text(): text.get_window_extent(canvas.get_renderer()) for text in axes.texts}
    assert len(boxes) == 12
    for line in axes.lines:
        xs, ys = line.get_data()
        # A link or a lane has two ends, a sign of a peer or stream one.
        shares = np.linspace(0, 1, 400 if np.size(xs) == 2 else 1)[:, None]
        ends = axes.transData.transform(np.column_stack([np.atleast_1d(xs), np.atleast_1d(ys)]))
        for x, y in ends[0] + shares * (ends[-1] - ends[0]):
            assert not any(box.contains(x, y) for box in boxes.values())
    for box, other in combinations(boxes.values(), 2):
        assert not box.overlaps(other)
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes.values())


def covers(middle: tuple[float, float], size: tuple[float, float], line: Line) -> bool:
    """By points of the line, one every hundredth of its length."""
    for share in np.linspace(0, 1, 101):
        point = [a + share * (b - a) for a, b in zip(line.start, line.end, strict=True)]
        if all(abs(p - m) < s / 2 for p, m, s in zip(point, middle, size, strict=True)):
            return True
    return False


@pytest.mark.parametrize("seed", range(5))
def test_names_of_random_networks(seed: int) -> None:
    """Few names cover a line, where below their peers every third would; always the same ones."""
    random = Random(seed)
    count = 20
    nodes = [f"gateway-{number}" for number in range(count)]
    ends = {(random.randrange(max(0, i - 3), i), i) for i in range(1, count)}
    ends |= {(random.randrange(i), i) for i in range(1, count) if random.random() < 0.3}
    network = Network.of([*map(Node, nodes)], [Link((nodes[a], nodes[b])) for a, b in ends])
    peers = {name: (1.2 * x, 1.2 * y) for name, (x, y) in place_peers(network).items()}
    lines = [Line(peers[nodes[a]], peers[nodes[b]], 0.01) for a, b in ends]
    sizes = dict.fromkeys(nodes, (0.55, 0.1))
    around = Surroundings(lines, peers, 0.15, ((-20, -20), (20, 20)))
    placed = place_names(sizes, around)
    assert placed == place_names(sizes, around)

    def count_covering(places: dict[str, tuple[float, float]]) -> int:
        return sum(
            any(covers(place, sizes[name], line) for line in lines)
            for name, place in places.items()
        )

    below = {name: (x, y - 0.22) for name, (x, y) in peers.items()}
    assert count_covering(below) > 5
    assert count_covering(dict(placed)) <= 1
    assert all(math.dist(placed[name], peers[name]) < 0.75 for name in nodes)


def test_a_name_among_nothing_but_lines() -> None:
    """It takes the place that covers least; without any lines it stands below its peer."""
    spokes = [
        Line((0, 0), (math.cos(angle), math.sin(angle)), 0.01)
        for angle in np.linspace(0, 2 * math.pi, 40)
        if not 0.4 < angle < 1.2
    ]
    around = Surroundings(spokes, {"n": (0, 0)}, 0.15, ((-2, -2), (2, 2)))
    x, y = place_names({"n": (0.5, 0.1)}, around)["n"]
    assert x > 0.1
    assert y > 0.1
    around = Surroundings([], {"n": (0, 0)}, 0.15, ((-2, -2), (2, 2)))
    x, y = place_names({"n": (0.5, 0.1)}, around)["n"]
    assert x == pytest.approx(0)
    assert y < -0.15
    assert place_names({}, around) == {}
