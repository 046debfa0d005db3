"""5.x ends the properties of each record with a separator; 4.9.7 does not.

Source: 5.3.3 and 4.9.7 ``MessageDecoder#messageProperties2String``.
"""

from __future__ import annotations

import struct

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader, EndTransactionRequestHeader
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.names import TRANS_HALF_TOPIC
from rewindmq.protocol.profile import Profile
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

COMMIT = int(MessageSysFlag.TRANSACTION_COMMIT)


def every_record(stage: SimStage) -> list[MessageExt]:
    store = stage.broker.context.store
    return decode_records(store.log_chunk(0, store.max_commit_log_offset))


async def store_all_kinds(stage: SimStage) -> None:
    """Store single, batched, delayed, delivered, sent-back and transaction messages."""
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    (await peer.send()).require_success()
    (await peer.send(properties={"UNIQ_KEY": "A", "TAGS": "x", "WAIT": "true"})).require_success()
    messages = [Message("T", b"x"), Message("T", b"y", properties={"UNIQ_KEY": "B", "CLUSTER": "own"})]
    answer = await peer.send(
        body=encode_batch(messages),
        properties={"WAIT": "true"},
        code=RequestCode.SEND_BATCH_MESSAGE,
        batch=True,
    )
    answer.require_success()
    header = ConsumerSendMsgBackRequestHeader(0, "G", 0)
    (await peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).require_success()
    (await peer.send(properties={"DELAY": "1"})).require_success()
    (await peer.send(properties={"TRAN_MSG": "true", "PGROUP": "P", "UNIQ_KEY": "C"})).require_success()
    (half,) = [record for record in every_record(stage) if record.topic == TRANS_HALF_TOPIC]
    end = EndTransactionRequestHeader(
        producer_group="P",
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.commit_log_offset,
        commit_or_rollback=COMMIT,
        msg_id=half.msg_id,
        transaction_id="C",
    )
    (await peer.ask(RequestCode.END_TRANSACTION, end)).require_success()
    # The delayed messages are due after 1 s and 10 s.
    await stage.at(20.0)


@pytest.mark.parametrize(("profile", "is_ended"), [(Profile.V49, False), (Profile.V53, True)])
@simulated()
async def test_5x_ends_the_properties_of_every_record(
    stage: SimStage, profile: Profile, is_ended: bool
) -> None:
    await store_all_kinds(stage)
    records = every_record(stage)
    topics = {record.topic for record in records}
    assert {
        "T",
        "%RETRY%G",
        "SCHEDULE_TOPIC_XXXX",
        TRANS_HALF_TOPIC,
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    } <= topics
    texts = [record.packed_properties for record in records]
    assert [text[-1:] == b"\x02" for text in texts] == [is_ended] * len(texts)
    assert not [text for text in texts if b"\x02\x02" in text or text[:1] == b"\x02"]


@simulated(profile=Profile.V53)
async def test_a_client_that_ends_its_properties_gets_one_separator(stage: SimStage) -> None:
    """Java clients of 5.x end them."""
    peer = stage.peer()
    await peer.create_topic()
    (await peer.send(properties="KEYS\x01k\x02")).require_success()
    own = b"TAGS\x01x\x02"
    ended = struct.pack(">5i1sh", 23 + len(own), 0, 0, 0, 1, b"x", len(own)) + own
    code = RequestCode.SEND_BATCH_MESSAGE
    (await peer.send(body=ended, properties="WAIT\x01true\x02", code=code, batch=True)).require_success()
    texts = [record.packed_properties for record in every_record(stage)]
    assert [text.count(b"\x02\x02") for text in texts] == [0, 0]
    assert [text[-1:] for text in texts] == [b"\x02", b"\x02"]
