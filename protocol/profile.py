"""Which RocketMQ release a process imitates where releases differ (``behaviour.md`` D.10)."""

from __future__ import annotations

from enum import StrEnum


class Profile(StrEnum):
    """One released behaviour. Each part derives its own switches from it."""

    V42 = "v42"
    V49 = "v49"
    V53 = "v53"
