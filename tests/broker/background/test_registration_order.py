"""Registrations that run at the same time: their order at a name server, and what one means for a request.

Each test holds a registration at a chosen point with an event: while its body is encoded, or while a name
server keeps its response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq.broker.background import registration_body
from rewindmq.protocol.body.registration import CreateTopicListRequestBody, RegisterBrokerBody, TopicConfig
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.slices.run import run_slices
from tests.support.peer import Peer
from tests.support.stage import ServerStage


class HoldingNameServer:
    """A name server that records registrations, and keeps its responses while ``is_holding``."""

    def __init__(self, stage: ServerStage) -> None:
        self._stage = stage
        self._came = asyncio.Condition()
        self.is_holding = False
        self.held: list[asyncio.Event] = []
        self.requests: list[RemotingCommand] = []
        self._server = self._new_server()

    @property
    def address(self) -> str:
        return f"{self._server.host}:{self._server.port}"

    async def start(self) -> str:
        await self._server.start("127.0.0.1", 0)
        self._stage.at_exit(self.close)
        return self.address

    async def close(self) -> None:
        self.release_all()
        await self._server.close()

    async def restart(self) -> None:
        port = self._server.port
        await self._server.close()
        self._server = self._new_server()
        await self._server.start("127.0.0.1", port)

    def _new_server(self) -> RemotingServer:
        codes = (RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER, RequestCode.GET_NAMESRV_CONFIG)
        return RemotingServer(self._stage.new_runtime(), dict.fromkeys(codes, self._keep))

    async def _keep(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        async with self._came:
            self.requests.append(request)
            self._came.notify_all()
        if self.is_holding:
            self.held.append(asyncio.Event())
            await self.held[-1].wait()
        return RemotingCommand(0)

    def release_all(self) -> None:
        self.is_holding = False
        for event in self.held:
            event.set()

    def of(self, code: int) -> list[RemotingCommand]:
        return [request for request in self.requests if request.code == code]

    async def has(self, count: int, code: int = RequestCode.REGISTER_BROKER) -> None:
        """Wait until so many requests of a code have come."""
        async with asyncio.timeout(60), self._came:
            await self._came.wait_for(lambda: len(self.of(code)) >= count)

    def counters(self) -> list[int]:
        """The data versions of the registrations, in their order."""
        return [body.topic_config_serialize_wrapper.data_version.counter for body in self.bodies()]

    def changes(self) -> list[str]:
        """What the broker did, in its order: "register" or "unregister"."""
        names = {RequestCode.REGISTER_BROKER: "register", RequestCode.UNREGISTER_BROKER: "unregister"}
        return [name for each in self.requests if (name := names.get(RequestCode(each.code)))]

    def bodies(self) -> list[RegisterBrokerBody]:
        return [decode_body(each, RegisterBrokerBody) for each in self.of(RequestCode.REGISTER_BROKER)]

    def topics(self) -> dict[str, TopicConfig]:
        """The topics that a name server has after all registrations."""
        topics: dict[str, TopicConfig] = {}
        for body in self.bodies():
            topics |= body.topic_config_serialize_wrapper.topic_config_table
        return topics


class HeldEncoding:
    """Stops each encoding of many topics, after it has read them and until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began = asyncio.Event()
        self.count = 0
        self.released = asyncio.Event()
        monkeypatch.setattr(registration_body, "run_slices", self._run)

    async def _run(self, timers: Any, slices: Any) -> Any:
        self.began.set()
        self.count += 1
        await self.released.wait()
        return await run_slices(timers, slices)


@pytest.fixture
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_body, "_SMALL_TOPICS", 3)


