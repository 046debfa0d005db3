"""A broker over a disk that fails: it refuses with the cause, recovers by itself, and loses nothing."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import Counter
from itertools import product

import pytest

from rewindmq.broker.config import BrokerRole
from rewindmq.broker.store import StoreError
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import CreateTopicRequestHeader, DeleteTopicRequestHeader
from rewindmq.protocol.header.message import QueryMessageRequestHeader
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.failing_disk import OPERATIONS, FailingDisk
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EIO)
# A segment has some 12 of the test's messages, a queue file 20 entries, an index file 200 keys. A message is
# longer than a page, so that no later message writes all pages of one that a failed sync has skipped.
SMALL = {
    "mapped_file_size_commit_log": 65_536,
    "mapped_file_size_consume_queue": 400,
    "max_hash_slot_num": 50,
    "max_index_num": 200,
}
BODY = b"x" * 5_000
# Steps of the workload while the disk fails, one in a second: longer than the period of each save.
STEPS = 9
STORED = {ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT}
# Which operations must have failed in the workload; the others happen only while the store is opened.
USED = {
    "make_folder", "exists", "create", "map", "allocate", "sync", "sync_folder", "write", "replace", "remove",
    "set_mtime_ms", "used_ratio",
}  # fmt: skip
# Operations that a start over the store of a crashed broker does without.
NOT_AT_START = {"rewrite", "write", "replace", "set_mtime_ms", "used_ratio"}


class Workload:
    """What a broker is asked for, and what it has promised.

    Attributes:
        kept: bodies of sends that returned SUCCESS.
        late: the same of delayed messages, which arrive after 1 s or when the disk works again.
        topics: topics whose creation returned SUCCESS.
        offset: the newest offset whose commit returned SUCCESS.
        refusals: the responses that say no.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.kept: set[bytes] = set()
        self.late: set[bytes] = set()
        self.topics: set[str] = set()
        self.offset = 0
        self.refusals: list[RemotingCommand] = []
        self._number = 0

    async def step(self) -> None:
        """Send to an old and to a new topic, create a topic, commit, query by key, delete a topic."""
        self._number += 1
        number, peer = self._number, self.peer
        for place in range(8):
            body = b"%d-%d " % (number, place) + BODY
            response = await peer.send(body=body, queue_id=place % 2, properties={"KEYS": f"k{number}"})
            if self._is_done(response):
                self.kept.add(body)
        late = b"late %d" % number
        if self._is_done(await peer.send(body=late, properties={"DELAY": "1"})):
            self.late.add(late)
        self._is_done(await peer.send(f"Auto{number}"))
        created = CreateTopicRequestHeader(f"Made{number}", "TBW102", 1, 1, 6, "SINGLE_TAG")
        if self._is_done(await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, created)):
            self.topics.add(f"Made{number}")
        if self._is_done(await peer.commit(number)):
            self.offset = number
        query = QueryMessageRequestHeader("T", f"k{number}", 32, 0, 2**62)
        self._is_done(await peer.ask(RequestCode.QUERY_MESSAGE, query), ResponseCode.QUERY_NOT_FOUND)
        deleted = DeleteTopicRequestHeader(f"Auto{number}")
        self._is_done(await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, deleted))
        self._is_done(await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO))

    def _is_done(self, response: RemotingCommand, *other: int) -> bool:
        if response.code not in (ResponseCode.SUCCESS, *other):
            self.refusals.append(response)
        return response.code == ResponseCode.SUCCESS


async def bodies(peer: Peer) -> set[bytes]:
    """Every message of T, as a consumer reads it."""
    found: set[bytes] = set()
    for queue_id in (0, 1):
        offset = 0
        while (response := await peer.pull(offset, queue_id=queue_id)).code == ResponseCode.SUCCESS:
            messages = decode_records(body_of(response))
            found.update(message.body for message in messages)
            offset = messages[-1].queue_offset + 1
    return found


async def check_kept(stage: SimStage, work: Workload) -> None:
    """Everything that was promised is there."""
    peer = stage.peer()
    await peer.heartbeat()
    assert work.kept | work.late <= await bodies(peer)
    assert work.topics <= set(stage.broker.context.tables.topics.names)
    assert await peer.stored_offset() == work.offset


async def start(stage: SimStage, disk: FailingDisk, flush: FlushDiskType) -> Workload:
    await stage.start_broker(
        disk=disk.disk, store={**SMALL, "flush_disk_type": flush}, flush_consume_queue_thorough_interval=7_000
    )
    peer = stage.peer()
    await peer.create_topic(write=2, read=2)
    await peer.heartbeat()
    work = Workload(peer)
    await work.step()
    assert not work.refusals
    return work


