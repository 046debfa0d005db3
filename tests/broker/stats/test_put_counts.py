"""What was sent to each queue is counted in the store, and added to totals and items when they are read."""

from __future__ import annotations

from pathlib import Path

from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.stats.manager import BrokerStatsManager
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.consume_queue.put_counts import COUNTED_QUEUES, PutCounts, QueuePuts
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.support.unused_topics import remove_unused_topics

MANY = 1_200


def queue(topic: str, queue_id: int, folder: Path) -> ConsumeQueue:
    return ConsumeQueue(topic, queue_id, folder, 20, OsDisk(), MmapCache(OsDisk()))


def test_counts_are_taken_once_and_begin_again(tmp_path: Path) -> None:
    puts = PutCounts()
    first, second = queue("T", 0, tmp_path), queue("U", 3, tmp_path)
    puts.add(first, 1, 0, 100)
    puts.add(second, 2, 62, 6_400)
    puts.add(first, 1, 0, 50)
    assert list(puts.take()) == [QueuePuts("T", 0, 2, 0, 150), QueuePuts("U", 3, 2, 62, 6_400)]
    assert list(puts.take()) == []
    puts.add(first, 1, 0, 7)
    assert list(puts.take()) == [QueuePuts("T", 0, 1, 0, 7)]


def test_a_put_that_is_taken_back_leaves_the_others(tmp_path: Path) -> None:
    puts = PutCounts()
    first = queue("T", 0, tmp_path)
    for _ in range(3):
        puts.add(first, 1, 0, 10)
        puts.take_back(10)
    assert (len(puts), list(puts.take())) == (0, [])
    puts.add(first, 1, 0, 10)
    assert list(puts.take()) == [QueuePuts("T", 0, 1, 0, 10)]


def test_a_queue_that_gets_messages_while_counts_are_taken_is_taken_next_time(tmp_path: Path) -> None:
    puts = PutCounts()
    first, second = queue("T", 0, tmp_path), queue("T", 1, tmp_path)
    puts.add(first, 1, 0, 1)
    puts.add(second, 1, 0, 2)
    taken = []
    for counts in puts.take():
        taken.append((counts.queue_id, counts.size))
        puts.add(first, 1, 0, 4)
    assert taken == [(0, 1), (1, 2)]
    assert [(counts.queue_id, counts.size) for counts in puts.take()] == [(0, 8)]


def test_messages_of_a_topic_that_was_deleted_and_created_again_all_count(tmp_path: Path) -> None:
    stats = BrokerStats(0, 0.0, BrokerStatsManager("C", deletes=False))
    store = MessageStore(tmp_path, StoreConfig(), lambda: 1_000, put_counts=stats.puts)
    store.open()
    sizes = [store.put_message(StoredMessage("T", 0, b"x" * count)).size for count in (1, 2)]
    assert remove_unused_topics(store.cleaner, ()) == 1
    assert store.max_offset("T", 0) == 0
    sizes.append(store.put_message(StoredMessage("T", 0, b"xyz")).size)
    assert (stats.put_total, stats.put_bytes, stats.items.topic_puts["T"].times) == (3, sum(sizes), 3)
    store.close()


def test_a_reader_of_statistics_takes_the_counts_of_a_thousand_queues_at_most(tmp_path: Path) -> None:
    """More would hold the event loop too long; the first counts of a further queue end the oldest."""
    stats = BrokerStats(0, 0.0, BrokerStatsManager("C", deletes=False, has_added=True))
    puts = stats.puts
    queues = [queue("T", number, tmp_path) for number in range(MANY)]
    for each in (*queues, *queues[:3]):
        puts.add(each, 1, 0, 10)
        puts.add(each, 2, 1, 20)
        stats.items.pulls.count("T", "G", each.queue_id, 2, 20)
    sent, pulled = stats.items.topic_puts["T"].times, stats.items.pulls.requests
    assert (len(puts), sent, pulled) == (COUNTED_QUEUES, 3 * (MANY + 3 - COUNTED_QUEUES), 203)
    puts.add(queues[-1], 1, 0, 10)
    run_at_once(stats.sample(10_000, 10.0))
    found = stats.find("TOPIC_PUT_NUMS", "T")
    assert found is not None
    assert (found.minute.sum, stats.put_total, stats.get_total) == (4 * 1_203 + 1, 4 * 1_203 + 1, 2 * 1_203)


def test_pulls_of_more_queues_than_the_table_holds_all_count() -> None:
    items = BrokerStatsManager("C", deletes=False)
    pulls = items.pulls
    total = 10_005
    for number in range(total):
        pulls.count("T", "G", number, 2, 20)
    pulls.count("T", "G", 0, 1, 5)
    run_at_once(items.sample(10.0, 0, 2 * total + 1))
    found = items.find("GROUP_GET_SIZE", "T@G", 0, 0)
    assert found is not None
    assert (found.minute.sum, pulls.messages, pulls.requests) == (20 * total + 5, 2 * total + 1, total + 1)
