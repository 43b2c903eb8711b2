"""Values as JSON text from which they would be read back as they were."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def format_json(value: Any) -> str:
    """Return one line of JSON whose values read back as the events that they came from.

    A DECIMAL is a number with all of its digits, which `json` alone cannot write; NaN and the
    infinities, which JSON lacks, are strings.

    >>> format_json({"price": Decimal("99.50"), "day": date(2024, 2, 29), "ratio": math.nan})
    '{"price": 99.50, "day": "2024-02-29", "ratio": "NaN"}'
    """
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{format_json(str(k))}: {format_json(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_json(item) for item in value) + "]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    elif isinstance(value, date | datetime):
        value = value.isoformat()
    return json.dumps(value, ensure_ascii=False)