def check_log(caplog: pytest.LogCaptureFixture, refusals: list[RemotingCommand], reason: str) -> None:
    """The log names the cause and a path, has no traceback, and not a line for every refusal."""
    assert not [record for record in caplog.records if record.exc_info]
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    if refusals:
        assert any(reason in line and "/broker-a/" in line for line in lines), lines
    assert len(lines) <= 5 * STEPS, Counter(lines).most_common(5)


def group_of(operation: str, number: int, flush: FlushDiskType) -> list[pytest.MarkDecorator]:
    """The default group has each operation with one error and each error with one operation, CI all pairs."""
    if flush is FlushDiskType.ASYNC_FLUSH:
        return [pytest.mark.slow(full_only="the cases are those of SYNC_FLUSH")]
    if number == errno.EIO or operation == "sync":
        return []
    return [pytest.mark.slow]


@pytest.mark.parametrize(
    ("operation", "number", "flush"),
    [
        pytest.param(*case, id=f"{case[0]}-{errno.errorcode[case[1]]}-{case[2].value}", marks=group_of(*case))
        for case in product(OPERATIONS, ERRORS, (FlushDiskType.SYNC_FLUSH, FlushDiskType.ASYNC_FLUSH))
    ],
)
def test_a_broker_refuses_with_the_cause_and_recovers_when_the_disk_works_again(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture, operation: str, number: int, flush: FlushDiskType
) -> None:
    reason = os.strerror(number)

    async def scenario(stage: SimStage) -> None:
        disk = FailingDisk(stage.runtime.clock.now_ms)
        work = await start(stage, disk, flush)
        disk.fail(number, operation)
        for _ in range(STEPS):
            await work.step()
            await stage.runtime.timers.sleep(1.0)
        assert (operation in disk.failures) == (operation in USED)
        for refusal in work.refusals:
            assert reason in (refusal.remark or "") or refusal.code in STORED, refusal
        check_log(caplog, work.refusals, reason)

        # SYNC_FLUSH promises that a message survives a power failure, also one at this moment.
        if flush is FlushDiskType.SYNC_FLUSH:
            assert work.kept <= await after_power_failure(stage, disk)

        disk.mend()
        caplog.clear()
        await stage.runtime.timers.sleep(6.0)
        work.refusals.clear()
        for _ in range(3):
            await work.step()
        assert not work.refusals
        await stage.runtime.timers.sleep(6.0)
        store = stage.broker.context.store
        assert store.flushed_offset == store.max_commit_log_offset
        await check_kept(stage, work)

        await stage.broker.close()
        await stage.start_broker(disk=disk.after_power_failure(), store={**SMALL, "flush_disk_type": flush})
        await check_kept(stage, work)

    simulate(scenario, brokers=0)


async def after_power_failure(stage: SimStage, disk: FailingDisk) -> set[bytes]:
    """What a second broker has, over what a power failure now would leave; the first goes on."""
    broker = stage.broker
    other = await stage.start_broker(disk=disk.after_power_failure(), store=SMALL)
    peer = stage.peer()
    await peer.heartbeat()
    found = await bodies(peer)
    await other.close()
    stage._newest = broker
    return found


@pytest.mark.parametrize("operation", [*OPERATIONS, "touch", "data_beyond"])
@simulated(brokers=0)
async def test_a_start_over_a_failing_disk_is_refused_in_one_line_and_succeeds_when_the_disk_works(
    stage: SimStage, operation: str
) -> None:
    disk = FailingDisk(stage.runtime.clock.now_ms)
    work = await start(stage, disk, FlushDiskType.ASYNC_FLUSH)
    # The offsets are on disk 10 s after the start.
    await stage.runtime.timers.sleep(11.0)
    # In the log, but not in queue files that are durable: two of them.
    for _ in range(21):
        await work.peer.send("New")
    await stage.runtime.timers.sleep(1.0)
    crashed = FailingDisk(stage.runtime.clock.now_ms, disk.after_power_failure())
    crashed.fail(errno.EIO, operation)
    if operation not in NOT_AT_START:
        with pytest.raises(StoreError) as refusal:
            await stage.start_broker(disk=crashed.disk, store=SMALL)
        text = str(refusal.value)
        assert os.strerror(errno.EIO) in text
        assert "/broker-a" in text
        assert "\n" not in text
        crashed.mend()
    else:
        broker = await stage.start_broker(disk=crashed.disk, store=SMALL)
        crashed.mend()
        await broker.close()
    await stage.start_broker(disk=crashed.disk, store=SMALL)
    await check_kept(stage, work)


