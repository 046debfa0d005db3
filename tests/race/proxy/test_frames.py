"""Frames between a client and one server are recorded, held, delayed and dropped."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.errors import RaceError
from rewindmq.race.history import History, Lab
from rewindmq.race.proxy.pattern import Form, FramePattern
from tests.race.proxy.venue import CODECS, COMMIT, NOTICE, PATIENCE, Offsets, Play, Venue, commit


@pytest.mark.parametrize("serialize_type", [*CODECS, None])
def test_responses_reach_the_sender_of_their_request_and_every_frame_is_recorded(
    play: Play, serialize_type: SerializeType | None
) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client(serialize_type=serialize_type)
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


def test_a_released_commit_arrives_after_a_later_one(play: Play) -> None:
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
        assert [frame.fields["commitOffset"] for frame in hold.held] == [1, 2]
        hold.release()
        await asyncio.gather(*calls)
        assert offsets.heard == [0, 3, 4, 1, 2]
        assert (hold.caught, hold.held) == (2, ())
        # The hold catches nothing more.
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


def test_a_response_is_matched_by_the_fields_of_its_request(play: Play) -> None:
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


def test_requests_that_the_server_sends_are_held(play: Play) -> None:
    """The broker's oneway requests (220) are held; so are the client's responses to the broker's requests."""

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


def test_waiting_for_a_frame_times_out(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        hold = proxy.hold(FramePattern(NOTICE, Form.ONEWAY))
        text = "0 of 2 RESET_CONSUMER_CLIENT_OFFSET oneway frames were caught"
        with pytest.raises(RaceError, match=f"{text} within 0.01 s"):
            await hold.wait(2, seconds=0.01)
        waiting = asyncio.ensure_future(hold.wait(2))
        await asyncio.sleep(0)
        hold.release()
        with pytest.raises(RaceError, match=f"{text} when the rule ended"):
            await waiting
        with pytest.raises(RaceError, match=f"{text} when the rule ended"):
            await hold.wait(2)

    play(scene)


def test_a_wait_that_times_out_counts_what_was_caught_meanwhile(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        hold = proxy.hold(FramePattern(COMMIT, Form.REQUEST))
        asked = asyncio.ensure_future(venue.client().invoke(proxy.address, commit(0), PATIENCE))
        waiting = asyncio.ensure_future(hold.wait(2, seconds=0.5))
        await hold.wait(1)
        with pytest.raises(RaceError, match="1 of 2 UPDATE_CONSUMER_OFFSET request frames were caught"):
            await waiting
        hold.release()
        await asked

    play(scene)


def test_an_unreachable_server_is_named(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    """In the history; a warning at every attempt would disturb who kills servers."""

    async def scene(venue: Venue) -> None:
        runtime, host = venue.place()
        listener = await runtime.network.listen(asyncio.Protocol, host, 0)
        address = f"{listener.host}:{listener.port}"
        proxy = await venue.proxy(address)
        listener.close()
        client = venue.client(serialize_type=SerializeType.JSON)
        with pytest.raises(ConnectionLostError):
            await client.invoke(proxy.address, commit(1))
        text = f"no namesrv at {address}: Connection refused"
        assert [event.details["text"] for event in venue.history.of(Lab.NOTE)] == [text]
        assert [record.name for record in caplog.records if "proxy" in record.name] == []
        with pytest.raises(RaceError, match=text):
            await venue.proxy(address)
        with pytest.raises(RaceError, match="'nowhere' is not of the form host:port"):
            await venue.proxy("nowhere")

    play(scene)


def test_a_held_request_outlives_its_client(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        gone: list[Connection] = []
        runtime, host = venue.place()
        server = RemotingServer(runtime, offsets.handlers(), on_close=lambda ended, _: gone.append(ended))
        await server.start(host, 0)
        proxy = await venue.proxy(f"{server.host}:{server.port}")
        # The proxy checks that the server listens before it starts.
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


def test_a_response_held_for_a_disconnected_client_is_lost(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        hold = proxy.hold(FramePattern(COMMIT, Form.RESPONSE))
        client = venue.client(serialize_type=SerializeType.MSGPACK)
        call = client.invoke(proxy.address, commit(1))
        await hold.wait()
        for connection in client.connections:
            connection.abort()
        with pytest.raises(ConnectionLostError):
            await call
        # On sockets the proxy may see an end of the stream, or an error at its next write.
        await venue.round_trip(proxy, 2)
        if venue.is_simulated:
            assert hold.held == ()
        hold.release()
        await client.invoke(proxy.address, commit(3))
        assert offsets.heard == [1, 2, 3]
        if venue.is_simulated:
            (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
            assert dropped["reason"] == "the connection to its receiver is closed"

    play(scene)


def test_held_requests_are_lost_with_their_server(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        runtime, host = venue.place()
        server = RemotingServer(runtime, offsets.handlers())
        await server.start(host, 0)
        proxy = await venue.proxy(f"{server.host}:{server.port}")
        hold = proxy.hold(FramePattern(COMMIT, count=None))
        client = venue.client(serialize_type=SerializeType.MSGPACK)
        call = client.invoke(proxy.address, commit(1))
        await hold.wait()
        await server.close()
        with pytest.raises(ConnectionLostError):
            await call
        (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
        assert dropped["reason"] == "the connection to its receiver is closed"
        assert hold.held == ()
        hold.release()
        assert venue.frames(Lab.FRAME_RELEASED, COMMIT) == []

    play(scene)


def test_closing_the_proxy_closes_both_connections(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client(serialize_type=SerializeType.MSGPACK)
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
