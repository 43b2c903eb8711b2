"""CSV after RFC 4180: records of fields, where a quoted field may hold separators and newlines.

An unquoted empty field is NULL and a quoted one is the empty STRING. The standard module cannot
tell them apart, and Arrow's reader knows neither the line of a record nor the text of a bad one, so
a small scanner stands here. A quote inside an unquoted field is refused, not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import EventError
from headgate.events.assemble import assemble, fill
from headgate.events.batch import (
    BOM,
    MAX_RECORD,
    DeadLetter,
    EventBatch,
    raw_text,
    used_attributes,
)
from headgate.events.convert import Quoted, text_rule
from headgate.schema import Stream


@dataclass(frozen=True, slots=True)
class CsvRecord:
    """A record, the line on which it starts, and its fields; a blank line has no fields.

    `raw` is the text as it stands, cut when it is too long. `problem` says why there are no fields
    when there should be.
    """

    line: int
    raw: bytes
    fields: Sequence[str] = ()
    problem: str = ""
