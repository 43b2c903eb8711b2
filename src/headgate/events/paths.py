"""Where an attribute stands in an object: under its name in any case, or down a dotted path.

`a.b` is found in {"a": {"b": 1}} and under the flat key "a.b". A path whose beginning is itself an
attribute is found under the flat key only. What is given twice has no value that we could trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.events.reasons import UnfitValue, show_value
from headgate.schema import Attribute, Stream


class RepeatedKeys(list[tuple[str, Any]]):
    """The pairs of an object in which a key stands twice; a dict would have lost one of them."""


@dataclass(frozen=True, slots=True)
class Node:
    """A place in an object: an attribute, or, when it has `inside`, an object on the way to one."""

    name: str
    inside: dict[str, Node] = field(default_factory=dict)


def build_path_tree(stream: Stream, attributes: Iterable[Attribute]) -> dict[str, Node]:
    """The places of these attributes by lower-case key.

    >>> from headgate.schema import INT
    >>> quote = Stream("s", (Attribute("bid.Size", INT),))
    >>> sorted(paths(quote, quote))
    ['bid', 'bid.size']
    """
    root: dict[str, Node] = {}
    for attribute in attributes:
        parts = attribute.name.split(".")
        root[attribute.name.lower()] = Node(attribute.name)
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
    """Collect the values of a row by the declared names; is each of its keys on the way to one?

    >>> from headgate.schema import INT
    >>> quote = Stream("s", (Attribute("bid.Size", INT),))
    >>> found: dict[str, Any] = {}
    >>> find(paths(quote, quote), {"BID": {"size": 3, "x": 4}}, found), found["bid.Size"]
    (False, 3)
    """
    expected = True
    for key, value in row if isinstance(row, RepeatedKeys) else row.items():
        node = nodes.get(key.lower()) if isinstance(key, str) else None
        if node is None:
            expected = False
            continue
        if node.name in values:
            raise UnfitValue(f"attribute `{node.name}` given twice")
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

    `strange` when some key might be none that the stream declares: then it is worth a closer look.
    """

    values: Sequence[Sequence[Any]]
    problems: Mapping[int, str]
    has_unknown_keys: bool


def locate_columns(
    stream: Stream, attributes: Sequence[Attribute], rows: Sequence[Mapping[str, Any] | RepeatedKeys]
) -> LocatedColumns:
    """Where the attributes stand in the rows.

    Most rows have each key as declared, and such a row is already what `find` would make of it:
    then a single test of its keys suffices.
    """
    root = build_path_tree(stream, attributes)
    nested = any(node.inside for node in root.values())
    known = set() if nested else {attribute.name for attribute in attributes}
    plain: list[Mapping[str, Any]] = []
    reasons: dict[int, str] = {}
    expected = True
    for number, row in enumerate(rows):
        if type(row) is dict and (known.issuperset(row) or _has_only_unknown_keys(row, known, root)):
            plain.append(row)
            continue
        row_values: dict[str, Any] = {}
        try:
            expected &= collect_values(root, row, row_values)
            plain.append(row_values)
        except UnfitValue as reason:
            plain.append({})
            reasons[number] = str(reason)
    values = [[row.get(a.name) for row in plain] for a in attributes]
    strange = not expected or bool(reasons) or not known.issubset(stream.names)
    return LocatedColumns(values, reasons, strange)


def _has_only_unknown_keys(row: Mapping[str, Any], known: set[str], root: Mapping[str, Node]) -> bool:
    """Are the unknown keys of the row no attribute's in another case? Then remember them."""
    strange = [key for key in row if key not in known]
    if any(not isinstance(key, str) or key.lower() in root for key in strange):
        return False
    known.update(strange)
    return True
