"""Patterns of frames as text."""

from __future__ import annotations

import pytest

from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.race.proxy.pattern_text import format_pattern, parse_pattern
from tests.race.proxy.venue import COMMIT, NOTICE, PULL


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (
            "PULL_MESSAGE response queueId=0 skip=1",
            FramePattern(PULL, Form.RESPONSE, fields={"queueId": "0"}, skip=1),
        ),
        ("RESET_CONSUMER_CLIENT_OFFSET", FramePattern(NOTICE)),
        (
            "PULL_MESSAGE client=billing/2 server=broker-a group=G",
            FramePattern(PULL, fields={"group": "G"}, client="billing/2", server="broker-a"),
        ),
        (
            "UPDATE_CONSUMER_OFFSET oneway count=all blocks",
            FramePattern(COMMIT, Form.ONEWAY, count=None, blocks=True),
        ),
        ("PULL_MESSAGE response answer=21", FramePattern(PULL, Form.RESPONSE, response_code=21)),
    ],
)
def test_patterns_are_read_and_written(text: str, pattern: FramePattern) -> None:
    assert parse_pattern(text) == pattern
    assert format_pattern(pattern) == text


def test_patterns_may_use_numbers_and_names() -> None:
    assert parse_pattern("11 answer=PULL_OFFSET_MOVED") == parse_pattern("pull_message response answer=21")


_DIGITS = "1" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PULL",
        "99999",
        "PULL_MESSAGE skip=x",
        "PULL_MESSAGE what",
        _DIGITS,
        f"PULL_MESSAGE skip={_DIGITS}",
        f"PULL_MESSAGE answer={_DIGITS}",
        "PULL_MESSAGE request answer=0",
        "PULL_MESSAGE answer=0 oneway",
        "PULL_MESSAGE request response",
    ],
    ids=lambda text: text[:30],
)
def test_an_error_in_a_pattern_is_named(text: str) -> None:
    with pytest.raises(RaceError, match="in the pattern"):
        parse_pattern(text)
