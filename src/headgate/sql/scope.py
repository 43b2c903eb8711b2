"""The names that a query can see: the attributes of the streams in its FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headgate.errors import did_you_mean
from headgate.predicate import Column
from headgate.schema import Stream, Timestamp


class NameProblem(ValueError):
    """A name without a meaning here; carries a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass
class Scope:
    """Streams by alias. With a single stream, columns carry no alias."""

    sources: tuple[tuple[str, Stream], ...]
    resolved: dict[str, Column] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(stream: Stream) -> Scope:
        """Return the scope of a query on one stream."""
        return Scope(((stream.name, stream),))

    @cached_property
    def zone(self) -> str:
        """The zone of clock times without an offset: that of the first stream that has any."""
        zones = (stream_zone(stream) for _, stream in self.sources)
        return next((zone for zone in zones if zone != "UTC"), "UTC")

    def resolve(self, parts: Sequence[str]) -> Column:
        """Return the column that a dotted name means, the alias before it optional."""
        name = ".".join(parts)
        known = self.resolved.get(name)
        if known is None:
            known = self.resolved[name] = self._resolve(parts, name)
        return known

    def _resolve(self, parts: Sequence[str], name: str) -> Column:
        # Each stream is asked for the whole name, and for the rest of it where its alias comes
        # first. A set, since both may lead to the same column.
        columns = {
            column
            for alias, stream in self.sources
            for column in (
                self._find(alias, stream, name),
                self._find(alias, stream, ".".join(parts[1:]))
                if len(parts) > 1 and parts[0].lower() == alias.lower()
                else None,
            )
            if column is not None
        }
        if len(columns) > 1:
            choices = " or ".join(sorted(f"`{column.key}`" for column in columns))
            raise NameProblem(f"`{name}` is ambiguous", f"write {choices}")
        if not columns:
            self._raise_unknown(parts, name)
        return columns.pop()

    def _find(self, alias: str, stream: Stream, name: str) -> Column | None:
        attribute = stream.get(name)
        if attribute is None:
            return None
        source = alias if len(self.sources) > 1 else ""
        return Column(attribute.name, attribute.type, source)

    def _raise_unknown(self, parts: Sequence[str], name: str) -> None:
        # A name behind an alias is looked for in that stream only.
        for alias, stream in self.sources:
            if len(parts) > 1 and parts[0].lower() == alias.lower():
                name = ".".join(parts[1:])
                hint = did_you_mean(name, stream.names)
                raise NameProblem(f"no attribute `{name}` in stream {stream.name}", hint)
        names = [attribute for _, stream in self.sources for attribute in stream.names]
        streams = ", ".join(stream.name for _, stream in self.sources)
        plural = "streams" if len(self.sources) > 1 else "stream"
        hint = did_you_mean(name, names)
        raise NameProblem(f"no attribute `{name}` in {plural} {streams}", hint)


def stream_zone(stream: Stream) -> str:
    """Return the zone in which a stream's clock times are read; UTC where it has none."""
    zones = (a.type.zone for a in stream if isinstance(a.type, Timestamp))
    return next(zones, "UTC")
