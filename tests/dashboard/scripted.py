"""A name server and brokers that give the answers a test chooses: faults that no real process has at will.

They listen on their runtimes' hosts: in a simulated world, where a time limit passes at once, or on sockets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.server import RemotingServer

# Returns the response; None: the request gets none.
Answering = Callable[[Connection, RemotingCommand], RemotingCommand | None]
# By request code.
Answers = Mapping[int, Answering]


def silent(_connection: Connection, _request: RemotingCommand) -> None:
    """Leave a request without a response, as a server does that hangs."""


class Scripted:
    """A server.

    Attributes:
        seen: the codes of the requests, in the order of their arrival.
    """

    def __init__(self, runtime: Runtime, answers: Answers) -> None:
        self.seen: list[int] = []
        self.server = RemotingServer(runtime, {code: self._keep(answer) for code, answer in answers.items()})

    @property
    def address(self) -> str:
        return f"{self.server.host}:{self.server.port}"

    def _keep(self, answer: Answering) -> Answering:
        def handle(connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
            self.seen.append(request.code)
            return answer(connection, request)

        return handle


@asynccontextmanager
async def scripted(runtime: Runtime, host: str, answers: Answers) -> AsyncIterator[Scripted]:
    """Serve at a free port of the host."""
    server = Scripted(runtime, answers)
    await server.server.start(host, 0)
    try:
        yield server
    finally:
        await server.server.close()


def name_server(brokers: Mapping[str, str], queues: int = 1, perm: int = 6) -> Answers:
    """Return the answers of a name server that has every topic, with queues at every broker.

    Args:
        brokers: address by name.
    """
    data = {name: BrokerData("C", name, {0: address}) for name, address in brokers.items()}
    route = TopicRouteData([QueueData(name, queues, queues, perm) for name in data], [*data.values()])
    info = ClusterInfo(broker_addr_table=data, cluster_addr_table={"C": set(data)})
    return {
        RequestCode.GET_ROUTEINFO_BY_TOPIC: lambda _, request: success(route),
        RequestCode.GET_BROKER_CLUSTER_INFO: lambda _, request: success(info),
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: lambda _, request: success(TopicList(["T"])),
    }


def success(body: RemotingBody) -> RemotingCommand:
    """Return a response with a body."""
    return RemotingCommand(ResponseCode.SUCCESS, None, body)
