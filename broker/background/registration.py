"""Registers the broker at the name servers (docs/spec/nameserver.md A.2).

The broker sends REGISTER_BROKER (103) at its start, on a schedule and when a topic changes, and
UNREGISTER_BROKER (104) when it stops. Source: RocketMQ 4.9.4 ``BrokerOuterAPI`` and
``BrokerController#registerBrokerAll``, 5.3.3 ``registerIncrementBrokerData``.
Kept: the broker registers at all name servers in parallel, on its schedule with the full table
(``forceRegister``). Under v53 a change registers the changed topics alone.
Changed: a name server gets the full table with the next change unless it has answered one over the same
connection. The broker sends no QUERY_DATA_VERSION (322), which only saves traffic; the body is not
compressed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.registration import RegisterBrokerBody, TopicConfigSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import PreparedBody, decode_body
from rewindmq.protocol.codec.body_slices import prepare
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.header.namesrv import (
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.protocol.remoting.slices.run import run_slices
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)

FIRST_DELAY_SECONDS: Final = 10.0
MIN_PERIOD_MS: Final = 10_000
MAX_PERIOD_MS: Final = 60_000
# So many topics are encoded at once: some ms.
_SMALL_TOPICS: Final = 500


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """A broker's names and addresses at the name servers; ``address`` is ``host:port``."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str


class _Answer(NamedTuple):
    """A name server's response to a registration.

    Attributes:
        ordered: its ORDER_TOPIC_CONFIG table; None if it was never written.
        master_address, ha_address: present for a slave whose master is registered.
    """

    ordered: dict[str, str] | None
    master_address: str | None
    ha_address: str | None


class _Body(NamedTuple):
    """What one name server gets.

    Attributes:
        is_part: the body has only the topics that have changed.
    """

    address: str
    body: PreparedBody
    is_part: bool = False


