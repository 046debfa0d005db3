"""Half messages and END_TRANSACTION (37): storage, visibility, refusals (docs/spec/broker.md B.14)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.config import BrokerRole
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import EndTransactionRequestHeader
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.record import decode_record, decode_records
from rewindmq.protocol.profile import Profile
from tests.support.answers import body_of, present
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import Scenario, SimStage

HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
UNKNOWN, COMMIT, ROLLBACK = 0, 8, 12
with_half_topic = pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])


async def send_half(stage: SimStage, peer: Peer, body: bytes = b"half", **options: Any) -> dict[str, Any]:
    """Send a half message to queue 2 of T; return the header of END_TRANSACTION (37) for it."""
    properties = {
        "TRAN_MSG": "true",
        "PGROUP": "PG",
        "UNIQ_KEY": "K1",
        "TAGS": "A",
        **options.pop("properties", {}),
    }
    options = {"born_timestamp": stage.runtime.clock.now_ms(), "queue_id": 2, "sys_flag": 4, **options}
    answer = await peer.send("T", body, properties=properties, **options)
    header = answer.require_success().decode_header(SendMessageResponseHeader)
    assert header.queue_id == options["queue_id"]
    _, position = parse_offset_message_id(header.msg_id)
    return {
        "producer_group": "PG",
        "tran_state_table_offset": header.queue_offset,
        "commit_log_offset": position,
        "msg_id": "K1",
    }


async def end(peer: Peer, half: dict[str, Any], verdict: int, **changes: Any) -> RemotingCommand:
    header = EndTransactionRequestHeader(**{**half, "commit_or_rollback": verdict, **changes})
    answer: RemotingCommand = await peer.ask(RequestCode.END_TRANSACTION, header)
    return answer


async def read(peer: Peer) -> list[Any]:
    return decode_records(body_of(await peer.pull(0, queue_id=2)))


def read_op(stage: SimStage) -> list[Any]:
    """Return the op records; clients cannot pull their topic."""
    return decode_records(stage.broker.context.store.get_message(OP, 0, 0, 32, None).body)


def queue_sizes(stage: SimStage) -> tuple[int, int, int]:
    """Messages of the real queue, half messages, op records."""
    max_offset = stage.broker.context.store.max_offset
    return max_offset("T", 2), max_offset(HALF, 0), max_offset(OP, 0)


@with_half_topic
@simulated()
async def test_a_half_message_waits_in_a_topic_without_consumers(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    half = await send_half(stage, peer)
    assert queue_sizes(stage) == (0, 1, 0)
    stored = decode_record(present(stage.broker.context.store.look_message(half["commit_log_offset"])))
    assert (stored.topic, stored.queue_id, stored.sys_flag & 12) == (HALF, 0, 0)
    assert stored.properties["REAL_TOPIC"] == "T"
    assert stored.properties["REAL_QID"] == "2"
    assert stored.properties.get("__transactionId__") == ("K1" if profile == Profile.V53 else None)
    topic = present(stage.broker.context.tables.topics.find(HALF))
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)


@with_half_topic
@simulated()
async def test_commit_stores_the_message_and_wakes_suspended_pulls(stage: SimStage, profile: Profile) -> None:
    peer, reader = stage.peer(), stage.peer("reader")
    await peer.create_topic()
    half = await send_half(stage, peer)
    await reader.heartbeat()
    pull = asyncio.ensure_future(reader.pull(0, queue_id=2, hold_ms=15_000))
    await stage.at(1.0)
    (await end(peer, half, COMMIT)).require_success()
    (message,) = decode_records(body_of(await pull))
    assert stage.runtime.clock.monotonic() < 1.1
    assert (message.topic, message.queue_id, message.queue_offset) == ("T", 2, 0)
    assert (message.body, message.tags, message.sys_flag & 12) == (b"half", "A", 8)
    assert message.prepared_transaction_offset == half["commit_log_offset"]
    # Left in place, as in RocketMQ.
    assert {"TRAN_MSG", "PGROUP", "REAL_TOPIC", "REAL_QID", "UNIQ_KEY"} <= message.properties.keys()
    (op,) = read_op(stage)
    assert (op.body, op.tags) == (b"0," if profile == Profile.V53 else b"0", "d")
    assert queue_sizes(stage) == (1, 1, 1)


@simulated()
async def test_a_committed_message_is_found_by_its_tag(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    (await end(peer, await send_half(stage, peer), COMMIT)).require_success()
    for tag, count in (("A", 1), ("B", 0)):
        answer = await peer.pull(0, queue_id=2, subscription=tag)
        assert len(decode_records(body_of(answer) or b"")) == count


@with_half_topic
@simulated()
async def test_rollback_stores_an_op_record_alone(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await send_half(stage, peer)
    half = await send_half(stage, peer)
    (await end(peer, half, ROLLBACK)).require_success()
    assert queue_sizes(stage) == (0, 2, 1)
    (op,) = read_op(stage)
    assert op.body.strip(b",") == b"1"


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated()
async def test_unknown_does_nothing_and_is_not_answered(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    half = await send_half(stage, peer)
    log_end = stage.broker.context.store.max_commit_log_offset
    header = EndTransactionRequestHeader(**half, commit_or_rollback=UNKNOWN)
    await peer.client.invoke_oneway(peer.address, RemotingCommand(RequestCode.END_TRANSACTION, header), 3.0)
    await stage.at(1.0)
    assert stage.broker.context.store.max_commit_log_offset == log_end


@pytest.mark.parametrize("verdict", [4, -1, 99])
@simulated()
async def test_an_unknown_commit_or_rollback_value_is_refused(stage: SimStage, verdict: int) -> None:
    peer = stage.peer()
    await peer.create_topic()
    half = await send_half(stage, peer)
    log_end = stage.broker.context.store.max_commit_log_offset
    answer = await end(peer, half, verdict)
    assert (answer.code, answer.remark) == (1, f"commitOrRollback {verdict}: expected 0, 8 or 12")
    assert stage.broker.context.store.max_commit_log_offset == log_end


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@pytest.mark.parametrize("verdict", [COMMIT, ROLLBACK])
@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"producer_group": "Other"}, "The producer group wrong"),
        ({"tran_state_table_offset": 7}, "The transaction state table offset wrong"),
        ({"commit_log_offset": 10**9}, "Find prepared transaction message failed"),
        ({"commit_log_offset": -1}, "Find prepared transaction message failed"),
        ({"commit_log_offset": 1}, "Find prepared transaction message failed"),
        # The plain message before it.
        ({"commit_log_offset": 0, "tran_state_table_offset": 0}, "Find prepared transaction message failed"),
    ],
)
@simulated()
async def test_an_end_that_does_not_match_its_half_message_returns_1_and_changes_nothing(
    stage: SimStage, profile: Profile, verdict: int, changes: dict[str, Any], remark: str
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    (await peer.send(queue_id=2, properties={"PGROUP": "PG"})).require_success()
    half = await send_half(stage, peer)
    log_end = stage.broker.context.store.max_commit_log_offset
    answer = await end(peer, half, verdict, **changes)
    expected = remark[0].lower() + remark[1:] if profile == Profile.V42 else remark
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, expected)
    assert stage.broker.context.store.max_commit_log_offset == log_end


@pytest.mark.parametrize(("verdict", "seen"), [(COMMIT, 1), (ROLLBACK, 0)])
@simulated(profile=Profile.V42)
async def test_v42_keeps_a_prepared_record_in_its_own_topic_and_writes_a_second(
    stage: SimStage, verdict: int, seen: int
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    half = await send_half(stage, peer)
    assert half["tran_state_table_offset"] == 0
    assert queue_sizes(stage) == (0, 0, 0)
    (await end(peer, half, verdict)).require_success()
    assert queue_sizes(stage) == (seen, 0, 0)
    store = stage.broker.context.store
    first = decode_record(present(store.look_message(half["commit_log_offset"])))
    second = decode_record(present(store.look_message(half["commit_log_offset"] + first.store_size)))
    assert (first.topic, first.sys_flag & 12) == ("T", 4)
    assert (second.topic, second.sys_flag & 12) == ("T", verdict)
    assert second.body == (b"half" if seen else b"")
    assert second.prepared_transaction_offset == half["commit_log_offset"]
    assert stage.broker.context.tables.topics.find(HALF) is None


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated(reject_transaction_message=True)
async def test_rejectTransactionMessage_refuses_with_16(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    answer = await peer.send(properties={"TRAN_MSG": "true", "PGROUP": "PG"})
    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark == "the broker[10.0.1.1] sending transaction message is forbidden"
    assert stage.broker.context.store.max_commit_log_offset == 0
    assert stage.broker.context.tables.topics.find(HALF) is None
    (await peer.send(properties={"PGROUP": "PG"})).require_success()


@simulated()
async def test_a_retry_sent_by_an_old_client_is_no_half_message(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.heartbeat()
    properties = {"TRAN_MSG": "true", "PGROUP": "PG", "DELAY": "3"}
    answer = await peer.send("%RETRY%G", properties=properties, reconsume_times=1, sys_flag=4)
    answer.require_success()
    max_offset = stage.broker.context.store.max_offset
    assert (max_offset(HALF, 0), max_offset("SCHEDULE_TOPIC_XXXX", 2)) == (0, 1)


@simulated()
async def test_a_new_topic_is_made_for_a_half_message_too(stage: SimStage) -> None:
    peer = stage.peer()
    half = await send_half(stage, peer)
    assert stage.broker.context.tables.topics.find("T") is not None
    (await end(peer, half, COMMIT)).require_success()
    assert len(await read(peer)) == 1


@simulated(profile=Profile.V53)
async def test_v53_leaves_an_end_after_the_messages_own_immunity_to_the_check(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    half = await send_half(stage, peer, properties={"CHECK_IMMUNITY_TIME_IN_SECONDS": "10"})
    plain = await send_half(stage, peer)
    await stage.at(10.5)
    assert (await end(peer, half, COMMIT)).code == ResponseCode.ILLEGAL_OPERATION
    (await end(peer, plain, COMMIT)).require_success()
    (await end(peer, half, COMMIT, from_transaction_check=True)).require_success()
    assert len(await read(peer)) == 2


@pytest.mark.parametrize(("profile", "code"), [(Profile.V42, 14), (Profile.V49, 11), (Profile.V53, 11)])
def test_a_slave_ends_no_transactions(simulate: RunScenario, profile: Profile, code: int) -> None:
    async def scenario(stage: SimStage) -> None:
        namesrv = await stage.start_namesrv()
        master = await stage.start_broker(profile=profile, namesrv_addr=namesrv.address)
        peer = stage.peer("c1", master.address)
        await peer.create_topic()
        half = await send_half(stage, peer)
        slave = await stage.start_broker(
            profile=profile,
            namesrv_addr=namesrv.address,
            broker_id=1,
            broker_role=BrokerRole.SLAVE,
            store_path_root_dir=str(stage.root / "slave"),
        )
        await stage.at(10.0)
        log_end = slave.context.store.max_commit_log_offset
        assert log_end == master.context.store.max_commit_log_offset
        at_slave = stage.peer("c2", slave.address)
        assert (await end(at_slave, half, COMMIT)).code == code
        assert slave.context.store.max_commit_log_offset == log_end
        (await end(peer, half, COMMIT)).require_success()

    simulate(scenario, brokers=0)


VERDICTS = st.lists(
    st.fixed_dictionaries(
        {
            "producer_group": st.sampled_from(["PG", "", "X" * 300]),
            "tran_state_table_offset": st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
            "commit_log_offset": st.one_of(st.integers(0, 2_000), st.integers(-(2**63), 2**63 - 1)),
            "commit_or_rollback": st.sampled_from([COMMIT, ROLLBACK]),
            "msg_id": st.text(max_size=5),
            "from_transaction_check": st.booleans(),
            "transaction_id": st.none() | st.text(max_size=5),
        }
    ),
    min_size=10,
    max_size=10,
)


def test_no_verdict_breaks_the_broker(simulate: RunScenario, full: bool) -> None:
    @settings(derandomize=True, deadline=None, max_examples=20 if full else 8)
    @given(VERDICTS, st.sampled_from([Profile.V42, Profile.V49, Profile.V53]))
    def holds(verdicts: list[dict[str, Any]], profile: Profile) -> None:
        simulate(_obeys(verdicts), profile=profile)

    holds()


def _obeys(verdicts: list[dict[str, Any]]) -> Scenario:
    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        halves = [await send_half(stage, peer) for _ in range(2)]
        real = {(half["commit_log_offset"], half["tran_state_table_offset"]) for half in halves}
        store = stage.broker.context.store
        for fields in verdicts:
            log_end = store.max_commit_log_offset
            answer = await end(peer, fields, fields["commit_or_rollback"])
            fits = fields["producer_group"] == "PG" and (
                (fields["commit_log_offset"], fields["tran_state_table_offset"]) in real
            )
            assert answer.code == (ResponseCode.SUCCESS if fits else ResponseCode.SYSTEM_ERROR)
            assert (store.max_commit_log_offset > log_end) is fits
        (await end(peer, halves[0], COMMIT)).require_success()

    return scenario
