"""Where an attribute stands in an object: under its name in any case, or down a dotted path.

`a.b` is found in {"a": {"b": 1}} and under the flat key "a.b". A path whose beginning is itself an
attribute is found under the flat key only. What is given twice has no value that we could trust.
What events carry and their stream does not declare is ignored, but never in silence: it is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.events.batch import UnfitValue, show_value, truncate_text
from headgate.schema import Attribute, Stream


class RepeatedKeys(list[tuple[str, Any]]):
    """The pairs of an object in which a key stands twice; a dict would have lost one of them."""


@dataclass(frozen=True, slots=True)
class Node:
    """A place in an object: an attribute, or, when it has `inside`, an object on the way to one."""

    name: str
    inside: dict[str, Node] = field(default_factory=dict)


def build_path_tree(stream: Stream, attributes: Iterable[Attribute]) -> dict[str, Node]:
    """Return the places of these attributes by lower-case key.

    >>> from headgate.schema import INT
    >>> quote = Stream("s", (Attribute("bid.Size", INT),))
    >>> sorted(build_path_tree(quote, quote))
    ['bid', 'bid.size']
    """
    root: dict[str, Node] = {}
    for attribute in attributes:
        parts = attribute.name.split(".")
        root[attribute.name.lower()] = Node(attribute.name)
        # The proper beginnings of the path: for a.b.c these are a and a.b. Where one is an
        # attribute itself, the nested form is ambiguous and only the flat key counts.
        starts = [".".join(parts[: depth + 1]) for depth in range(len(parts) - 1)]
        if starts and not any(stream.get(start) for start in starts):
            at = root
            for part, start in zip(parts, starts, strict=False):
                at = at.setdefault(part.lower(), Node(start)).inside
            at[parts[-1].lower()] = Node(attribute.name)
    return root


def collect_values(
    nodes: Mapping[str, Node], row: Mapping[str, Any] | RepeatedKeys, values: dict[str, Any]
) -> bool:
    """Collect the values of a row by name; return whether each of its keys leads to an attribute.

    >>> from headgate.schema import INT
    >>> quote = Stream("s", (Attribute("bid.Size", INT),))
    >>> tree, values = build_path_tree(quote, quote), {}
    >>> collect_values(tree, {"BID": {"size": 3, "x": 4}}, values), values["bid.Size"]
    (False, 3)
    """
    expected = True
    # All pairs of an object with a repeated key count, so that the second one is noticed.
    for key, value in row if isinstance(row, RepeatedKeys) else row.items():
        node = nodes.get(key.lower()) if isinstance(key, str) else None
        if node is None:
            expected = False
            continue
        if node.name in values:
            raise UnfitValue(f"attribute `{node.name}` given twice")
        # Set before looking inside, so that a second key for the same place is noticed even if this
        # is NULL.
        values[node.name] = None
        if not node.inside:
            values[node.name] = value
        elif type(value) is dict or isinstance(value, Mapping | RepeatedKeys):
            expected &= collect_values(node.inside, value, values)
        elif value is not None:
            raise UnfitValue(f"`{node.name}` is {show_value(value)}, not an object")
    return expected


@dataclass(frozen=True, slots=True)
class LocatedColumns:
    """The raw values of each attribute, and the rows where an attribute's place is in doubt.

    `has_unknown_keys` says that some key may be undeclared; only then are they counted.
    """

    values: Sequence[Sequence[Any]]
    problems: Mapping[int, str]
    has_unknown_keys: bool


def locate_columns(
    stream: Stream,
    attributes: Sequence[Attribute],
    rows: Sequence[Mapping[str, Any] | RepeatedKeys],
) -> LocatedColumns:
    """Return the raw values of the attributes, wherever the rows have them.

    Most rows have each key as declared, and such a row is already what `collect_values` would make
    of it: then a single test of its keys suffices.
    """
    root = build_path_tree(stream, attributes)
    nested = any(node.inside for node in root.values())
    # Keys that need no search: attributes exactly as declared, to which undeclared keys are added
    # as they are met. Where attributes are nested, every row is searched.
    known_keys = set() if nested else {attribute.name for attribute in attributes}
    plain: list[Mapping[str, Any]] = []
    reasons: dict[int, str] = {}
    expected = True
    for number, row in enumerate(rows):
        if type(row) is dict and (
            known_keys.issuperset(row) or _has_only_unknown_keys(row, known_keys, root)
        ):
            plain.append(row)
            continue
        row_values: dict[str, Any] = {}
        try:
            expected &= collect_values(root, row, row_values)
            plain.append(row_values)
        except UnfitValue as reason:
            # The row becomes a dead letter. An empty object keeps the rows after it in their
            # places.
            plain.append({})
            reasons[number] = str(reason)
    values = [[row.get(a.name) for row in plain] for a in attributes]
    # Keys may be undeclared if one led nowhere in a search, if a search failed midway, or if an
    # undeclared one was added to the known keys.
    strange = not expected or bool(reasons) or not known_keys.issubset(stream.names)
    return LocatedColumns(values, reasons, strange)


def _has_only_unknown_keys(
    row: Mapping[str, Any], known_keys: set[str], root: Mapping[str, Node]
) -> bool:
    """Return whether no unknown key is an attribute in another case; if so, remember them all."""
    strange = [key for key in row if key not in known_keys]
    if any(not isinstance(key, str) or key.lower() in root for key in strange):
        return False
    known_keys.update(strange)
    return True


MAX_NAMES = 100  # different names that a batch counts apart; where keys are data there is no end
MAX_NAME = 100  # characters of a name
OTHERS = "…"

Row = Mapping[str, Any] | RepeatedKeys


def count_undeclared_keys(stream: Stream, rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows that have each key that is no attribute and not on the way to one.

    Rows with the same keys are counted together, so that the cost is one look at each row.

    >>> from headgate.schema import INT, Attribute
    >>> quote = Stream("s", (Attribute("bid.size", INT),))
    >>> rows = [{"Bid": {"size": 1, "by": 2}}, {"x": {"y": 1}, "bid.SIZE": 3}]
    >>> count_undeclared_keys(quote, rows)
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
    # One look for each different tuple of keys, not for each row.
    for keys, times in Counter(map(tuple, rows)).items():
        for key in keys:
            node = nodes.get(key.lower()) if isinstance(key, str) else None
            if node is None:
                counts[f"{prefix}{key}"] += times
            elif node.inside:
                inside[key] = node
    # What lies on the way to an attribute is counted one level down, by the keys as rows have them.
    for key, node in inside.items():
        values = (row.get(key) for row in rows)
        objects = [
            dict(value) if isinstance(value, RepeatedKeys) else value
            for value in values
            if isinstance(value, Mapping | RepeatedKeys)
        ]
        _count_keys(node.inside, objects, f"{node.name}.", counts)


def find_undeclared_columns(stream: Stream, schema: pa.Schema) -> list[str]:
    """Return the columns and fields of structs that are no attribute and not on the way to one.

    >>> from headgate.schema import INT, Attribute
    >>> quote = Stream("s", (Attribute("bid.size", INT),))
    >>> bid = pa.struct({"size": pa.int32(), "by": pa.string()})
    >>> find_undeclared_columns(quote, pa.schema({"BID": bid, "at": pa.date32()}))
    ['bid.by', 'at']
    """
    if all(stream.get(name) for name in schema.names):
        return []
    return list(_iter_undeclared_fields(build_path_tree(stream, stream), list(schema), ""))


def _iter_undeclared_fields(
    nodes: Mapping[str, Node], fields: Sequence[pa.Field[Any]], prefix: str
) -> Iterator[str]:
    for column in fields:
        node = nodes.get(column.name.lower())
        if node is None:
            yield f"{prefix}{column.name}"
        elif node.inside and isinstance(column.type, pa.StructType):
            yield from _iter_undeclared_fields(node.inside, list(column.type), f"{node.name}.")


def limit_names(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of the most frequent names; of the others together under `…`.

    >>> limit_names({"a": 2, "b": 0})
    {'a': 2}
    """
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])
    shown: Counter[str] = Counter()
    for place, (name, times) in enumerate(ranked):
        shown[truncate_text(name, MAX_NAME) if place < MAX_NAMES else OTHERS] += times
    return {name: times for name, times in shown.items() if times}
