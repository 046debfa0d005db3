"""The newest failure to make room for messages: its cause, and its line in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rewindmq.broker.store.errors import cause_of

_log = logging.getLogger(__name__)
# Every refused message fails; this many ms pass between two lines.
_LOG_INTERVAL_MS: Final = 10_000


class WriteFailure:
    """Why the store had no room for the newest message that it refused.

    Attributes:
        cause: path and reason; "" if the newest attempt to make room succeeded.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._logged_ms = -_LOG_INTERVAL_MS
        self._is_logged = False
        self.cause = ""

    def begin(self, error: OSError) -> None:
        """Record a failure."""
        self.cause = cause_of(error)
        now = self._now_ms()
        # A clock that was set back must not silence the log until it has caught up.
        if not 0 <= now - self._logged_ms < _LOG_INTERVAL_MS:
            self._logged_ms = now
            self._is_logged = True
            _log.error("messages are refused, the disk fails: %s", self.cause)

    def end(self) -> None:
        """Record a success."""
        self.cause = ""
        if self._is_logged:
            self._is_logged = False
            _log.info("messages are accepted again")
