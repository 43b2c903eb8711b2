"""Times in zones with summer time: a literal means what an attribute with its value means."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.predicate import evaluate
from headgate.schema import DATE, Attribute, Stream, Timestamp
from headgate.sql import parse_where

ZONES = ("Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia", "America/St_Johns")
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")

days = st.dates(date(1970, 1, 3), date(2100, 1, 1))
clocks = st.datetimes(datetime(1970, 1, 3), datetime(2100, 1, 1))


def stream(zone: str) -> Stream:
    return Stream("s", (Attribute("day", DATE), Attribute("at", Timestamp(zone))))


def midnight(day: date, zone: str) -> datetime:
    """When a day begins in a zone: the first minute whose local date is that day, or later.

    Minute by minute, since a day may begin twice: St. John's once set its clocks back at 00:01.
    """
    local, minute = ZoneInfo(zone), timedelta(minutes=1)
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=15)
    while moment.astimezone(local).date() < day:
        moment += minute
    return moment


@pytest.mark.parametrize("zone", ZONES)
@given(day=days, other=days)
@example(day=date(2018, 11, 4), other=date(2018, 11, 4))  # a day that began at 01:00 in São Paulo
@example(day=date(2024, 3, 31), other=date(2024, 3, 31))
@example(day=date(2011, 12, 30), other=date(2011, 12, 31))  # a day that Apia left out
def test_oracle_a_date_begins_at_local_midnight(zone: str, day: date, other: date) -> None:
    """A TIMESTAMP compared with a date is compared with the moment at which that date begins."""
    begins = midnight(day, zone)
    s = stream(zone)
    for moment in (begins, begins - timedelta(microseconds=1), midnight(other, zone)):
        row = {"day": day, "at": moment}
        for text in (f"at >= DATE '{day}'", "at >= day", f"at >= '{day}'"):
            assert evaluate(parse_where(text, s), row) is (moment >= begins), (text, moment)


@pytest.mark.parametrize("zone", ZONES)
@given(day=days, clock=clocks, operator=st.sampled_from(OPERATORS))
@example(day=date(2018, 11, 4), clock=datetime(2018, 11, 4, 1), operator="=")
@example(day=date(2011, 12, 30), clock=datetime(2011, 12, 31), operator="=")
@example(day=date(2011, 12, 31), clock=datetime(2011, 12, 31), operator="=")
def test_agree_literals_and_attributes(
    zone: str, day: date, clock: datetime, operator: str
) -> None:
    """`day < TIMESTAMP '…'` is what `day < at` is where `at` has that value, and so for dates."""
    s = stream(zone)
    moment = clock.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    for literal in (f"TIMESTAMP '{clock}'", f"TIMESTAMP '{moment.isoformat()}'"):
        row = {"day": day, "at": moment}
        by_literal = evaluate(parse_where(f"day {operator} {literal}", s), row)
        by_attribute = evaluate(parse_where(f"day {operator} at", s), row)
        assert by_literal is by_attribute, literal
    by_literal = evaluate(parse_where(f"at {operator} DATE '{day}'", s), row)
    assert by_literal is evaluate(parse_where(f"at {operator} day", s), row)


@pytest.mark.parametrize("zone", ZONES)
@given(day=days)
@example(day=date(2018, 11, 4))
@example(day=date(2011, 12, 30))  # a day that Apia left out
@example(day=date(2011, 12, 31))
@example(day=date(2000, 10, 29))  # a day that began twice in St. John's
def test_a_date_equals_its_own_beginning(zone: str, day: date) -> None:
    """The moment at which a date begins equals it, written as a literal in UTC too."""
    begins = midnight(day, zone)
    literal = begins.astimezone(UTC).isoformat()
    assert evaluate(parse_where(f"day = TIMESTAMP '{literal}'", stream(zone)), {"day": day}) is True
