"""Parsing and formatting of times in the admin commands (docs/spec/reset.md D.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.client.admin.timestamp import format_milliseconds, format_seconds, parse_reset_timestamp
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.profile import RELEASES, Profile

NOW = 1_700_000_000_123


@pytest.mark.parametrize(("profile", "expected"), [(Profile.V42, NOW), (Profile.V49, -1), (Profile.V53, NOW)])
def test_now_means_the_current_time_or_the_end_by_profile(profile: Profile, expected: int) -> None:
    assert parse_reset_timestamp("now", profile, NOW) == expected


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [("-1", -1), ("0", 0), (" 1700000000123 ", NOW), ("9223372036854775807", 2**63 - 1)],
)
def test_milliseconds_are_parsed(profile: Profile, text: str, expected: int) -> None:
    assert parse_reset_timestamp(text, profile, NOW) == expected


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-14#22:13:20:123", NOW),
        ("2023-11-14#22:13:20:5", 1_700_000_000_005),
        ("1970-01-01#00:00:00:000", 0),
    ],
)
def test_dates_are_parsed(text: str, expected: int) -> None:
    assert parse_reset_timestamp(text, Profile.V49, 0) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-2",
        "+1",
        "1.5",
        "1e3",
        "NOW",
        "tomorrow",
        "9223372036854775808",
        "9" * 5000,
        "٣",
        "2023-11-14",
        "2023-11-14 22:13:20:123",
        "2023-13-14#22:13:20:123",
        "2023-02-30#22:13:20:123",
        "2023-11-14#24:13:20:123",
        "0000-01-01#00:00:00:000",
        "2023-11-14#22:13:20:1234",
    ],
)
def test_any_other_text_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(ClientError, match="yyyy-MM-dd#HH:mm:ss:SSS"):
        parse_reset_timestamp(text, Profile.V49, NOW)


@settings(derandomize=True, deadline=None)
@given(st.text(max_size=30))
def test_every_text_is_parsed_or_refused(text: str) -> None:
    try:
        value = parse_reset_timestamp(text, Profile.V49, NOW)
    except ClientError:
        return
    assert -1 <= value < 2**63


@pytest.mark.usefixtures("utc")
@settings(derandomize=True, deadline=None)
@given(st.integers(0, 4_102_444_800_000))
def test_a_formatted_time_parses_to_the_same_time(timestamp: int) -> None:
    printed = format_milliseconds(timestamp)
    assert printed.startswith(format_seconds(timestamp))
    typed = printed.replace(" ", "#").replace(",", ":")
    assert parse_reset_timestamp(typed, Profile.V49, 0) == timestamp
