"""Registers the broker at the name servers (docs/spec/nameserver.md A.2).

The broker sends REGISTER_BROKER (103) at its start, on a schedule and when a topic changes, and
UNREGISTER_BROKER (104) when it stops. Source: RocketMQ 4.9.4 ``BrokerOuterAPI`` and
``BrokerController#registerBrokerAll``, 5.3.3 ``registerIncrementBrokerData``.
Kept: the broker registers at all name servers in parallel, on its schedule with the full table
(``forceRegister``). Under v53 a change registers the changed topics alone.
Changed: a name server gets the full table with the next change unless it has answered one over the same
connection. A part has all topics that have changed since the name server's last registration. The broker
sends no QUERY_DATA_VERSION (322), which only saves traffic; the body is not compressed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any, Final

from rewindmq.broker.background.name_server import BrokerIdentity, NameServerRegistration
from rewindmq.broker.background.registration_body import BodyEncoder, RegistrationBodies
from rewindmq.protocol.body.registration import TopicConfigSerializeWrapper
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)

FIRST_DELAY_SECONDS: Final = 10.0
MIN_PERIOD_MS: Final = 10_000
MAX_PERIOD_MS: Final = 60_000

# Called with the master's address and its HA address.
OnMaster = Callable[[str | None, str | None], None]


class RegistrationService:
    """Keeps the broker registered at all name servers.

    Args:
        topics: returns the table to register.
        on_order_topics: called with the topics of the ORDER_TOPIC_CONFIG table, if a name server has one.
        period_ms: clamped to 10 000 .. 60 000, as in RocketMQ.
        timeout_seconds: for each name server's response.
        sends_changes: a change registers the changed topics alone. A name server sets the queues and the
            permission of every topic that it gets. Permissions that it has wiped therefore outlast changes of
            other topics.
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
        on_master: OnMaster | None = None,
    ) -> None:
        self._timers = timers
        self._name_servers = [
            NameServerRegistration(client, identity, address, timeout_seconds)
            for address in namesrv_addresses
        ]
        self._identity = identity
        self._encoder = BodyEncoder(timers, topics)
        self._on_order_topics = on_order_topics
        self._period_seconds = min(max(period_ms, MIN_PERIOD_MS), MAX_PERIOD_MS) / 1_000
        self._sends_changes = sends_changes
        # Topics that a request has changed and not registered yet, with a mark of the last request.
        self._due: dict[str, object] = {}
        self._on_master = on_master
        self._timer: Cancellable | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # The changes since the running announcement began: the changed topics, or all topics.
        self._changed: dict[str, None] = {}
        self._all_changed = False
        self._is_announcing = False

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
        """Stop the schedule and unregister at every name server.

        Requests that wait for their registration end without it; the next start registers their topics.
        """
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        for each in self._name_servers:
            each.close()
        await end_tasks(self._tasks)
        await asyncio.gather(*(each.unregister() for each in self._name_servers))

    def mark_due(self, topics: Iterable[str]) -> None:
        """Note that a request has changed topics, which it registers later."""
        marks = dict.fromkeys(topics, object())
        self._encoder.note_change(marks)
        self._due.update(marks)

    def is_due(self, topic: str) -> bool:
        """True if a request has changed the topic, and no registration since has ended."""
        return topic in self._due

    async def register(self, changed: Collection[str] = ()) -> None:
        """Register at every name server and wait for the responses; log failures.

        After ``close`` the broker sends nothing.

        Args:
            changed: the topics that have changed; empty: the full table.
        """
        due = {name: mark for name, mark in self._due.items() if not changed or name in changed}
        bodies = self._bodies(changed)
        answers = await asyncio.gather(*(each.register(bodies) for each in self._name_servers))
        for name, mark in due.items():
            # A request may have changed the topic again since this registration began.
            if self._due.get(name) is mark:
                del self._due[name]
        # Name servers may disagree; as in RocketMQ the first response counts.
        answer = next((answer for answer in answers if answer is not None), None)
        if answer is None:
            return
        if self._on_master is not None:
            self._on_master(answer.master_address, answer.ha_address)
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
        if not self._name_servers:
            return
        if changed:
            self._encoder.note_change(changed)
        else:
            self._encoder.note_all_changed()
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
        bodies = self._bodies(changed)
        await asyncio.gather(*(each.announce(bodies) for each in self._name_servers))

    def _bodies(self, changed: Collection[str]) -> RegistrationBodies:
        return RegistrationBodies(self._encoder, changed if self._sends_changes else ())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
