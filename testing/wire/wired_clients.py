"""Producers whose name server is an entrance of the wire, which opens when they start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from rewindmq.client.core.lifecycle import Client
from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.transaction_producer import TransactionProducer

# Opens the entrance of one client, and returns its address.
Entrance = Callable[[], Awaitable[str]]


class WiredProducer(Producer):
    """A producer behind a proxy of its own; set ``entrance`` before the start."""

    entrance: Entrance

    async def start(self) -> None:
        """Open the entrance, and start."""
        await _enter(self, self.entrance)
        await super().start()


class WiredTransactionProducer(TransactionProducer):
    """The same for transactional messages."""

    entrance: Entrance

    async def start(self) -> None:
        """Open the entrance, and start."""
        await _enter(self, self.entrance)
        await super().start()


async def _enter(client: Client, entrance: Entrance) -> None:
    client.config = replace(client.config, namesrv_addrs=(await entrance(),))
