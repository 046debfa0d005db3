"""UPDATE_BROKER_CONFIG (25), GET_BROKER_CONFIG (26): a running broker, a busy broker, permissions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import EmulatedBusy
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.limits import MAX_MESSAGE_BODY_BYTES
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage


async def change(peer: Peer, text: str) -> RemotingCommand:
    answer: RemotingCommand = await peer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())
    return answer


async def shown(peer: Peer) -> dict[str, str]:
    answer = (await peer.ask(RequestCode.GET_BROKER_CONFIG)).require_success()
    assert "counter" in str(answer.ext["version"])
    return {
        key: value
        for key, _, value in (line.partition("=") for line in body_of(answer).decode().splitlines())
    }


@pytest.mark.parametrize(
    ("kind", "code", "remark"),
    [
        ("REJECTREQUEST", 2, "[REJECTREQUEST]system busy, start flow control for a while"),
        ("PC_SYNCHRONIZED", 1, "[PC_SYNCHRONIZED]broker busy, start flow control for a while"),
        (
            "PCBUSY_CLEAN_QUEUE",
            2,
            (
                "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while,"
                " period in queue: 0ms, size of queue: 0"
            ),
        ),
        (
            "TIMEOUT_CLEAN_QUEUE",
            2,
            (
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while,"
                " period in queue: 0ms, size of queue: 0"
            ),
        ),
    ],
)
@simulated()
async def test_a_busy_broker_is_switched_on_and_off_and_stores_nothing_between(
    stage: SimStage, kind: str, code: int, remark: str
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(3)
    (await change(peer, f"emulatedBusy={kind}")).require_success()
    for topic in ("T", "unknown-topic"):
        answer = await peer.send(topic)
        assert (answer.code, answer.remark) == (code, remark)
    assert stage.broker.context.tables.topics.find("unknown-topic") is None
    # Reads continue.
    assert await peer.status(0) == (0, "FOUND", 3)
    (await change(peer, "emulatedBusy=NONE")).require_success()
    await peer.fill(1)
    assert await peer.status(3) == (0, "FOUND", 4)


@simulated()
async def test_26_returns_the_value_in_effect_of_every_key(stage: SimStage) -> None:
    peer = stage.peer()
    before = await shown(peer)
    assert before["brokerName"] == "broker-a"
    assert before["mappedFileSizeCommitLog"] == str(1 << 20)
    assert (before["enablePropertyFilter"], before["emulatedBusy"]) == ("false", "NONE")
    (await change(peer, "enablePropertyFilter = true\nbrokerPermission=4")).require_success()
    after = await shown(peer)
    changed = {key for key in after if after[key] != before[key]}
    assert changed == {"enablePropertyFilter", "brokerPermission"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no key is named"),
        ("# nothing", "nothing cannot be changed"),
        ("brokerName=x\nemulatedBusy=REJECTREQUEST", "brokerName cannot be changed while the broker runs"),
        (
            "magic=1",
            "magic cannot be changed while the broker runs; these can: allowRecallWhenBrokerNotWriteable,",
        ),
        ("emulatedBusy=VERY", "must be one of NONE, REJECTREQUEST"),
        ("brokerPermission=9", "brokerPermission = '9'"),
        ("maxTransferCountOnMessageInMemory=many", "maxTransferCountOnMessageInMemory = 'many'"),
        ("maxTransferCountOnMessageInMemory=-1", "maxTransferCountOnMessageInMemory = '-1'"),
        ("brokerPermission=4\nmaxTransferBytesOnMessageInDisk=3000000000", "<= 2147483647"),
        ("enablePropertyFilter=perhaps", "enablePropertyFilter = 'perhaps'"),
        ("x" * 70_000, "more than 65536 bytes"),
    ],
)
@simulated()
async def test_a_key_that_cannot_change_is_refused_and_nothing_changes(
    stage: SimStage, text: str, said: str
) -> None:
    peer = stage.peer()
    before = await shown(peer)
    answer = await change(peer, text)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert said in str(answer.remark)
    assert await shown(peer) == before


async def pulled(peer: Peer, count: int = 1_024, **options: Any) -> int:
    """The number of messages that one pull from the beginning of the queue returns."""
    answer = await peer.pull(0, count=count, **options)
    return len(decode_records(body_of(answer.require_success())))


@pytest.mark.parametrize("options", [{}, {"expression_type": "SQL92", "subscription": "colour IS NULL"}])
@simulated()
async def test_a_changed_transfer_limit_counts_for_the_next_pull(
    stage: SimStage, options: dict[str, Any]
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(50)
    (await change(peer, "enablePropertyFilter=true")).require_success()
    size = len(body_of((await peer.pull(0, count=1)).require_success()))
    assert await pulled(peer, **options) == 32
    (await change(peer, "maxTransferCountOnMessageInMemory=40")).require_success()
    assert await pulled(peer, **options) == 40
    assert await pulled(peer, 33, **options) == 33
    (await change(peer, f"maxTransferBytesOnMessageInMemory={5 * size}")).require_success()
    assert await pulled(peer, **options) == 5
    # RocketMQ returns the first message in any case.
    (await change(peer, "maxTransferCountOnMessageInMemory=0")).require_success()
    assert await pulled(peer, **options) == 1


@pytest.mark.parametrize("options", [{}, {"expression_type": "SQL92", "subscription": "colour IS NULL"}])
@simulated()
async def test_old_messages_have_transfer_limits_of_their_own(
    stage: SimStage, options: dict[str, Any]
) -> None:
    # Without memory, every message counts as old.
    await stage.start_broker("broker-b", store={"physical_memory_bytes": 0}, enable_property_filter=True)
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(50)
    size = len(body_of((await peer.pull(0, count=1)).require_success()))
    assert await pulled(peer, **options) == 8
    (await change(peer, "maxTransferCountOnMessageInDisk=40")).require_success()
    assert await pulled(peer, **options) == 40
    (await change(peer, f"maxTransferBytesOnMessageInDisk={5 * size}")).require_success()
    assert await pulled(peer, **options) == 5


@simulated()
async def test_a_pull_fits_into_a_frame_whatever_the_limits_are(stage: SimStage) -> None:
    await stage.start_broker("broker-b", store={"mapped_file_size_commit_log": 8 << 20})
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(4, body=bytes(MAX_MESSAGE_BODY_BYTES))
    for key in ("Bytes", "Count"):
        (await change(peer, f"maxTransfer{key}OnMessageInMemory=2147483647")).require_success()
    assert await pulled(peer) == 3


@simulated()
async def test_a_change_concerns_one_broker_even_if_two_were_given_the_same_configuration(
    stage: SimStage,
) -> None:
    first = stage.peer()
    before = await shown(first)
    host = "10.0.1.77"
    own = {"broker_name": "broker-b", "bind_address": host, "store_path_root_dir": str(stage.root / host)}
    config = msgspec.structs.replace(stage.broker.context.config, **own)
    second = Broker(stage.new_runtime(host), config)
    stage.at_exit(second.close)
    await second.start()
    peer = stage.peer(address=second.address)
    (await change(peer, "maxTransferCountOnMessageInMemory=40")).require_success()
    assert (await shown(peer))["maxTransferCountOnMessageInMemory"] == "40"
    assert await shown(first) == before


@simulated()
async def test_bytes_that_are_no_text_are_refused(stage: SimStage) -> None:
    answer = await stage.peer().ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=\xff")
    assert answer.code == ResponseCode.SYSTEM_ERROR


@simulated()
async def test_a_changed_permission_counts_at_once_and_is_registered(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(1)
    version = stage.broker.context.tables.topics.data_version
    (await change(peer, "brokerPermission=2")).require_success()
    assert (await peer.pull(0)).code == ResponseCode.NO_PERMISSION
    wrapper = stage.broker.context.tables.topics.wrapper()
    assert wrapper.topic_config_table["T"].perm == 2
    assert wrapper.data_version.counter == version.counter + 1
    (await change(peer, "brokerPermission=6")).require_success()
    assert (await peer.pull(0)).code == ResponseCode.SUCCESS


def test_every_kind_of_busy_has_its_words() -> None:
    from rewindmq.broker.send.validator import BUSY_ANSWERS

    assert set(BUSY_ANSWERS) == set(EmulatedBusy) - {EmulatedBusy.NONE}


# What ExportConfigsCommand of 4.9.8 takes from the response; it fails if a key is missing.
EXPORTED = (
    *("brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime", "filterServerNums"),
    *("flushDiskType", "maxMessageSize", "messageDelayLevel", "msgTraceTopicName", "slaveReadEnable"),
    *("traceOn", "traceTopicEnable", "useTLS", "autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
)


@simulated()
async def test_the_configuration_has_every_key_that_mqadmin_exports(stage: SimStage) -> None:
    table = await shown(stage.peer())
    assert [key for key in EXPORTED if key not in table] == []
    assert (table["filterServerNums"], table["useTLS"]) == ("0", "false")
