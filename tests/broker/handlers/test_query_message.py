"""12 QUERY_MESSAGE: keys, times, limits, and that catching up leaves room for others.

Specification: docs/spec/store.md 5.5.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import QueryMessageRequestHeader, QueryMessageResponseHeader
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import body_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

INDEX: dict[str, Any] = {"max_hash_slot_num": 1_000, "max_index_num": 10_000}
END_OF_TIME = (1 << 63) - 1


async def query(
    peer: Peer, key: str, *, count: int = 64, begin: int = 0, end: int = END_OF_TIME, **fields: Any
) -> Any:
    header = QueryMessageRequestHeader(
        topic="T", key=key, max_num=count, begin_timestamp=begin, end_timestamp=end, **fields
    )
    return await peer.ask(RequestCode.QUERY_MESSAGE, header)


def offsets(response: RemotingCommand) -> list[int]:
    return [message.queue_offset for message in decode_records(body_of(response.require_success()))]


@simulated(store=INDEX)
async def test_a_query_by_key_returns_messages_and_the_end_of_the_index(stage: SimStage) -> None:
    peer = stage.peer()
    for number in range(4):
        await stage.at(number + 1.0)
        await peer.send(properties={"KEYS": f"all only{number}", "UNIQ_KEY": f"U{number}"})
    answer = await query(peer, "all")
    assert offsets(answer) == [0, 1, 2, 3]
    header = answer.decode_header(QueryMessageResponseHeader)
    assert header.index_last_update_timestamp == EPOCH_MS + 4_000
    assert header.index_last_update_phyoffset == decode_records(body_of(answer))[-1].commit_log_offset
    assert offsets(await query(peer, "only2")) == [2]
    assert offsets(await query(peer, "U1")) == [1]
    assert offsets(await query(peer, "all", count=2)) == [2, 3]
    assert offsets(await query(peer, "all", begin=EPOCH_MS + 2_000, end=EPOCH_MS + 3_000)) == [1, 2]


@simulated(store=INDEX)
async def test_22_where_there_is_nothing(stage: SimStage) -> None:
    peer = stage.peer()
    answer = await query(peer, "a")
    assert answer.code == ResponseCode.QUERY_NOT_FOUND
    assert answer.remark == "can not find message, maybe time range not correct"
    header = answer.decode_header(QueryMessageResponseHeader)
    assert (header.index_last_update_timestamp, header.index_last_update_phyoffset) == (0, 0)


@simulated(store=INDEX)
async def test_a_query_by_unique_key_returns_at_most_32_whatever_it_requests(stage: SimStage) -> None:
    peer = stage.peer()
    for _ in range(70):
        await peer.send(properties={"UNIQ_KEY": "U"})
    assert offsets(await query(peer, "U", count=1, unique_key_query=True)) == list(range(38, 70))
    assert offsets(await query(peer, "U", count=100)) == list(range(6, 70))


@simulated(store={"max_hash_slot_num": 1_000, "max_index_num": 10_000})
async def test_other_requests_are_served_while_a_query_catches_up(stage: SimStage) -> None:
    peer = stage.peer()
    for _ in range(2_000):
        await peer.send(properties={"KEYS": "a"})
    order = []

    async def ask(what: str, answer: Any) -> None:
        await answer
        order.append(what)

    await asyncio.gather(
        ask("12", query(peer, "a")),
        ask("30", peer.number(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader("T", 0))),
    )
    assert order == ["30", "12"]


@simulated(store={**INDEX, "mapped_file_size_commit_log": 1 << 24})
async def test_messages_that_do_not_fit_into_a_frame_are_left_out(stage: SimStage) -> None:
    peer = stage.peer()
    for _ in range(5):
        (await peer.send(body=bytes(4_000_000), properties={"KEYS": "a"})).require_success()
    assert offsets(await query(peer, "a")) == [0, 1, 2, 3]


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated(store=INDEX)
async def test_the_index_of_a_store_is_used_after_a_restart(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.send(properties={"KEYS": "a"})
    assert offsets(await query(peer, "a")) == [0]
    await stage.broker.close()
    await stage.start_broker(store=INDEX, profile=profile)
    peer = stage.peer()
    await peer.send(properties={"KEYS": "a"})
    assert offsets(await query(peer, "a")) == [0, 1]
