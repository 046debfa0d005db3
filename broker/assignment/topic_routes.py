"""The queues of topics at all brokers, asked from the name servers.

Source: RocketMQ 5.5.1 ``TopicRouteInfoManager``. Changed: RocketMQ asks for each known topic every 30 s; this
broker asks when a consumer does, if what it knows is older. Consumers of one topic share a request. If no
name server answers within 3 s, the broker asks none for 5 s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.broker.limits import MAX_ROUTED_QUEUES, QUEUES_PER_SLICE
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RemotingError, ResponseError, RewindMQError
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.message.sysflag import Perm
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.run import run_slices

# For a request to all name servers.
_TIMEOUT_SECONDS: Final = 3.0
# Protocol seconds without requests after one that no name server answered.
_PAUSE_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Route:
    """The readable queues of a topic, sorted; ``asked`` is the protocol time of the last request."""

    queues: Sequence[MessageQueue]
    asked: float


class TopicRouteInfoManager:
    """Knows the queues of the topics that consumers have asked for.

    Args:
        poll_seconds: age of an answer after which the broker asks again.
    """

    def __init__(
        self,
        client: RemotingClient,
        runtime: Runtime,
        namesrv_addresses: tuple[str, ...],
        poll_seconds: float,
    ) -> None:
        self._client = client
        self._runtime = runtime
        self._namesrv_addresses = namesrv_addresses
        self._poll_seconds = poll_seconds
        self._routes: dict[str, _Route] = {}
        # The queues of all topics.
        self._count = 0
        # Running requests: many consumers ask for one topic when their group changes.
        self._asking: dict[str, asyncio.Task[None]] = {}
        # The protocol time until which the broker asks no name server.
        self._silent_until = 0.0
        # The name server that answered last: the next request begins with it.
        self._first = 0

    def known_queues(self, topic: str) -> Sequence[MessageQueue] | None:
        """Return the queues if a recent answer has some, else None."""
        route = self._routes.get(topic)
        if route is None or not route.queues or self._is_old(route):
            return None
        return route.queues

    async def queues(self, topic: str) -> Sequence[MessageQueue] | None:
        """Return the readable queues of a topic, sorted; None if no name server knows the topic.

        If no name server answers, return what the last answer said.
        """
        known = self.known_queues(topic)
        if known is not None:
            return known
        asking = self._asking.get(topic)
        if asking is None and self._silent_until <= self._runtime.clock.monotonic():
            asking = self._asking[topic] = asyncio.get_running_loop().create_task(self._refresh(topic))
            asking.add_done_callback(lambda _: self._asking.pop(topic))
        if asking is not None:
            # Others may wait for it, too.
            await asyncio.shield(asking)
        route = self._routes.get(topic)
        return None if route is None else route.queues

    async def _refresh(self, topic: str) -> None:
        before = self._routes.get(topic)
        try:
            data = await self._ask(topic)
        except RewindMQError as error:
            is_unknown = isinstance(error, ResponseError) and error.code == ResponseCode.TOPIC_NOT_EXIST
            if isinstance(error, RemotingError):
                self._silent_until = self._runtime.clock.monotonic() + _PAUSE_SECONDS
            if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                _log.warning("no route of topic %s: %s", topic, error)
            if before is None or is_unknown:
                self._forget(topic)
                return
            queues = before.queues
        else:
            queues = await run_slices(self._runtime.timers, _readable_queues(topic, data))
        # The dict is in the order of the answers, so the first topic is the one asked for longest ago.
        self._forget(topic)
        while self._routes and self._count + len(queues) > MAX_ROUTED_QUEUES:
            self._forget(next(iter(self._routes)))
        self._routes[topic] = _Route(queues, self._runtime.clock.monotonic())
        self._count += len(queues)

    def _forget(self, topic: str) -> None:
        route = self._routes.pop(topic, None)
        if route is not None:
            self._count -= len(route.queues)

    async def _ask(self, topic: str) -> TopicRouteData:
        failure: RewindMQError = ResponseError(ResponseCode.SYSTEM_ERROR, "the broker has no name server")
        addresses = self._namesrv_addresses
        timeout = _TIMEOUT_SECONDS / max(len(addresses), 1)
        first = self._first
        for number in (*range(first, len(addresses)), *range(first)):
            command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
            try:
                response = await self._client.invoke(addresses[number], command, timeout)
            except RewindMQError as error:
                failure = error
            else:
                self._first = number
                return decode_body(response.require_success(), TopicRouteData)
        raise failure

    def _is_old(self, route: _Route) -> bool:
        return self._runtime.clock.monotonic() - route.asked > self._poll_seconds


def _readable_queues(topic: str, route: TopicRouteData) -> Generator[None, None, Sequence[MessageQueue]]:
    """Return the queues that consumers may read, sorted; yield after about 1 ms of work."""
    queues: list[MessageQueue] = []
    for data in sorted(route.queue_datas, key=lambda data: data.broker_name):
        count = data.read_queue_nums if data.perm & Perm.READ else 0
        for first in range(0, count, QUEUES_PER_SLICE):
            ids = range(first, min(first + QUEUES_PER_SLICE, count))
            queues.extend([MessageQueue(topic, data.broker_name, queue_id) for queue_id in ids])
            yield
    return queues
