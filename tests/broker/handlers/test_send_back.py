"""36: messages that a group wants again later (docs/spec/broker.md B.13)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.handlers import consumer_send_msg_back
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.names import SCHEDULE_TOPIC
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from tests.support.answers import body_of, present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.properties import few_and_all
from tests.support.stage import SimStage

CODE = RequestCode.CONSUMER_SEND_MSG_BACK
PROFILES = [Profile.V42, Profile.V49, Profile.V53]


async def send_back(
    peer: Peer, offset: int, level: int = 0, group: str = "G", **fields: Any
) -> RemotingCommand:
    return await peer.ask(CODE, ConsumerSendMsgBackRequestHeader(offset, group, level, **fields))


async def pulled(peer: Peer, topic: str, queue_id: int = 0) -> list[MessageExt]:
    return decode_records(body_of(await peer.pull(0, topic, queue_id=queue_id)))


async def group_with_message(stage: SimStage, **options: Any) -> Any:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.send(body=b"hello", **options)
    return peer


def depth(stage: SimStage, topic: str) -> int:
    return int(stage.broker.context.store.max_offset(topic, 0))


@pytest.mark.parametrize(
    ("asked", "reconsume_times", "level"), [(0, 0, 3), (0, 5, 8), (2, 5, 2), (40, 0, 18)]
)
@simulated()
async def test_a_message_is_stored_for_the_retry_topic_with_growing_delay(
    stage: SimStage, asked: int, reconsume_times: int, level: int
) -> None:
    options = {"properties": {"TAGS": "A", "KEYS": "k"}, "reconsume_times": reconsume_times}
    peer = await group_with_message(stage, born_timestamp=55, flag=9, **options)
    (original,) = await pulled(peer, "T")
    (await send_back(peer, original.commit_log_offset, asked)).require_success()
    (copy,) = await pulled(peer, SCHEDULE_TOPIC, level - 1)
    assert copy.reconsume_times == reconsume_times + 1
    assert (copy.body, copy.flag, copy.born_timestamp) == (b"hello", 9, 55)
    assert copy.born_host == original.born_host
    assert copy.properties == {
        **original.properties,
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": original.offset_message_id,
        "WAIT": "false",
        "DELAY": str(level),
        "REAL_TOPIC": "%RETRY%G",
        "REAL_QID": "0",
    }


@simulated()
async def test_the_copy_reaches_the_retry_topic_and_can_be_sent_back_again(stage: SimStage) -> None:
    """The topic and the id of the first record stay with it."""
    peer = await group_with_message(stage)
    (original,) = await pulled(peer, "T")
    position = original.commit_log_offset
    for times in (1, 2):
        (await send_back(peer, position, 1)).require_success()
        await stage.at(times * 3.0)
        copy = (await pulled(peer, "%RETRY%G"))[-1]
        assert copy.reconsume_times == times
        assert copy.properties["RETRY_TOPIC"] == "T"
        assert copy.properties["ORIGIN_MESSAGE_ID"] == original.offset_message_id
        position = copy.commit_log_offset


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("reconsume_times", "level", "limit", "version", "is_dead"),
    [
        (15, 0, None, 401, False),
        (16, 0, None, 401, True),
        (2, 0, 3, 401, False),
        (3, 0, 3, 401, True),
        (16, 0, 20, 401, False),
        (0, 0, 0, 401, True),
        (0, -1, None, 401, True),
        # Older clients' limits are not honoured.
        (3, 0, 3, 120, False),
        (16, 0, 20, 120, True),
    ],
)
def test_a_message_retried_up_to_its_limit_becomes_a_dead_letter(
    simulate: RunScenario,
    profile: Profile,
    reconsume_times: int,
    level: int,
    limit: int | None,
    version: int,
    is_dead: bool,
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await group_with_message(stage, reconsume_times=reconsume_times)
        peer.version = version
        (await send_back(peer, 0, level, max_reconsume_times=limit)).require_success()
        assert depth(stage, "%DLQ%G") == is_dead
        topic = stage.broker.context.tables.topics.find("%DLQ%G")
        if is_dead:
            assert topic is not None
            assert (topic.read_queue_nums, topic.perm) == (1, 2 if profile == Profile.V42 else 6)
        else:
            assert topic is None

    simulate(scenario, profile=profile)


@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_a_dead_letter_keeps_the_delay_of_its_last_retry_in_4_2_0_only(
    stage: SimStage, profile: Profile
) -> None:
    """4.2.0 does not clear DELAY, which every retried message has, and so delays the dead letter too."""
    peer = await group_with_message(stage)
    (await send_back(peer, 0, 1)).require_success()
    await stage.at(3.0)
    (copy,) = await pulled(peer, "%RETRY%G")
    (await send_back(peer, copy.commit_log_offset, -1)).require_success()
    assert depth(stage, "%DLQ%G") == (profile != Profile.V42)
    await stage.at(6.0)
    assert depth(stage, "%DLQ%G") == 1


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated()
async def test_a_send_to_the_retry_topic_is_delayed_and_may_end_among_the_dead_letters(
    stage: SimStage, profile: Profile
) -> None:
    """A client whose send-back fails sends the retry itself. 5.x stores a dead letter at once, 4.x later."""
    peer = stage.peer()
    delayed: dict[str, Any] = {"properties": {"DELAY": "2"}}
    (await peer.send("%RETRY%G", reconsume_times=1, **delayed)).require_success()
    (await peer.send("%RETRY%G", reconsume_times=17, **delayed)).require_success()
    assert (depth(stage, "%RETRY%G"), depth(stage, "%DLQ%G")) == (0, int(profile == Profile.V53))
    await stage.at(7.0)
    assert (depth(stage, "%RETRY%G"), depth(stage, "%DLQ%G")) == (1, 1)


@simulated()
async def test_a_group_without_retry_queues_loses_what_it_sends_back(stage: SimStage) -> None:
    peer = await group_with_message(stage)
    present(stage.broker.context.tables.groups.find("G")).retry_queue_nums = 0
    end = stage.broker.context.store.max_commit_log_offset
    (await send_back(peer, 0)).require_success()
    assert stage.broker.context.store.max_commit_log_offset == end


@simulated()
async def test_refusals(stage: SimStage) -> None:
    peer = await group_with_message(stage)
    store = stage.broker.context.store
    end = store.max_commit_log_offset
    stage.broker.context.tables.groups._auto_create = False
    for group in ("unknown", "a/b", "", "x" * 300):
        answer = await send_back(peer, 0, group=group)
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert f"subscription group not exist, {group}" in remark_of(answer)
    for offset in (-1, 1, end - 1, end, end + 1, 2**63 - 1, -(2**63)):
        answer = await send_back(peer, offset)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == f"look message by offset failed, {offset}"
    assert store.max_commit_log_offset == end
    await peer.create_topic("%RETRY%G", 1, 1, perm=4)
    answer = await send_back(peer, 0)
    assert (answer.code, answer.remark) == (16, "the topic[%RETRY%G] sending message is forbidden")


@simulated(broker_permission=4)
async def test_a_broker_that_may_not_be_written_to_takes_nothing_back(stage: SimStage) -> None:
    answer = await send_back(stage.peer(), 0)
    assert answer.code == ResponseCode.NO_PERMISSION
    assert remark_of(answer).startswith("the broker[10.0.1.")
    assert remark_of(answer).endswith("] sending message is forbidden")


@simulated()
async def test_records_that_no_consumer_receives_cannot_be_sent_back(stage: SimStage) -> None:
    put = stage.broker.context.store.put_message
    prepared = int(MessageSysFlag.TRANSACTION_PREPARED)
    committed = int(MessageSysFlag.TRANSACTION_COMMIT)
    hidden = [
        put(StoredMessage("RMQ_SYS_TRANS_HALF_TOPIC", 0, b"x")).physical_offset,
        put(StoredMessage("T", 0, b"x", sys_flag=prepared)).physical_offset,
    ]
    shown = put(StoredMessage("T", 0, b"x", b"TRAN_MSG\x01true", sys_flag=committed)).physical_offset
    peer = stage.peer()
    for offset in hidden:
        assert (await send_back(peer, offset)).code == ResponseCode.SYSTEM_ERROR
    (await send_back(peer, shown, 1)).require_success()
    await stage.at(3.0)
    # Taken for no half message, and visible in its queue.
    assert depth(stage, "%RETRY%G") == 1


@simulated()
async def test_a_send_back_fails_if_the_retry_topic_cannot_be_stored(stage: SimStage) -> None:
    peer = await group_with_message(stage)
    answer = await send_back(peer, 0, group="g" * 125)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "too long" in remark_of(answer)


@pytest.mark.parametrize("examples", few_and_all(75, 300))
def test_any_input_gets_success_or_a_clear_refusal(simulate: RunScenario, examples: int) -> None:
    """For any numbers and names: no exception, at most one record, and no broken record."""
    numbers = st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 20)

    async def scenario(stage: SimStage) -> None:
        peer = await group_with_message(stage, properties="A\x01b\x01c\x02\x02TAGS\x01\u00e9\x02DELAY\x010")
        await peer.send(reconsume_times=2**31 - 1, body=b"often")
        context = stage.broker.context

        @settings(max_examples=examples)
        @given(
            offset=st.integers(-(2**63), 2**63 - 1)
            | st.integers(-2, context.store.max_commit_log_offset + 2),
            group=st.sampled_from(["G", "", "a b", "g" * 255, "%RETRY%G"]),
            level=numbers,
            limit=numbers | st.none(),
            version=st.sampled_from([0, 120, 401, 479]),
        )
        def check(offset: int, group: str, level: int, limit: int | None, version: int) -> None:
            header = ConsumerSendMsgBackRequestHeader(offset, group, level, max_reconsume_times=limit)
            end = context.store.max_commit_log_offset
            request = RemotingCommand(CODE, header, version=version)
            refusal = None
            try:
                answer = consumer_send_msg_back.handle(context, cast("Connection", None), request)
            except RequestError as error:
                refusal = error
            if refusal is not None:
                assert refusal.code in (1, 26)
                assert refusal.remark
                assert context.store.max_commit_log_offset == end
            else:
                assert isinstance(answer, RemotingCommand)
                assert answer.code == ResponseCode.SUCCESS
                (copy,) = decode_records(present(context.store.look_message(end)))
                assert copy.properties["RETRY_TOPIC"] == "T"

        check()

    simulate(scenario)
