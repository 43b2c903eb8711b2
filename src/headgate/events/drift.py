"""What events carry and their stream does not declare: ignored, but never in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headgate.events.batch import truncate_text
from headgate.events.paths import Node, RepeatedKeys, build_path_tree
from headgate.schema import Stream

MAX_NAMES = 100  # different names that a batch counts apart; where keys are data there is no end
MAX_NAME = 100  # characters of a name
OTHERS = "…"

Row = Mapping[str, Any] | RepeatedKeys


def count_undeclared_keys(stream: Stream, rows: Sequence[Row]) -> dict[str, int]:
    """How many rows have each key that is no attribute and not on the way to one.

    Rows with the same keys are counted together, so that the cost is one look at each row.

    >>> from headgate.schema import INT, Attribute
    >>> quote = Stream("s", (Attribute("bid.size", INT),))
    >>> undeclared_keys(quote, [{"Bid": {"size": 1, "by": 2}}, {"x": {"y": 1}, "bid.SIZE": 3}])
    {'x': 1, 'bid.by': 1}
    """
    counts: Counter[str] = Counter()
    plain = [dict(row) if isinstance(row, RepeatedKeys) else row for row in rows]
    _count_keys(build_path_tree(stream, stream), plain, "", counts)
    return limit_names(counts)


def _count_keys(
    nodes: Mapping[str, Node], rows: Sequence[Mapping[str, Any]], prefix: str, counts: Counter[str]
) -> None:
    inside: dict[str, Node] = {}
    for keys, times in Counter(map(tuple, rows)).items():
        for key in keys:
            node = nodes.get(key.lower()) if isinstance(key, str) else None
            if node is None:
                counts[f"{prefix}{key}"] += times
            elif node.inside:
                inside[key] = node
    for key, node in inside.items():
        given = (row.get(key) for row in rows)
        objects = [
            dict(value) if isinstance(value, RepeatedKeys) else value
            for value in given
            if isinstance(value, Mapping | RepeatedKeys)
        ]
        _count_keys(node.inside, objects, f"{node.name}.", counts)


def find_undeclared_columns(stream: Stream, schema: pa.Schema) -> list[str]:
    """The columns, and the fields of structs, that are no attribute and not on the way to one.

    >>> from headgate.schema import INT, Attribute
    >>> quote = Stream("s", (Attribute("bid.size", INT),))
    >>> bid = pa.struct({"size": pa.int32(), "by": pa.string()})
    >>> undeclared_columns(quote, pa.schema({"BID": bid, "at": pa.date32()}))
    ['bid.by', 'at']
    """
    if all(stream.get(name) for name in schema.names):
        return []
    return list(_iter_undeclared_fields(build_path_tree(stream, stream), list(schema), ""))


def _iter_undeclared_fields(
    nodes: Mapping[str, Node], fields: Sequence[pa.Field[Any]], prefix: str
) -> Iterator[str]:
    for field in fields:
        node = nodes.get(field.name.lower())
        if node is None:
            yield f"{prefix}{field.name}"
        elif node.inside and isinstance(field.type, pa.StructType):
            yield from _iter_undeclared_fields(node.inside, list(field.type), f"{node.name}.")


def limit_names(counts: Mapping[str, int]) -> dict[str, int]:
    """The most frequent names; the others together under `…`.

    >>> limited({"a": 2, "b": 0})
    {'a': 2}
    """
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])
    shown: Counter[str] = Counter()
    for place, (name, times) in enumerate(ranked):
        shown[truncate_text(name, MAX_NAME) if place < MAX_NAMES else OTHERS] += times
    return {name: times for name, times in shown.items() if times}
