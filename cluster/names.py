"""Names of a local cluster's processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NAMESRV: Final = "namesrv"
CLUSTER: Final = "DefaultCluster"
MAX_BROKERS: Final = 26
MAX_SLAVES: Final = 3
# A RocketMQ broker also uses the ports beside its own (VIP channel: -2, HA: +1).
_BROKER_PORT_STEP: Final = 10


def broker_names(count: int) -> list[str]:
    """Return ``broker-a``, ``broker-b``, ...; ``count`` is at most ``MAX_BROKERS``."""
    return [f"broker-{chr(ord('a') + index)}" for index in range(count)]


def slave_names(brokers: int, slaves: int) -> dict[str, tuple[str, int]]:
    """Return the slaves' names (``broker-a-s1``, ...), each with its broker's name and its broker id."""
    return {
        f"{name}-s{broker_id}": (name, broker_id)
        for name in broker_names(brokers)
        for broker_id in range(1, slaves + 1)
    }


def spread_ports(names: Iterable[str], first: int) -> dict[str, int]:
    """Return each broker's port: ``first`` and each next one 10 higher, or 0 (any free port) for all."""
    return {name: first and first + index * _BROKER_PORT_STEP for index, name in enumerate(names)}
