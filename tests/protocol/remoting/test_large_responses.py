"""Large responses are built in slices, one response at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from itertools import pairwise

import pytest

from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import encode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError, RequestError
from rewindmq.protocol.remoting.runtime import LoopTimers
from rewindmq.protocol.remoting.slices.large_responses import SMALL_ENTRIES, LargeResponses

REQUEST = RemotingCommand(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, serialize_type=SerializeType.JSON)


def names(count: int) -> TopicList:
    return TopicList([f"T{number}" for number in range(count)])


class Turns:
    """Records slices, and the turns of the event loop between them."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.runs = True
        self._tick()

    def _tick(self) -> None:
        self.seen.append("turn")
        if self.runs:
            asyncio.get_running_loop().call_soon(self._tick)

    def slices(self, name: str, count: int) -> Generator[None, None, TopicList]:
        for _ in range(count):
            self.seen.append(name)
            yield
        return names(3)

    def order(self) -> str:
        return "".join(name for name in self.seen if name != "turn")


async def test_a_small_body_is_answered_at_once() -> None:
    responses = LargeResponses(LoopTimers())
    reply = responses.reply(REQUEST, SMALL_ENTRIES, lambda: names(SMALL_ENTRIES))
    assert isinstance(reply, RemotingCommand)
    assert reply.body == names(SMALL_ENTRIES)


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.MSGPACK])
async def test_a_large_body_has_the_bytes_of_a_small_one(serialize_type: SerializeType) -> None:
    responses = LargeResponses(LoopTimers())
    request = RemotingCommand(REQUEST.code, serialize_type=serialize_type)
    reply = responses.reply(request, SMALL_ENTRIES + 1, lambda: names(4_000))
    assert not isinstance(reply, RemotingCommand)
    assert reply is not None
    response = await reply
    assert response is not None
    assert (response.code, response.body) == (ResponseCode.SUCCESS, encode_body(names(4_000), serialize_type))


async def test_one_slice_in_a_turn_and_one_body_at_a_time() -> None:
    responses, turns = LargeResponses(LoopTimers()), Turns()
    await asyncio.gather(*(responses.build(REQUEST, turns.slices(name, 5)) for name in "abc"))
    turns.runs = False
    assert turns.order() == "aaaaabbbbbccccc"
    slices = [index for index, name in enumerate(turns.seen) if name != "turn"]
    assert all("turn" in turns.seen[first:second] for first, second in pairwise(slices))


async def test_a_request_whose_connection_closes_lets_the_next_one_pass() -> None:
    responses, turns = LargeResponses(LoopTimers()), Turns()
    first = asyncio.ensure_future(responses.build(REQUEST, turns.slices("a", 1_000)))
    second = asyncio.ensure_future(responses.build(REQUEST, turns.slices("b", 3)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await second
    turns.runs = False
    assert turns.order().endswith("bbb")
    assert turns.order().count("a") < 10


async def test_refusals_reach_the_requester_and_let_the_next_one_pass() -> None:
    def refusing() -> Generator[None, None, TopicList]:
        yield
        raise RequestError(ResponseCode.SYSTEM_ERROR, "too many")

    responses = LargeResponses(LoopTimers())
    with pytest.raises(RequestError, match="too many"):
        await responses.build(REQUEST, refusing())
    reply = responses.reply(REQUEST, 100_000, lambda: TopicList(["x" * 1_000_000] * 20))
    assert not isinstance(reply, RemotingCommand)
    assert reply is not None
    with pytest.raises(BodyError, match="does not fit into a frame"):
        await reply
    reply = responses.reply(REQUEST, 100_000, lambda: names(1))
    assert not isinstance(reply, RemotingCommand)
    assert reply is not None
    assert await reply is not None
