"""Frozen dataclasses that are made by the million."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def set_slots_directly(cls: type[T]) -> type[T]:
    """Give a frozen dataclass with slots an `__init__` that is a third faster, and does the same.

    The one that `dataclass` writes sets every field by `object.__setattr__`, which looks its name
    up. This one calls the slots themselves. It takes no default factories.

    >>> from dataclasses import dataclass
    >>> @set_slots_directly
    ... @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(3), Point(y=1, x=2)
    (Point(x=3, y=0), Point(x=2, y=1))
    """
    names: dict[str, Any] = {}
    parameters, body = ["self"], []
    for field in fields(cls):  # type: ignore[arg-type]
        assert field.init, field.name
        assert field.default_factory is MISSING, field.name
        names[f"set_{field.name}"] = cls.__dict__[field.name].__set__
        names[f"default_{field.name}"] = field.default
        default = "" if field.default is MISSING else f"=default_{field.name}"
        parameters.append(f"{field.name}{default}")
        body.append(f"set_{field.name}(self, {field.name})")
    # as `dataclass` does: the names of the fields are those of the parameters
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(body), names)
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    names["__init__"].__annotations__ = cls.__init__.__annotations__
    setattr(cls, "__init__", names["__init__"])  # noqa: B010 - to mypy, methods never change
    return cls
