"""Times and durations as users write them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.moment import parse_duration, parse_moment

# 2026-03-01 12:30:00 UTC.
NOON = 1_772_368_200_000


@pytest.fixture(autouse=True)
def _a_zone_two_hours_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EAST-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0", 0),
        (str(NOON), NOON),
        ("2026-03-01T12:30:00Z", NOON),
        ("2026-03-01T12:30:00+00:00", NOON),
        ("2026-03-01T14:30:00", NOON),
        ("2026-03-01 14:30", NOON),
        (" 2026-03-01#14:30:00:000 ", NOON),
        ("2026-3-1#14:30:0:7", NOON + 7),
        ("2026-03-01T12:30:00.250Z", NOON + 250),
    ],
)
def test_a_time_is_milliseconds_or_mqadmins_form_or_iso_8601_local_unless_it_says_otherwise(
    text: str, moment: int
) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "12.5", "2026-02-30", "2026-03-01#25:00:00:000", "9" * 18, "٣", "1960-01-01"]
)
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(PipelineError) as raised:
        parse_moment(text)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "duration"),
    [("0", 0), ("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("12h", 43_200_000), ("7d", 604_800_000)],
)
def test_a_duration_is_a_number_and_its_unit(text: str, duration: int) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "5", "-1s", "1.5h", "h", "1w", "9" * 13 + "d"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(PipelineError) as raised:
        parse_duration(text)
    assert repr(text) in str(raised.value)
