"""What the members of a local cluster are called."""

from __future__ import annotations

from typing import Final

NAMESRV: Final = "namesrv"
MAX_BROKERS: Final = 26
MAX_SLAVES: Final = 3


def broker_names(count: int) -> list[str]:
    """``broker-a``, ``broker-b``, ..., at most ``MAX_BROKERS`` of them."""
    return [f"broker-{chr(ord('a') + index)}" for index in range(count)]


def slave_names(brokers: int, slaves: int) -> dict[str, tuple[str, int]]:
    """``broker-a-s1``, ...: the name of a slave's broker and its id, ``slaves`` of each of ``brokers``."""
    return {
        f"{name}-s{broker_id}": (name, broker_id)
        for name in broker_names(brokers)
        for broker_id in range(1, slaves + 1)
    }
