"""Makes `data/` next to this file, orders and payments of a sale, and runs `pipeline.toml` on them.

    python examples/payments/run.py [--days N] [--prepare-only]

There is a file of JSON lines for each day and stream. What a day's file of payments has may belong
to orders of the days around it. Everything follows from a seed, and what an earlier run left in
`data/` is removed first.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
FIRST = date(2026, 6, 1)
DAYS = 30
ORDERS = 400  # a day
SEED = 2026
COUNTRIES = {"DE": 9, "FR": 6, "IT": 5, "NL": 3, "AT": 2, "CH": 2}
TIERS = {"basic": 7, "plus": 2, "business": 1}
METHODS = {"card": 6, "wallet": 3, "transfer": 1}
# in how many of a hundred orders
CANCELLED, CANCELLED_LATE, REFUSED, TYPED_WRONG, REFUNDED, NEXT_DAY = 5, 2, 6, 1, 2, 4

Event = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="Join the orders and payments of a sale.")
    parser.add_argument("--days", type=int, default=DAYS, choices=range(1, DAYS + 1), metavar="N")
    parser.add_argument("--prepare-only", action="store_true", help="write data/, run nothing")
    options = parser.parse_args()
    print(prepare(DATA, options.days))
    if not options.prepare_only:
        from headgate.cli.app import main as headgate

        sys.argv = ["headgate", "run", str(HERE / "pipeline.toml"), "--format", "table"]
        headgate()


def prepare(data: Path, days: int) -> str:
    """Write the events of so many days; return what was done."""
    shutil.rmtree(data, ignore_errors=True)
    dice = random.Random(SEED)
    late: list[Event] = []
    counts = {"orders": 0, "payments": 0}
    for number in range(days):
        day = FIRST + timedelta(days=number)
        events, late = _make_day(day, number, late, dice)
        # There is no next day after the last one, so its late payments are in its own file.
        if number == days - 1:
            events["payments"] += late
        for stream, of_stream in events.items():
            counts[stream] += len(of_stream)
            _write(data / stream / f"{day}.jsonl", of_stream)
    return f"{counts['orders']:,} orders and {counts['payments']:,} payments of {days} days"


def _make_day(
    day: date, number: int, late: list[Event], dice: random.Random
) -> tuple[dict[str, list[Event]], list[Event]]:
    """Return what is in the files of a day, and the payments that come a day later."""
    orders, payments, later = list[Event](), list(late), list[Event]()
    for of_day in range(1, ORDERS + 1):
        order = _make_order(number * ORDERS + of_day, day, of_day, dice)
        orders.append(order)
        paid = list(_make_payments(order, dice))
        # A cancelled order comes a second time. Most are cancelled before they are paid.
        if dice.randrange(100) < CANCELLED:
            orders.append(order | {"status": "cancelled"})
            if dice.randrange(100) >= 100 * CANCELLED_LATE // CANCELLED:
                paid = []  # in time
        (later if dice.randrange(100) < NEXT_DAY else payments).extend(paid)
    dice.shuffle(payments)
    return {"orders": orders, "payments": payments}, later


def _make_order(order_id: int, day: date, number: int, dice: random.Random) -> Event:
    tier = _choose(TIERS, dice)
    cents = round(dice.lognormvariate(8.5 if tier == "business" else 7.5, 1.1)) + 100
    # Orders are spread evenly over the day, by their number.
    placed = datetime(day.year, day.month, day.day) + timedelta(
        seconds=number * 86_400 // (ORDERS + 1)
    )
    return {
        "order_id": order_id,
        "day": f"{day}",
        "number": number,
        "status": "placed",
        "country": _choose(COUNTRIES, dice),
        "tier": tier,
        "amount": cents / 100,
        "placed": f"{placed}",
    }


def _make_payments(order: Event, dice: random.Random) -> Iterator[Event]:
    """Yield what is paid for an order: mostly what it costs, sometimes at the second try."""
    at = datetime.fromisoformat(order["placed"]) + timedelta(seconds=dice.randrange(20, 3_000))
    paid = {key: order[key] for key in ("order_id", "day", "number")} | {
        "outcome": "paid",
        "method": _choose(METHODS, dice),
        "amount": order["amount"],
        "at": f"{at}",
    }
    if dice.randrange(100) < REFUSED:
        yield paid | {"outcome": "refused"}
        paid["at"] = f"{at + timedelta(minutes=2)}"
    # A digit too many: ten times the amount.
    if dice.randrange(100) < TYPED_WRONG:
        paid["amount"] = round(10 * order["amount"], 2)
    yield paid
    if dice.randrange(100) < REFUNDED:
        yield paid | {"outcome": "refunded", "at": f"{at + timedelta(days=1)}"}


def _choose(weights: dict[str, int], dice: random.Random) -> str:
    return dice.choices(list(weights), list(weights.values()))[0]


def _write(file: Path, events: list[Event]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")


if __name__ == "__main__":
    main()
