"""Sends the admin client's requests to name servers and brokers, and finds the brokers' addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from rewindmq.client.core.broker_api import BrokerApi
from rewindmq.client.core.client_config import ClientConfig
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.route import BrokerData, TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic, topic_fault
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime

# DefaultMQAdminExt's timeout for every response, in seconds.
TIMEOUT: Final = 5.0
# Decoding a larger body would hold the event loop.
_LARGE_BODY_BYTES: Final = 32 << 10

BodyT = TypeVar("BodyT", bound=RemotingBody)


class AdminConnections(RemotingClient):
    """Connections that belong to the event loop on which the admin client was started."""

    _loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        """Accept calls only on the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    def invoke(
        self, address: str, command: RemotingCommand, timeout: float = 3.0
    ) -> asyncio.Future[RemotingCommand]:
        self._require_own_loop()
        return super().invoke(address, command, timeout)

    async def invoke_oneway(self, address: str, command: RemotingCommand, timeout: float = 3.0) -> None:
        self._require_own_loop()
        await super().invoke_oneway(address, command, timeout)

    def _require_own_loop(self) -> None:
        # A call on another loop would wait for ever.
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise ClientError(
                "the admin client was started on another event loop, which its connections belong to: start"
                " an AdminClient on each loop, or use rewindmq.sync"
            )


