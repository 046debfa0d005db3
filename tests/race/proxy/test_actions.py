"""Rules that act on frames: delay, drop, fail and duplicate."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestTimeoutError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.action import Delay, Drop, Duplicate, Fail, Hold
from rewindmq.race.proxy.pattern import Form, FramePattern
from tests.race.proxy.venue import CODECS, COMMIT, Offsets, Play, Venue, commit

BUSY = ResponseCode.SYSTEM_BUSY


def test_a_delayed_request_arrives_after_a_later_one(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        await client.invoke(proxy.address, commit(0))
        rule = proxy.add_rule(FramePattern(COMMIT), Delay(2.0))
        await asyncio.gather(*[client.invoke(proxy.address, commit(offset)) for offset in (1, 2)])
        assert offsets.heard == [0, 2, 1]
        assert (rule.caught, rule.held) == (1, ())

    play(scene)


def test_the_end_of_a_rule_passes_on_what_it_delays(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        rule = proxy.add_rule(FramePattern(COMMIT), Delay(1e6))
        call = venue.client().invoke(proxy.address, commit(1))
        await rule.wait()
        rule.release()
        assert (await call).code == ResponseCode.SUCCESS

    play(scene)


@pytest.mark.parametrize("serialize_type", CODECS)
def test_the_proxy_answers_a_request_that_fails(play: Play, serialize_type: SerializeType) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client(serialize_type=serialize_type)
        proxy.add_rule(FramePattern(COMMIT), Fail(BUSY, "too busy"))
        await client.invoke_oneway(proxy.address, commit(1))
        response = await client.invoke(proxy.address, commit(2))
        assert (response.code, response.remark) == (BUSY, "too busy")
        assert (await client.invoke(proxy.address, commit(3))).code == ResponseCode.SUCCESS
        assert offsets.heard == [1, 3]
        (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
        assert dropped["reason"] == f"the proxy answers it with {BUSY}"
        (answer,) = venue.frames(Lab.FRAME_ARRIVED, COMMIT, response_code=int(BUSY))
        assert (answer["source"], answer["target"], answer["form"]) == ("namesrv", "consumer-A", "response")

    play(scene)


def test_a_response_that_fails_loses_its_result_and_the_request_takes_effect(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        proxy.add_rule(FramePattern(COMMIT, Form.RESPONSE), Fail(BUSY, "too busy"))
        response = await venue.client().invoke(proxy.address, commit(1))
        assert (response.code, response.remark, offsets.heard) == (BUSY, "too busy", [1])

    play(scene)


def test_a_dropped_response_leaves_its_request_without_one(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        proxy.add_rule(FramePattern(COMMIT, Form.RESPONSE), Drop())
        with pytest.raises(RequestTimeoutError):
            await venue.client().invoke(proxy.address, commit(1), 0.2)
        assert offsets.heard == [1]
        assert venue.frames(Lab.FRAME_HELD, COMMIT) == []

    play(scene)


def test_the_sender_of_a_duplicated_request_gets_one_response(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        offsets = Offsets()
        proxy = await venue.proxy(await venue.server(offsets.handlers()))
        client = venue.client()
        proxy.add_rule(FramePattern(COMMIT), Duplicate())
        assert (await client.invoke(proxy.address, commit(1))).code == ResponseCode.SUCCESS
        await client.invoke(proxy.address, commit(2))
        assert offsets.heard == [1, 1, 2]
        first, second, _ = venue.frames(Lab.FRAME_ARRIVED, COMMIT, form="request")
        assert second == {**first, "copy": 1}
        (dropped,) = venue.frames(Lab.FRAME_DROPPED, COMMIT)
        assert (dropped["name"], dropped["form"]) == ("UPDATE_CONSUMER_OFFSET", "response")
        assert dropped["fields"]["commitOffset"] == 1

    play(scene)


def test_the_oldest_rule_catches_a_frame(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        first = proxy.add_rule(FramePattern(COMMIT), Fail(BUSY, ""))
        second = proxy.add_rule(FramePattern(COMMIT, count=None), Fail(ResponseCode.SYSTEM_ERROR, ""))
        client = venue.client()
        codes = [(await client.invoke(proxy.address, commit(0))).code for _ in range(3)]
        assert codes == [BUSY, ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_ERROR]
        assert (first.caught, second.caught) == (1, 2)

    play(scene)


def test_a_pattern_names_ends_and_groups_and_understands_short_field_names(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        ok = {code: lambda _, request: RemotingCommand(ResponseCode.SUCCESS) for code in (COMMIT, 310)}
        proxy = await venue.proxy(await venue.server(ok))
        client = venue.client()
        send = RemotingCommand(310, ext_fields={"a": "P", "b": "T", "e": "3"})
        (send_code,) = [code for code in type(COMMIT) if code == 310]
        wrong = [
            FramePattern(COMMIT, client="consumer"),
            FramePattern(COMMIT, server="broker-a"),
            FramePattern(COMMIT, fields={"group": "P"}),
            FramePattern(send_code, fields={"group": "P", "queueId": 2}),
        ]
        right = [
            FramePattern(COMMIT, client="consumer-A", server="namesrv", fields={"group": "G"}),
            FramePattern(send_code, fields={"group": "P", "topic": "T", "queueId": 3}),
        ]
        rules = [proxy.add_rule(pattern, Hold()) for pattern in (*wrong, *right)]
        calls = [client.invoke(proxy.address, command) for command in (commit(1), send)]
        for rule in rules[len(wrong) :]:
            await rule.wait()
        assert [rule.caught for rule in rules] == [0, 0, 0, 0, 1, 1]
        for rule in rules:
            rule.release()
        await asyncio.gather(*calls)

    play(scene)
