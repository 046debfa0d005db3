"""UPDATE_AND_CREATE_STATIC_TOPIC (513) is refused in words that say what to create instead."""

from __future__ import annotations

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.profile import Profile
from tests.support.answers import remark_of
from tests.support.fixtures import played, simulated
from tests.support.stage import SimStage

SHUFFLE = "wordCount-ROCKETMQ-COUNT-0000000006-shuffleTopic"


async def refusal(stage: SimStage, topic: str = SHUFFLE) -> tuple[int, str]:
    header = CreateTopicRequestHeader(topic, "TBW102", 16, 16, 6, "SINGLE_TAG")
    answer = await stage.peer().ask(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, header, b"{}")
    return answer.code, remark_of(answer)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@simulated()
async def test_up_to_4_9_the_request_is_unknown(stage: SimStage, profile: Profile) -> None:
    assert await refusal(stage) == (3, " request type 513 not supported")


@played(profile=Profile.V53)
async def test_the_refusal_has_the_command_that_creates_an_ordinary_topic(stage: SimStage) -> None:
    code, remark = await refusal(stage)
    says, _, command = remark.partition(", updateTopic ")
    assert (code, says) == (
        3,
        "RewindMQ has no static topics: before the program starts, create an ordinary topic of this name",
    )
    await stage.run(f"updateTopic {command}")
    topic = stage.broker.context.tables.topics.find(SHUFFLE)
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums) == (16, 16)


@simulated(profile=Profile.V53)
async def test_an_invalid_name_is_refused_as_such(stage: SimStage) -> None:
    assert (await refusal(stage, "a b"))[0] == 29
    assert stage.broker.context.tables.topics.find("a b") is None
