"""A stream is named attributes with types and domains; a schema is streams and aggregates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate._display import render_table
from headgate.errors import UsageError, did_you_mean
from headgate.schema.types import Timestamp, Type
from headgate.schema.values import EVERYTHING, ValueSet

Category = Literal["distributive", "algebraic", "holistic"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named column of a stream.

    Attributes
    ----------
    name : str
        Its name; a dot leads into a nested struct.
    type : Type
        Its type, such as `headgate.schema.INT` or `DecimalType(10, 2)`.
    domain : ValueSet
        The values that its CHECK allows; NULL always passes.
    nullable : bool
        False for NOT NULL.

    Examples
    --------
    >>> from headgate.schema import INT, Attribute
    >>> Attribute("qty", INT, nullable=False).type.sql
    'INT'
    """

    name: str
    type: Type
    domain: ValueSet = EVERYTHING
    nullable: bool = True


@dataclass(frozen=True)
class Stream:
    """A named sequence of attributes, in order.

    Names ignore case, and a dot leads into a nested struct.

    Parameters
    ----------
    name : str
        The name of the stream.
    attributes : tuple of Attribute
        Its attributes, in the order of their declaration.

    Examples
    --------
    >>> from headgate.schema import INT, STRING, Attribute, Stream
    >>> trades = Stream("trades", (Attribute("symbol", STRING), Attribute("qty", INT)))
    >>> trades["QTY"].name, trades.get("price")
    ('qty', None)
    >>> [attribute.type.sql for attribute in trades]
    ['STRING', 'INT']
    """

    name: str
    attributes: tuple[Attribute, ...]
    _by_name: Mapping[str, Attribute] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Frozen, so the derived field is set through `object`. Names ignore case.
        by_name = {attribute.name.lower(): attribute for attribute in self.attributes}
        object.__setattr__(self, "_by_name", by_name)

    def get(self, name: str) -> Attribute | None:
        """Return the attribute of this name, whatever its case, or None.

        Parameters
        ----------
        name : str
            The name of an attribute.

        Returns
        -------
        Attribute or None
            The attribute, if there is one.
        """
        return self._by_name.get(name.lower())

    def __getitem__(self, name: str) -> Attribute:
        attribute = self.get(name)
        if attribute is None:
            hint = did_you_mean(name, self.names)
            raise UsageError(f"no attribute `{name}` in stream {self.name}; {hint}")
        return attribute

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    def __repr__(self) -> str:
        shown = [f"{attribute.name} {attribute.type.sql}" for attribute in self.attributes[:5]]
        more = len(self.attributes) - len(shown)
        return f"<Stream {self.name}: {', '.join([*shown, *[f'… {more:,} more'] * (more > 0)])}>"

    def _repr_html_(self) -> str:
        rows = (
            (
                attribute.name,
                attribute.type.sql,
                "" if attribute.nullable else "NOT NULL",
                "" if attribute.domain.is_everything else "CHECK",
            )
            for attribute in self.attributes
        )
        columns = ("attribute", "type", "", "")
        return render_table(f"stream {self.name}", columns, rows, len(self.attributes))

    def keep_checks_on(self, names: Collection[str]) -> Stream:
        """Return the same stream, in which only these attributes have a CHECK or NOT NULL.

        Parameters
        ----------
        names : collection of str
            The attributes that are still checked, as the stream spells them.

        Returns
        -------
        Stream
            A new stream; this one stays as it is.
        """
        attributes = (a if a.name in names else Attribute(a.name, a.type) for a in self)
        return Stream(self.name, tuple(attributes))


