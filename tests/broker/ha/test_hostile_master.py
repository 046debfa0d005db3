"""A master that is hostile: nothing that the slave would refuse from a client gets into its store."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerRole
from rewindmq.broker.ha.checked_tables import (
    checked_delay_offsets,
    checked_groups,
    checked_offsets,
    checked_topics,
)
from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper
from rewindmq.protocol.ha_frame import ReportDecoder, encode_transfer
from rewindmq.protocol.message.record import (
    PHYSICAL_OFFSET_AT,
    QUEUE_OFFSET_AT,
    SYS_FLAG_AT,
)
from rewindmq.protocol.message.sysflag import MessageSysFlag
from tests.broker.ha.test_replication import Pair
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

BODY = b"the body"
TOPIC = b"AAAAAAAA"
MAGIC_AT, CRC_AT, QUEUE_ID_AT, STORE_TIMESTAMP_AT, BODY_LENGTH_AT = 4, 8, 12, 56, 84
START_MS = 1_700_000_000_000


def number(at: int, layout: str, value: int) -> Callable[[bytearray], None]:
    """Overwrite a number of a record."""

    def change(record: bytearray) -> None:
        struct.pack_into(layout, record, at, value)

    return change


def topic(name: bytes) -> Callable[[bytearray], None]:
    """Replace the topic by another of the same length."""
    assert len(name) == len(TOPIC)

    def change(record: bytearray) -> None:
        record[:] = record.replace(TOPIC, name)

    return change


def body(record: bytearray) -> None:
    record[:] = record.replace(BODY, BODY.upper())


def as_half(change: Callable[[bytearray], None]) -> Callable[[bytearray], None]:
    """The same change in a half message, which no queue shows."""

    def both(record: bytearray) -> None:
        change(record)
        struct.pack_into(">i", record, SYS_FLAG_AT, int(MessageSysFlag.TRANSACTION_PREPARED))

    return both


FORGED = {
    "a topic that is a path": topic(b"../../xx"),
    "an absolute path": topic(b"/etc/xxx"),
    "a topic with NUL": topic(b"AAAA\0AAA"),
    "a topic that is not UTF-8": topic(b"AAAA\xff\xfeAA"),
    "a half message's topic that is a path": as_half(topic(b"../../xx")),
    "a negative queue id": number(QUEUE_ID_AT, ">i", -1),
    "a queue id above every topic's": number(QUEUE_ID_AT, ">i", 65_535),
    "a negative queue offset": number(QUEUE_OFFSET_AT, ">q", -1),
    "a queue offset beyond any file": number(QUEUE_OFFSET_AT, ">q", 1 << 62),
    "a half message's negative queue offset": as_half(number(QUEUE_OFFSET_AT, ">q", -5)),
    "a negative store timestamp": number(STORE_TIMESTAMP_AT, ">q", -1),
    "a store timestamp after the year 9999": number(STORE_TIMESTAMP_AT, ">q", 1 << 60),
    "another log position": number(PHYSICAL_OFFSET_AT, ">q", 7),
    "an unknown magic": number(MAGIC_AT, ">I", 0xDEADBEEF),
    "a body that does not match its CRC": body,
    "a size of 0": number(0, ">i", 0),
    "a size smaller than its fields": number(0, ">i", 40),
    "a size above maxMessageSize": number(0, ">i", 0x7FFF_FFFF),
    "a body longer than the record": number(BODY_LENGTH_AT, ">i", 1 << 20),
    "a negative body length": number(BODY_LENGTH_AT, ">i", -1),
}


def record_at(position: int, queue_offset: int) -> bytearray:
    """An intact record of queue 0 of ``TOPIC``."""
    properties = b"TAGS\x01a\x02"
    size = 88 + len(BODY) + 1 + len(TOPIC) + 2 + len(properties)
    fixed = struct.pack(
        ">iIiiiqqiq8sq8siqi",
        *(size, 0xDAA320A7, crc32(BODY) & 0x7FFFFFFF, 0, 0, queue_offset, position, 0, START_MS),
        *(b"\x7f\0\0\1\0\0\0\1", START_MS, b"\x7f\0\0\1\0\0\0\1", 0, 0, len(BODY)),
    )
    tail = bytes([len(TOPIC)]) + TOPIC + struct.pack(">h", len(properties)) + properties
    return bytearray(fixed + BODY + tail)


class ForgingMaster(asyncio.Protocol):
    """Sends its log from the slave's first report on."""

    def __init__(self, log: bytes) -> None:
        self.log = log
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.transport is not None:
            position = ReportDecoder().receive(data)
            assert position is not None
            self.transport.write(encode_transfer(position, self.log[position:]))
            self.transport = None


