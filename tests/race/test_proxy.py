"""The proxy: it changes addresses and order, and nothing else; on real sockets and in the simulated world."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client import ConsumeConcurrentlyStatus, ConsumeFromWhere, Message, Producer, PushConsumer
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.body_codec import decode_body, encode_body
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Listener, Network, Runtime, system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.proxy import lane
from rewindmq.race.proxy.cutter import FrameCutter
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.race.proxy.pattern_text import format_pattern, parse_pattern
from rewindmq.race.proxy.route_answer import broker_addresses, with_addresses
from rewindmq.race.sim import World

CODECS = list(SerializeType)
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET
PULL = RequestCode.PULL_MESSAGE
NOTICE = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
# Seconds after which a test that hangs fails.
_PATIENCE = 60.0
_VIRTUAL_PATIENCE = 600.0


class Venue:
    """Where a scene takes place: hosts, and everything that has to be closed afterwards."""

    def __init__(self, world: World | None, exits: AsyncExitStack) -> None:
        self._world = world
        self._exits = exits
        self._hosts = 0
        self.is_simulated = world is not None
        self.history = History()
        self._clock = self.place()[0].clock

    def place(self) -> tuple[Runtime, str]:
        """Another process and the interface it is to bind."""
        if self._world is None:
            runtime = system_runtime(seed=1, max_workers=2, time_scale=0.05)
            self._exits.callback(runtime.workers.close)
            return runtime, "127.0.0.1"
        self._hosts += 1
        host = f"10.0.0.{self._hosts}"
        return self._world.runtime(host), host

    def record(self, kind: Lab, process: str, details: dict[str, Any]) -> None:
        self.history.add(Event(self._clock.monotonic(), process, kind, details))

    async def server(self, handlers: dict[int, Any]) -> str:
        runtime, host = self.place()
        server = RemotingServer(runtime, handlers)
        await server.start(host, 0)
        self._exits.push_async_callback(server.close, 0.2)
        return f"{server.host}:{server.port}"

    async def proxy(self, upstream: str) -> FrameProxy:
        runtime, host = self.place()
        proxy = FrameProxy(runtime, upstream, self.record, client_name="consumer-A", host=host)
        self._exits.push_async_callback(proxy.close)
        await proxy.start()
        return proxy

    def client(self, **options: Any) -> RemotingClient:
        client = RemotingClient(self.place()[0], **options)
        self._exits.push_async_callback(client.close)
        return client

    async def entered(self, context: Any) -> Any:
        return await self._exits.enter_async_context(context)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for what no event tells of; on sockets a minute at most."""
        async with asyncio.timeout(_PATIENCE if self._world is None else _VIRTUAL_PATIENCE):
            while not condition():
                await self.pause()

    async def pause(self) -> None:
        """Let the others go on for 2 ms: virtual ones in the simulated world."""
        if self._world is None:
            await asyncio.sleep(0.002)
        else:
            await self._world.sleep(0.002)

    async def round_trip(self, proxy: FrameProxy, offset: int) -> None:
        """Commit an offset over a new connection.

        When it is answered, the proxy has seen what happened to other connections before it.
        """
        await self.client(wire=SerializeType.JSON).invoke(proxy.address, commit(offset), _PATIENCE)

    def frames(self, kind: Lab, code: RequestCode, **wanted: Any) -> list[dict[str, Any]]:
        return [dict(event.details) for event in self.history.of(kind, code=int(code), **wanted)]


Scene = Callable[[Venue], Awaitable[None]]
Play = Callable[[Scene], None]


@pytest.fixture(params=["world", "sockets"])
def play(request: pytest.FixtureRequest) -> Play:
    """Plays a scene in the simulated world and on real sockets."""
    world = World(seed=1) if request.param == "world" else None

    def run(scene: Scene) -> None:
        async def main() -> None:
            async with AsyncExitStack() as exits:
                await scene(Venue(world, exits))

        if world is None:
            asyncio.run(main())
        else:
            world.run(main())

    return run


def commit(offset: int, queue: int = 0) -> RemotingCommand:
    return RemotingCommand(COMMIT, UpdateConsumerOffsetRequestHeader("G", "T", queue, offset))