class Registration:
    """Keeps the broker registered at all name servers.

    Args:
        topics: returns the table to register.
        on_order_topics: called with the topics of the ORDER_TOPIC_CONFIG table, if a name server has one.
        period_ms: clamped to 10 000 .. 60 000, as in RocketMQ.
        timeout_seconds: for each name server's response.
        sends_changes: a change registers the changed topics alone. A name server sets the queues and the
            permission of every topic that it gets, so the permissions that it has wiped outlast changes of
            other topics.

    Attributes:
        due: topics that a request has changed, until it has registered them.
        on_master: called after each registration with the master's address and its HA address; both None at a
            master, or if the name server knows no master.
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
        sends_changes: bool = False,
    ) -> None:
        self._client = client
        self._timers = timers
        self._addresses = namesrv_addresses
        self._identity = identity
        self._topics = topics
        self._on_order_topics = on_order_topics
        self._period_seconds = min(max(period_ms, MIN_PERIOD_MS), MAX_PERIOD_MS) / 1_000
        self._timeout_seconds = timeout_seconds
        self._sends_changes = sends_changes
        # The connections over which name servers have answered the full table. A name server that was started
        # again has another connection, and knows no topic.
        self._complete: dict[str, Connection] = {}
        # Name servers whose last attempt failed: the log has one line per change, not one every 30 s.
        self._failing: set[str] = set()
        self.due: set[str] = set()
        self.on_master: Callable[[str | None, str | None], None] = _ignore_master
        self._timer: Cancellable | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # The topics that have changed since the running announcement began, and whether all have. Whether an
        # announcement is running.
        self._changed: dict[str, None] = {}
        self._all_changed = False
        self._is_announcing = False
        self._encoding = asyncio.Lock()
        # The serialization types of the name servers.
        self._used_types = {SerializeType.MSGPACK}

    @property
    def address(self) -> str:
        """The registered address, ``host:port``, which clients use."""
        return self._identity.address

    async def start(self) -> None:
        """Register once and wait for the responses; repeat later at name servers that failed."""
        # Start the timer first: topics may be created during the wait, and ``announce`` must register them.
        self._timer = self._timers.call_later(FIRST_DELAY_SECONDS, self._tick)
        await self.register()

    async def close(self) -> None:
        """Stop the schedule and unregister at every name server."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        await end_tasks(self._tasks)
        await asyncio.gather(*(self._unregister(address) for address in self._addresses))

    async def register(self, changed: Collection[str] = ()) -> None:
        """Register at every name server and wait for the responses; log failures.

        Args:
            changed: the topics that have changed; empty: the full table.
        """
        registered = set(changed or self.due)
        bodies = await self._bodies(changed)
        answers = await asyncio.gather(*(self._register_at(each) for each in bodies))
        self.due -= registered
        # Name servers may disagree; as in RocketMQ the first response counts.
        answer = next((answer for answer in answers if answer is not None), None)
        if answer is None:
            return
        self.on_master(answer.master_address, answer.ha_address)
        ordered = next((answer.ordered for answer in answers if answer and answer.ordered is not None), None)
        if ordered is not None:
            try:
                self._on_order_topics(ordered)
            except RewindMQError as error:
                _log.error("can not store the order of topics: %s", error)

    def announce(self, changed: Collection[str] = ()) -> None:
        """Register at every name server now, oneway, because topics changed.

        All changes during one announcement share the next one.

        Args:
            changed: see ``register``.
        """
        if not self._addresses:
            return
        self._changed.update(dict.fromkeys(changed))
        self._all_changed = self._all_changed or not changed
        if self._timer is not None and not self._is_announcing:
            self._is_announcing = True
            self._run(self._announce_all())

    def _tick(self) -> None:
        self._timer = self._timers.call_later(self._period_seconds, self._tick)
        self._run(self.register())

    async def _announce_all(self) -> None:
        try:
            while self._changed or self._all_changed:
                changed = () if self._all_changed else tuple(self._changed)
                self._changed.clear()
                self._all_changed = False
                await self._announce(changed)
        finally:
            self._is_announcing = False

    async def _announce(self, changed: Collection[str]) -> None:
        for each in await self._bodies(changed):
            try:
                await self._client.invoke_oneway(
                    each.address, self._command(each.body), self._timeout_seconds
                )
            except RewindMQError as error:
                self._note_failure(each.address, error)

    async def _bodies(self, changed: Collection[str]) -> list[_Body]:
        """Return what each name server gets: the changed topics if it has the others, else all."""
        if not self._sends_changes or not changed:
            body = await self._body()
            return [_Body(address, body) for address in self._addresses]
        complete = {
            address
            for address, connection in self._complete.items()
            if connection is self._client.ready_connection(address)
        }
        full = None if complete.issuperset(self._addresses) else await self._body()
        # One at a time, see ``_body``.
        async with self._encoding:
            topics = self._topics()
        table = {name: config for name in changed if (config := topics.topic_config_table.get(name))}
        part = PreparedBody(RegisterBrokerBody(TopicConfigSerializeWrapper(table, topics.data_version)))
        return [
            _Body(address, part, is_part=True)
            if full is None or address in complete
            else _Body(address, full)
            for address in self._addresses
        ]

    async def _body(self) -> PreparedBody:
        """Return all topics; many are encoded in slices, because the broker serves others meanwhile."""
        topics = self._topics()
        if len(topics.topic_config_table) <= _SMALL_TOPICS:
            return PreparedBody(RegisterBrokerBody(topics))
        # One at a time, in the order of the versions.
        async with self._encoding:
            body = RegisterBrokerBody(self._topics())
            prepared = await run_slices(self._timers, prepare(body, sorted(self._used_types)))
            # Encodings that a name server asks for now are prepared from the next time on.
            prepared.used = self._used_types
            return prepared

    async def _register_at(self, given: _Body) -> _Answer | None:
        """Register at one name server; return None if that fails."""
        try:
            try:
                return await self._ask(given)
            except ResponseError:
                if not given.is_part:
                    raise
                # A name server that was started again refuses a single topic of a broker unknown to it.
                return await self._ask(_Body(given.address, await self._body()))
        except RewindMQError as error:
            self._note_failure(given.address, error)
            return None

    async def _ask(self, given: _Body) -> _Answer:
        address = given.address
        response = await self._client.invoke(address, self._command(given.body), self._timeout_seconds)
        response.require_success()
        header = response.decode_header(RegisterBrokerResponseHeader)
        ordered = decode_body(response, KVTable).table if response.body else None
        connection = self._client.ready_connection(address)
        if connection is not None and not given.is_part:
            self._complete[address] = connection
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

    def _command(self, body: PreparedBody) -> RemotingCommand:
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
        self._complete.pop(address, None)
        if address not in self._failing:
            self._failing.add(address)
            _log.warning("not registered at name server %s, will try again: %s", address, error)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _ignore_master(address: str | None, ha_address: str | None) -> None:
    """Do nothing: a master follows no other broker."""
