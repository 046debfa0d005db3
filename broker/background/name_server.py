"""The broker's registration at one name server.

Registrations take turns: the broker makes a body and sends it before the next registration's turn, so it
sends no older body after a newer one. The broker sends a part only over the connection over which the name
server has answered the full table. A name server that was started again has another connection, and knows no
topic. The broker sends no registration after UNREGISTER_BROKER (104).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import NamedTuple

from rewindmq.broker.background.registration_body import RegistrationBodies, RegistrationBody
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.namesrv import (
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """A broker's names and addresses at the name servers; ``address`` is ``host:port``."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str


class RegistrationAnswer(NamedTuple):
    """A name server's response to a registration.

    Attributes:
        ordered: its ORDER_TOPIC_CONFIG table; None if it was never written.
        master_address, ha_address: present for a slave whose master is registered.
    """

    ordered: dict[str, str] | None
    master_address: str | None
    ha_address: str | None


class NameServerRegistration:
    """Registers the broker at one name server, and logs failures.

    Args:
        address: the name server's, ``host:port``.
        timeout_seconds: for each response.
    """

    def __init__(
        self, client: RemotingClient, identity: BrokerIdentity, address: str, timeout_seconds: float
    ) -> None:
        self._client = client
        self._identity = identity
        self._address = address
        self._timeout_seconds = timeout_seconds
        self._turn = asyncio.Lock()
        # The connection over which the name server has answered the full table.
        self._complete: Connection | None = None
        # The number of the last body that was sent.
        self._sent = 0
        self._failed_connects = 0
        self._is_closed = False
        # Whether the last attempt failed: the log has one line per change, not one every 30 s.
        self._is_failing = False

    async def register(self, bodies: RegistrationBodies) -> RegistrationAnswer | None:
        """Register and wait for the response; return None if that fails or the broker is stopping."""
        try:
            return await self._ask(bodies)
        except RewindMQError as error:
            self._note_failure(error)
            return None

    async def announce(self, bodies: RegistrationBodies) -> None:
        """Register oneway, unless the broker is stopping."""
        failed = self._failed_connects
        try:
            async with self._turn:
                if not self._may_send(failed) or (body := await self._next(bodies)) is None:
                    return
                connection = self._connection
                self._sent = body.number
                sending = self._client.invoke_oneway(
                    self._address, self._command(body), self._timeout_seconds
                )
                await (self._connected(sending) if connection is None else sending)
        except RewindMQError as error:
            self._note_failure(error)

    def close(self) -> None:
        """Send no further registration, not even one that waits for its turn or its body."""
        self._is_closed = True

    async def unregister(self) -> None:
        """Remove the broker from the name server, unless the last attempt to register failed."""
        if self._is_failing:
            return
        identity = self._identity
        header = UnRegisterBrokerRequestHeader(
            broker_name=identity.broker_name,
            broker_addr=identity.address,
            cluster_name=identity.cluster_name,
            broker_id=identity.broker_id,
        )
        command = RemotingCommand(RequestCode.UNREGISTER_BROKER, header)
        try:
            await self._client.invoke(self._address, command, self._timeout_seconds)
        except RewindMQError as error:
            _log.warning("could not unregister at name server %s: %s", self._address, error)

    async def _ask(self, bodies: RegistrationBodies) -> RegistrationAnswer | None:
        failed = self._failed_connects
        async with self._turn:
            if not self._may_send(failed) or (body := await self._next(bodies)) is None:
                return None
            connection = self._connection
            self._sent = body.number
            asking = self._client.invoke(self._address, self._command(body), self._timeout_seconds)
            if connection is None:
                # The client has to connect first; the next registration waits until it has.
                await self._connected(asking)
        response = await asking
        if body.is_part and response.code != ResponseCode.SUCCESS:
            # A name server of 5.x refuses a single topic of a broker unknown to it.
            self._complete = None
            return await self._ask(bodies)
        response.require_success()
        header = response.decode_header(RegisterBrokerResponseHeader)
        ordered = decode_body(response, KVTable).table if response.body else None
        if not body.is_part:
            # If there was no connection before the request, the response came over the present one.
            self._complete = connection or self._connection
        if self._is_failing:
            self._is_failing = False
            _log.info("registered at name server %s", self._address)
        return RegistrationAnswer(ordered, header.master_addr, header.ha_server_addr)

    @property
    def _connection(self) -> Connection | None:
        """The connection over which the client sends at once; None: the client has to connect first."""
        return self._client.ready_connection(self._address)

    async def _next(self, bodies: RegistrationBodies) -> RegistrationBody | None:
        """Return what to send now: the changed topics if the name server has the others, else all.

        None: the broker has begun to stop while it encoded many topics.
        """
        connection = self._connection
        has_others = connection is not None and connection is self._complete
        part = bodies.part(self._sent) if has_others else None
        body = part or await bodies.all_topics(self._sent)
        return None if self._is_closed else body

    async def _connected(self, sending: Awaitable[object]) -> None:
        """Wait for a request that the client sends after it has connected; count a failure.

        Until the request is sent, a later request over the new connection could pass it.
        """
        try:
            await sending
        except RewindMQError:
            self._failed_connects += 1
            raise

    def _may_send(self, failed: int) -> bool:
        """False if the broker is stopping, or if connecting has failed during the wait for the turn.

        Each of many waiting registrations would take as long to fail.

        Args:
            failed: how often connecting had failed before the wait.
        """
        is_unreachable = self._failed_connects != failed and self._connection is None
        return not self._is_closed and not is_unreachable

    def _command(self, body: RegistrationBody) -> RemotingCommand:
        identity = self._identity
        header = RegisterBrokerRequestHeader(
            broker_name=identity.broker_name,
            broker_addr=identity.address,
            cluster_name=identity.cluster_name,
            ha_server_addr=identity.ha_address,
            broker_id=identity.broker_id,
        )
        return RemotingCommand(RequestCode.REGISTER_BROKER, header, body.content)

    def _note_failure(self, error: RewindMQError) -> None:
        self._complete = None
        if not self._is_failing:
            self._is_failing = True
            _log.warning("not registered at name server %s, will try again: %s", self._address, error)
