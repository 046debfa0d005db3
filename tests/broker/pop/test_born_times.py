"""Requests of clients whose clocks stay behind while a test moves the broker's."""

from __future__ import annotations

import asyncio

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.pop import NotificationRequestHeader, PopMessageRequestHeader
from rewindmq.protocol.profile import Profile
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

HOUR_MS = 3_600_000


@simulated(profile=Profile.V53)
async def test_a_pop_waits_for_its_poll_time_after_the_brokers_clock_was_moved(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    born_ms = stage.runtime.clock.now_ms()
    stage.world.wall_ahead_ms += HOUR_MS
    stage.broker.clock_changed(HOUR_MS)
    pop = PopMessageRequestHeader("G", "T", -1, 32, 10_000, 15_000, born_ms, 0)
    waiting = asyncio.create_task(peer.ask(RequestCode.POP_MESSAGE, pop))
    notified = NotificationRequestHeader("H", "T", -1, 15_000, born_ms)
    told = asyncio.create_task(stage.peer("c2").ask(RequestCode.NOTIFICATION, notified))
    await stage.at(5.0)
    assert not waiting.done()
    assert not told.done()
    (await peer.send(body=b"m", queue_id=0)).require_success()
    await stage.at(5.1)
    assert waiting.result().code == ResponseCode.SUCCESS
    assert told.result().ext["hasMsg"] in (True, "true")


@simulated(profile=Profile.V53)
async def test_a_pop_of_a_client_whose_own_clock_is_late_is_refused_as_before(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    born_ms = stage.runtime.clock.now_ms() - HOUR_MS
    pop = PopMessageRequestHeader("G", "T", -1, 32, 10_000, 15_000, born_ms, 0)
    assert (await peer.ask(RequestCode.POP_MESSAGE, pop)).code == ResponseCode.POLLING_TIMEOUT
