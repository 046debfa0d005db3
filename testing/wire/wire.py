"""Wire: the proxies between a test's clients and the servers, and the faults that the test has made."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final, Protocol

from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Lab
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.proxy.frame_rule import FrameRules
from rewindmq.race.proxy.outlet import LinkCondition, worst_of
from rewindmq.race.proxy.pattern import is_called
from rewindmq.testing.wire.passed import Passed

# Name of the clients that use ``rmq.namesrv_address``.
APPLICATION: Final = "application"


class Fault(Protocol):
    """A fault of a test, from its construction on."""

    def settle(self) -> None:
        """End the fault at the end of the test: pass on held frames, and make links whole."""

    def complaint(self) -> str | None:
        """Return why the test fails because of this fault; None if it does not."""

    @property
    def holds_frames(self) -> bool:
        """True if frames are held that the test must release."""


class Wire:
    """One proxy for each client, between it and all servers; they share rules.

    Args:
        runtime: of the cluster's time scale.
        namesrv_address: of the real name server.

    Attributes:
        faults: all faults that the test has constructed.
    """

    def __init__(self, runtime: Runtime, namesrv_address: str) -> None:
        self.rules = FrameRules(runtime.timers)
        self.passed = Passed()
        self.faults: list[Fault] = []
        self._runtime = runtime
        self._upstream = namesrv_address
        self._proxies: dict[str, FrameProxy] = {}
        self._opening = asyncio.Lock()
        self._numbers: Counter[str] = Counter()
        # Server, client (None: all) and condition of each fault on links, by an object of the fault's own.
        self._conditions: dict[object, tuple[str, str | None, LinkCondition]] = {}

    @property
    def clients(self) -> list[str]:
        """Names of the clients that have an entrance."""
        return list(self._proxies)

    async def next_entrance(self, name: str) -> str:
        """Open the entrance of one more client of this name: ``billing/1``, ``billing/2``."""
        self._numbers[name] += 1
        return await self.entrance(f"{name}/{self._numbers[name]}")

    async def entrance(self, client: str, port: int = 0) -> str:
        """Return the address that a client uses as the name server's; open it at the first call.

        Args:
            port: of the first call; 0 takes any free one.

        Raises:
            OSError: the port cannot be bound.
        """
        async with self._opening:
            if client not in self._proxies:
                await self._open(client, port)
        return self._proxies[client].address

    def set_condition(self, owner: object, server: str, client: str | None, condition: LinkCondition) -> None:
        """Add a condition to the links of a server, to all clients or to one.

        Args:
            owner: the key for ``remove_condition``.
        """
        self._conditions[owner] = (server, client, condition)
        self._apply_to_all(server)

    def remove_condition(self, owner: object) -> None:
        """Remove what ``set_condition`` added; do nothing if it is gone."""
        gone = self._conditions.pop(owner, None)
        if gone is not None:
            self._apply_to_all(gone[0])

    def settle(self) -> list[Fault]:
        """End all faults, so that the test's clients can stop; return those that held frames."""
        holding = [fault for fault in self.faults if fault.holds_frames]
        for fault in self.faults:
            fault.settle()
        return holding

    def complaints(self) -> list[str]:
        """Return why the test fails because of its faults."""
        texts = [fault.complaint() for fault in self.faults]
        return [text for text in texts if text is not None]

    async def close(self) -> None:
        """Close all connections."""
        for proxy in self._proxies.values():
            await proxy.close()

    async def _open(self, client: str, port: int) -> None:
        def record(kind: Lab, _: str, details: dict[str, Any]) -> None:
            if kind is Lab.FRAME_SENT:
                self.passed.add(client, details)

        proxy = FrameProxy(
            self._runtime, self._upstream, record, client_name=client, port=port, rules=self.rules
        )
        # A client may start while the test keeps the name server down.
        await proxy.listen()
        self._proxies[client] = proxy
        self._apply_conditions(client)

    def _apply_to_all(self, server: str) -> None:
        for client in self._proxies:
            self._apply(client, server)

    def _apply_conditions(self, client: str) -> None:
        for server in {server for server, _, _ in self._conditions.values()}:
            self._apply(client, server)

    def _apply(self, client: str, server: str) -> None:
        conditions = [
            condition
            for place, name, condition in self._conditions.values()
            if place == server and (name is None or is_called(client, name))
        ]
        self._proxies[client].set_condition(server, worst_of(conditions))
