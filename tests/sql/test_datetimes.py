"""Dates and times as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.schema import TIMESTAMP, Timestamp
from headgate.sql.literals import parse_date, parse_timestamp


@given(st.dates())
def test_dates_round_trip(day: date) -> None:
    """Every date is read from its ISO form."""
    assert parse_date(day.isoformat()) == day


@given(
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-9, minutes=-30))]))
)
def test_clocks_round_trip(moment: datetime) -> None:
    """Every moment is read from its ISO form, to the microsecond, with its offset or without."""
    assert parse_timestamp(moment.isoformat()) == moment
    assert parse_timestamp(moment.isoformat(sep=" ")) == moment
    assert (parse_timestamp(moment.isoformat()).tzinfo is None) == (moment.tzinfo is None)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2024-02-29", datetime(2024, 2, 29)),
        ("2024-2-9 1:05", datetime(2024, 2, 9, 1, 5)),
        ("2024-02-29T12:30:15.5", datetime(2024, 2, 29, 12, 30, 15, 500_000)),
        ("2024-02-29 12:30:15.123456000", datetime(2024, 2, 29, 12, 30, 15, 123_456)),
        ("2024-02-29 12:30:15Z", datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC)),
        ("2024-02-29 12:30:15 UTC", datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC)),
        ("2024-02-29 12:30+01", datetime(2024, 2, 29, 11, 30, tzinfo=UTC)),
        ("2024-02-29 12:30-0930", datetime(2024, 2, 29, 22, 0, tzinfo=UTC)),
    ],
)
def test_accepted_forms(text: str, expected: datetime) -> None:
    """Times may leave out seconds, fractions and offsets."""
    assert parse_timestamp(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2024-13-01",
        "2024-02-30",
        "2023-02-29",
        "24-02-01",
        "2024-02-29 25:00",
        "2024-02-29 12:60",
        "2024-02-29 12:30:15.1234567",
        "2024-02-29 12:30+99:00",
        "2024-02-29 12:30 CET",
        "٢٠٢٤-02-29",
        " 2024-02-29",
    ],
)
def test_refused_forms(text: str) -> None:
    """Times that do not exist, are too fine, or are written otherwise are refused."""
    with pytest.raises(ValueError):
        parse_timestamp(text)
    with pytest.raises(ValueError):
        parse_date(text)


def test_moments_in_a_zone() -> None:
    """A clock time is read in the zone of its type; an offset in the text wins."""
    berlin = Timestamp("Europe/Berlin")
    noon = datetime(2024, 7, 1, 12)
    assert berlin.moment(noon) == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert TIMESTAMP.moment(noon) == datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert berlin.moment(noon.replace(tzinfo=UTC)) == datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert berlin.midnight(date(2024, 7, 1)) == TIMESTAMP.ordinal(datetime(2024, 6, 30, 22))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "UTC"])
def test_the_ends_of_time(zone: str) -> None:
    """The first and the last date have a midnight in every zone."""
    type_ = Timestamp(zone)
    first, last = type_.midnight(date.min), type_.midnight(date.max)
    assert first < type_.midnight(date(1, 1, 3))
    assert last > type_.midnight(date(9999, 12, 29))
