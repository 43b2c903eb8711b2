"""How values show themselves: counts in words, and small tables in HTML for notebooks.

What comes from users is escaped and cut, so that a table has a bounded size whatever it shows.
There are no colours but those of the notebook, light or dark: only lines in a half-transparent
grey.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

MAX_ROWS = 20
MAX_TEXT = 300  # characters of a cell
MAX_UNBROKEN = 30  # characters that stay on one line

_TITLE = "margin:0.4em 0;overflow-wrap:anywhere"
_TABLE = "border-collapse:collapse;margin:0.4em 0"
_CELL = (
    "text-align:left;vertical-align:top;padding:0.2em 1em 0.2em 0;"
    "border-bottom:1px solid rgba(128,128,128,0.4);"
)
# Short texts stay on their line; where long ones have no spaces they break anywhere.
_SHORT, _LONG = "white-space:pre", "white-space:pre-wrap;overflow-wrap:anywhere"
# Control characters except tab and newline, marks that reverse the direction of text, and halves of
# surrogate pairs, which cannot be written as UTF-8.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def format_count(number: int, noun: str) -> str:
    """Return a number and its noun.

    >>> format_count(1, "query"), format_count(2000, "query"), format_count(0, "match")
    ('1 query', '2,000 queries', '0 matches')
    """
    if number == 1:
        return f"1 {noun}"
    # query → queries, match → matches, box → boxes; all others take an s.
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "es" * noun.endswith(("ch", "x"))
    return f"{number:,} {plural if plural != noun else noun + 's'}"


def render_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], total: int
) -> str:
    """Return a title and the first rows as a table; `total` is how many rows there are in all.

    >>> html = render_table("ids", ["id"], [["<b>"]], 1_000)
    >>> "&lt;b&gt;" in html, "… and 999 more" in html
    (True, True)
    """
    shown = list(islice(rows, MAX_ROWS))
    head = "".join(_write_cell("th", name) for name in columns)
    lines = ("".join(_write_cell("td", value) for value in row) for row in shown)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    rest = f"<div>… and {total - len(shown):,} more</div>" if total > len(shown) else ""
    return f"<div>{_write_title(title)}{table if shown else ''}{rest}</div>"


def render_fields(title: str, fields: Mapping[str, object]) -> str:
    """Return a title and a table of names and values; those that are empty or None are left out."""
    rows = [
        f"<tr>{_write_cell('th', name)}{_write_cell('td', value)}</tr>"
        for name, value in fields.items()
        if value not in (None, "")
    ]
    return (
        f'<div>{_write_title(title)}<table style="{_TABLE}"><tbody>{"".join(rows[:MAX_ROWS])}'
        "</tbody></table></div>"
    )


def _write_title(title: str) -> str:
    return f'<div style="{_TITLE}"><b>{_write_text(title)}</b></div>' if title else ""


def _write_cell(tag: str, value: object) -> str:
    text = str(value)
    wrap = _SHORT if len(text) <= MAX_UNBROKEN else _LONG
    return f'<{tag} style="{_CELL}{wrap}">{_write_text(text)}</{tag}>'


def _write_text(value: object) -> str:
    text = str(value)
    shown = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    return escape(_UNSAFE.sub("\ufffd", shown))