class AdminRemote:
    """Sends requests over one connection per server, and keeps the broker addresses that routes named.

    Attributes:
        api: the requests that consumers send, too.
        namesrv_addresses: ``host:port`` of each name server.
    """

    def __init__(self, config: ClientConfig, runtime: Runtime, serialize_type: SerializeType | None) -> None:
        self.runtime = runtime
        self.namesrv_addresses = config.namesrv_addrs
        self._remoting = AdminConnections(runtime, serialize_type=serialize_type)
        self.api = BrokerApi(
            self._remoting,
            config.namesrv_addrs,
            config.profile.announced_version,
            config.mq_client_api_timeout / 1000,
        )
        self._broker_addresses: dict[str, str] = {}
        self._decoding: set[asyncio.Task[Any] | None] = set()

    def bind(self) -> None:
        """Accept calls only on the running event loop from now on."""
        self._remoting.bind()

    async def close(self) -> None:
        await self._remoting.close()

    def command(self, code: RequestCode, header: CommandHeader | None = None) -> RemotingCommand:
        return self.api.command(code, header)

    async def ask_namesrv(self, command: RemotingCommand) -> RemotingCommand:
        """Send a request to one name server, or to the next one if it cannot be reached.

        Raises:
            ResponseError: the name server refused.
            RemotingError: no name server answered; the error of the last one.
        """
        return (await self.api.invoke_name_server(command, TIMEOUT)).require_success()

    async def ask_every_namesrv(self, make_command: Callable[[], RemotingCommand]) -> None:
        """Send a request to each name server, because name servers do not share their data.

        Raises:
            ResponseError, RemotingError: of the first name server that fails; later ones get no request.
        """
        for address in self.namesrv_addresses:
            await self.ask_namesrv_at(address, make_command())

    async def ask_namesrv_at(self, address: str, command: RemotingCommand) -> RemotingCommand:
        """Ask one name server.

        Raises:
            ResponseError: it refused.
            RemotingError: it did not answer.
        """
        return (await self._remoting.invoke(address, command, TIMEOUT)).require_success()

    async def ask_broker(
        self, address: str, command: RemotingCommand, timeout: float = TIMEOUT
    ) -> RemotingCommand:
        """Send a request to one broker.

        Raises:
            ResponseError: the broker refused.
            RemotingError: no answer within ``timeout`` seconds, or no connection.
        """
        return (await self._remoting.invoke(address, command, timeout)).require_success()

    async def ask_broker_for(
        self, address: str, command: RemotingCommand, body_type: type[BodyT], timeout: float = TIMEOUT
    ) -> BodyT:
        """Return the body of a broker's response, see ``decode``.

        Raises:
            ResponseError: the broker refused.
            RemotingError: no answer within ``timeout`` seconds, or no connection.
            BodyError: the body cannot be decoded.
        """
        return await self.decode(await self.ask_broker(address, command, timeout), body_type)

    async def decode(self, response: RemotingCommand, body_type: type[BodyT]) -> BodyT:
        """Return a response's body. A large body is decoded in a worker thread.

        Raises:
            BodyError: the body cannot be decoded.
        """
        if not isinstance(response.body, bytes) or len(response.body) <= _LARGE_BODY_BYTES:
            return decode_body(response, body_type)
        task = asyncio.current_task()
        self._decoding.add(task)
        try:
            return await self.runtime.workers.run(decode_body, response, body_type)
        finally:
            self._decoding.discard(task)

    def is_decoding(self, task: asyncio.Task[Any]) -> bool:
        """Return whether the task has a broker's answer that is being decoded."""
        return task in self._decoding

    async def route(self, topic: str) -> TopicRouteData:
        """Return a topic's route: GET_ROUTEINFO_BY_TOPIC (105).

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if no broker registered the topic.
        """
        route = await self.api.topic_route(topic)
        for broker in route.broker_datas:
            address = self.select_address(broker)
            if address is not None:
                self._broker_addresses[broker.broker_name] = address
        if self.runtime.probe is not None:
            self.runtime.probe(Point.ROUTE_QUERIED, {"topic": topic})
        return route

    async def cluster_info(self) -> ClusterInfo:
        """Return all brokers with their addresses and clusters: GET_BROKER_CLUSTER_INFO (106)."""
        command = self.command(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_body(await self.ask_namesrv(command), ClusterInfo)

    def select_address(self, broker: BrokerData) -> str | None:
        """Return the master's address, else a random slave's (``BrokerData#selectBrokerAddr``)."""
        addresses = broker.broker_addrs
        master = addresses.get(MASTER_ID)
        if master is not None or not addresses:
            return master
        return self.runtime.random.choice(sorted(addresses.values()))

    async def brokers_of(self, topic: str) -> list[tuple[str, str]]:
        """Return name and one address of every broker that serves the topic, sorted by name.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if no broker registered the topic.
        """
        return self._addressed((await self.route(topic)).broker_datas)

    async def brokers(self) -> list[tuple[str, str]]:
        """Return name and one address of every broker, sorted by name."""
        return self._addressed((await self.cluster_info()).broker_addr_table.values())

    def _addressed(self, brokers: Iterable[BrokerData]) -> list[tuple[str, str]]:
        pairs = ((broker.broker_name, self.select_address(broker)) for broker in brokers)
        return sorted((name, address) for name, address in pairs if address is not None)

    async def retry_brokers(self, group: str) -> dict[str, str]:
        """Return an address of each broker with the group's retry topic, by name; none if it never connected.

        RewindMQ's name server refuses a name that no topic can have with SYSTEM_ERROR (1).
        """
        topic = retry_topic(group)
        try:
            return dict(await self.brokers_of(topic))
        except ResponseError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST or topic_fault(topic) is not None:
                return {}
            raise

    async def address_of(self, queue: MessageQueue) -> str:
        """Return the address of the queue's broker, query the topic's route if it is not known yet.

        Raises:
            ClientError: the topic's route does not name that broker.
            ResponseError: TOPIC_NOT_EXIST (17) if no broker registered the topic.
        """
        if queue.broker_name not in self._broker_addresses:
            await self.route(queue.topic)
        address = self._broker_addresses.get(queue.broker_name)
        if address is None:
            raise ClientError(f"broker {queue.broker_name!r} does not serve topic {queue.topic!r}")
        return address


class AdminPart:
    """Base of the parts of an ``AdminClient``, each of which has the methods of one subject."""

    def __init__(self, remote: AdminRemote) -> None:
        self._remote = remote


def not_online(remark: str) -> ResponseError:
    """Return CONSUMER_NOT_ONLINE (206), mqadmin's own error for a group without consumers or offsets."""
    return ResponseError(ResponseCode.CONSUMER_NOT_ONLINE, remark)


def queues_of(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Return every readable or writable queue of the topic, sorted."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        for queue_id in range(max(data.read_queue_nums, data.write_queue_nums))
    )
