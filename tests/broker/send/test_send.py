"""Sends: B01 to B03, stored records, refusals, and batches."""

from __future__ import annotations

import asyncio
import itertools
import re
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.limits import MAX_BATCH_MESSAGES, MAX_BATCH_PART_MESSAGES
from rewindmq.broker.send.sender import strip_wait, tags_code_of
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.message import ViewMessageRequestHeader
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.limits import MAX_MESSAGE_BODY_BYTES
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.properties import parse_properties
from rewindmq.protocol.message.record import decode_record, decode_records
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.text import java_hash
from tests.support.answers import body_of, present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

PROFILES = (Profile.V42, Profile.V49, Profile.V53)
BATCH = RequestCode.SEND_BATCH_MESSAGE
# A batch must fit into a segment.
LARGE_SEGMENTS = {"mapped_file_size_commit_log": 16 << 20}


async def read(peer: Peer, topic: str = "T", queue_id: int = 0, count: int = 32) -> list[Any]:
    response = await peer.pull(0, topic, queue_id=queue_id, count=count)
    return decode_records(body_of(response) or b"")


def assert_refused(response: RemotingCommand, code: int, words: str = "") -> None:
    """Java's client reads region and trace flag of a refusal without a check that they exist."""
    assert response.code == code, response.remark
    assert words in remark_of(response)
    assert response.ext["MSG_REGION"] == "DefaultRegion"
    assert response.ext["TRACE_ON"] == "true"


