"""Generates unique message ids (property UNIQ_KEY) for producers, and for brokers of 5.x.

Specification: docs/spec/protocol.md 6.7.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from rewindmq.protocol.remoting.runtime import Runtime

# The low byte of the counter as text.
_HEX: Final = tuple(f"{number:02X}" for number in range(256))


class UniqueIdGenerator:
    """Generates the ids of one process, laid out as by RocketMQ's ``MessageClientIDSetter``.

    An id has the address, the process id, a number per generator (Java: the class loader's hash),
    milliseconds since the start of the month, and a 16-bit counter: 32 hex digits with an IPv4 address, 56
    with an IPv6 one.
    """

    def __init__(self, runtime: Runtime, ip: str) -> None:
        # Bound, because each message calls it: ``./scripts/bench --only send``.
        self._now_ms = runtime.clock.now_ms
        prefix = (
            ip_address(ip).packed
            + (os.getpid() & 0xFFFF).to_bytes(2, "big")
            + runtime.random.getrandbits(32).to_bytes(4, "big")
        )
        self._prefix = prefix.hex().upper()
        self._counter = 0
        self._month_start = 0
        self._month_end = 0
        # The id without the low byte of its counter, cached for one millisecond and 256 ids.
        self._stem = ""
        self._stem_ms = -1

    def next(self) -> str:
        """Return a new id, unique in this generator up to 65 536 ids per millisecond."""
        return self.next_at(self._now_ms())

    def next_at(self, now: int) -> str:
        """Like ``next``; ``now`` is the time in ms, for a caller that has just read the clock."""
        self._counter = counter = self._counter + 1 & 0xFFFF
        low = counter & 0xFF
        if now != self._stem_ms or not low:
            if not self._month_start <= now < self._month_end:
                self._enter_month(now)
            self._stem_ms = now
            self._stem = f"{self._prefix}{now - self._month_start:08X}{counter >> 8:02X}"
        return self._stem + _HEX[low]

    def _enter_month(self, now: int) -> None:
        start = datetime.fromtimestamp(now / 1000, UTC).replace(
            day=1, hour=0, minute=0, second=0, microsecond=0
        )
        end = (start + timedelta(days=32)).replace(day=1)
        self._month_start = int(start.timestamp()) * 1000
        self._month_end = int(end.timestamp()) * 1000
