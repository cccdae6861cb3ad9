"""Instants, durations and ticks read as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from cepheid.report.time_axis import DAY, HOUR, MINUTE, SECOND, TimeScale

CLOCK = TimeScale(UTC)
TICKS = TimeScale(None)


def test_numbers_of_times():
    moment = datetime(2006, 6, 27, 10, 2, 14, tzinfo=UTC)
    number = CLOCK.number(moment)
    assert CLOCK.moment(number) == moment
    assert CLOCK.number(moment.replace(tzinfo=None)) == number
    assert CLOCK.number(timedelta(hours=1)) == HOUR
    assert TICKS.number(17) == 17
    with pytest.raises(TypeError):
        TICKS.number("soon")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1500, "1.5 ms"),
        (3 * SECOND, "3 s"),
        (90 * SECOND, "1 min 30 s"),
        (HOUR, "1 h"),
        (DAY + 5 * HOUR + 59 * MINUTE, "1 d 5 h"),
    ],
)
def test_durations(number, text):
    assert CLOCK.duration(number) == text


def test_instants():
    number = CLOCK.number(datetime(2006, 6, 27, 10, 2, 14, 123456, tzinfo=UTC))
    assert CLOCK.instant(number) == "10:02:14"
    assert CLOCK.instant(number, precision=MINUTE) == "10:02"
    assert CLOCK.instant(number, precision=1000) == "10:02:14.123"
    assert CLOCK.instant(number, precision=1) == "10:02:14.123456"
    assert CLOCK.instant(number, with_date=True) == "27 Jun 10:02:14"
    assert TimeScale(ZoneInfo("Asia/Tokyo")).instant(number) == "19:02:14"


@pytest.mark.parametrize("span", [7, 950, SECOND, 50 * MINUTE, 9 * HOUR, 3 * DAY, 800 * DAY])
@pytest.mark.parametrize("scale", [CLOCK, TICKS])
@pytest.mark.parametrize("elapsed", [True, False])
def test_ticks_are_few_inside_and_even(span, scale, elapsed):
    low = 0 if elapsed else 1_151_402_534_000_123
    ticks = scale.ticks(low, low + span, 8, elapsed=elapsed)
    positions = [position for position, _ in ticks]
    assert 1 <= len(positions) <= 9
    assert all(low <= position <= low + span for position in positions)
    assert len({b - a for a, b in pairwise(positions)}) <= 1
    assert len({label for _, label in ticks}) == len(ticks)


def test_hours_are_round_in_the_zone_of_the_data():
    scale = TimeScale(ZoneInfo("Asia/Kolkata"))  # half an hour off the full hours of Greenwich
    low = scale.number(datetime(2006, 6, 27, 3, 10, tzinfo=UTC))
    labels = [label for _, label in scale.ticks(low, low + 5 * HOUR, 5, elapsed=False)]
    assert labels == ["09:00", "10:00", "11:00", "12:00", "13:00"]
