"""What the members of a local cluster are called."""

from __future__ import annotations

from typing import Final

NAMESRV: Final = "namesrv"
MAX_BROKERS: Final = 26


def broker_names(count: int) -> list[str]:
    """``broker-a``, ``broker-b``, ..., at most ``MAX_BROKERS`` of them."""
    return [f"broker-{chr(ord('a') + index)}" for index in range(count)]