@dataclass(frozen=True, slots=True)
class DeclaredAggregate:
    """An aggregate that the user declares by CREATE AGGREGATE; Headgate does not compute it.

    With each new value, a *distributive* aggregate follows from its old result, as SUM does, an
    *algebraic* one from a synopsis of bounded size, as AVG from SUM and COUNT; a *holistic* one, as
    MEDIAN, may need all values. One that is not duplicate sensitive, as MAX, does not change when a
    value comes a second time. (Characterizing Memory Requirements for Queries over Continuous Data
    Streams, section 8.2.)
    """

    name: str
    argument: Type
    result: Type
    category: Category
    duplicate_sensitive: bool = True

    @property
    def zone(self) -> str:
        """The zone of its TIMESTAMPs; UTC where it has none."""
        zones = (t.zone for t in (self.argument, self.result) if isinstance(t, Timestamp))
        return next(zones, "UTC")


@dataclass(frozen=True)
class Schema:
    """The streams that queries may read, and the aggregates that the user declares.

    Parameters
    ----------
    streams : tuple of Stream
        The streams, in the order of their declaration; names ignore case.
    aggregates : tuple of DeclaredAggregate
        What CREATE AGGREGATE declares.

    Examples
    --------
    >>> from headgate.schema import INT, Attribute, Schema, Stream
    >>> schema = Schema((Stream("trades", (Attribute("qty", INT),)),))
    >>> schema.stream("TRADES").names
    ('qty',)
    >>> schema.stream("trade")
    Traceback (most recent call last):
        ...
    headgate.errors.UsageError: no stream `trade`; did you mean `trades`?
    """

    streams: tuple[Stream, ...] = ()
    aggregates: tuple[DeclaredAggregate, ...] = ()
    _by_name: Mapping[str, Stream] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {s.name.lower(): s for s in self.streams})

    def get(self, name: str) -> Stream | None:
        """Return the stream of this name, whatever its case, or None.

        Parameters
        ----------
        name : str
            The name of a stream.

        Returns
        -------
        Stream or None
            The stream, if there is one.
        """
        return self._by_name.get(name.lower())

    def stream(self, name: str | None = None) -> Stream:
        """Return the named stream, or the only one when no name is given.

        Parameters
        ----------
        name : str, optional
            The name, whatever its case; it may be left out where there is only one stream.

        Returns
        -------
        Stream
            The stream.

        Raises
        ------
        UsageError
            If there is no such stream, or no name is given and there are several.
        """
        if name is not None:
            stream = self.get(name)
            if stream is None:
                raise UsageError(f"no stream `{name}`; {did_you_mean(name, self.names)}")
            return stream
        # Without a name there must be no choice.
        if len(self.streams) != 1:
            names = ", ".join(self.names) or "none"
            raise UsageError(f"which stream? The schema has {names}; name one")
        return self.streams[0]

    def __iter__(self) -> Iterator[Stream]:
        return iter(self.streams)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the streams, in order."""
        return tuple(stream.name for stream in self.streams)

    def __repr__(self) -> str:
        return f"<Schema of {', '.join(self.names) or 'no streams'}>"

    def _repr_html_(self) -> str:
        rows = ((stream.name, ", ".join(stream.names)) for stream in self.streams)
        return render_table("schema", ("stream", "attributes"), rows, len(self.streams))

    def aggregate(self, name: str) -> DeclaredAggregate | None:
        """Return the declared aggregate of this name, whatever its case, or None.

        Parameters
        ----------
        name : str
            The name of an aggregate.

        Returns
        -------
        DeclaredAggregate or None
            The aggregate, if there is one.
        """
        return next((a for a in self.aggregates if a.name.lower() == name.lower()), None)

    def with_streams(self, streams: Iterable[Stream]) -> Schema:
        """Return a schema with these streams added.

        Parameters
        ----------
        streams : iterable of Stream
            Streams under names that are not taken.

        Returns
        -------
        Schema
            A new schema; this one stays as it is.
        """
        return Schema((*self.streams, *streams), self.aggregates)

    def with_aggregates(self, aggregates: Iterable[DeclaredAggregate]) -> Schema:
        """Return a schema with these aggregates added.

        Parameters
        ----------
        aggregates : iterable of DeclaredAggregate
            Aggregates under names that are not taken.

        Returns
        -------
        Schema
            A new schema; this one stays as it is.
        """
        return Schema(self.streams, (*self.aggregates, *aggregates))
