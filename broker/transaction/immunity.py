"""The immunity time of a half message, during which the broker does not check it."""

from __future__ import annotations

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import CHECK_IMMUNITY_TIME_IN_SECONDS

# Upper limit of an immunity, about 32 years: no log is that old.
_MAX_SECONDS = 10**9


def own_immunity_ms(half: MessageExt, default_ms: int) -> int | None:
    """Return the message's own immunity, ms.

    None if the message does not set it; ``default_ms`` if the value is not a number.

    RocketMQ 4.9.4 ``TransactionalMessageServiceImpl#getImmunityTime``.
    """
    text = half.properties.get(CHECK_IMMUNITY_TIME_IN_SECONDS)
    if text is None:
        return None
    seconds = _parse_long(text)
    return default_ms if seconds is None or seconds == -1 else min(seconds, _MAX_SECONDS) * 1_000


def ended_too_late(half: MessageExt, age_ms: float, default_ms: int) -> bool:
    """Return True if a commit or rollback now is after the message's own immunity.

    Source: 5.3.3 ``rejectCommitOrRollback``.

    Args:
        age_ms: age since the born timestamp, protocol milliseconds.
    """
    own = own_immunity_ms(half, default_ms)
    return own is not None and age_ms > max(own, default_ms)


def _parse_long(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    return int(text)
