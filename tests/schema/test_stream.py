"""Streams and schemas find what they are asked for, or say what there is."""

from __future__ import annotations

import pytest

from headgate.errors import Position, UsageError, did_you_mean, shorten
from headgate.schema import INT, STRING, Attribute, Schema, Stream

TRADES = Stream("trades", (Attribute("price", INT), Attribute("client.name", STRING)))
QUOTES = Stream("quotes", (Attribute("bid", INT),))


def test_attributes_ignore_case() -> None:
    """An attribute is found whatever its case, and keeps the name it was declared with."""
    assert TRADES["PRICE"].name == "price"
    assert TRADES["Client.Name"].type == STRING
    assert TRADES.get("bid") is None
    assert TRADES.names == ("price", "client.name")


def test_unknown_attribute_has_a_hint() -> None:
    """The error names the stream and the nearest attribute."""
    with pytest.raises(
        UsageError, match="no attribute `prise` in stream trades; did you mean `price`"
    ):
        TRADES["prise"]


def test_the_only_stream() -> None:
    """A schema with one stream needs no name; with several the error lists them."""
    assert Schema((TRADES,)).stream() is TRADES
    both = Schema((TRADES,)).with_streams((QUOTES,))
    assert both.stream("QUOTES") is QUOTES
    with pytest.raises(UsageError, match=r"which stream\? The schema has trades, quotes"):
        both.stream()
    with pytest.raises(UsageError, match="no stream `quote`; did you mean `quotes`"):
        both.stream("quote")
    with pytest.raises(UsageError, match="The schema has none"):
        Schema().stream()


@pytest.mark.parametrize(
    "text, offset, place",
    [
        ("abc", 0, "1:1"),
        ("abc", 2, "1:3"),
        ("a\nbc", 1, "1:2"),
        ("a\nbc", 2, "2:1"),
        ("", 0, "1:1"),
    ],
)
def test_positions(text: str, offset: int, place: str) -> None:
    """Lines and columns count from 1, and a newline belongs to the line that it ends."""
    assert str(Position.of(text, offset)) == f"<text>:{place}"


def test_positions_inside_a_file() -> None:
    """A text that begins inside a file moves its first line by columns and all by lines."""
    start = Position("x.sql", 10, 5)
    assert str(Position(None, 1, 3).after(start)) == "x.sql:10:7"
    assert str(Position(None, 2, 3).after(start)) == "x.sql:11:3"


def test_hints() -> None:
    """A close name is offered; otherwise a few are listed, and their number."""
    assert did_you_mean("PRICES", ["price", "side"]) == "did you mean `price`?"
    assert did_you_mean("zzz", []) == "there are none"
    many = [f"attribute_{n}" for n in range(9)]
    assert did_you_mean("zzz", many).endswith("`attribute_5` and 3 more")


def test_shortening() -> None:
    """Offending text is shown on one line, and never at length."""
    assert shorten("a  >\n 3") == "a > 3"
    assert len(shorten("x" * 10_000)) == 60
    assert shorten("x" * 10_000).endswith("…")