class Offsets:
    """A server that keeps what it is told by 15, in the order it comes."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.connections: list[Connection] = []

    def handlers(self) -> dict[int, Any]:
        return {COMMIT: self._commit}

    def _commit(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        if connection not in self.connections:
            self.connections.append(connection)
        self.heard.append(request.decode_header(UpdateConsumerOffsetRequestHeader).commit_offset)
        return RemotingCommand(ResponseCode.SUCCESS, body=request.body)


# The stream is cut without losing a byte.

commands = st.builds(
    lambda code, opaque, flag, fields, body: RemotingCommand(
        code, opaque=opaque, flag=flag, ext_fields=fields, body=body
    ),
    st.integers(0, 400),
    st.integers(0, 2**31 - 1),
    st.integers(0, 3),
    st.dictionaries(st.text("abc", min_size=1), st.text("xyz"), max_size=3),
    st.binary(max_size=64),
)
frames = st.builds(encode_frame, commands, st.sampled_from(CODECS))
# What has the length of a frame, and no header that any codec reads.
broken = st.binary(max_size=24).map(lambda data: len(data).to_bytes(4, "big") + data)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(parts=st.lists(frames | broken, max_size=8), tail=st.binary(max_size=16), data=st.data())
def test_what_is_cut_is_what_was_fed(parts: list[bytes], tail: bytes, data: st.DataObject) -> None:
    stream = b"".join(parts) + tail
    ends = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *ends], [*ends, len(stream)], strict=True)]
    cutter = FrameCutter()
    pieces = [piece for chunk in chunks for piece in cutter.feed(chunk)]
    assert b"".join(piece.data for piece in pieces) + cutter.rest() == stream
    whole = [piece.data for piece in pieces[: len(parts)]]
    assert whole == parts
    for piece in pieces[: len(parts)]:
        decoder = FrameDecoder()
        assert [command.opaque for command in decoder.feed(piece.data)] == (
            [] if piece.command is None else [piece.command.opaque]
        )


def test_after_a_length_no_frame_has_everything_passes_as_it_comes() -> None:
    cutter = FrameCutter()
    frame = encode_frame(commit(1), SerializeType.JSON)
    hello = b"\x16\x03\x01\x00\xf8" + bytes(10)
    assert [piece.command is None for piece in cutter.feed(frame + hello)] == [False, True]
    assert cutter.feed(b"x") == [(b"x", None)]
    assert cutter.feed(frame) == [(frame, None)]
    assert cutter.rest() == b""
    assert FrameCutter().feed((MAX_FRAME_BYTES - 4).to_bytes(4, "big")) == []
    assert len(FrameCutter().feed((MAX_FRAME_BYTES - 3).to_bytes(4, "big"))) == 1


# Patterns as text.


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (
            "PULL_MESSAGE response queueId=0 skip=1",
            FramePattern(PULL, Form.RESPONSE, fields={"queueId": "0"}, skip=1),
        ),
        ("RESET_CONSUMER_CLIENT_OFFSET", FramePattern(NOTICE)),
        (
            "UPDATE_CONSUMER_OFFSET oneway count=all blocks",
            FramePattern(COMMIT, Form.ONEWAY, count=None, blocks=True),
        ),
        ("PULL_MESSAGE response answer=21", FramePattern(PULL, Form.RESPONSE, response_code=21)),
    ],
)
def test_patterns_are_read_and_written(text: str, pattern: FramePattern) -> None:
    assert parse_pattern(text) == pattern
    assert format_pattern(pattern) == text


def test_patterns_may_use_numbers_and_names() -> None:
    assert parse_pattern("11 answer=PULL_OFFSET_MOVED") == parse_pattern("pull_message response answer=21")


@pytest.mark.parametrize("text", ["", "PULL", "99999", "PULL_MESSAGE skip=x", "PULL_MESSAGE what"])
def test_what_is_wrong_with_a_pattern_is_said(text: str) -> None:
    with pytest.raises(RaceError, match="in the pattern"):
        parse_pattern(text)


# Addresses in routes.

ROUTE = TopicRouteData(
    [QueueData("127.0.0.1:1", 4, 4, 6)],
    [BrokerData("c", "127.0.0.1:1", {0: "127.0.0.1:1", 1: "127.0.0.1:2"})],
)
FRONTS = {"127.0.0.1:1": "127.0.0.1:50001", "127.0.0.1:2": "10.9.9.9:2"}


def answer(body: bytes, wire: SerializeType) -> RemotingCommand:
    """As received."""
    command = RemotingCommand(ResponseCode.SUCCESS, body=body, opaque=7, flag=FLAG_RESPONSE, remark="r")
    return FrameDecoder().feed(encode_frame(command, wire))[0]


def body_of(command: RemotingCommand) -> bytes:
    """The body as received."""
    assert isinstance(command.body, (bytes, memoryview))
    return bytes(command.body)


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("wire", CODECS)
def test_broker_addresses_in_a_route_are_replaced_and_nothing_else(
    wire: SerializeType, standard: bool
) -> None:
    body = encode_body(ROUTE, wire, standard)
    received = answer(body, wire)
    assert broker_addresses(RequestCode.GET_ROUTEINFO_BY_TOPIC, received) == {
        "127.0.0.1:1": "127.0.0.1:1",
        "127.0.0.1:2": "127.0.0.1:1-1",
    }
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert (changed.opaque, changed.flag, changed.remark) == (7, FLAG_RESPONSE, "r")
    assert changed.serialize_type is wire
    route = decode_body(changed, TopicRouteData)
    assert route.queue_datas == ROUTE.queue_datas
    assert route.broker_datas == [BrokerData("c", "127.0.0.1:1", dict(enumerate(FRONTS.values())))]
    if wire is not SerializeType.MSGPACK:
        bare = b'{0:"127.0.0.1:50001"' in body_of(changed)
        assert bare is not standard


def test_members_of_a_route_that_are_unknown_here_survive() -> None:
    broker = b'{"brokerAddrs":{0:"127.0.0.1:1"},"brokerName":"a","zone\\u0041":1,"cluster":"c"}'
    body = b'{"brokerDatas":[%s],"x":[null]}' % broker
    received = answer(body, SerializeType.JSON)
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert changed.body == body.replace(b"127.0.0.1:1", b"127.0.0.1:50001")
    packed = encode_body(ROUTE, SerializeType.MSGPACK)
    extended = b"\x84\xa1x\x01" + packed[1:]
    received = answer(extended, SerializeType.MSGPACK)
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert body_of(changed).startswith(b"\x84\xa1x\x01")


def test_cluster_info_is_changed_too_and_damaged_answers_are_not() -> None:
    info = ClusterInfo({"a": BrokerData("c", "a", {0: "127.0.0.1:1"})}, {"c": {"a"}})
    received = answer(encode_body(info, SerializeType.JSON), SerializeType.JSON)
    assert broker_addresses(RequestCode.GET_BROKER_CLUSTER_INFO, received) == {"127.0.0.1:1": "a"}
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert decode_body(changed, ClusterInfo).broker_addr_table["a"].broker_addrs == {0: "127.0.0.1:50001"}
    damaged = answer(b"{", SerializeType.JSON)
    assert broker_addresses(RequestCode.GET_BROKER_CLUSTER_INFO, damaged) == {}


# Frames between a client and one server.


@pytest.mark.parametrize("wire", [*CODECS, None])
def test_answers_reach_who_asked_and_every_frame_is_recorded(play: Play, wire: SerializeType | None) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client(wire=wire)
        for offset in range(3):
            response = await client.invoke(proxy.address, commit(offset))
            assert response.code == ResponseCode.SUCCESS
        for kind in (Lab.FRAME_SENT, Lab.FRAME_ARRIVED):
            requests = venue.frames(kind, COMMIT, form="request", source="consumer-A", target="namesrv")
            assert [frame["fields"]["commitOffset"] for frame in requests] == [0, 1, 2]
            answers = venue.frames(kind, COMMIT, form="response", target="consumer-A")
            assert [frame["fields"]["commitOffset"] for frame in answers] == [0, 1, 2]
            assert {frame["response_code"] for frame in answers} == {0}
            assert {frame["name"] for frame in answers} == {"UPDATE_CONSUMER_OFFSET"}
        sent = [event.details["id"] for event in venue.history.of(Lab.FRAME_SENT)]
        assert sent == [event.details["id"] for event in venue.history.of(Lab.FRAME_ARRIVED)]
        assert len(set(sent)) == 6
        assert History.from_lines(venue.history.to_lines()).to_lines() == venue.history.to_lines()

    play(scene)


def test_two_commits_change_places(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        hold = proxy.hold(FramePattern(COMMIT, fields={"commitOffset": 100}))
        client = venue.client()
        first = client.invoke(proxy.address, commit(100))
        await hold.wait()
        await client.invoke(proxy.address, commit(0))
        assert offsets.heard == [0]
        hold.release()
        await first
        assert offsets.heard == [0, 100]
        (held,) = venue.frames(Lab.FRAME_HELD, COMMIT)
        assert venue.frames(Lab.FRAME_RELEASED, COMMIT) == [held]
        arrived = venue.frames(Lab.FRAME_ARRIVED, COMMIT, form="request")
        assert [frame["fields"]["commitOffset"] for frame in arrived] == [0, 100]

    play(scene)


def test_a_hold_that_blocks_keeps_the_order(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        hold = proxy.hold(FramePattern(COMMIT, blocks=True))
        other = proxy.hold(FramePattern(COMMIT, fields={"commitOffset": 3}))
        calls = [client.invoke(proxy.address, commit(offset)) for offset in range(1, 5)]
        await hold.wait()
        await other.wait()
        # The proxy has all five, and has passed on the one before the hold.
        await venue.until(lambda: len(venue.frames(Lab.FRAME_SENT, COMMIT, form="request")) == 5)
        arrived = venue.frames(Lab.FRAME_ARRIVED, COMMIT, form="request")
        assert [frame["fields"]["commitOffset"] for frame in arrived] == [0]
        hold.release()
        await venue.until(lambda: offsets.heard == [0, 1, 2, 4])
        other.release()
        await asyncio.gather(*calls)
        assert offsets.heard == [0, 1, 2, 4, 3]

    play(scene)


def test_skip_and_count(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        hold = proxy.hold(FramePattern(COMMIT, skip=1, count=2))
        calls = [client.invoke(proxy.address, commit(offset)) for offset in range(5)]
        await hold.wait(2)
        await venue.until(lambda: len(offsets.heard) == 3)
        assert offsets.heard == [0, 3, 4]
        assert [frame.fields["commitOffset"] for frame in hold.kept] == [1, 2]
        hold.release()
        await asyncio.gather(*calls)
        assert offsets.heard == [0, 3, 4, 1, 2]
        assert (hold.caught, hold.kept) == (2, ())
        # Nothing more is caught.
        await client.invoke(proxy.address, commit(5))

    play(scene)


def test_a_dropped_request_never_arrives(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        hold = proxy.hold(FramePattern(COMMIT, Form.ONEWAY))
        await client.invoke_oneway(proxy.address, commit(1))
        await hold.wait()
        hold.drop()
        await client.invoke(proxy.address, commit(2))
        assert offsets.heard == [2]
        (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
        assert dropped["fields"]["commitOffset"] == 1
        assert dropped["reason"] == "dropped by the hold"

    play(scene)


def test_an_answer_is_held_by_what_was_asked(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client()
        hold = proxy.hold(FramePattern(COMMIT, Form.RESPONSE, 0, {"queueId": 1}))
        slow = client.invoke(proxy.address, commit(1, queue=1))
        await hold.wait()
        await client.invoke(proxy.address, commit(2, queue=0))
        assert not slow.done()
        hold.release()
        assert (await slow).code == ResponseCode.SUCCESS

    play(scene)


def test_what_the_server_sends_by_itself_is_held(play: Play) -> None:
    """220 comes oneway from the broker; the client's answer to a pushed request finds its request too."""

    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        told: list[int] = []

        def hear(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            told.append(request.code)
            return RemotingCommand(ResponseCode.SUCCESS)

        client = venue.client(handlers={NOTICE: hear, 307: hear})
        await client.invoke(proxy.address, commit(1))
        hold = proxy.hold(FramePattern(NOTICE, fields={"group": "G"}))
        answers = proxy.hold(FramePattern(RequestCode.GET_CONSUMER_RUNNING_INFO, Form.RESPONSE))
        (connection,) = offsets.connections
        connection.send_oneway(RemotingCommand(NOTICE, ext_fields={"group": "G", "topic": "T"}))
        await hold.wait()
        asked = connection.invoke(RemotingCommand(307), 5)
        await answers.wait()
        assert told == [307]
        assert not asked.done()
        hold.release()
        answers.release()
        await asked
        await venue.until(lambda: told == [307, NOTICE])
        (arrived,) = venue.frames(Lab.FRAME_ARRIVED, NOTICE)
        assert (arrived["source"], arrived["form"]) == ("namesrv", "oneway")

    play(scene)


def test_waiting_for_a_frame_has_an_end(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        hold = proxy.hold(FramePattern(NOTICE, Form.ONEWAY))
        text = "0 of 2 RESET_CONSUMER_CLIENT_OFFSET oneway frames were caught"
        with pytest.raises(RaceError, match=f"{text} within 0.01 s"):
            await hold.wait(2, seconds=0.01)
        waiting = asyncio.ensure_future(hold.wait(2))
        await asyncio.sleep(0)
        hold.release()
        with pytest.raises(RaceError, match=f"{text} when the hold ended"):
            await waiting
        with pytest.raises(RaceError, match=f"{text} when the hold ended"):
            await hold.wait(2)

    play(scene)


def test_a_server_that_is_not_there_is_named(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        runtime, host = venue.place()
        listener = await runtime.network.listen(asyncio.Protocol, host, 0)
        address = f"{listener.host}:{listener.port}"
        proxy = await venue.proxy(address)
        listener.close()
        client = venue.client(wire=SerializeType.JSON)
        with pytest.raises(ConnectionLostError):
            await client.invoke(proxy.address, commit(1))
        text = f"no namesrv at {address}: Connection refused"
        assert [event.details["text"] for event in venue.history.of(Lab.NOTE)] == [text]
        with pytest.raises(RaceError, match=text):
            await venue.proxy(address)
        with pytest.raises(RaceError, match="'nowhere' is not of the form host:port"):
            await venue.proxy("nowhere")

    play(scene)


def test_a_client_that_goes_leaves_its_held_request_behind(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        gone: list[Connection] = []
        runtime, host = venue.place()
        server = RemotingServer(runtime, offsets.handlers(), on_close=lambda ended, _: gone.append(ended))
        await server.start(host, 0)
        proxy = await venue.proxy(f"{server.host}:{server.port}")
        # The proxy knocked before it began.
        await venue.until(lambda: gone)
        gone.clear()
        hold = proxy.hold(FramePattern(COMMIT))
        client = venue.client()
        await client.invoke_oneway(proxy.address, commit(1))
        await hold.wait()
        await client.close()
        await venue.round_trip(proxy, 2)
        assert (offsets.heard, gone) == ([2], [])
        hold.release()
        await venue.until(lambda: offsets.heard == [2, 1] and gone)
        await server.close()

    play(scene)


def test_an_answer_held_for_a_client_that_broke_off_is_lost(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        hold = proxy.hold(FramePattern(COMMIT, Form.RESPONSE))
        client = venue.client(wire=SerializeType.MSGPACK)
        call = client.invoke(proxy.address, commit(1))
        await hold.wait()
        for connection in client.connections:
            connection.abort()
        with pytest.raises(ConnectionLostError):
            await call
        # On sockets the proxy may learn it as an end of the stream, and at its first write.
        await venue.round_trip(proxy, 2)
        if venue.is_simulated:
            assert hold.kept == ()
        hold.release()
        await client.invoke(proxy.address, commit(3))
        assert offsets.heard == [1, 2, 3]
        if venue.is_simulated:
            (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
            assert dropped["reason"] == "its receiver is gone"

    play(scene)


def test_a_server_that_goes_takes_held_requests_along(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        runtime, host = venue.place()
        server = RemotingServer(runtime, offsets.handlers())
        await server.start(host, 0)
        proxy = await venue.proxy(f"{server.host}:{server.port}")
        hold = proxy.hold(FramePattern(COMMIT, count=None))
        client = venue.client(wire=SerializeType.MSGPACK)
        call = client.invoke(proxy.address, commit(1))
        await hold.wait()
        await server.close()
        with pytest.raises(ConnectionLostError):
            await call
        (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
        assert dropped["reason"] == "its receiver is gone"
        assert hold.kept == ()
        hold.release()
        assert venue.frames(Lab.FRAME_RELEASED, COMMIT) == []

    play(scene)


def test_a_proxy_that_closes_ends_both_sides(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client(wire=SerializeType.MSGPACK)
        hold = proxy.hold(FramePattern(COMMIT))
        call = client.invoke(proxy.address, commit(1))
        await hold.wait()
        waiting = asyncio.ensure_future(hold.wait(2))
        await asyncio.sleep(0)
        await proxy.close()
        for future in (call, waiting):
            with pytest.raises((ConnectionLostError, RaceError)):
                await future
        await proxy.close()

    play(scene)


# Bytes, on real sockets.


async def echo_server(exits: AsyncExitStack, talk: Any) -> str:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await talk(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    exits.callback(server.close)
    host, port = server.sockets[0].getsockname()
    return f"{host}:{port}"


async def connect(exits: AsyncExitStack, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def close() -> None:
        writer.transport.abort()
        await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])

    exits.push_async_callback(close)
    return reader, writer


async def test_bytes_that_are_no_frames_pass_and_a_half_closed_client_gets_its_answer() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(-1)
        writer.write(b"you said " + data)
        await writer.drain()
        writer.close()

    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        address = await echo_server(exits, talk)
        proxy = await venue.proxy(address)
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x03abc", b"\0\0\1\0 incomplete", b""):
            reader, writer = await connect(exits, proxy.address)
            writer.write(data)
            writer.write_eof()
            assert await reader.read(-1) == b"you said " + data
        assert len(venue.history) == 0


async def test_the_largest_frame_passes_in_both_directions() -> None:
    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client(wire=SerializeType.JSON)
        body = bytes(MAX_FRAME_BYTES - 400)
        command = commit(1)
        command.body = body
        response = await client.invoke(proxy.address, command, _PATIENCE)
        assert response.body == body


class _Reading:
    """A transport that tells when its owner stops reading from it."""

    def __init__(self, transport: asyncio.Transport, has_paused: asyncio.Event) -> None:
        self._transport = transport
        self._has_paused = has_paused

    def pause_reading(self) -> None:
        self._transport.pause_reading()
        self._has_paused.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class WatchedNetwork:
    """Real sockets; ``has_paused`` is set when somebody who listens stops reading a connection."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.has_paused = asyncio.Event()
        self.connect = network.connect

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        def watched() -> asyncio.Protocol:
            protocol = factory()
            begin = protocol.connection_made

            def connection_made(transport: asyncio.BaseTransport) -> None:
                reading = _Reading(cast("asyncio.Transport", transport), self.has_paused)
                begin(cast("asyncio.Transport", reading))

            protocol.connection_made = connection_made  # type: ignore[method-assign]
            return protocol

        return await self._network.listen(watched, host, port)


# Of 50 kB each: more than the kernel's buffers between the two ends hold.
MAX_UNREAD_FRAMES = 4_000


async def send_until_unread(writer: asyncio.StreamWriter, frame: bytes, network: WatchedNetwork) -> int:
    """Write frames until the proxy stops reading them; returns how many."""
    network.has_paused.clear()
    for count in range(1, MAX_UNREAD_FRAMES + 1):
        writer.write(frame)
        await asyncio.sleep(0)
        if network.has_paused.is_set():
            return count
    raise AssertionError(f"the proxy goes on reading after {MAX_UNREAD_FRAMES} frames")


async def test_a_reader_that_pauses_stops_the_sender_and_held_frames_do_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lane, "MAX_KEPT_BYTES", 100_000)
    received = 0
    may_read = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await may_read.wait()
        while data := await reader.read(1 << 20):
            received += len(data)

    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        runtime, _ = venue.place()
        network = WatchedNetwork(runtime.network)
        upstream = await echo_server(exits, talk)
        watched = replace(runtime, network=network)
        proxy = FrameProxy(watched, upstream, venue.record, client_name="consumer-A")
        exits.push_async_callback(proxy.close)
        await proxy.start()
        _, writer = await connect(exits, proxy.address)
        command = commit(1)
        command.flag = FLAG_ONEWAY
        command.body = bytes(50_000)
        frame = encode_frame(command, SerializeType.JSON)
        writer.write(frame)
        # Nothing is read before the proxy has a connection to the server.
        await venue.until(lambda: venue.frames(Lab.FRAME_ARRIVED, COMMIT))
        count = 1 + await send_until_unread(writer, frame, network)
        may_read.set()
        await venue.until(lambda: received == count * len(frame))
        hold = proxy.hold(FramePattern(COMMIT, count=None))
        count += await send_until_unread(writer, frame, network)
        # What one read brings beyond the limit is kept too.
        assert 2 <= hold.caught < 20
        hold.release()
        await venue.until(lambda: received == count * len(frame))


# A whole cluster.


class Inbox:
    def __init__(self) -> None:
        self.offsets: list[int] = []

    async def __call__(self, messages: Sequence[Any]) -> ConsumeConcurrentlyStatus:
        self.offsets += [message.queue_offset for message in messages]
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Cluster:
    """A name server, one broker with one queue, messages in it, and a consumer behind a proxy."""

    def __init__(self, venue: Venue, root: Path) -> None:
        self.venue = venue
        self.root = root
        self.inbox = Inbox()
        self.broker: Broker
        self.proxy: FrameProxy
        self.admin: AdminClient
        self._producer: Producer

    async def open(self) -> None:
        runtime, host = self.venue.place()
        namesrv = NameServer(runtime, NamesrvConfig(bind_address=host, listen_port=0))
        await namesrv.start()
        self.venue._exits.push_async_callback(namesrv.close)
        runtime, host = self.venue.place()
        config = BrokerConfig(
            broker_name="broker-a",
            bind_address=host,
            listen_port=0,
            namesrv_addr=namesrv.address,
            store_path_root_dir=str(self.root),
            default_topic_queue_nums=1,
            store=StoreConfig(
                mapped_file_size_commit_log=1 << 20,
                mapped_file_size_consume_queue=60_000,
                physical_memory_bytes=1 << 30,
            ),
        )
        self.broker = Broker(runtime, config)
        await self.broker.start()
        self.venue._exits.push_async_callback(self.broker.close)
        self.proxy = await self.venue.proxy(namesrv.address)
        self.admin = await self.venue.entered(AdminClient(namesrv.address, runtime=self.venue.place()[0]))
        producer = Producer("P", namesrv.address, runtime=self.venue.place()[0])
        self._producer = await self.venue.entered(producer)
        await self.send(5)

    async def send(self, count: int) -> None:
        for _ in range(count):
            await self._producer.send(Message("T", b"x"))

    async def consume(self, wire: SerializeType | None = None) -> PushConsumer:
        consumer = PushConsumer(
            "G",
            self.proxy.address,
            runtime=self.venue.place()[0],
            wire=wire,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe("T")
        consumer.register_message_listener(self.inbox)
        await self.venue.entered(consumer)
        return consumer

    def stored(self) -> dict[int, int]:
        return dict(self.broker.context.offsets.offsets_of("G", "T"))


@pytest.mark.parametrize("wire", CODECS)
def test_a_whole_cluster_behind_a_proxy(play: Play, tmp_path: Path, wire: SerializeType) -> None:
    async def scene(venue: Venue) -> None:
        cluster = Cluster(venue, tmp_path)
        await cluster.open()
        hold = cluster.proxy.hold(FramePattern(PULL, Form.RESPONSE, 0, {"topic": "T", "queueId": 0}))
        consumer = await cluster.consume(wire)
        await hold.wait(1)
        assert cluster.inbox.offsets == []
        (held,) = hold.kept
        assert held.source == "broker-a"
        assert held.fields["offsets"] == [0, 1, 2, 3, 4]
        assert held.fields["nextBeginOffset"] == 5
        hold.release()
        await venue.until(lambda: cluster.inbox.offsets == [0, 1, 2, 3, 4])
        assert venue.frames(Lab.FRAME_ARRIVED, RequestCode.HEART_BEAT, target="broker-a")

        def pulled() -> set[int]:
            arrived = venue.frames(Lab.FRAME_ARRIVED, PULL, form="request", target="broker-a")
            return {frame["fields"]["queueOffset"] for frame in arrived}

        # Nothing of what the consumer said went to the broker directly.
        await venue.until(lambda: pulled() >= {0, 5})
        await consumer.shutdown()
        # The last commit is oneway.
        await venue.until(lambda: cluster.stored() == {0: 5})
        commits = venue.frames(Lab.FRAME_ARRIVED, COMMIT, form="oneway")
        assert commits[-1]["fields"]["commitOffset"] == 5

    play(scene)


def test_a_held_reset_notice(play: Play, tmp_path: Path) -> None:
    """The consumer goes on as if nothing had been; released, the notice does what it does."""

    async def scene(venue: Venue) -> None:
        cluster = Cluster(venue, tmp_path)
        await cluster.open()
        consumer = await cluster.consume()
        await venue.until(lambda: len(cluster.inbox.offsets) == 5)
        # The next pull carries the offset, so the broker has one to reset.
        await cluster.send(1)
        await venue.until(lambda: cluster.stored() == {0: 6} or len(cluster.inbox.offsets) == 6)
        await cluster.send(1)
        await venue.until(lambda: cluster.stored().get(0, 0) > 0)
        hold = cluster.proxy.hold(FramePattern(NOTICE))
        await cluster.admin.reset_offset_by_timestamp("T", "G", 0, True)
        await hold.wait()
        assert not consumer.is_suspended
        (held,) = hold.kept
        assert held.fields["targets"] == [["broker-a", 0, 0]]
        hold.release()
        await venue.until(lambda: consumer.is_suspended)

    play(scene)


# The command.

ONLY_PROXY = (
    "import sys; from rewindmq import __main__ as main;"
    "main.COMMANDS = {'proxy': main.Command('rewindmq.race.commands.proxy', 'hold frames')};"
    "sys.exit(main.main(sys.argv[1:]))"
)


@contextlib.asynccontextmanager
async def command(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command as a process; killed at the end if it is still there."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ONLY_PROXY, "proxy", *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_by_hand_a_frame_is_held_listed_and_released() -> None:
    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        upstream = await venue.server(Offsets().handlers())
        arguments = ("--namesrv", upstream, "--hold", "UPDATE_CONSUMER_OFFSET queueId=0", "--quiet")
        process = await exits.enter_async_context(command(*arguments))
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        async def said() -> dict[str, Any]:
            async with asyncio.timeout(_PATIENCE):
                return dict(json.loads(await stdout.readline()))

        async def say(line: str) -> None:
            stdin.write(line.encode() + b"\n")
            await stdin.drain()

        ready = await said()
        assert (ready["ready"], ready["pid"]) == ("proxy", process.pid)
        client = venue.client(wire=SerializeType.JSON)
        call = client.invoke(ready["address"], commit(7), _PATIENCE)
        held = await said()
        assert (held["kind"], held["details"]["fields"]["commitOffset"]) == ("frame.held", 7)
        assert held["details"]["source"] == "client"
        await say("list")
        (hold,) = (await said())["holds"]
        assert (hold["number"], hold["caught"]) == (1, 1)
        assert hold["pattern"] == "UPDATE_CONSUMER_OFFSET queueId=0"
        assert hold["kept"] == [held["details"]]
        for wrong in ("release 2", "hold NONE", "jump"):
            await say(wrong)
            assert "error" in await said()
        assert not call.done()
        await say("release 1")
        assert (await said())["kind"] == "frame.released"
        assert (await call).code == ResponseCode.SUCCESS
        await say("hold UPDATE_CONSUMER_OFFSET oneway")
        await say("list")
        assert len((await said())["holds"]) == 2
        await client.invoke_oneway(ready["address"], commit(8))
        assert (await said())["kind"] == "frame.held"
        await say("drop")
        assert (await said())["kind"] == "frame.dropped"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
        assert process.stderr is not None
        assert await process.stderr.read() == b""


async def test_the_command_ends_with_its_parent() -> None:
    async with AsyncExitStack() as exits:
        upstream = await Venue(None, exits).server({})
        arguments = ("--namesrv", upstream, "--exit-with-parent")
        process = await exits.enter_async_context(command(*arguments))
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdout.readline()
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--namesrv", "127.0.0.1:{closed}"), "no namesrv at 127.0.0.1:{closed}: Connection refused"),
        (("--namesrv", "nowhere"), "name server: 'nowhere' is not of the form host:port"),
        (("--namesrv", "127.0.0.1:1", "--hold", "NONE"), "'NONE' in the pattern 'NONE' is no request code"),
        (("--namesrv", "{open}", "--port", "{taken}"), "cannot listen on 127.0.0.1:{taken}"),
    ],
)
async def test_what_cannot_be_done_is_one_line_and_exit_code_1(arguments: tuple[str, ...], text: str) -> None:
    async with AsyncExitStack() as exits:
        upstream = await Venue(None, exits).server({})
        # A port that is bound and not listened at: nobody else gets it, and nobody is there.
        taken = exits.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if "{taken}" in arguments:
            taken.listen()
        names = {"closed": port, "taken": port, "open": upstream}
        words = [word.format(**names) for word in arguments]
        process = await exits.enter_async_context(command(*words))
        out, error = await asyncio.wait_for(process.communicate(), _PATIENCE)
        assert process.returncode == 1
        assert out == b""
        assert text.format(**names) in error.decode()
        assert error.count(b"\n") == 1
