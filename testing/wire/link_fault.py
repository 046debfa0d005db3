"""LinkFault: a cut or slow link between a server and clients."""

from __future__ import annotations

from rewindmq.race.proxy.outlet import LinkCondition
from rewindmq.race.proxy.pattern import is_called
from rewindmq.testing.errors import KitError
from rewindmq.testing.wire.fault import WireFault
from rewindmq.testing.wire.wire import Wire


class LinkFault(WireFault):
    """What ``rmq.partition(...)`` and ``rmq.slow_link(...)`` return; it begins when it is awaited."""

    def __init__(
        self, wire: Wire, text: str, server: str, client: str | None, condition: LinkCondition
    ) -> None:
        super().__init__(wire, text)
        self.server = server
        self._client = client
        self._condition = condition

    def heal(self) -> None:
        """Make the link whole again: what was sent meanwhile arrives, in its order.

        Raises:
            KitError: the fault has not begun, or is over.
        """
        self._require_begun()
        if self._is_over:
            raise KitError(f"{self}: was healed before")
        self.settle()

    def _begin(self) -> None:
        self._wire.set_condition(self, self.server, self._client, self._condition)

    def _end(self) -> None:
        self._wire.remove_condition(self)

    def _unmet(self) -> str | None:
        clients = self._wire.clients
        if self._client is None or any(is_called(client, self._client) for client in clients):
            return None
        return f"{self}: no client {self._client!r} was started; clients: {', '.join(clients)}"
