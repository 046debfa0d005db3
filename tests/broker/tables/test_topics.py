"""UPDATE_AND_CREATE_TOPIC (17): stored values and refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.profile import Profile
from tests.support.answers import present, remark_of
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

GOOD = CreateTopicRequestHeader("T", "TBW102", 4, 4, 6, "SINGLE_TAG")


@pytest.mark.parametrize(("profile", "code"), [(Profile.V42, 1), (Profile.V49, 1), (Profile.V53, 29)])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"topic": "../../x"}, "The specified topic contains illegal characters"),
        ({"topic": ""}, "The specified topic is blank."),
        ({"topic": "x" * 128}, "The specified topic is longer than topic max length."),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "The topic[SCHEDULE_TOPIC_XXXX] is conflict with system topic."),
        ({"topic": "broker-a"}, "The topic[broker-a] is conflict with system topic."),
        ({"read_queue_nums": -1}, "readQueueNums -1 is not in 0..65535"),
        ({"write_queue_nums": 65_536}, "writeQueueNums 65536 is not in 0..65535"),
        ({"perm": 8}, "perm 8 is not in 0..7"),
        ({"topic_filter_type": "x"}, "topicFilterType 'x' is neither SINGLE_TAG nor MULTI_TAG"),
    ],
)
@simulated()
async def test_17_refuses_and_stores_nothing(
    stage: SimStage, profile: Profile, code: int, change: dict[str, Any], words: str
) -> None:
    header = msgspec.structs.replace(GOOD, **change)
    response = await stage.peer().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert response.code == code
    assert remark_of(response).startswith(words)
    assert list((stage.root / "broker-a/config").iterdir()) == []


@simulated()
async def test_17_changes_a_topic_and_keeps_its_messages(stage: SimStage) -> None:
    peer = stage.peer()
    for queues, perm, filter_type in ((4, 6, "SINGLE_TAG"), (2, 4, "MULTI_TAG")):
        header = CreateTopicRequestHeader("T", "TBW102", queues, queues, perm, filter_type)
        (await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).require_success()
        topic = present(stage.broker.context.tables.topics.find("T"))
        assert (topic.read_queue_nums, topic.write_queue_nums) == (queues, queues)
        assert (topic.perm, topic.topic_filter_type.name) == (perm, filter_type)
        await peer.fill(1)
    assert stage.broker.context.store.max_offset("T", 0) == 2