async def restart_namesrv(stage: ServerStage, profile: Profile) -> None:
    """Restart the name server, and wait until the broker knows that its connection is gone."""
    address, client = stage.namesrv, stage.broker._client
    await stage.stop_namesrv()
    await until(lambda: client.ready_connection(address) is None)
    await stage.start_namesrv(profile=profile, listen_port=int(address.rpartition(":")[2]))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def known_topics(asker: Peer) -> set[str]:
    response = await asker.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    return set(decode_body(response.require_success(), TopicList).topic_list)


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("is_oneway", [False, True])
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_a_name_server_that_restarts_while_a_slower_one_is_registered_gets_all_topics(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch, profile: Profile, is_oneway: bool
) -> None:
    """A name server of 4.x that has a part ignores the full table with the same data version."""
    slow = HoldingNameServer(stage)
    namesrv = await stage.start_namesrv(profile=profile)
    addresses = (await slow.start(), namesrv.address)
    await stage.start_broker(namesrv_addr=";".join(addresses), profile=Profile.V53)
    peer = stage.peer()
    await peer.create_topic("Before")
    await slow.restart()
    encoding = HeldEncoding(monkeypatch)
    slow.is_holding = True
    registration = stage.broker.context.background.registration
    if is_oneway:
        encoding.released.set()
        (await peer.send("New")).require_success()
        await slow.has(1, RequestCode.GET_NAMESRV_CONFIG)
        await restart_namesrv(stage, profile)
        slow.release_all()
        await until(lambda: not registration._is_announcing)
    else:
        creating = asyncio.ensure_future(peer.create_topic("New"))
        await encoding.began.wait()
        await restart_namesrv(stage, profile)
        slow.release_all()
        encoding.released.set()
        await creating
    await registration.register()
    asker = stage.peer("asker", stage.namesrv)
    assert {"Before", "New", "BenchmarkTest"} <= await known_topics(asker)


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_a_name_server_that_restarts_while_its_full_table_is_encoded_gets_all_topics(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    namesrv = await stage.start_namesrv(profile=profile)
    broker = await stage.start_broker(namesrv_addr=namesrv.address, profile=Profile.V53)
    peer = stage.peer()
    await peer.create_topic("Before")
    encoding = HeldEncoding(monkeypatch)
    registering = asyncio.ensure_future(broker.context.background.registration.register())
    await encoding.began.wait()
    creating = asyncio.ensure_future(peer.create_topic("New"))
    (await peer.send("Sent")).require_success()
    await restart_namesrv(stage, profile)
    encoding.released.set()
    await asyncio.gather(registering, creating)
    await broker.context.background.registration.register()
    asker = stage.peer("asker", stage.namesrv)
    assert {"Before", "New", "Sent", "BenchmarkTest"} <= await known_topics(asker)


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_a_change_is_not_undone_by_an_older_table_that_waited_for_a_slow_name_server(
    stage: ServerStage, profile: Profile
) -> None:
    slow, fast = HoldingNameServer(stage), HoldingNameServer(stage)
    addresses = (await slow.start(), await fast.start())
    broker = await stage.start_broker(namesrv_addr=";".join(addresses), profile=profile)
    peer = stage.peer()
    await peer.create_topic("T", write=4)
    await slow.restart()
    slow.is_holding = True
    # As a change of the broker's permission: all topics, oneway.
    broker.context.tables.topics.renew()
    await slow.has(1, RequestCode.GET_NAMESRV_CONFIG)
    changing = asyncio.ensure_future(peer.create_topic("T", write=8))
    # The broker registers at the slow name server first: the change waits there by now.
    await fast.has(4)
    slow.release_all()
    await changing
    await slow.has(4)
    await fast.has(4)
    for name_server in (slow, fast):
        assert name_server.topics()["T"].write_queue_nums == 8
        assert name_server.counters() == sorted(name_server.counters())


async def test_a_full_table_that_a_slow_name_server_shares_is_no_older_than_its_last_part(
    stage: ServerStage,
) -> None:
    """The other name server has got that table before the slow one got the topics of a later change."""
    slow, fast = HoldingNameServer(stage), HoldingNameServer(stage)
    addresses = (await fast.start(), await slow.start())
    broker = await stage.start_broker(namesrv_addr=";".join(addresses), profile=Profile.V53)
    peer = stage.peer()
    await slow.restart()
    slow.is_holding = True
    (await peer.send("Sent")).require_success()
    await slow.has(1, RequestCode.GET_NAMESRV_CONFIG)
    running = [asyncio.ensure_future(peer.create_topic("T"))]
    await fast.has(3)
    running.append(asyncio.ensure_future(broker.context.background.registration.register()))
    await fast.has(4)
    running.append(asyncio.ensure_future(peer.create_topic("U")))
    await fast.has(5)
    slow.release_all()
    await asyncio.gather(*running)
    await slow.has(5)
    assert slow.counters() == sorted(slow.counters())


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_a_change_comes_after_the_older_table_that_is_being_encoded(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    name_server = HoldingNameServer(stage)
    broker = await stage.start_broker(namesrv_addr=await name_server.start(), profile=profile)
    peer = stage.peer()
    await peer.create_topic("T", write=4)
    encoding = HeldEncoding(monkeypatch)
    registering = asyncio.ensure_future(broker.context.background.registration.register())
    await encoding.began.wait()
    (await peer.send("Sent")).require_success()
    changing = asyncio.ensure_future(peer.create_topic("T", write=8))
    # A response shows that the broker has read the requests before.
    (await peer.send("Sent")).require_success()
    encoding.released.set()
    await asyncio.gather(registering, changing)
    await name_server.has(5)
    assert name_server.topics()["T"].write_queue_nums == 8
    assert "Sent" in name_server.topics()
    assert name_server.counters() == sorted(name_server.counters())


@pytest.mark.parametrize("remembered", [5_000, 3])
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_changes_of_several_topics_at_once_all_reach_the_name_server(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch, profile: Profile, remembered: int
) -> None:
    """A name server ignores a part with a changed topic if it knows the part's data version."""
    monkeypatch.setattr(registration_body, "_MAX_CHANGES", remembered)
    namesrv = await stage.start_namesrv(profile=profile)
    await stage.start_broker(namesrv_addr=namesrv.address, profile=Profile.V53)
    peer, asker = stage.peer(), stage.peer("asker", namesrv.address)
    topics = [f"T{number}" for number in range(10)]
    for write in (4, 8):
        await asyncio.gather(*(peer.create_topic(topic, write=write) for topic in topics))
        for topic in topics:
            (queue,) = (await asker.route(topic)).queue_datas
            assert queue.write_queue_nums == write


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_a_change_of_all_topics_comes_no_later_than_one_of_a_topic(
    stage: ServerStage, profile: Profile
) -> None:
    """The announcement of all topics waits for a slow name server; a request comes before it."""
    slow = HoldingNameServer(stage)
    namesrv = await stage.start_namesrv(profile=profile)
    addresses = (namesrv.address, await slow.start())
    await stage.start_broker(namesrv_addr=";".join(addresses), profile=Profile.V53)
    peer, asker = stage.peer(), stage.peer("asker", namesrv.address)
    await peer.create_topic("T")
    await slow.restart()
    slow.is_holding = True
    (await peer.send("Sent")).require_success()
    await slow.has(1, RequestCode.GET_NAMESRV_CONFIG)
    change = await peer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4")
    change.require_success()
    creating = asyncio.ensure_future(peer.create_topic("New"))
    async with asyncio.timeout(60):
        while "New" not in await known_topics(asker):  # noqa: ASYNC110
            await asyncio.sleep(0)
    slow.release_all()
    await creating
    await until(lambda: not stage.broker.context.background.registration._is_announcing)
    for topic in ("New", "T"):
        (queue,) = (await asker.route(topic)).queue_datas
        assert queue.perm == 4


async def test_a_request_for_a_topic_that_a_list_is_registering_registers_it_too(stage: ServerStage) -> None:
    """Its response would otherwise promise a topic that no name server has."""
    name_server = HoldingNameServer(stage)
    await stage.start_broker(namesrv_addr=await name_server.start(), profile=Profile.V53)
    peer = stage.peer()
    name_server.is_holding = True
    topic = TopicConfig("T", read_queue_nums=4, write_queue_nums=4)
    body = CreateTopicListRequestBody([topic])
    listing = asyncio.ensure_future(peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body))
    await name_server.has(2)
    repeating = asyncio.ensure_future(peer.create_topic("T"))
    await registered_again(name_server, repeating, 3)
    (await listing).require_success()
    # Now the name server has the topic.
    await peer.create_topic("T")
    assert len(name_server.of(RequestCode.REGISTER_BROKER)) == 3


async def test_a_request_for_a_topic_that_another_request_is_registering_registers_it_too(
    stage: ServerStage,
) -> None:
    name_server = HoldingNameServer(stage)
    await stage.start_broker(namesrv_addr=await name_server.start(), profile=Profile.V53)
    peer = stage.peer()
    name_server.is_holding = True
    first = asyncio.ensure_future(peer.create_topic("T", write=4))
    await name_server.has(2)
    second = asyncio.ensure_future(peer.create_topic("T", write=8))
    await name_server.has(3)
    name_server.held[0].set()
    await first
    repeating = asyncio.ensure_future(peer.create_topic("T", write=8))
    await registered_again(name_server, repeating, 4)
    await second
    await peer.create_topic("T", write=8)
    assert len(name_server.of(RequestCode.REGISTER_BROKER)) == 4


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
async def test_a_change_that_waits_for_a_slow_name_server_is_not_registered_after_the_broker_unregisters(
    stage: ServerStage, profile: Profile
) -> None:
    slow, fast = HoldingNameServer(stage), HoldingNameServer(stage)
    addresses = (await slow.start(), await fast.start())
    broker = await stage.start_broker(namesrv_addr=";".join(addresses), profile=profile)
    peer = stage.peer()
    await slow.restart()
    slow.is_holding = True
    first = asyncio.ensure_future(peer.create_topic("T"))
    await slow.has(2)
    waiting = asyncio.ensure_future(peer.create_topic("U"))
    # The broker registers at the slow name server first: the change waits there by now.
    await fast.has(3)
    closing = asyncio.ensure_future(broker.close())
    await slow.has(1, RequestCode.UNREGISTER_BROKER)
    slow.release_all()
    await asyncio.gather(first, waiting, closing)
    assert slow.changes() == ["register", "register", "unregister"]
    assert fast.changes() == ["register", "register", "register", "unregister"]


@pytest.mark.usefixtures("_small_slices")
async def test_a_table_that_is_being_encoded_is_not_registered_after_the_broker_unregisters(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_server = HoldingNameServer(stage)
    broker = await stage.start_broker(namesrv_addr=await name_server.start(), profile=Profile.V49)
    peer = stage.peer()
    encoding = HeldEncoding(monkeypatch)
    name_server.is_holding = True
    creating = [asyncio.ensure_future(peer.create_topic(topic)) for topic in ("T", "U")]
    await encoding.began.wait()
    await until(lambda: broker.context.background.registration.is_due("U"))
    closing = asyncio.ensure_future(broker.close())
    await name_server.has(1, RequestCode.UNREGISTER_BROKER)
    encoding.released.set()
    name_server.release_all()
    await asyncio.gather(*creating, closing)
    assert name_server.changes() == ["register", "unregister"]
    # The request that waited for its turn encodes no table.
    assert encoding.count == 1
    reopened = await stage.start_broker(namesrv_addr=name_server.address, profile=Profile.V49)
    assert reopened.context.tables.topics.find("T")
    assert {"T", "U"} <= name_server.topics().keys()


async def registered_again(
    name_server: HoldingNameServer, repeating: asyncio.Future[None], count: int
) -> None:
    """Check that a request registers before its response; then let the name server respond."""
    registering = asyncio.ensure_future(name_server.has(count))
    await asyncio.wait((repeating, registering), return_when=asyncio.FIRST_COMPLETED)
    assert not repeating.done()
    await registering
    name_server.release_all()
    await repeating
