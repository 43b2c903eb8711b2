"""The picture of a query's comparisons: what is in it, how it is laid out, and that it is drawn."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from headgate.errors import UsageError
from headgate.plots.memory import draw_comparisons, plot_comparisons
from headgate.plots.memory_geometry import ColumnLayout, make_edge_line, make_limit_line
from headgate.plots.memory_graph import PredicateGraph, build_predicate_graph
from headgate.plots.memory_layout import Slot, Slots, compute_cost, compute_places, order_slots
from headgate.schema import Schema
from headgate.sql import Script
from headgate.stateful.analysis.verdict import Verdict, check_memory

STREAMS = """
CREATE STREAM S (A INT, B INT, C INT);
CREATE STREAM T (D INT, E INT);
CREATE STREAM S1 (A INT, B INT, C INT, D INT);
CREATE STREAM S2 (E INT, F INT, G INT);
CREATE STREAM S3 (H INT, I INT, J INT);
CREATE STREAM typed (
    day DATE, at TIMESTAMP, price DOUBLE, cost DECIMAL(9, 2), flag BOOLEAN, known BOOLEAN,
    side STRING CHECK (side IN ('buy', 'sell')), word STRING, top INT, many INT, some INT
);
CREATE STREAM names (
    a_very_long_name_of_an_attribute_that_nobody_would_ever_type INT, `größe` INT, `价格` INT,
    `a$b$` INT, `نام` INT
);
"""
QUERIES = {
    "q2": "SELECT A FROM S, T WHERE A = D",
    "q4": "SELECT A FROM S, T WHERE B < D AND A = 10",
    "q5d": "SELECT DISTINCT A FROM S, T WHERE B < D AND C < E AND A = 10",
    "q6": "SELECT A FROM S, T WHERE B < D AND C < E AND B < E AND C < D AND A = 10",
    "q7": "SELECT A FROM S, T WHERE B < D AND D > 10 AND B < 20 AND A = 10",
    "figure 1": """SELECT DISTINCT F FROM S1, S2, S3
        WHERE G < C AND G < B AND C < B AND H < A AND A < D AND 10 < E AND E < F AND F < 20
        AND J < F AND H < I""",
    "figure 3": """SELECT DISTINCT F FROM S1, S2, S3
        WHERE G < C AND C < B AND H < A AND A < D AND 10 < E AND E < F AND F < 20
        AND H < I AND I < J AND J > 5""",
    "maximum": "SELECT MAX(A) FROM S, T WHERE B < D",
    "groups": "SELECT D, MAX(B), MIN(B), COUNT(*) FROM S, T WHERE D < B AND D IN (1, 4) GROUP BY D",
    "unknown": "SELECT AVG(A) FROM S, T WHERE B < D AND A = 10",
    "window": "SELECT x.A FROM last_rows(S, 100) AS x, T WHERE x.A = T.D AND T.E <= x.B",
    "one window": "SELECT A FROM last_rows(S, 1) WHERE A < B",
    "implied": """SELECT S1.A FROM S1, S2, S3
        WHERE S1.A = 10 AND B < C AND C < E AND E < F AND F < H""",
    "squeezed": "SELECT S.C FROM S, T WHERE S.C = 1 AND A <= D AND D <= B AND B <= A",
    "self-join": "SELECT DISTINCT x.A FROM S x, S y WHERE x.B < y.B AND x.C < y.C AND x.A = 10",
    "either": "SELECT D FROM S, T WHERE (A < D AND B = 3 OR A > E AND B > 4) AND D = 3",
    "both bounded": "SELECT D FROM S, T WHERE A <> D AND D = 3",
    "NULL": "SELECT S.C FROM S, T WHERE A IS NULL AND C < D AND C = 3",
    "star": "SELECT * FROM S, T",
    "never": "SELECT A FROM S, T WHERE A > D AND D > A",
    "types": """SELECT DISTINCT flag FROM typed
        WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-02-01'
        AND at < TIMESTAMP '2024-01-01 12:00:00' AND price > 1.5 AND cost >= 12.5 AND known
        AND side = side AND word LIKE 'b%' AND word LIKE '%x' AND top = 2147483647
        AND many IN (1, 3, 5, 7, 9) AND some <> 5 AND price < CAST('Infinity' AS DOUBLE)""",
    "names": """SELECT DISTINCT y.`نام` FROM names AS `an alias of a length beyond all measure`,
        names AS y WHERE `an alias of a length beyond all measure`.`a$b$` < y.`价格`
        AND `an alias of a length beyond all measure`.`größe`
            <= y.a_very_long_name_of_an_attribute_that_nobody_would_ever_type
        AND y.`نام` = 1""",
    "empty box": "SELECT S1.A FROM S1, S2, S3 WHERE S1.A = 10 AND H < S1.B",
}  # fmt: skip


MANY_ALTERNATIVES = "SELECT S.A FROM S, T WHERE " + " AND ".join(
    f"(A < D AND B = {number} OR A > E AND C = {number})" for number in range(12)
)


def verdict_on(select: str, streams: str = STREAMS) -> Verdict:
    script = Script(Schema())
    *_, query = script.read(f"{streams} CREATE QUERY q AS {select}")
    return check_memory(query)  # type: ignore[arg-type]


def graph_of(name: str) -> PredicateGraph:
    return build_predicate_graph(verdict_on(QUERIES[name]))


def large(streams: int, attributes: int, comparisons: int) -> Verdict:
    """A query of so many comparisons, all of which hold of one hidden assignment."""
    numbers = random.Random(1)
    names = [f"r{s}.c{s}{a}" for s in range(streams) for a in range(attributes)]
    hidden = {name: numbers.random() for name in names}
    result: set[str] = set()
    while len(result) < comparisons:
        low, high = sorted(numbers.sample(names, 2), key=hidden.__getitem__)
        result.add(f"{low} {numbers.choice(('<', '<='))} {high}")
    declared = "".join(
        f"CREATE STREAM r{s} ({', '.join(f'c{s}{a} INT' for a in range(attributes))});"
        for s in range(streams)
    )
    sources = ", ".join(f"r{s}" for s in range(streams))
    where = " AND ".join(sorted(result))
    return verdict_on(
        f"SELECT DISTINCT r0.c00 FROM {sources} WHERE r0.c00 = 3 AND {where}", declared
    )


def key(graph: PredicateGraph, node: int) -> str:
    return f"{graph.boxes[graph.nodes[node].source].alias}.{graph.nodes[node].name}"


def comparisons(graph: PredicateGraph, *, guilty: bool = False) -> set[str]:
    """All edges, or only those at fault, as text."""
    return {
        f"{key(graph, edge.smaller)} {edge.operator} {key(graph, edge.greater)}"
        for edge in graph.edges
        if edge.is_guilty or not guilty
    }


def guilty_nodes(graph: PredicateGraph) -> set[str]:
    return {key(graph, n) for n, node in enumerate(graph.nodes) if node.is_guilty}


def constants(graph: PredicateGraph) -> set[str]:
    return {
        f"{key(graph, limit.node)} {limit.constant.operator} {limit.constant.text}"
        for limit in graph.limits
    }


class TestGraph:
    def test_edges_lead_to_the_greater_side_and_constants_are_as_written(self) -> None:
        graph = graph_of("figure 1")
        assert comparisons(graph) == {
            *("S2.G < S1.C", "S2.G < S1.B", "S1.C < S1.B", "S3.H < S1.A", "S1.A < S1.D"),
            *("S2.E < S2.F", "S3.J < S2.F", "S3.H < S3.I"),
        }
        assert constants(graph) == {"S2.E > 10", "S2.F < 20"}
        assert [box.alias for box in graph.boxes] == ["S1", "S2", "S3"]
        bounded = {key(graph, n) for n, node in enumerate(graph.nodes) if node.bounded}
        assert bounded == {"S2.E", "S2.F"}

    def test_constants_of_all_types(self) -> None:
        graph = graph_of("types")
        assert constants(graph) == {
            *("typed.day >= 2024-01-01", "typed.day <= 2024-02-01"),
            *(
                "typed.at < 2024-01-01 12:00:00Z",
                "typed.price > 1.5",
                "typed.price < Infinity",
                "typed.cost >= 12.5",
            ),
            *("typed.known = TRUE", "typed.side IN 'buy', 'sell'", "typed.word >= 'b'"),
            *("typed.word < 'c'", "typed.top = 2147483647", "typed.many IN 1, 3, 5, 7, …"),
        }
        assert "word LIKE '%x'" in graph.left_out

    @pytest.mark.parametrize(
        ("name", "edges", "nodes"),
        [
            ("q2", set(), {"S.A"}),
            ("q4", {"S.B < T.D"}, set()),
            ("q5d", {"S.B < T.D", "S.C < T.E"}, set()),
            ("q7", set(), set()),
            ("maximum", {"S.B < T.D"}, {"S.A"}),
            ("window", {"x.A = T.D"}, set()),
            ("implied", {"S1.B < S1.C", "S1.C < S2.E"}, set()),
            ("squeezed", {"S.A <= T.D", "T.D <= S.B", "S.B <= S.A"}, set()),
            ("unknown", {"S.B < T.D"}, set()),
            ("self-join", {"x.B < y.B", "x.C < y.C"}, set()),
            ("star", set(), {"S.A"}),
        ],
    )
    def test_what_is_at_fault(self, name: str, edges: set[str], nodes: set[str]) -> None:
        graph = graph_of(name)
        assert comparisons(graph, guilty=True) == edges
        assert guilty_nodes(graph) == nodes
        assert graph.is_guilty == bool(edges or nodes)

    def test_outputs_are_groups_and_what_aggregates_see(self) -> None:
        graph = graph_of("groups")
        outputs = {key(graph, n): node for n, node in enumerate(graph.nodes) if node.is_output}
        assert {name: node.roles for name, node in outputs.items()} == {
            "S.B": ("MAX", "MIN"),
            "T.D": (),
        }

    def test_boxes_know_windows_and_aliases(self) -> None:
        (windowed, other) = graph_of("window").boxes
        assert (windowed.alias, windowed.stream, windowed.rows) == ("x", "S", 100)
        assert other.rows is None
        assert [box.alias for box in graph_of("self-join").boxes] == ["x", "y"]

    def test_the_alternative_at_fault_is_shown_or_else_the_first(self) -> None:
        either = graph_of("either")
        assert comparisons(either) == {"T.E < S.A"}
        assert either.sentence.endswith("Alternative 2 of 2 of its condition.")
        assert graph_of("both bounded").sentence == "Alternative 1 of 2 of its condition."
        assert "lternative" not in graph_of("q6").sentence

    def test_the_title_is_the_verdict(self) -> None:
        assert graph_of("q7").headline == "q needs only bounded memory"
        assert graph_of("q4").headline == "q: its memory keeps growing"
        assert graph_of("q4").sentence.endswith("and nothing limits how many there are.")
        assert graph_of("unknown").headline == "q: cannot tell whether its memory keeps growing"
        assert " But the aggregate may not depend on" in graph_of("unknown").sentence

    def test_a_contradiction_is_drawn_as_it_is(self) -> None:
        graph = graph_of("never")
        assert graph.headline == "q is never TRUE"
        assert comparisons(graph) == {"T.D < S.A", "S.A < T.D"}
        assert not graph.is_guilty

    def test_a_contradiction_of_filters_is_drawn_too(self) -> None:
        where = "(A < B OR C = 1) AND A >= B AND C = 2"
        graph = build_predicate_graph(verdict_on(f"SELECT DISTINCT A FROM S WHERE {where}"))
        assert graph.headline == "q is never TRUE"
        assert comparisons(graph) == {"S.A < S.B", "S.B <= S.A"}

    def test_what_is_null_is_left_out(self) -> None:
        assert graph_of("NULL").left_out == ("S.A IS NULL",)

    @pytest.mark.parametrize(
        ("select", "said"),
        [
            (
                MANY_ALTERNATIVES,
                "q cannot be drawn: as an OR of ANDs the condition has 4,096 alternatives",
            ),
            ("SELECT A FROM S WHERE A > 3", "q is a filter"),
            (
                "SELECT S.A FROM S, T WHERE A > 3 AND A < 2",
                "q is never TRUE, by conditions on single",
            ),
        ],
    )
    def test_what_cannot_be_drawn_is_said(self, select: str, said: str, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=said):
            plot_comparisons(verdict_on(select), tmp_path / "it.png")


def shuffled(slots: Slots, seed: int) -> list[list[Slot]]:
    numbers = random.Random(seed)
    return [numbers.sample(column, len(column)) for column in slots.make_first_order()]


class TestLayout:
    def test_no_crossings_where_none_are_needed_and_arrows_in_a_box_point_up(self) -> None:
        graph = graph_of("figure 3")
        slots = Slots(graph)
        order = order_slots(slots)
        place = {slot.node: at for column in order for at, slot in enumerate(column)}
        inside = [
            e for e in graph.edges if graph.nodes[e.smaller].source == graph.nodes[e.greater].source
        ]
        assert all(place[edge.smaller] < place[edge.greater] for edge in inside)
        assert compute_cost(slots, order) <= 1

    def test_much_better_than_by_chance(self) -> None:
        slots = Slots(build_predicate_graph(large(6, 8, 60)))
        chance = min(compute_cost(slots, shuffled(slots, seed)) for seed in range(10))
        assert compute_cost(slots, order_slots(slots)) < chance / 5

    def test_a_single_edge_is_level(self) -> None:
        graph = build_predicate_graph(
            verdict_on("SELECT A FROM S, T WHERE A = D AND A < 5 AND A > 2")
        )
        columns = ColumnLayout(graph, compute_places(graph))
        heights = {round(y, 3) for _, y in make_edge_line(columns, 0).points}
        assert len(heights) == 1

    def test_attributes_without_edges_stand_as_in_their_stream(self) -> None:
        graph = graph_of("star")
        (first, _) = order_slots(Slots(graph))
        assert [graph.nodes[slot.node].name for slot in reversed(first)] == ["A", "B", "C"]

    def test_nothing_overlaps(self) -> None:
        result = compute_places(build_predicate_graph(large(6, 8, 60)))
        for column in order_slots(result.slots):
            for lower, upper in pairwise(column):
                gap = result.middle[upper] - result.middle[lower]
                assert gap > (result.heights[upper] + result.heights[lower]) / 2

    def test_ends_of_edges_lie_on_their_node_apart_from_each_other(self) -> None:
        graph = build_predicate_graph(large(4, 4, 30))
        result = compute_places(graph)
        for node, attribute in enumerate(graph.nodes):
            slot = Slot(attribute.source, node)
            for side in ("left", "right"):
                at = sorted(y for (n, s, _), y in result.ports.items() if (n, s) == (node, side))
                assert all(abs(y - result.middle[slot]) <= result.heights[slot] / 2 for y in at)
                assert all(high - low > 0.1 for low, high in pairwise(at))

    def test_lines_run_from_the_smaller_to_the_greater_side(self) -> None:
        graph = graph_of("q6")
        columns = ColumnLayout(graph, compute_places(graph))
        for number, edge in enumerate(graph.edges):
            line = make_edge_line(columns, number)
            assert line.points[0][0] == columns.all[graph.nodes[edge.smaller].source].nodes[1]
            assert line.points[-1][0] == columns.all[graph.nodes[edge.greater].source].nodes[0]
            assert line.sign == "<"

    def test_signs_are_read_from_left_to_right(self) -> None:
        graph = build_predicate_graph(
            verdict_on("SELECT A FROM S, T WHERE D <= A AND E > 4 AND E < 9")
        )
        columns = ColumnLayout(graph, compute_places(graph))
        assert make_edge_line(columns, 0).sign == ">="
        assert [make_limit_line(columns, limit).sign for limit in graph.limits] == ["<", "<"]

    def test_the_layout_is_always_the_same(self) -> None:
        one, other = (
            ColumnLayout(g, compute_places(g))
            for g in (build_predicate_graph(large(4, 4, 30)) for _ in "ab")
        )
        assert one.places.middle == other.places.middle
        assert one.all == other.all


class TestPicture:
    @pytest.mark.parametrize("name", QUERIES)
    def test_every_kind_of_query_is_drawn(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "it.png"
        plot_comparisons(verdict_on(QUERIES[name]), path)
        assert path.read_bytes().startswith(b"\x89PNG")
        assert 5_000 < path.stat().st_size < 150_000

    def test_a_large_query_is_drawn(self, tmp_path: Path) -> None:
        path = tmp_path / "it.png"
        plot_comparisons(large(6, 8, 60), path)
        assert path.stat().st_size < 1_000_000
        width, height = draw_comparisons(build_predicate_graph(large(6, 8, 60))).get_size_inches()
        assert width < 25
        assert height < 20

    def test_too_large_a_query_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="q has too many comparisons to be drawn"):
            plot_comparisons(large(10, 10, 500), tmp_path / "it.png")

    def test_the_same_query_gives_the_same_file(self, tmp_path: Path) -> None:
        for name in ("one.png", "other.png"):
            plot_comparisons(verdict_on(QUERIES["figure 1"]), tmp_path / name)
        assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()

    def test_the_ending_decides(self, tmp_path: Path) -> None:
        plot_comparisons(verdict_on(QUERIES["q4"]), tmp_path / "it.svg")
        assert "<svg" in (tmp_path / "it.svg").read_text()
        with pytest.raises(UsageError, match="give it such an ending"):
            plot_comparisons(verdict_on(QUERIES["q4"]), tmp_path / "it.gif")
