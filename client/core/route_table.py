"""Routes of the topics in use and addresses of the brokers behind them (``MQClientInstance``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rewindmq.client.core.broker_api import BrokerApi
from rewindmq.client.core.route import MASTER_ID, broker_addresses, find_address, template_route
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.names import DEFAULT_TOPIC

_log = logging.getLogger(__name__)


class RouteTable:
    """The latest routes from the name server.

    Args:
        on_route: called with each topic and route received, changed or not.

    Attributes:
        changes: grows with each change of ``brokers``.
    """

    def __init__(self, api: BrokerApi, on_route: Callable[[str, TopicRouteData], None]) -> None:
        self._api = api
        self._on_route = on_route
        self._lookups: dict[tuple[str, int | None], asyncio.Task[bool]] = {}
        self.routes: dict[str, TopicRouteData] = {}
        self.brokers: dict[str, dict[int, str]] = {}
        self.changes = 0
        # Why the latest look-up of a topic failed.
        self.failures: dict[str, RewindMQError] = {}

    async def refresh(self, topic: str, template_queue_nums: int | None = None) -> bool:
        """Ask the name server for a topic's route; concurrent callers share one request.

        Args:
            template_queue_nums: look up the auto-create template instead, and take at most this many queues
                per broker from it.

        Returns:
            True if there is a route. Errors are logged.
        """
        key = (topic, template_queue_nums)
        lookup = self._lookups.get(key)
        # A look-up that is done answers only the callers that joined it; a later caller asks again.
        if lookup is None or lookup.done():
            lookup = asyncio.get_running_loop().create_task(self._look_up(topic, template_queue_nums))
            self._lookups[key] = lookup
            lookup.add_done_callback(lambda ended: self._forget_lookup(key, ended))
        return await asyncio.shield(lookup)

    def _forget_lookup(self, key: tuple[str, int | None], ended: asyncio.Task[bool]) -> None:
        if self._lookups.get(key) is ended:
            del self._lookups[key]

    async def _look_up(self, topic: str, template_queue_nums: int | None) -> bool:
        try:
            if template_queue_nums is None:
                route = await self._api.topic_route(topic)
            else:
                template = await self._api.topic_route(DEFAULT_TOPIC)
                route = template_route(template, template_queue_nums)
        except RewindMQError as error:
            self.failures[topic] = error
            self._log_failure(topic, error)
            return False
        self.accept(topic, route)
        return True

    def accept(self, topic: str, route: TopicRouteData) -> None:
        """Store a route and pass it to ``on_route``."""
        self.failures.pop(topic, None)
        self.routes[topic] = route
        self.brokers.update(broker_addresses(route))
        self.changes += 1
        self._on_route(topic, route)

    def _log_failure(self, topic: str, error: RewindMQError) -> None:
        """Log at INFO level if the topic is unknown: a send, or a heartbeat for a retry topic, creates it."""
        unknown = isinstance(error, ResponseError) and error.code == ResponseCode.TOPIC_NOT_EXIST
        level = logging.INFO if unknown else logging.WARNING
        _log.log(level, "updateTopicRouteInfoFromNameServer, topic %s: %s", topic, error)

    def purge_vanished_brokers(self) -> None:
        """Remove addresses that no route mentions any more (``cleanOfflineBroker``)."""
        alive = {
            address
            for route in self.routes.values()
            for broker in route.broker_datas
            for address in broker.broker_addrs.values()
        }
        self.changes += 1
        for name, addresses in list(self.brokers.items()):
            kept = {broker_id: address for broker_id, address in addresses.items() if address in alive}
            if kept:
                self.brokers[name] = kept
            else:
                del self.brokers[name]

    def master_address(self, broker_name: str) -> str | None:
        """Return the address of the master (broker id 0), None if it is unknown."""
        return find_address(self.brokers, broker_name, exact=True)

    def require_master_address(self, broker_name: str) -> str:
        """Return the address of the master; raise ClientError if it is unknown."""
        return self._require(broker_name, exact=True)

    async def find_master_address(self, topic: str, broker_name: str) -> str:
        """Return the address of the master; refresh the route of ``topic`` if it is unknown.

        Raises:
            ClientError: the broker has no master in any route.
        """
        address = self.master_address(broker_name)
        if address is None:
            await self.refresh(topic)
            address = self.require_master_address(broker_name)
        return address

    async def subscribe_address(self, topic: str, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """Return the address to pull from: that of ``broker_id``, else of the lowest known id.

        If no id is known, refresh the route first.

        Raises:
            ClientError: the broker is in no route.
        """
        address = find_address(self.brokers, broker_name, broker_id)
        if address is None:
            await self.refresh(topic)
            address = self._require(broker_name, broker_id)
        return address

    async def offset_address(self, topic: str, broker_name: str, *, any_id: bool) -> str:
        """Return the address for offset queries and commits: the master's, else that of the lowest known id.

        If the master is unknown, refresh the route first; with ``any_id``, only if no id is known.

        Raises:
            ClientError: the broker is in no route.
        """
        address = find_address(self.brokers, broker_name, exact=not any_id)
        if address is None:
            await self.refresh(topic)
            address = self._require(broker_name)
        return address

    def _require(self, broker_name: str, broker_id: int = MASTER_ID, *, exact: bool = False) -> str:
        address = find_address(self.brokers, broker_name, broker_id, exact=exact)
        if address is None:
            raise ClientError(f"The broker[{broker_name}] not exist")
        return address
