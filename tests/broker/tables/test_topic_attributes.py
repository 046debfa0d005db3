"""Attributes of topics in UPDATE_AND_CREATE_TOPIC (17), and what depends on them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from rewindmq.protocol.body.registration import DataVersion, TopicConfigSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.profile import Profile
from tests.support.answers import present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

NORMAL = {"message.type": "NORMAL"}
FIFO = {"message.type": "FIFO"}
DELAY = {"message.type": "DELAY"}
SIMPLE = {"queue.type": "SimpleCQ"}
DELETE = {"cleanup.policy": "DELETE"}
_ONLY_ADD = "only add attribute is supported while creating topic. key: message.type"
_UNCHANGEABLE = "attempt to update an unchangeable attribute. key: "
# Topic, attributes of the request, then what a broker of 5.3.3 answered one after the other: code, remark of
# a refusal, and the topic's attributes afterwards; None if there is no topic.
ANSWERS_5_3_3: list[tuple[str, str | None, int, str | None, dict[str, str] | None]] = [
    ("A1", "+message.type=NORMAL", 0, None, NORMAL),
    ("A1", "+message.type=FIFO", 0, None, FIFO),
    ("A1", None, 0, None, FIFO),
    ("A1", "-message.type", 0, None, {}),
    ("A1", "-message.type", 1, "attempt to delete a nonexistent key: message.type", {}),
    (
        *("A2", "+message.type=WRONG", 1),
        *("value is not in set: [UNSPECIFIED, TRANSACTION, FIFO, MIXED, DELAY, NORMAL]", None),
    ),
    ("A2", "+message.type=MIXED", 29, "MIXED message type is not supported.", None),
    ("A2", "+colour=red", 1, "unsupported key: colour", None),
    (
        "A2",
        "-message.type",
        1,
        _ONLY_ADD,
        None,
    ),
    ("A2", "message.type=NORMAL", 1, "add/alter attribute format is wrong: message.type", None),
    ("A2", "+message.type", 1, "delete attribute format is wrong: +message.type", None),
    ("A2", "+message.type=FIFO,+message.type=FIFO", 1, "key duplication: +message.type", None),
    ("B2", "+queue.type=SimpleCQ", 0, None, SIMPLE),
    ("B3", "+queue.type=Other", 1, "value is not in set: [SimpleCQ, BatchCQ]", None),
    ("B2", "+queue.type=SimpleCQ", 1, f"{_UNCHANGEABLE}queue.type", SIMPLE),
    ("B2", "-queue.type", 1, f"{_UNCHANGEABLE}queue.type", SIMPLE),
    ("C1", "+cleanup.policy=DELETE", 0, None, DELETE),
    ("C1", "+cleanup.policy=COMPACTION", 1, f"{_UNCHANGEABLE}cleanup.policy", DELETE),
    ("C2", "+cleanup.policy=OTHER", 1, "value is not in set: [DELETE, COMPACTION]", None),
    ("C1", "-cleanup.policy", 1, f"{_UNCHANGEABLE}cleanup.policy", DELETE),
    ("D1", "+reserve.time=5", 0, None, {"reserve.time": "5"}),
    ("D1", "+reserve.time=-1", 0, None, {"reserve.time": "-1"}),
    ("D1", "+reserve.time=-2", 1, "value is not in range(-1, 9223372036854775807)", {"reserve.time": "-1"}),
    ("D1", "+reserve.time=x", 1, 'For input string: "x"', {"reserve.time": "-1"}),
    (
        *("D1", "+reserve.time=9223372036854775808", 1),
        *('For input string: "9223372036854775808"', {"reserve.time": "-1"}),
    ),
    ("D1", "-reserve.time", 0, None, {}),
    ("D1", "+reserve.time=+7", 0, None, {"reserve.time": "+7"}),
    ("E1", "++a=b", 1, "kv string format wrong.", None),
    ("E1", "a+=b", 1, "kv string format wrong.", None),
    ("E1", "+=b", 1, "kv string format wrong.", None),
    ("E1", "-", 1, "kv string format wrong.", None),
    ("E1", "+", 1, "delete attribute format is wrong: +", None),
    ("E1", "=b", 1, "add/alter attribute format is wrong: ", None),
    ("E1", "+a b=c", 1, "unsupported key: a b", None),
    ("E1", ",+message.type=DELAY", 1, "delete attribute format is wrong: ", None),
    ("E1", "+message.type=DELAY, +queue.type=SimpleCQ", 1, "kv string format wrong.", None),
    ("E1", "+message.type=DELAY,", 0, None, DELAY),
    ("E1", ",", 0, None, DELAY),
    ("E1", "+message.type=FIFO,-message.type", 1, "alter duplication key. key: message.type", DELAY),
    ("E1", "+cleanup.policy=DELETE", 1, f"{_UNCHANGEABLE}cleanup.policy", DELAY),
    ("E3", "+message.type=DELAY=x", 0, None, DELAY),
    ("F1", "", 0, None, {}),
]


async def update(peer: Peer, attributes: str | None, topic: str = "T") -> RemotingCommand:
    header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, "SINGLE_TAG", attributes=attributes)
    return await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def shown(peer: Peer, topic: str = "T") -> dict[str, str] | None:
    """Return the attributes in GET_ALL_TOPIC_CONFIG (21); None if there is no topic."""
    response = await peer.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    found = decode_body(response, TopicConfigSerializeWrapper).topic_config_table.get(topic)
    return None if found is None else found.attributes or {}


@simulated(profile=Profile.V53)
async def test_5_3_3_stores_and_refuses_attributes(stage: SimStage) -> None:
    peer = stage.peer()
    for topic, attributes, code, remark, after in ANSWERS_5_3_3:
        response = await update(peer, attributes, topic)
        said = (response.code, response.remark if response.code else None, await shown(peer, topic))
        assert said == (code, remark, after), (topic, attributes)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@pytest.mark.parametrize(
    "attributes",
    [
        *("+message.type=FIFO", "-message.type", "+message.type=MIXED", "+message.type=WRONG"),
        *("+colour=red", "colour", "+queue.type=BatchCQ", "+reserve.time=x", ",", "+=", "+a=b,+a=b"),
    ],
)
@simulated()
async def test_releases_before_5_ignore_attributes(
    stage: SimStage, profile: Profile, attributes: str
) -> None:
    peer = stage.peer()
    (await update(peer, attributes)).require_success()
    assert await shown(peer) == {}
    (await update(peer, f"{attributes},+cleanup.policy=COMPACTION", "Other")).require_success()
    assert await shown(peer, "Other") == {"cleanup.policy": "COMPACTION"}


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
def test_a_cleanup_policy_is_kept_and_returned_and_no_request_changes_it(
    simulate: RunScenario, profile: Profile
) -> None:
    compacted = {"cleanup.policy": "COMPACTION"}

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        assert (await update(peer, "+cleanup.policy=OTHER")).code == 1
        assert (await update(peer, "cleanup.policy=COMPACTION")).code == 1
        assert await shown(peer) is None
        (await update(peer, "+cleanup.policy=COMPACTION")).require_success()
        (await update(peer, None)).require_success()
        for attributes in ("+cleanup.policy=COMPACTION", "+cleanup.policy=DELETE", "-cleanup.policy"):
            refused = await update(peer, attributes)
            assert (refused.code, refused.remark) == (1, f"{_UNCHANGEABLE}cleanup.policy")
        assert await shown(peer) == compacted

    simulate(scenario, profile=profile)


def test_attributes_survive_a_restart_and_are_in_every_table(simulate: RunScenario) -> None:
    several = {"message.type": "TRANSACTION", "queue.type": "SimpleCQ", "reserve.time": "5"}

    async def scenario(stage: SimStage) -> None:
        text = ",".join(f"+{name}={value}" for name, value in several.items())
        (await update(stage.peer(), text)).require_success()
        await stage.broker.close()
        broker = await stage.start_broker(profile=Profile.V53)
        assert present(broker.context.tables.topics.find("T")).attributes == several
        # What the broker registers.
        assert broker.context.tables.topics.wrapper().topic_config_table["T"].attributes == several
        response = (await stage.peer().ask(RequestCode.GET_ALL_TOPIC_CONFIG)).require_success()
        table = decode_body(response, TopicConfigSerializeWrapper).topic_config_table
        assert table["T"].attributes == several
        saved = json.loads((stage.root / "broker-a/config/topics.json").read_text())
        assert saved["topicConfigTable"]["T"]["attributes"] == several
        # What a slave does with the table.
        broker.context.tables.topics.update(msgspec.structs.replace(table["T"], attributes=None))
        broker.context.tables.topics.take_over(TopicConfigSerializeWrapper(table, DataVersion(1, 1)))
        assert present(broker.context.tables.topics.find("T")).attributes == several

    simulate(scenario, profile=Profile.V53)


@simulated(profile=Profile.V53)
async def test_MIXED_needs_enableMixedMessageType(stage: SimStage) -> None:
    peer = stage.peer()
    assert (await update(peer, "+message.type=MIXED")).code == 29
    change = await peer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"enableMixedMessageType=true")
    change.require_success()
    (await update(peer, "+message.type=MIXED")).require_success()
    assert await shown(peer) == {"message.type": "MIXED"}


@pytest.mark.parametrize("message_type", ["NORMAL", "FIFO", "DELAY", "TRANSACTION"])
@simulated(profile=Profile.V53)
async def test_the_broker_stores_messages_of_any_type_as_5_3_3_does(
    stage: SimStage, message_type: str
) -> None:
    peer = stage.peer()
    (await update(peer, f"+message.type={message_type}")).require_success()
    for properties in ({}, {"__SHARDINGKEY": "k"}, {"DELAY": "1"}):
        (await peer.send(properties=properties)).require_success()
    half = {"TRAN_MSG": "true", "PGROUP": "pg"}
    (await peer.send(properties=half, sys_flag=4)).require_success()


@simulated(profile=Profile.V53)
async def test_queues_of_batches_are_refused_with_a_sentence(stage: SimStage) -> None:
    peer = stage.peer()
    refused = await update(peer, "+queue.type=BatchCQ")
    assert refused.code == 1
    assert refused.remark == "queue.type=BatchCQ is not supported by RewindMQ: use SimpleCQ"
    assert await shown(peer) is None


@pytest.mark.parametrize("profile", list(Profile))
@simulated()
async def test_a_topic_with_queues_of_batches_from_elsewhere_is_neither_written_nor_read(
    stage: SimStage, profile: Profile
) -> None:
    peer = stage.peer()
    (await update(peer, None)).require_success()
    topic = present(stage.broker.context.tables.topics.find("T"))
    # As a master or a topics.json of RocketMQ 5 brings it.
    stage.broker.context.tables.topics.update(
        msgspec.structs.replace(topic, attributes={"queue.type": "BatchCQ"})
    )
    await peer.heartbeat()
    answers: list[Any] = [await peer.send(), await peer.pull(0)]
    for refused in answers:
        assert refused.code == 1
        assert remark_of(refused) == "topic[T] has queue.type=BatchCQ, which RewindMQ does not support"
