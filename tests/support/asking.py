"""The one method that helpers for requests are built on."""

from __future__ import annotations

from typing import Protocol

from rewindmq.protocol.command import Body, CommandHeader, ExtValue, RemotingCommand

# A second no test reaches: for limits that must not be what ends a wait.
NEVER = 1e9


class Asking(Protocol):
    """Whoever sends one request and returns its response."""

    async def ask(
        self,
        code: int,
        header: CommandHeader | None = None,
        body: Body = None,
        *,
        timeout: float = NEVER,
        **fields: ExtValue,
    ) -> RemotingCommand:
        """Send one request, with further ext fields by name, and return its response.

        Args:
            timeout: seconds of protocol time.
        """
        ...
