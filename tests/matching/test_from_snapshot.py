"""An index straight from a snapshot's arrays gives what one from its queries gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from headgate.matching.keyed import stored
from headgate.matching.keyed.index import KeyedIndex, build_from_snapshot
from headgate.matching.keyed.segment import Segment, build_segment
from headgate.matching.matches import Numbers
from headgate.queries import Query, QuerySet
from headgate.schema import INT, Attribute, Schema, Stream
from headgate.snapshot import open_current, publish
from headgate.snapshot.arrays import EncodedQueries
from headgate.testing.contract import lists, query
from headgate.testing.generate import every_type, random_rows, random_where


@pytest.mark.parametrize("swapped", [False, True])
def test_schemas_do_not_mix(tmp_path: Path, swapped: bool) -> None:
    """The first attribute of one is not that of the other, though the bases have equal bytes."""
    for names in (("x", "y"), ("y", "x"))[:: -1 if swapped else 1]:
        stream = Stream("s", tuple(Attribute(name, INT) for name in names))
        queries = [query(stream, f"q{n}", f"{names[0]} = {n}") for n in range(10)]
        root = tmp_path / names[0]
        publish(QuerySet(Schema((stream,)), queries), root)
        index = build_from_snapshot(open_current(root), stream)
        assert lists(index.match([{"x": 3, "y": 7}])) == [["q3" if names[0] == "x" else "q7"]]


def test_a_base_is_filed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a new version only the changes are filed, and the answers are those of its queries."""
    random, stream = Random(5), every_type()
    schema = Schema((stream,))
    queries: list[Query] = [
        query(stream, f"q{n}", random_where(random, stream)) for n in range(300)
    ]
    rows = random_rows(random, stream, 80)
    filed: list[int] = []

    def counted(encoded: EncodedQueries, positions: Numbers, schema: Schema) -> Segment:
        filed.append(len(encoded))
        return build_segment(encoded, positions, schema)

    monkeypatch.setattr(stored, "build_segment", counted)
    for step in range(4):
        snapshot = publish(QuerySet(schema, queries), tmp_path)
        index = build_from_snapshot(snapshot, stream)
        expected = KeyedIndex.build(stream, queries)
        assert lists(index.match(rows)) == lists(expected.match(rows))
        assert [q.id for q in index.queries_at(index.match(rows).positions[:5])]
        queries[10 * step] = query(stream, f"q{10 * step}", random_where(random, stream))
        del queries[100 + step]
        queries.insert(50, query(stream, f"new{step}", random_where(random, stream)))
    assert filed == [300]