@pytest.mark.scenario("B01", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
def test_B01_an_unknown_topic_is_made_from_TBW102_and_registered_at_once(
    simulate: RunScenario, profile: Profile
) -> None:
    async def scenario(stage: SimStage) -> None:
        namesrv = await stage.start_namesrv()
        broker = await stage.start_broker(namesrv_addr=namesrv.address, profile=profile)
        peer, asker = stage.peer(), stage.peer("asker", namesrv.address)
        (await peer.send("N", queue_id=3)).require_success()
        topic = present(broker.context.tables.topics.find("N"))
        assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (4, 4, 6)
        assert (stage.root / "broker-a/config/topics.json").read_text().count('"N"') == 2
        await stage.at(0.1)
        header = GetRouteInfoRequestHeader("N")
        answer = await asker.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        route = decode_body(answer.require_success(), TopicRouteData)
        assert [data.broker_addrs for data in route.broker_datas] == [{0: broker.address}]

    simulate(scenario, brokers=0)


@simulated()
async def test_B01_the_smaller_of_both_queue_counts_is_taken_and_never_less_than_none(
    stage: SimStage,
) -> None:
    peer = stage.peer()
    for name, wish, given_queues in (("A", 16, 8), ("B", 2, 2)):
        (await peer.send(name, default_topic_queue_nums=wish)).require_success()
        assert present(stage.broker.context.tables.topics.find(name)).write_queue_nums == given_queues
    none: dict[str, Any] = {"default_topic_queue_nums": -5}
    assert_refused(await peer.send("C", **none), 1, "request queueId[0] is illegal")
    assert_refused(await peer.send("C", queue_id=-1, **none), 1, "has no queue")


@pytest.mark.parametrize(
    ("topic", "options", "code"),
    [
        ("N", {"queue_id": 4}, 1),
        ("N", {"body": b"x" * 4_194_305}, 13),
        ("N", {"properties": "k\x01" + "v" * 32_767}, 13),
        ("N", {"properties": "DELAY\x01soon"}, 13),
        ("%RETRY%unknown", {}, 26),
    ],
)
@simulated(auto_create_subscription_group=False)
async def test_a_refused_send_creates_no_topic(
    stage: SimStage, topic: str, options: dict[str, Any], code: int
) -> None:
    file = stage.root / "broker-a/config/topics.json"
    before = file.read_bytes() if file.exists() else None
    assert_refused(await stage.peer().send(topic, **options), code)
    assert stage.broker.context.tables.topics.find(topic) is None
    assert (file.read_bytes() if file.exists() else None) == before


@pytest.mark.scenario("B02", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("template", ["TBW102", "Nothing", "BenchmarkTest"])
@simulated(auto_create_topic_enable=False)
async def test_B02_without_a_template_to_inherit_from_the_topic_does_not_exist(
    stage: SimStage, template: str, profile: Profile
) -> None:
    response = await stage.peer().send("N", default_topic=template)
    assert_refused(response, ResponseCode.TOPIC_NOT_EXIST, "topic[N] not exist, apply first please!")
    assert remark_of(response).endswith("for further details.")
    assert stage.broker.context.tables.topics.find("N") is None
    assert not (stage.root / "broker-a/config/topics.json").exists()


@simulated()
async def test_B02_a_template_kept_from_an_earlier_start_serves_no_longer(stage: SimStage) -> None:
    # topics.json holds the built-in topics too, TBW102 among them.
    (await stage.peer().send("Before")).require_success()
    await stage.broker.close()
    broker = await stage.start_broker(auto_create_topic_enable=False)
    peer = stage.peer()
    assert_refused(await peer.send("N"), ResponseCode.TOPIC_NOT_EXIST, "topic[N] not exist")
    assert broker.context.tables.topics.find("N") is None
    (await peer.send("Before")).require_success()


@pytest.mark.scenario("B03", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B03_queues_are_accepted_up_to_the_larger_count(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic(write=2, read=4)
    (await peer.send(queue_id=3)).require_success()
    bad = ResponseCode.INVALID_PARAMETER if profile == Profile.V53 else ResponseCode.SYSTEM_ERROR
    assert_refused(await peer.send(queue_id=4), bad, "request queueId[4] is illegal")
    assert_refused(await peer.send("a b"), bad, "illegal characters")
    for _ in range(20):
        response = (await peer.send(queue_id=-1)).require_success()
        assert response.decode_header(SendMessageResponseHeader).queue_id in (0, 1)


@simulated()
async def test_answer_names_where_the_message_is(stage: SimStage) -> None:
    peer = stage.peer()
    for offset in range(3):
        response = (await peer.send(queue_id=2)).require_success()
        header = response.decode_header(SendMessageResponseHeader)
        assert (header.queue_id, header.queue_offset) == (2, offset)
        assert (header.msg_region, header.trace_on) == ("DefaultRegion", True)
    host, position = parse_offset_message_id(header.msg_id)
    assert host == bytes([10, 0, 1, 1]) + int(stage.broker.address.rpartition(":")[2]).to_bytes(4, "big")
    found = await peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(position))
    assert decode_record(body_of(found.require_success())).queue_offset == 2
    for wrong in (position + 1, -1, 1 << 40):
        missing = await peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(wrong))
        assert missing.code == 1
        assert missing.remark == f"can not find message by the offset, {wrong}"


@simulated()
async def test_what_is_stored(stage: SimStage) -> None:
    peer = stage.peer()
    text = "TAGS\x01TagA\x02WAIT\x01true\x02KEYS\x01k1 k2\x02"
    await peer.send(properties=text, flag=7, reconsume_times=2, born_timestamp=99, sys_flag=1)
    (message,) = await read(peer)
    assert message.properties == {"TAGS": "TagA", "KEYS": "k1 k2", "CLUSTER": "DefaultCluster"}
    assert (message.flag, message.reconsume_times, message.born_timestamp) == (7, 2, 99)
    assert message.sys_flag == 1
    assert message.stored_body == b"hello"
    assert message.born_host.startswith("10.0.3.1:")
    assert message.store_host == stage.broker.address
    assert (await peer.pull(0, subscription="TagA")).code == ResponseCode.SUCCESS
    assert (await peer.pull(0, subscription="TagB")).code == ResponseCode.PULL_RETRY_IMMEDIATELY


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE_V2, BATCH])
@pytest.mark.parametrize(
    ("fields", "expected", "words"),
    [
        ({"topic": "../../x"}, ResponseCode.SYSTEM_ERROR, "illegal characters"),
        ({"topic": ""}, ResponseCode.SYSTEM_ERROR, "blank"),
        ({"topic": "x" * 128}, ResponseCode.SYSTEM_ERROR, "longer than topic max length"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION, "is forbidden."),
        ({"topic": "OFFSET_MOVED_EVENT"}, ResponseCode.NO_PERMISSION, "is forbidden."),
        ({"queue_id": 2**31 - 1}, ResponseCode.SYSTEM_ERROR, "is illegal"),
        ({"properties": "DELAY\x01soon"}, ResponseCode.MESSAGE_ILLEGAL, "delay"),
        ({"sys_flag": 4}, ResponseCode.MESSAGE_ILLEGAL, "transaction"),
        ({"sys_flag": 12}, ResponseCode.MESSAGE_ILLEGAL, "transaction"),
        ({"sys_flag": 0x80}, ResponseCode.MESSAGE_ILLEGAL, "inner batches"),
        ({"body": bytes(4_194_305)}, ResponseCode.MESSAGE_ILLEGAL, ""),
        ({"properties": "A\x01" + "x" * 32_767}, ResponseCode.MESSAGE_ILLEGAL, ""),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else None,
)
@simulated()
async def test_refusals_store_nothing(
    stage: SimStage, code: int, fields: dict[str, Any], expected: int, words: str
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    config = (stage.root / "broker-a/config/topics.json").read_text()
    body = fields.get("body", b"hello")
    if code == BATCH:
        body = encode_batch([Message("T", body)])
    assert_refused(await peer.send(code=code, **{**fields, "body": body}), expected, words)
    assert stage.broker.context.store.max_commit_log_offset == 0
    assert (stage.root / "broker-a/config/topics.json").read_text() == config
    (await peer.send()).require_success()


@pytest.mark.parametrize("code", [10, 310, 320])
@simulated()
async def test_missing_and_wrong_typed_fields(stage: SimStage, code: int) -> None:
    peer = stage.peer()
    assert_refused(await peer.ask(code, body=b"x"), 1, "missing required field")
    names: dict[str, Any] = dict.fromkeys("abcdefgh", "0") if code != 10 else {}
    if code == 10:
        names = dict.fromkeys(
            ("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "sysFlag"), "0"
        ) | {"bornTimestamp": "0", "flag": "0"}
    names["e" if code != 10 else "queueId"] = "zero"
    assert_refused(await peer.ask(code, body=b"x", **names), 1, "queueId" if code == 10 else "e`")
    assert stage.broker.context.store.max_commit_log_offset == 0


@simulated(broker_permission=4)
async def test_a_broker_that_may_not_be_written_refuses_ordered_topics(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    (await peer.send()).require_success()
    stage.broker.context.tables.topics.mark_ordered(["T"])
    assert_refused(
        await peer.send(),
        ResponseCode.NO_PERMISSION,
        "the broker[10.0.1.1] sending message is forbidden",
    )


@pytest.mark.parametrize(("profile", "perm"), [(Profile.V42, 2), (Profile.V49, 6), (Profile.V53, 6)])
@simulated()
async def test_retry_topic_checks_group_and_reconsume_limit(
    stage: SimStage, profile: Profile, perm: int
) -> None:
    peer = stage.peer()
    (await peer.send("%RETRY%G", reconsume_times=15)).require_success()
    assert [message.body for message in await read(peer, "%RETRY%G")] == [b"hello"]
    # 5.x takes a message to the dead letters beyond its limit, not at it.
    more = profile == Profile.V53
    (await peer.send("%RETRY%G", reconsume_times=16 + more)).require_success()
    (await peer.send("%RETRY%G", reconsume_times=3 + more, max_reconsume_times=3)).require_success()
    (await peer.send("%RETRY%G", reconsume_times=16, max_reconsume_times=20)).require_success()
    store = stage.broker.context.store
    assert (store.max_offset("%RETRY%G", 0), store.max_offset("%DLQ%G", 0)) == (2, 2)
    assert present(stage.broker.context.tables.topics.find("%DLQ%G")).perm == perm
    peer.version = 120
    (await peer.send("%RETRY%G", reconsume_times=3, max_reconsume_times=3)).require_success()
    assert store.max_offset("%RETRY%G", 0) == 3


@simulated()
async def test_a_send_whose_new_topic_cannot_be_saved_is_refused_until_the_disk_permits(
    stage: SimStage,
) -> None:
    peer = stage.peer()
    # A directory where the file is to be written first.
    (stage.root / "broker-a/config/topics.json.tmp").mkdir()
    assert_refused(await peer.send("N"), ResponseCode.SYSTEM_ERROR, "cannot save")
    # The topic exists but is not yet on disk: a crash would lose messages sent to it.
    assert_refused(await peer.send("N"), ResponseCode.SYSTEM_ERROR, "cannot save")
    (stage.root / "broker-a/config/topics.json.tmp").rmdir()
    (await peer.send("N")).require_success()
    assert '"N"' in (stage.root / "broker-a/config/topics.json").read_text()


@simulated(auto_create_subscription_group=False)
async def test_retry_topic_of_an_unknown_group(stage: SimStage) -> None:
    response = await stage.peer().send("%RETRY%G")
    assert_refused(response, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, G")


@simulated()
async def test_batch_becomes_records_with_consecutive_offsets(stage: SimStage) -> None:
    peer = stage.peer()
    messages = [Message("T", b"%d" % number, f"Tag{number}", flag=number) for number in range(3)]
    response = await peer.send(body=encode_batch(messages), code=BATCH)
    header = response.require_success().decode_header(SendMessageResponseHeader)
    assert header.queue_offset == 0
    stored = await read(peer)
    assert header.msg_id.split(",") == [message.offset_message_id for message in stored]
    assert [(m.body, m.tags, m.flag, m.queue_offset) for m in stored] == [
        (b"%d" % number, f"Tag{number}", number, number) for number in range(3)
    ]
    tagged = decode_records(body_of(await peer.pull(0, subscription="Tag1")))
    assert [message.body for message in tagged] == [b"1"]


def test_a_message_under_v53_keeps_wait_and_knows_its_region(simulate: RunScenario) -> None:
    """Java's consumers of 5.x record no trace of a message without MSG_REGION."""
    given = {"TAGS": "A", "WAIT": "true"}
    batch_given = {"UNIQ_KEY": "batch", "WAIT": "false"}
    added = {"MSG_REGION": "there", "TRACE_ON": "false", "CLUSTER": "DefaultCluster"}

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.send(properties=given)
        bare = Message("T", b"bare")
        bare.properties.clear()
        answer = await peer.send(body=encode_batch([bare]), properties=batch_given, code=BATCH)
        assert answer.decode_header(SendMessageResponseHeader).transaction_id == "batch"
        single, of_batch = await read(peer)
        del single.properties["UNIQ_KEY"]
        assert single.properties == given | added
        assert of_batch.properties == batch_given | added

    simulate(scenario, profile=Profile.V53, region_id="there", trace_on=False)


@pytest.mark.parametrize("given", [{}, {"UNIQ_KEY": ""}, {"UNIQ_KEY": "", "KEYS": "k"}])
@simulated(profile=Profile.V53)
async def test_under_v53_a_message_without_unique_key_gets_one_that_its_answer_names(
    stage: SimStage, given: dict[str, str]
) -> None:
    """5.3.3 ``SendMessageProcessor#sendMessage``; batches are unchanged."""
    peer = stage.peer()
    answers = [
        (await peer.send(properties=properties)).decode_header(SendMessageResponseHeader)
        for properties in (given, given, {"UNIQ_KEY": "mine"})
    ]
    named = [message.properties["UNIQ_KEY"] for message in await read(peer)]
    assert [answer.transaction_id for answer in answers] == named
    assert len(set(named)) == 3
    assert named[2] == "mine"
    assert all(re.fullmatch(r"[0-9A-F]{32}", name) for name in named[:2])


@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_a_message_without_body_is_stored(stage: SimStage, profile: Profile) -> None:
    """A tombstone of a compaction topic is one. 5.3.3 fails at it, in ``#buildMsgContext``."""
    peer = stage.peer()
    (await peer.send(body=b"", properties={"TAGS": "A"})).require_success()
    assert [message.body for message in await read(peer)] == [b""]


@simulated(profile=Profile.V49)
async def test_under_v49_a_message_without_unique_key_stays_without(stage: SimStage) -> None:
    peer = stage.peer()
    answer = (await peer.send(properties={})).decode_header(SendMessageResponseHeader)
    assert answer.transaction_id is None
    (message,) = await read(peer)
    assert "UNIQ_KEY" not in message.properties


@simulated()
async def test_batch_properties_yield_to_a_message_s_own(stage: SimStage) -> None:
    peer = stage.peer()
    own = Message("T", b"own", properties={"UNIQ_KEY": "mine"})
    bare = Message("T", b"bare")
    bare.properties.clear()
    shared = {"UNIQ_KEY": "batch", "WAIT": "false", "X": "1"}
    await peer.send(body=encode_batch([own, bare]), properties=shared, code=BATCH)
    first, second = await read(peer)
    assert first.properties == {
        "UNIQ_KEY": "mine",
        "WAIT": "true",
        "X": "1",
        "CLUSTER": "DefaultCluster",
    }
    assert second.properties == {**shared, "CLUSTER": "DefaultCluster"}


def test_messages_of_a_batch_that_differ_only_in_their_ids_and_those_that_do_not(
    simulate: RunScenario,
) -> None:
    """Properties after the id are compared for each message, not only for the first."""

    def message(**properties: str) -> Message:
        bare = Message("T", b"")
        bare.properties.clear()
        bare.properties.update(properties)
        return bare

    given = [
        message(UNIQ_KEY="1", TAGS="A"),
        message(UNIQ_KEY="2", TAGS="A"),
        message(UNIQ_KEY="3", TAGS="B"),
        message(UNIQ_KEY="4", X="own"),
        message(TAGS="A"),
        message(UNIQ_KEY="5"),
        message(UNIQ_KEY="6"),
        message(),
    ]

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.send(body=encode_batch(given), properties={"X": "1"}, code=BATCH)
        stored = await read(peer)
        added = {"X": "1", "CLUSTER": "DefaultCluster"}
        assert [one.properties for one in stored] == [added | one.properties for one in given]
        tagged = decode_records(body_of(await peer.pull(0, subscription="A")))
        assert [one.queue_offset for one in tagged] == [0, 1, 4]

    simulate(scenario)


@simulated()
async def test_batch_flag_in_a_310_makes_it_a_batch(stage: SimStage) -> None:
    peer = stage.peer()
    body = encode_batch([Message("T", b"1"), Message("T", b"2")])
    (await peer.send(body=body, batch=True)).require_success()
    assert [message.body for message in await read(peer)] == [b"1", b"2"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        encode_batch([Message("T", b"1")])[:-1],
        encode_batch([Message("T", b"1"), Message("T", b"2", delay_level=3)]),
        encode_batch([Message("T", b"1", properties={"TRAN_MSG": "true"})]),
    ],
)
@simulated()
async def test_batch_bodies_that_are_refused_as_a_whole(stage: SimStage, body: bytes) -> None:
    peer = stage.peer()
    assert_refused(await peer.send(body=body, code=BATCH), ResponseCode.MESSAGE_ILLEGAL)
    assert stage.broker.context.store.max_commit_log_offset == 0


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", SerializeType)
@simulated(store=LARGE_SEGMENTS)
async def test_a_batch_of_10000_is_stored_and_answered_with_its_ids(
    stage: SimStage, profile: Profile, kind: SerializeType
) -> None:
    """RocketMQ 4.9.7 answers with a header of 330,198 bytes."""
    peer = stage.peer(serialize_type=kind)
    await peer.create_topic()
    given = [Message("T", b"%d" % number, f"Tag{number % 7}") for number in range(10_000)]
    response = await peer.send(body=encode_batch(given), code=BATCH)
    header = response.require_success().decode_header(SendMessageResponseHeader)
    ids = header.msg_id.split(",")
    assert (header.queue_offset, len(set(ids))) == (0, 10_000)
    store = stage.broker.context.store
    assert store.max_offset("T", 0) == 10_000
    for offset in (0, 1, 255, 256, 257, 1_023, 1_024, 9_999):
        (message,) = decode_records(body_of(await peer.pull(offset, count=1)))
        assert (message.body, message.tags, message.queue_offset) == (
            b"%d" % offset,
            f"Tag{offset % 7}",
            offset,
        )
        assert parse_offset_message_id(ids[offset])[1] == message.commit_log_offset
    tagged = decode_records(body_of(await peer.pull(9_990, subscription="Tag1")))
    assert [one.queue_offset for one in tagged] == [9_990, 9_997]


@simulated(store=LARGE_SEGMENTS)
async def test_requests_behind_a_large_batch_need_not_wait_for_it(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    body = encode_batch([Message("T", b"x")] * 5_000)
    # All of them arrive in one read.
    answers = await asyncio.gather(
        peer.send(body=body, code=BATCH), peer.send(body=b"a"), peer.send(body=b"b"), peer.send("Other")
    )
    headers = [answer.require_success().decode_header(SendMessageResponseHeader) for answer in answers]
    assert [header.queue_offset for header in headers] == [2, 0, 1, 0]
    positions = [parse_offset_message_id(one)[1] for one in headers[0].msg_id.split(",")]
    assert len(positions) == 5_000
    assert len({after - before for before, after in itertools.pairwise(positions)}) == 1
    messages = await read(peer)
    assert [message.body for message in messages] == [b"a", b"b", *[b"x"] * 30]
    assert [message.commit_log_offset for message in messages[2:]] == positions[:30]
    assert stage.broker.context.store.max_offset("T", 0) == 5_002


@simulated()
async def test_a_large_batch_is_refused_if_its_topic_goes_meanwhile(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    body = encode_batch([Message("T", b"x")] * 5_000)
    batch, deleted = await asyncio.gather(
        peer.send(body=body, code=BATCH, default_topic="None"),
        peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader("T")),
    )
    deleted.require_success()
    assert_refused(batch, ResponseCode.TOPIC_NOT_EXIST)
    assert stage.broker.context.store.max_commit_log_offset == 0


@pytest.mark.parametrize("profile", PROFILES)
@simulated(store=LARGE_SEGMENTS)
async def test_only_4_2_limits_the_records_of_a_batch(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    count = 30_000
    body = encode_batch([Message("T", b"x" * 100)] * count)
    assert len(body) < MAX_MESSAGE_BODY_BYTES < len(body) + 80 * count
    response = await peer.send(body=body, code=BATCH)
    stored = stage.broker.context.store.max_offset("T", 0)
    if profile is Profile.V42:
        assert_refused(response, ResponseCode.MESSAGE_ILLEGAL, "records of the batch")
        assert stored == 0
    else:
        assert response.code == ResponseCode.SUCCESS
        assert stored == count
    over = encode_batch([Message("T", b"x" * (MAX_MESSAGE_BODY_BYTES // 2))] * 2)
    assert_refused(await peer.send(body=over, code=BATCH), ResponseCode.MESSAGE_ILLEGAL)


# What 4 MiB hold at most.
SMALLEST = struct.pack(">iiiiish", 23, 0, 0, 0, 1, b"x", 0)
MOST = MAX_MESSAGE_BODY_BYTES // len(SMALLEST)


@simulated(store=LARGE_SEGMENTS)
async def test_a_batch_has_as_many_messages_as_its_bytes_hold(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    # All of them arrive in one read.
    answers = await asyncio.gather(
        peer.send(body=SMALLEST * MOST, code=BATCH), peer.send(body=b"y"), peer.send("Other", b"z")
    )
    headers = [answer.require_success().decode_header(SendMessageResponseHeader) for answer in answers]
    assert [header.queue_offset for header in headers] == [1, 0, 0]
    store = stage.broker.context.store
    assert store.max_offset("T", 0) == MOST + 1
    ids = headers[0].msg_id.split(",")
    assert len(set(ids)) == len(ids) == MOST
    for place in (0, MAX_BATCH_PART_MESSAGES - 1, MAX_BATCH_PART_MESSAGES, MOST - 1):
        (message,) = decode_records(body_of(await peer.pull(place + 1, count=1)) or b"")
        assert message.commit_log_offset == parse_offset_message_id(ids[place])[1]


@simulated(store=LARGE_SEGMENTS)
async def test_a_batch_whose_last_message_cannot_be_stored_stores_nothing(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    # Recovery could not tell a property with zero bytes from a lost sector.
    last = struct.pack(">iiiiish4s", 27, 0, 0, 0, 1, b"x", 4, b"a\x01\0b")
    body = SMALLEST * MAX_BATCH_PART_MESSAGES + last
    assert_refused(await peer.send(body=body, code=BATCH), ResponseCode.MESSAGE_ILLEGAL)
    assert stage.broker.context.store.max_commit_log_offset == 0


@simulated(store=LARGE_SEGMENTS)
async def test_a_batch_whose_topic_goes_between_two_parts_is_refused(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    store = stage.broker.context.store
    body = SMALLEST * (2 * MAX_BATCH_PART_MESSAGES)
    batch = asyncio.create_task(peer.send(body=body, code=BATCH, default_topic="None"))
    await stage.until(lambda: store.max_offset("T", 0) > 0, step=0)
    deleted = await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader("T"))
    deleted.require_success()
    assert_refused(await batch, ResponseCode.TOPIC_NOT_EXIST)


@simulated(store={**LARGE_SEGMENTS, "max_message_size": 8 << 20})
async def test_the_ids_of_a_batch_fit_into_a_frame(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    body = SMALLEST * (MAX_BATCH_MESSAGES + 1)
    assert_refused(await peer.send(body=body, code=BATCH), ResponseCode.MESSAGE_ILLEGAL, "more than")
    assert stage.broker.context.store.max_commit_log_offset == 0


@simulated(store={**LARGE_SEGMENTS, "flush_disk_type": FlushDiskType.SYNC_FLUSH})
async def test_a_large_batch_waits_for_the_disk_as_others_do(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    body = encode_batch([Message("T", b"x")] * 5_000)
    answers = await asyncio.gather(*(peer.send(body=body, code=BATCH) for _ in range(3)))
    assert [answer.code for answer in answers] == [ResponseCode.SUCCESS] * 3
    assert stage.broker.context.store.max_offset("T", 0) == 15_000
    assert stage.broker.context.store.flushed_offset == stage.broker.context.store.max_commit_log_offset


@simulated()
async def test_batch_to_a_retry_topic(stage: SimStage) -> None:
    body = encode_batch([Message("%RETRY%G", b"1")])
    response = await stage.peer().send("%RETRY%G", body, code=BATCH)
    assert_refused(response, ResponseCode.MESSAGE_ILLEGAL, "does not support retry group")


NAMES = st.sampled_from(["WAIT", "TAGS", "XWAIT", "XTAGS", "KEYS"])
PAIRS = st.lists(st.tuples(NAMES, st.sampled_from(["true", "false", "TagA", "WAIT"])), max_size=6)


@settings(derandomize=True, deadline=None)
@given(PAIRS, st.booleans())
def test_quick_readings_of_the_properties_text_agree_with_parsing_it(
    pairs: list[tuple[str, str]], trailing: bool
) -> None:
    text = "\x02".join(f"{name}\x01{value}" for name, value in pairs) + ("\x02" if trailing else "")
    parsed = parse_properties(text)
    tags = parsed.get("TAGS")
    assert tags_code_of(text) == (java_hash(tags) if tags else 0)
    rest, waits = strip_wait(text)
    assert waits == (parsed.pop("WAIT", "true") != "false")
    assert parse_properties(rest) == parsed
