"""The response to a send: SYNC_FLUSH with group commit and its time limit, ASYNC_FLUSH in the background."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from rewindmq.broker.background.flush import BackgroundFlush
from rewindmq.broker.background.sync_flush import SyncFlush
from rewindmq.broker.broker import Broker
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.support.answers import present
from tests.support.fixtures import simulated
from tests.support.stage import ServerStage, SimStage

SYNC: dict[str, Any] = {"flush_disk_type": FlushDiskType.SYNC_FLUSH}


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE])
@simulated(store=SYNC)
async def test_sync_flush_returns_when_the_message_is_durable(stage: SimStage, code: int) -> None:
    peer, store = stage.peer(), stage.broker.context.store
    body = encode_batch([Message("T", b"1"), Message("T", b"2")])
    for _ in range(3):
        (await peer.send(body=body, code=code)).require_success()
        assert store.flushed_offset == store.max_commit_log_offset


@simulated()
async def test_async_flush_brings_the_log_to_disk_every_half_second(stage: SimStage) -> None:
    peer, store = stage.peer(), stage.broker.context.store
    await stage.at(0.6)
    (await peer.send()).require_success()
    assert store.flushed_offset == 0
    await stage.at(1.1)
    assert store.flushed_offset == store.max_commit_log_offset > 0


async def test_sync_flush_under_load_shares_flushes_between_sends(stage: ServerStage) -> None:
    broker = await stage.start_broker(store=SYNC)
    flushes = 0
    flush = broker.context.store.flush

    def counted() -> int:
        nonlocal flushes
        flushes += 1
        return flush()

    peer = stage.peer()
    await peer.create_topic()
    sync_flush_of(broker)._flush = counted
    await asyncio.gather(*(peer.send() for _ in range(200)))
    assert broker.context.store.max_offset("T", 0) == 200
    assert 1 <= flushes < 50


def sync_flush_of(broker: Broker) -> SyncFlush:
    return present(broker.context.sends.appender.sync_flush)


class StuckWorkers:
    """A disk that completes a flush when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []

    def run(self, function: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        future = asyncio.get_running_loop().create_future()
        self.calls.append((future, function))
        return future

    def close(self) -> None:
        """Do nothing: there is no resource to release."""

    async def finish(self, failure: Exception | None = None) -> None:
        future, function = self.calls.pop(0)
        if failure is None:
            future.set_result(function())
        else:
            future.set_exception(failure)
        await asyncio.sleep(0)


async def test_a_stop_answers_the_sends_that_wait_for_the_disk(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, may_go_on, began = MessageStore.flush, threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(store: MessageStore) -> int:
        loop.call_soon_threadsafe(began.set)
        may_go_on.wait(10)
        return flush(store)

    monkeypatch.setattr(MessageStore, "flush", slow)
    broker = await stage.start_broker(store=SYNC)
    peer = stage.peer()
    async with asyncio.timeout(60):
        # All arrive in one read.
        sends = [asyncio.ensure_future(peer.send(body=b"%d" % number)) for number in range(20)]
        await began.wait()
        closing = asyncio.ensure_future(broker.close())
        await asyncio.sleep(0)
        may_go_on.set()
        await closing
        assert [response.code for response in await asyncio.gather(*sends)] == [ResponseCode.SUCCESS] * 20


async def test_group_commit_covers_what_came_before_the_flush_and_flushes_again_for_the_rest() -> None:
    workers, answers = StuckWorkers(), []
    sync_flush = SyncFlush(workers, system_runtime().timers, lambda: 100, 60.0)
    sync_flush.wait(100, lambda done: answers.append((100, done)))
    sync_flush.wait(150, lambda done: answers.append((150, done)))
    assert len(workers.calls) == 1
    await workers.finish()
    assert answers == [(100, True)]
    sync_flush._flush = lambda: 150
    workers.calls = [(workers.calls[0][0], sync_flush._flush)]
    await workers.finish()
    assert answers == [(100, True), (150, True)]
    assert workers.calls == []
    await sync_flush.close()


@simulated(store=SYNC)
async def test_with_a_slow_disk_a_send_returns_flush_disk_timeout_and_the_message_is_stored(
    stage: SimStage, caplog: pytest.LogCaptureFixture
) -> None:
    peer, broker = stage.peer(), stage.broker
    await peer.create_topic()
    workers = StuckWorkers()
    sync_flush_of(broker)._workers = workers
    response = await peer.send()
    assert stage.runtime.clock.monotonic() == pytest.approx(5.0, abs=0.01)
    assert response.code == ResponseCode.FLUSH_DISK_TIMEOUT
    assert response.decode_header(SendMessageResponseHeader).queue_offset == 0
    assert broker.context.store.max_offset("T", 0) == 1
    await workers.finish(OSError("broken"))
    assert "flush failed: broken" in caplog.messages
    (await peer.send(properties={"WAIT": "false"})).require_success()
    await workers.finish()


async def test_background_flush_runs_each_kind_once_at_a_time_and_survives_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Log:
        flushed_offset, max_commit_log_offset, flush_failure = 0, 10, ""

        def flush(self) -> int:
            return 10

    workers = StuckWorkers()
    background = BackgroundFlush(workers, cast("MessageStore", Log()))
    background.flush_log()
    background.flush_log()
    assert len(workers.calls) == 1
    await workers.finish(OSError("no space"))
    assert "commit log not flushed, will try again: no space" in caplog.messages
    background.flush_log()
    assert len(workers.calls) == 1
    await workers.finish()
    await background.close()


async def test_workers_flush_off_the_event_loop(stage: ServerStage) -> None:
    threads = set()
    broker = await stage.start_broker(store=SYNC)
    flush = broker.context.store.flush

    def noted() -> int:
        threads.add(threading.current_thread())
        return flush()

    sync_flush_of(broker)._flush = noted
    (await stage.peer().send()).require_success()
    assert threads
    assert threading.main_thread() not in threads