async def slave_of(stage: SimStage, log: bytes) -> Broker:
    listener = await stage.runtime.network.listen(lambda: ForgingMaster(log), "10.0.9.9", 0)
    return await stage.start_broker(
        broker_role=BrokerRole.SLAVE, broker_id=1, ha_master_address=f"10.0.9.9:{listener.port}"
    )


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def first_segment(root: Path) -> bytes:
    return (root / "broker-a" / "commitlog" / f"{0:020d}").read_bytes()


@simulated(brokers=0)
async def test_the_records_of_these_tests_are_accepted_unless_forged(stage: SimStage) -> None:
    first = record_at(0, 0)
    slave = await slave_of(stage, bytes(first + record_at(len(first), 1)))
    await stage.at(1)
    assert slave.context.store.max_offset(TOPIC.decode(), 0) == 2


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_record_is_refused_and_the_slave_says_so_once(
    simulate: RunScenario,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    forge: Callable[[bytearray], None],
) -> None:
    async def scenario(stage: SimStage) -> None:
        first = record_at(0, 0)
        second = record_at(len(first), 1)
        forge(second)
        third = record_at(len(first) + len(second), 2)
        slave = await slave_of(stage, bytes(first + second + third))
        # Three attempts.
        await stage.at(12)
        store = slave.context.store
        assert store.max_commit_log_offset == len(first)
        assert store.max_offset(TOPIC.decode(), 0) == 1
        queues = stage.root / "broker-a" / "consumequeue"
        assert files_below(queues) == {"AAAAAAAA", "AAAAAAAA/0", f"AAAAAAAA/0/{0:020d}"}
        # The log holds nothing of the record.
        assert not any(first_segment(stage.root)[len(first) :])
        assert {path.partition("/")[0] for path in files_below(tmp_path)} == {stage.root.name}

    simulate(scenario, brokers=0)
    (line,) = errors(caplog)
    assert line.exc_info is None
    assert "not following the log of 10.0.9.9" in line.getMessage()


def test_a_masters_invalid_table_entries_are_left_out_and_logged_once(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage).start()
        await pair.at_master.create_topic()
        master = pair.master.context
        master.tables.topics.update(TopicConfig("../../x"))
        master.tables.groups.update(SubscriptionGroupConfig("a\x1b[2J\nb"))
        master.offsets.table.commit("G", "T", -1, 5)
        master.offsets.table.commit("G", "T", 0, 5)
        master.delays.offsets.table[-3] = 7
        await stage.at(40)
        slave = pair.slave.context
        assert slave.tables.topics.find("T") is not None
        assert slave.tables.topics.find("../../x") is None
        assert slave.tables.groups.get("a\x1b[2J\nb") is None
        assert slave.offsets.table.offsets_of("G", "T") == {0: 5}
        assert slave.delays.offsets.table == {}

    simulate(scenario, brokers=0)
    lines = [record.getMessage() for record in errors(caplog)]
    assert sorted(line.partition(" have 1 invalid")[0] for line in lines) == [
        f"the master's {what}" for what in ("consumer offsets", "delay offsets", "groups", "topics")
    ]
    assert not any("\x1b" in line or "\n" in line for line in lines)


def topics(**changes: Any) -> dict[str, TopicConfig]:
    return checked_topics(TopicConfigSerializeWrapper({"T": TopicConfig("T", **changes)})).topic_config_table


def test_numbers_of_queues_at_the_bound_are_copied_and_beyond_it_not() -> None:
    assert topics(read_queue_nums=65_535, write_queue_nums=0)
    for changes in ({"read_queue_nums": 65_536}, {"write_queue_nums": 65_536}, {"write_queue_nums": -1}):
        assert not topics(**changes)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0b", "x" * 256, "a\nb", "\ud800"])
def test_names_that_cannot_be_paths_are_left_out(name: str) -> None:
    topic_table = checked_topics(TopicConfigSerializeWrapper({name: TopicConfig(name)})).topic_config_table
    group = SubscriptionGroupConfig(name)
    group_table = checked_groups(SubscriptionGroupWrapper({name: group})).subscription_group_table
    assert not topic_table
    assert not group_table


def test_an_entry_under_another_name_is_left_out() -> None:
    assert not checked_topics(TopicConfigSerializeWrapper({"T": TopicConfig("U")})).topic_config_table
    group = SubscriptionGroupConfig("H")
    assert not checked_groups(SubscriptionGroupWrapper({"G": group})).subscription_group_table


def test_offsets_below_0_and_unknown_keys_are_left_out() -> None:
    table = {"T@G": {0: 1, 1: -1, -1: 1}, "T": {0: 1}, "T@G\n": {0: 1}, "T@" + "G" * 700: {0: 1}}
    assert checked_offsets(table) == {"T@G": {0: 1}}
    assert checked_delay_offsets({1: 0, 0: 1, -1: 1, 1_000: 1, 1_001: 1, 2: -1}) == {1: 0, 1_000: 1}
