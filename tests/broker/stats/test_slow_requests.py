"""The durations of puts and pulls come from the watch of the event loop, which reports the slow ones."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.stats.manager import BrokerStatsManager
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.remoting.process.stall_watch import watch_stalls
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.remoting.slices.run import run_at_once


def new_stats() -> BrokerStats:
    return BrokerStats(0, 0.0, BrokerStatsManager("C", deletes=True))


def latency(stats: BrokerStats, key: str) -> int:
    run_at_once(stats.items.sample(10.0, 0, 0))
    found = stats.items.find("GROUP_GET_LATENCY", key, 0, 0)
    assert found is not None
    return found.minute.sum


def test_a_slow_send_is_the_longest_put_and_no_pull() -> None:
    stats = new_stats()
    for code, ms in ((RequestCode.SEND_MESSAGE_V2, 7.9), (RequestCode.HEART_BEAT, 90.0)):
        stats.on_slow_request(code, ms)
    assert (stats.put_times.longest, stats.get_time_max) == (7, 0)


def test_a_slow_pull_adds_to_the_latency_of_the_messages_that_it_found() -> None:
    stats = new_stats()
    stats.items.pulls.count("T", "G", 1, 32, 3_200)
    stats.items.pulls.count("T", "G", 0, 32, 3_200)
    stats.on_slow_request(RequestCode.PULL_MESSAGE, 4.2)
    assert stats.get_time_max == 4
    assert (latency(stats, "0@T@G"), latency(stats, "1@T@G")) == (4, 0)


def test_a_slow_pull_that_found_nothing_adds_to_no_latency() -> None:
    stats = new_stats()
    stats.items.pulls.count("T", "G", 0, 32, 3_200)
    stats.items.pulls.last = None
    stats.on_slow_request(RequestCode.PULL_MESSAGE, 4.2)
    assert (stats.get_time_max, latency(stats, "0@T@G")) == (4, 0)


def test_a_slow_send_adds_to_the_latency_of_its_queue_under_v53(tmp_path: Path) -> None:
    stats = BrokerStats(0, 0.0, BrokerStatsManager("C", deletes=True, has_added=True))
    puts = stats.puts
    queues = [
        ConsumeQueue("T", queue_id, tmp_path / str(queue_id), 20, OsDisk(), MmapCache(OsDisk()))
        for queue_id in (0, 1)
    ]
    for queue_id, ms in ((0, 0.4), (1, 7.9), (0, 3.0)):
        puts.add(queues[queue_id], 1, 0, 100)
        if ms > 1:
            stats.on_slow_request(RequestCode.SEND_MESSAGE_V2, ms)
    # Neither a refused send nor another request is a send to a queue.
    stats.forget_last_put()
    stats.on_slow_request(RequestCode.SEND_MESSAGE_V2, 50.0)
    puts.add(queues[1], 3, 0, 300)
    stats.on_slow_request(RequestCode.CONSUMER_SEND_MSG_BACK, 60.0)
    # A message of the broker itself is stored in the queue.
    puts.add(queues[1], 1, 0, 100)
    stats.count_other_put("T", 100, is_counted=True)
    stats.on_slow_request(RequestCode.SEND_MESSAGE_V2, 70.0)
    run_at_once(stats.sample(10_000, 10.0))
    found = [stats.find("TOPIC_PUT_LATENCY", key) for key in ("0@T", "1@T")]
    assert [data and data.minute for data in found] == [(3, 0.3, 1.5), (7, 0.7, 1.75)]


async def test_the_watch_of_a_brokers_loop_reports_to_its_statistics(tmp_path: Path) -> None:
    runtime = system_runtime()
    with watch_stalls(runtime) as watched:
        broker = Broker(watched, BrokerConfig(store_path_root_dir=str(tmp_path), listen_port=0))
        async with AsyncExitStack() as exits:
            await broker.start()
            exits.push_async_callback(broker.close)
            assert watched.stalls is not None
            watched.stalls.passed(watched.stalls.now() - 0.02, RequestCode.SEND_MESSAGE_V2)
            assert broker.context.stats.put_times.longest >= 20
    runtime.workers.close()
