"""UPDATE_AND_CREATE_TOPIC_LIST (18) and UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewindmq.broker.limits import MAX_GROUPS, MAX_LISTED_CONFIGS
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.profile import Profile
from tests.support.answers import present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

TOPICS = RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
GROUPS = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST


def json_peer(stage: ServerStage) -> Peer:
    return stage.peer(serialize_type=SerializeType.JSON)


async def ask_topics(peer: Peer, *topics: dict[str, Any] | None) -> RemotingCommand:
    return await peer.ask(TOPICS, body=json.dumps({"topicConfigList": topics}).encode())


async def ask_groups(peer: Peer, *groups: dict[str, Any]) -> RemotingCommand:
    return await peer.ask(GROUPS, body=json.dumps({"groupConfigList": groups}).encode())


def saved(stage: ServerStage, file: str, key: str) -> dict[str, Any]:
    """Entries of a file under ``config/`` by name."""
    table: dict[str, Any] = json.loads((stage.root / "broker-a/config" / file).read_text())[key]
    return table


@simulated(profile=Profile.V53)
async def test_18_creates_and_changes_topics_and_registers_them_once(stage: SimStage) -> None:
    peer = json_peer(stage)
    await peer.create_topic("Old", write=4, read=4)
    fifo = {"topicName": "New", "attributes": {"+message.type": "FIFO"}, "order": True}
    old = {"topicName": "Old", "readQueueNums": 2, "writeQueueNums": 3, "perm": 4, "attributes": {}}
    (await ask_topics(peer, fifo, old)).require_success()
    topics = stage.broker.context.tables.topics
    new, changed = present(topics.find("New")), present(topics.find("Old"))
    assert (new.read_queue_nums, new.write_queue_nums, new.perm) == (16, 16, 6)
    assert (new.attributes, new.order) == ({"message.type": "FIFO"}, True)
    assert (changed.read_queue_nums, changed.write_queue_nums, changed.perm) == (2, 3, 4)
    assert {"New", "Old"} <= saved(stage, "topics.json", "topicConfigTable").keys()


@simulated(profile=Profile.V53)
async def test_18_with_an_unchanged_topic_creates_the_others(stage: SimStage) -> None:
    """5.3.3 returns success and creates none of them."""
    peer = json_peer(stage)
    for topics in ([{"topicName": "A"}], [{"topicName": "A"}, {"topicName": "B"}]):
        (await ask_topics(peer, *topics)).require_success()
    assert stage.broker.context.tables.topics.find("B") is not None


@pytest.mark.parametrize(
    ("topic", "code", "words"),
    [
        ({"topicName": "../../x"}, 29, "The specified topic contains illegal characters"),
        ({"topicName": ""}, 29, "The specified topic is blank."),
        ({"topicName": "x" * 128}, 29, "The specified topic is longer than topic max length."),
        ({"topicName": "broker-a"}, 29, "The topic[broker-a] is conflict with system topic."),
        ({"topicName": "B", "perm": 8}, 29, "perm 8 is not in 0..7"),
        ({"topicName": "B", "readQueueNums": -1}, 29, "readQueueNums -1 is not in 0..65535"),
        ({"topicName": "B", "attributes": {"+message.type": "MIXED"}}, 29, "MIXED message type is not"),
        ({"topicName": "B", "attributes": {"+message.type": "WRONG"}}, 1, "value is not in set: ["),
        ({"topicName": "B", "attributes": {"+colour": "red"}}, 1, "unsupported key: colour"),
        ({"topicName": "B", "attributes": {"colour": "red"}}, 1, "only add attribute is supported"),
        ({"topicName": "B", "attributes": {"": "red"}}, 1, "kv string format wrong."),
        ({"topicName": "A", "attributes": {"+queue.type": "SimpleCQ"}}, 1, "attempt to update an unch"),
        ({"topicName": "B", "topicFilterType": "x"}, 1, "CreateTopicListRequestBody: "),
        ({}, 1, "CreateTopicListRequestBody: "),
        (None, 1, "CreateTopicListRequestBody: "),
    ],
)
@simulated(profile=Profile.V53)
async def test_18_with_one_bad_topic_changes_nothing(
    stage: SimStage, topic: dict[str, Any] | None, code: int, words: str
) -> None:
    response = await ask_topics(json_peer(stage), {"topicName": "A"}, topic)
    assert response.code == code
    assert remark_of(response).startswith(words)
    assert stage.broker.context.tables.topics.find("A") is None
    assert list((stage.root / "broker-a/config").iterdir()) == []


@simulated(profile=Profile.V53)
async def test_225_creates_and_replaces_groups(stage: SimStage) -> None:
    peer = json_peer(stage)
    (await ask_groups(peer, {"groupName": "G1", "retryMaxTimes": 3})).require_success()
    again = {"groupName": "G1", "retryMaxTimes": 4, "attributes": {}, "groupRetryPolicy": {"type": 1}}
    (await ask_groups(peer, again, {"groupName": "G2", "consumeEnable": False})).require_success()
    groups = saved(stage, "subscriptionGroup.json", "subscriptionGroupTable")
    assert (groups["G1"]["retryMaxTimes"], groups["G2"]["consumeEnable"]) == (4, False)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"groupName": "a b"}, "the specified group[a b] contains illegal characters"),
        ({"groupName": ""}, "the specified group is blank"),
        ({"groupName": "B", "retryQueueNums": 65_536}, "retryQueueNums 65536 is over 65535"),
        ({}, "SubscriptionGroupList: "),
    ],
)
@simulated(profile=Profile.V53)
async def test_225_with_one_bad_group_changes_nothing(
    stage: SimStage, group: dict[str, Any], words: str
) -> None:
    response = await ask_groups(json_peer(stage), {"groupName": "A"}, group)
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(response).lower().startswith(words.lower())
    assert stage.broker.context.tables.groups.get("A") is None


@pytest.mark.parametrize(
    ("code", "key", "name"),
    [(TOPICS, "topicConfigList", "topicName"), (GROUPS, "groupConfigList", "groupName")],
)
@simulated(profile=Profile.V53)
async def test_a_list_that_is_too_long_changes_nothing(
    stage: SimStage, code: RequestCode, key: str, name: str
) -> None:
    context = stage.broker.context
    count = len(context.tables.topics), len(context.tables.groups)
    entries = [{name: f"N{number}"} for number in range(MAX_LISTED_CONFIGS + 1)]
    refused = await json_peer(stage).ask(code, body=json.dumps({key: entries}).encode())
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert f"send at most {MAX_LISTED_CONFIGS} in one request" in remark_of(refused)
    assert count == (len(context.tables.topics), len(context.tables.groups))


@simulated(profile=Profile.V53)
async def test_a_list_of_which_a_part_fits_changes_nothing(stage: SimStage) -> None:
    peer, groups = json_peer(stage), stage.broker.context.tables.groups

    async def create(first: int, last: int) -> RemotingCommand:
        return await ask_groups(peer, *({"groupName": f"N{number}"} for number in range(first, last)))

    for first in range(0, MAX_GROUPS, MAX_LISTED_CONFIGS):
        last = min(first + MAX_LISTED_CONFIGS, MAX_GROUPS - 1 - len(groups) + first)
        (await create(first, last)).require_success()
    refused = await create(MAX_GROUPS, MAX_GROUPS + 2)
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(refused) == f"there are {MAX_GROUPS} consumer groups already"
    assert len(groups) == MAX_GROUPS - 1
    # One has room, and a known name needs none.
    assert (await ask_groups(peer, {"groupName": "N0"}, {"groupName": "new"})).code == 0


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.ROCKETMQ])
@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (TOPICS, b'{"topicConfigList":[]}', 0),
        (GROUPS, b'{"groupConfigList":[]}', 0),
        *((code, body, 1) for code in (TOPICS, GROUPS) for body in (None, b"", b"null", b"{}", b"[]", b"{")),
    ],
)
def test_a_list_may_be_empty_but_not_missing(
    simulate: RunScenario, serialize_type: SerializeType, code: RequestCode, body: bytes | None, expected: int
) -> None:
    async def scenario(stage: SimStage) -> None:
        response = await stage.peer(serialize_type=serialize_type).ask(code, body=body)
        assert response.code == expected

    simulate(scenario, profile=Profile.V53)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@simulated()
async def test_releases_before_5_3_do_not_know_lists(stage: SimStage, profile: Profile) -> None:
    peer = json_peer(stage)
    for response in (
        await ask_topics(peer, {"topicName": "A"}),
        await ask_groups(peer, {"groupName": "A"}),
    ):
        assert response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert stage.broker.context.tables.topics.find("A") is None
