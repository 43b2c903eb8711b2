"""One dict to the ordinals of its values, at the cost of the attributes that it has.

`batch_from_rows` works column by column, which pays for many rows. For one event most columns are
absent, so here it is the keys of the event that are looked up. Whatever is not certain (a key in
another case, an object on the way to an attribute, a value that does not fit) is left to
`batch_from_rows`, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headgate.events.attribute_paths import build_path_tree
from headgate.events.batch import UnfitValue
from headgate.events.conversion import make_python_rule
from headgate.schema import (
    Attribute,
    Boolean,
    DecimalType,
    Double,
    Integer,
    Ordinal,
    Stream,
    ValueSet,
)

MAX_IGNORED = 4_096  # keys that are remembered because they are no attributes

Read = Callable[[Any], Ordinal | None]


class DictReader:
    """A reader of single events for some attributes of a stream.

    >>> from headgate.schema import INT, STRING
    >>> trades = Stream("trades", (Attribute("qty", INT), Attribute("side", STRING)))
    >>> reader = DictReader(trades, trades.attributes)
    >>> reader.read({"qty": 3, "side": None, "at": 5})
    {'qty': 3}
    >>> reader.read({"QTY": 3}), reader.read({"qty": "three"})
    (None, None)
    """

    def __init__(self, stream: Stream, attributes: Sequence[Attribute]) -> None:
        self._readers: dict[str, tuple[type | None, Any, Any, Read]] = {
            a.name: (_find_ready_type(a), a.type.minimum, a.type.maximum, _make_read(a))
            for a in attributes
        }
        self._required = [a.name for a in attributes if not a.nullable]
        self._paths = build_path_tree(stream, attributes)
        self._ignored: set[str] = set()

    def read(self, event: Mapping[str, Any]) -> dict[str, Ordinal] | None:
        """Return the ordinal of each value by name, without NULLs; None if anything is in doubt."""
        ordinals: dict[str, Ordinal] = {}
        readers = self._readers
        for name, value in event.items():
            reader = readers.get(name)
            if reader is None:
                if name in self._ignored or self._is_ignored(name):
                    continue
                return None
            if value is None:
                continue
            ready, low, high, convert = reader
            # most values are numbers that need no conversion; a bool is no int here
            if type(value) is ready:
                number: Any = value
                if not low <= number <= high:
                    return None
                ordinals[name] = number
                continue
            try:
                ordinal = convert(value)
            except UnfitValue:
                return None
            if ordinal is not None:
                ordinals[name] = ordinal
        if any(name not in ordinals for name in self._required):
            return None
        return ordinals

    def _is_ignored(self, name: Any) -> bool:
        """Return whether a key leads to no attribute, and remember it."""
        if not isinstance(name, str):
            return True
        if name.lower() in self._paths:
            return False
        if len(self._ignored) < MAX_IGNORED:
            self._ignored.add(name)
        return True


def _find_ready_type(attribute: Attribute) -> type | None:
    """Return the Python type whose values are their own ordinals, if they need no other check."""
    if not attribute.domain.is_everything:
        return None
    return {Integer: int, Boolean: bool}.get(type(attribute.type))


def _make_read(attribute: Attribute) -> Read:
    """Return the function from any value to its ordinal; None for NULL."""
    convert, find_ordinal = make_python_rule(attribute).convert, _make_ordinal(attribute)
    domain: ValueSet | None = None if attribute.domain.is_everything else attribute.domain

    def read(value: Any) -> Ordinal | None:
        converted = convert(value)
        if converted is None:
            return None
        ordinal = find_ordinal(converted)
        if domain is not None and ordinal not in domain:
            raise UnfitValue("outside its CHECK")
        return ordinal

    return read


def _make_ordinal(attribute: Attribute) -> Callable[[Any], Ordinal]:
    """Return the function from what Arrow takes for the type to the ordinal of the value."""
    match attribute.type:
        case DecimalType() | Double() as type_:
            return type_.ordinal
        case Integer() | Boolean():
            return int
    # texts are their own ordinals, and so are days and microseconds
    return lambda value: value