@pytest.mark.parametrize("operation", ["create", "map", "allocate", "sync", "remove", "set_mtime_ms"])
def test_a_compaction_topic_has_every_message_when_the_disk_works_again(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    sizes = {"compaction_mapped_file_size": 65_536, "compaction_cq_mapped_file_size": 4_600}

    async def scenario(stage: SimStage) -> None:
        disk = FailingDisk(stage.runtime.clock.now_ms)
        await stage.start_broker(
            disk=disk.disk, store={**SMALL, **sizes}, flush_consume_queue_thorough_interval=2_000
        )
        peer = stage.peer()
        created = CreateTopicRequestHeader(
            "T", "TBW102", 2, 2, 6, "SINGLE_TAG", attributes="+cleanup.policy=COMPACTION"
        )
        (await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, created)).require_success()
        await peer.heartbeat()
        kept = set()
        for number in range(120):
            if number == 40:
                disk.fail(errno.ENOSPC, operation)
            if number == 80:
                disk.mend()
                await stage.runtime.timers.sleep(1.0)
            body = b"%d " % number + BODY
            response = await peer.send(body=body, queue_id=number % 2, properties={"KEYS": f"k{number}"})
            if response.code == ResponseCode.SUCCESS:
                kept.add(body)
            else:
                assert 40 <= number < 80
                assert os.strerror(errno.ENOSPC) in (response.remark or "")
            await stage.runtime.timers.sleep(0.1)
        assert operation == "remove" or operation in disk.failures
        assert len(kept) >= 80
        assert kept <= await bodies(peer)
        assert not [record for record in caplog.records if record.exc_info]
        assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) <= 10
        await stage.runtime.timers.sleep(3.0)
        await stage.broker.close()
        await stage.start_broker(disk=disk.after_power_failure(), store={**SMALL, **sizes})
        peer = stage.peer()
        await peer.heartbeat()
        assert kept <= await bodies(peer)

    simulate(scenario, brokers=0)


@pytest.mark.parametrize("operation", ["create", "map", "allocate", "sync", "write"])
@simulated(brokers=0)
async def test_a_slave_catches_up_when_its_disk_works_again(
    stage: SimStage, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    await stage.start_namesrv()
    master = await stage.start_broker(store=SMALL)
    peer = stage.peer()
    await peer.create_topic(write=2, read=2)
    await peer.fill(10, body=BODY)
    disk = FailingDisk(stage.runtime.clock.now_ms)
    slave = await stage.start_broker(
        broker_id=1,
        broker_role=BrokerRole.SLAVE,
        store_path_root_dir="/slave",
        disk=disk.disk,
        store=SMALL,
    )
    stores = master.context.store, slave.context.store
    await stage.until(lambda: stores[0].max_commit_log_offset == stores[1].max_commit_log_offset)
    disk.fail(errno.ENOSPC, operation)
    await peer.fill(30, body=BODY)
    await stage.runtime.timers.sleep(65.0)
    await peer.fill(30, body=BODY)
    await stage.runtime.timers.sleep(10.0)
    assert operation in disk.failures
    disk.mend()
    await stage.until(lambda: stores[0].max_commit_log_offset == stores[1].flushed_offset)
    assert stores[1].max_offset("T", 0) == 70
    assert not [record for record in caplog.records if record.exc_info]
    await slave.close()


@pytest.mark.parametrize(("mended_at", "code"), [(4.0, 0), (6.0, int(ResponseCode.FLUSH_DISK_TIMEOUT))])
@simulated(brokers=0)
async def test_a_send_that_waits_for_the_disk_succeeds_if_the_disk_works_again_in_time(
    stage: SimStage, mended_at: float, code: int
) -> None:
    """``syncFlushTimeout`` is 5 s."""
    disk = FailingDisk(stage.runtime.clock.now_ms)
    await stage.start_broker(disk=disk.disk, store={**SMALL, "flush_disk_type": FlushDiskType.SYNC_FLUSH})
    peer = stage.peer()
    await peer.create_topic()
    disk.fail(errno.EIO, "sync")
    sending = asyncio.ensure_future(peer.send())
    await stage.at(mended_at)
    disk.mend()
    response = await sending
    assert response.code == code
    if code:
        assert os.strerror(errno.EIO) in (response.remark or "")


@simulated(brokers=0)
async def test_retention_deletes_when_the_disk_works_again(
    stage: SimStage, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk(stage.runtime.clock.now_ms)
    await stage.start_broker(
        disk=disk.disk, store=SMALL, file_reserved_time=0, delete_when=";".join(map(str, range(24)))
    )
    peer = stage.peer()
    await peer.create_topic(write=2, read=2)
    for number in range(40):
        (await peer.send(body=b"%d " % number + BODY, queue_id=number % 2)).require_success()
    store = stage.broker.context.store
    disk.fail(errno.EIO, "remove")
    await stage.runtime.timers.sleep(75.0)
    assert store.min_commit_log_offset == 0
    assert [line for line in caplog.messages if "/commitlog/00000000000000000000: Input/output" in line]
    (await peer.send()).require_success()
    disk.mend()
    await stage.runtime.timers.sleep(15.0)
    assert store.min_commit_log_offset == store.last_segment_base > 0
    await stage.broker.close()
    await stage.start_broker(disk=disk.after_power_failure(), store=SMALL)
    assert stage.broker.context.store.min_commit_log_offset > 0
