"""The broker at the name servers: 103 at start, on a schedule and on topic changes, 104 at the end.

docs/spec/nameserver.md A.2; RocketMQ 4.9.4 ``BrokerOuterAPI`` and ``BrokerController#registerBrokerAll``.
Kept: all name servers in parallel, the full table each time (``forceRegister``). Changed: none of 322, which
only saves traffic; the body is not compressed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.registration import RegisterBrokerBody, TopicConfigSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.namesrv import (
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)

FIRST_DELAY_SECONDS: Final = 10.0
MIN_PERIOD_MS: Final = 10_000
MAX_PERIOD_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker registers itself as; ``address`` is ``host:port``."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str


class _Answer(NamedTuple):
    """What a name server says to a registration.

    Attributes:
        ordered: its ORDER_TOPIC_CONFIG table, None where nobody ever wrote one.
        master_address, ha_address: told to slaves whose master is there.
    """

    ordered: dict[str, str] | None
    master_address: str | None
    ha_address: str | None


class Registration:
    """Keeps the name servers told.

    Args:
        topics: gives the table to register.
        on_order_topics: receives the topics of the ORDER_TOPIC_CONFIG table in a name server's answer, if
            there is such a table.
        period_ms: clamped to 10 000 .. 60 000, as RocketMQ does.
        timeout_seconds: bound on each name server's answer.

    Attributes:
        on_master: given the master's address and that of its log with each answer; both None while the name
            server knows no master, and to a master.
    """

    def __init__(
        self,
        client: RemotingClient,
        timers: Timers,
        namesrv_addresses: tuple[str, ...],
        identity: BrokerIdentity,
        topics: Callable[[], TopicConfigSerializeWrapper],
        on_order_topics: Callable[[Iterable[str]], None],
        *,
        period_ms: int,
        timeout_seconds: float,
    ) -> None:
        self._client = client
        self._timers = timers
        self._addresses = namesrv_addresses
        self._identity = identity
        self._topics = topics
        self._on_order_topics = on_order_topics
        self._period_seconds = min(max(period_ms, MIN_PERIOD_MS), MAX_PERIOD_MS) / 1_000
        self._timeout_seconds = timeout_seconds
        # Name servers whose last attempt failed: one line when that changes, not one every 30 s.
        self._failing: set[str] = set()
        self.on_master: Callable[[str | None, str | None], None] = _nobody_follows
        self._timer: Cancellable | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether a topic has changed since an announcement was begun, and whether one runs.
        self._is_unannounced = False
        self._is_announcing = False

    @property
    def address(self) -> str:
        """``host:port`` that clients are told."""
        return self._identity.address

    async def start(self) -> None:
        """Register once and wait for the answers; a name server that is not there is tried again later."""
        # First, so that topics made while the answers are awaited are announced.
        self._timer = self._timers.call_later(FIRST_DELAY_SECONDS, self._tick)
        await self.register()

    async def close(self) -> None:
        """Stop the schedule and tell every name server that this broker leaves."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        await end_tasks(self._tasks)
        await asyncio.gather(*(self._unregister(address) for address in self._addresses))

    async def register(self) -> None:
        """Send 103 to every name server and wait for the answers; failures are logged."""
        body = RegisterBrokerBody(self._topics())
        answers = await asyncio.gather(*(self._register_at(address, body) for address in self._addresses))
        # Name servers may disagree; as in RocketMQ the first answer counts.
        answer = next((answer for answer in answers if answer is not None), None)
        if answer is None:
            return
        self.on_master(answer.master_address, answer.ha_address)
        ordered = next((answer.ordered for answer in answers if answer and answer.ordered is not None), None)
        if ordered is not None:
            try:
                self._on_order_topics(ordered)
            except RewindMQError as error:
                _log.error("order of topics not stored: %s", error)

    def announce(self) -> None:
        """Send 103 to every name server now, oneway, after a topic changed.

        What changes while one announcement is sent shares the next: each names every topic.
        """
        self._is_unannounced = True
        if self._timer is not None and self._addresses and not self._is_announcing:
            self._is_announcing = True
            self._run(self._announce_all())

    def _tick(self) -> None:
        self._timer = self._timers.call_later(self._period_seconds, self._tick)
        self._run(self.register())

    async def _announce_all(self) -> None:
        try:
            while self._is_unannounced:
                self._is_unannounced = False
                await self._announce()
        finally:
            self._is_announcing = False

    async def _announce(self) -> None:
        body = RegisterBrokerBody(self._topics())
        for address in self._addresses:
            try:
                await self._client.invoke_oneway(address, self._command(body), self._timeout_seconds)
            except RewindMQError as error:
                self._note_failure(address, error)

    async def _register_at(self, address: str, body: RegisterBrokerBody) -> _Answer | None:
        """What the name server says, None when that is nothing."""
        try:
            response = await self._client.invoke(address, self._command(body), self._timeout_seconds)
            response.require_success()
            header = response.decode_header(RegisterBrokerResponseHeader)
            ordered = decode_body(response, KVTable).table if response.body else None
        except RewindMQError as error:
            self._note_failure(address, error)
            return None
        if address in self._failing:
            self._failing.discard(address)
            _log.info("registered at name server %s", address)
        return _Answer(ordered, header.master_addr, header.ha_server_addr)

    async def _unregister(self, address: str) -> None:
        if address in self._failing:
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
            await self._client.invoke(address, command, self._timeout_seconds)
        except RewindMQError as error:
            _log.warning("could not unregister at name server %s: %s", address, error)

    def _command(self, body: RegisterBrokerBody) -> RemotingCommand:
        identity = self._identity
        header = RegisterBrokerRequestHeader(
            broker_name=identity.broker_name,
            broker_addr=identity.address,
            cluster_name=identity.cluster_name,
            ha_server_addr=identity.ha_address,
            broker_id=identity.broker_id,
        )
        return RemotingCommand(RequestCode.REGISTER_BROKER, header, body)

    def _note_failure(self, address: str, error: RewindMQError) -> None:
        if address not in self._failing:
            self._failing.add(address)
            _log.warning("not registered at name server %s, trying on: %s", address, error)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _nobody_follows(address: str | None, ha_address: str | None) -> None:
    """At a master."""
