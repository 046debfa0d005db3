"""A simulated schedule names each request with the fields that distinguish it."""

from __future__ import annotations

import pytest

from rewindmq.protocol.code import SHORT_NAMED_REQUESTS, RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.testing.simulation.frame_names import _fields


@pytest.mark.parametrize("code", sorted(SHORT_NAMED_REQUESTS))
def test_requests_with_one_letter_fields_name_topic_and_queue(code: RequestCode) -> None:
    assert _fields(RemotingCommand(code, ext_fields={"b": "orders", "e": "2"})) == " (topic orders, queue 2)"


def test_one_letter_fields_of_other_requests_are_not_taken_for_a_topic() -> None:
    assert _fields(RemotingCommand(RequestCode.PULL_MESSAGE, ext_fields={"b": "orders"})) == ""
