"""361, the pulls of 5.x lite pull consumers."""

from __future__ import annotations

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from tests.support.answers import body_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

# SUSPEND, SUBSCRIPTION, LITE_PULL_MESSAGE.
FLAGS = 22


async def lite_pull(peer: Peer, offset: int) -> RemotingCommand:
    header = PullMessageRequestHeader("G", "T", 0, offset, 32, FLAGS, 0, 20_000, 0, "*", "TAG")
    answer = await peer.ask(RequestCode.LITE_PULL_MESSAGE, header)
    assert isinstance(answer, RemotingCommand)
    return answer


@simulated(profile=Profile.V53)
async def test_361_is_a_pull(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(3)
    answer = await lite_pull(peer, 1)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 3
    assert isinstance(answer.body, bytes)
    assert [message.queue_offset for message in decode_records(body_of(answer), "")] == [1, 2]
    held = await lite_pull(peer, 3)
    assert held.code == ResponseCode.PULL_NOT_FOUND
    assert 20 <= stage.runtime.clock.monotonic() <= 25.1


@simulated(profile=Profile.V53, lite_pull_message_enable=False)
async def test_361_can_be_switched_off(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    answer = await lite_pull(peer, 0)
    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark == "the broker[10.0.1.1] for lite pull consumer is forbidden"
    assert (await peer.pull(0)).code == ResponseCode.PULL_NOT_FOUND
