"""The limits of connections, in all and from one address, at the bound and beyond."""

from __future__ import annotations

import logging

import pytest

from rewindmq.protocol.limits import MAX_CONNECTIONS
from rewindmq.protocol.remoting.accept.limit import ConnectionLimit, connection_limit


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_the_last_permitted_connection_is_admitted_and_the_next_is_not() -> None:
    limit = ConnectionLimit(3, 3, Clock().monotonic)
    assert [limit.admit(f"10.0.0.{number}:1") for number in range(4)] == [True, True, True, False]
    limit.release("10.0.0.0:1")
    assert limit.count == 2
    assert limit.admit("10.0.0.9:1")


def test_one_address_takes_its_share_and_leaves_the_rest_to_others() -> None:
    limit = ConnectionLimit(4, 2, Clock().monotonic)
    assert [limit.admit(f"10.0.0.1:{port}") for port in range(3)] == [True, True, False]
    assert limit.admit("[::1]:1")
    limit.release("10.0.0.1:0")
    assert limit.admit("10.0.0.1:7")


def test_counts_are_empty_when_all_connections_are_gone() -> None:
    limit = ConnectionLimit(100, 100, Clock().monotonic)
    addresses = [f"10.0.0.{number}:{number}" for number in range(50)]
    assert all(map(limit.admit, addresses))
    for address in addresses:
        limit.release(address)
    assert limit.count == 0
    assert not limit._counts


def test_refusals_are_logged_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    limit = ConnectionLimit(1, 1, clock.monotonic)
    limit.admit("10.0.0.1:1")
    for second in range(21):
        clock.now = float(second)
        for _ in range(100):
            limit.admit("10.0.0.2:1")
    assert len(caplog.messages) == 3
    assert caplog.messages[0].startswith(
        "connection of 10.0.0.2:1 refused: 1 are open (serverMaxConnections)"
    )


@pytest.mark.parametrize(
    ("maximum", "per_address", "expected"),
    [(None, None, (1_000, 500)), (10, None, (10, 5)), (10, 10, (10, 10)), (1, None, (1, 1))],
)
def test_defaults_follow_from_what_the_descriptors_permit(
    maximum: int | None, per_address: int | None, expected: tuple[int, int]
) -> None:
    limit = connection_limit(1_000, maximum, per_address, Clock().monotonic)
    assert (limit.maximum, limit.maximum_per_address) == expected


def test_the_default_has_an_end_which_the_key_may_exceed() -> None:
    assert connection_limit(10**6, None, None, Clock().monotonic).maximum == MAX_CONNECTIONS
    assert connection_limit(10**6, 10**6, None, Clock().monotonic).maximum == 10**6


def test_more_than_the_descriptors_permit_is_cut_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert connection_limit(1_000, 1_001, None, Clock().monotonic).maximum == 1_000
    assert caplog.messages == ["serverMaxConnections = 1001, but the open files permit 1000 (ulimit -Hn)"]
