"""The network between a client and a server: cut, slow, and whole again."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ConnectionLostError, RequestTimeoutError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.outlet import WHOLE, LinkCondition, worst_of
from tests.race.proxy.venue import COMMIT, PATIENCE, Offsets, Play, Venue, commit

CUT = LinkCondition(is_cut=True)


def test_what_was_sent_over_a_cut_link_arrives_in_order_when_it_is_whole(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        proxy.set_condition("namesrv", CUT)
        calls = [client.invoke(proxy.address, commit(offset), PATIENCE) for offset in range(1, 4)]
        await venue.until(lambda: len(venue.frames(Lab.FRAME_SENT, COMMIT, form="request")) == 4)
        assert offsets.heard == [0]
        proxy.set_condition("namesrv", WHOLE)
        await asyncio.gather(*calls)
        assert offsets.heard == [0, 1, 2, 3]

    play(scene)


def test_a_connection_of_later_is_cut_too_and_other_servers_are_not(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        proxy.set_condition("broker-a", CUT)
        assert (await venue.client().invoke(proxy.address, commit(1))).code == ResponseCode.SUCCESS
        proxy.set_condition("namesrv", CUT)
        with pytest.raises(RequestTimeoutError):
            await venue.client(serialize_type=SerializeType.JSON).invoke(proxy.address, commit(1), 0.2)

    play(scene)


def test_the_end_of_a_connection_passes_a_cut_link_when_it_is_whole(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        proxy.set_condition("namesrv", CUT)
        await client.invoke_oneway(proxy.address, commit(1))
        await venue.until(lambda: len(venue.frames(Lab.FRAME_SENT, COMMIT, form="oneway")) == 1)
        await client.close()
        (server_side,) = offsets.connections
        assert not server_side.is_closed
        proxy.set_condition("namesrv", WHOLE)
        await venue.until(lambda: server_side.is_closed)
        assert offsets.heard == [0, 1]

    play(scene)


def test_closing_the_proxy_closes_connections_over_a_cut_link(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client(serialize_type=SerializeType.MSGPACK)
        await client.invoke(proxy.address, commit(0))
        proxy.set_condition("namesrv", CUT)
        call = client.invoke(proxy.address, commit(1), PATIENCE)
        await asyncio.sleep(0)
        await proxy.close()
        with pytest.raises(ConnectionLostError):
            await call

    play(scene)


@pytest.mark.parametrize(
    ("condition", "seconds"),
    [
        # Each direction takes the latency.
        (LinkCondition(latency=1.0), 2.0),
        # Frame and response have more than 2,000 bytes each.
        (LinkCondition(bytes_per_second=1_000.0), 4.0),
        (LinkCondition(latency=1.0, bytes_per_second=1_000.0), 6.0),
    ],
)
def test_a_slow_link_takes_its_time(play: Play, condition: LinkCondition, seconds: float) -> None:
    async def scene(venue: Venue) -> None:
        clock = venue.place()[0].clock
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        proxy.set_condition("namesrv", condition)
        request = commit(1)
        request.body = bytes(2_000)
        begin = clock.monotonic()
        await client.invoke(proxy.address, request, PATIENCE)
        took = clock.monotonic() - begin
        assert took >= seconds
        if venue.is_simulated:
            assert took < seconds + 0.5
        proxy.set_condition("namesrv", WHOLE)

    play(scene)


def test_a_healed_link_is_not_slow_when_the_next_fault_begins(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        clock = venue.place()[0].clock
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        proxy.set_condition("namesrv", LinkCondition(bytes_per_second=1.0))
        call = asyncio.ensure_future(client.invoke(proxy.address, commit(1), PATIENCE))
        await venue.until(lambda: len(venue.frames(Lab.FRAME_SENT, COMMIT, form="request")) == 2)
        proxy.set_condition("namesrv", WHOLE)
        await call
        proxy.set_condition("namesrv", LinkCondition(latency=0.05))
        begin = clock.monotonic()
        await client.invoke(proxy.address, commit(2), PATIENCE)
        # At 1 byte/s, frame 1 would have taken minutes.
        assert clock.monotonic() - begin < 60
        assert offsets.heard == [0, 1, 2]

    play(scene)


def test_frames_on_a_slow_link_keep_their_order_and_leave_when_it_is_whole(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        proxy.set_condition("namesrv", LinkCondition(latency=1e6))
        calls = [client.invoke(proxy.address, commit(1), PATIENCE)]
        await venue.until(lambda: len(venue.frames(Lab.FRAME_SENT, COMMIT, form="request")) == 2)
        proxy.set_condition("namesrv", LinkCondition(latency=0.001))
        calls.append(client.invoke(proxy.address, commit(2), PATIENCE))
        await venue.until(lambda: len(venue.frames(Lab.FRAME_SENT, COMMIT, form="request")) == 3)
        assert offsets.heard == [0]
        proxy.set_condition("namesrv", WHOLE)
        await asyncio.gather(*calls)
        assert offsets.heard == [0, 1, 2]

    play(scene)


def test_the_worst_of_several_conditions() -> None:
    slow = LinkCondition(latency=1.0, bytes_per_second=1_000.0)
    slower = LinkCondition(latency=0.5, bytes_per_second=10.0)
    assert worst_of([]) == WHOLE
    assert worst_of([slow, slower]) == LinkCondition(latency=1.5, bytes_per_second=10.0)
    assert worst_of([CUT, slow]).is_cut
