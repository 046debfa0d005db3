"""The ProcessQueue of orderly consumption, and the selector that ordered sends use.

Specification: docs/spec/client.md C.6.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq import ClientError, Message, MessageQueue, select_queue_by_hash
from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.client.consume.queue_locks import acquire_within
from rewindmq.race.sim import World
from tests.client.client_records import message


def queue_of(*offsets: int) -> OrderlyProcessQueue:
    queue = OrderlyProcessQueue(0.0)
    queue.put_messages([message(offset) for offset in offsets])
    return queue


def taken(queue: OrderlyProcessQueue, count: int) -> list[int]:
    return [message.queue_offset for message in queue.take_messages(count)]


def test_a_commit_is_one_past_the_last_taken_and_empties_what_was_taken() -> None:
    queue = queue_of(10, 11, 13)
    assert taken(queue, 2) == [10, 11]
    assert (queue.cached_count, queue.taken_offsets, queue.has_waiting) == (3, (10, 11), True)
    assert queue.commit() == 12
    assert (queue.cached_count, queue.taken_offsets) == (1, ())
    assert taken(queue, 5) == [13]
    assert queue.commit() == 14
    assert (queue.cached_count, queue.cached_bytes, queue.has_waiting) == (0, 0, False)


def test_G7_nothing_is_committed_after_clear() -> None:
    queue = queue_of(10, 11)
    taken(queue, 1)
    queue.clear()
    with pytest.raises(ClientError):
        queue.commit()
    assert (queue.cached_count, queue.cached_bytes) == (0, 0)


def test_a_rollback_puts_back_all_and_consume_again_only_some() -> None:
    queue = queue_of(1, 2, 3, 4)
    batch = queue.take_messages(2)
    assert taken(queue, 1) == [3]
    queue.make_message_to_consume_again(batch[1:])
    assert list(queue.taken_offsets) == [1, 3]
    assert taken(queue, 1) == [2]
    queue.rollback()
    assert list(queue.taken_offsets) == []
    assert taken(queue, 9) == [1, 2, 3, 4]


def test_consumption_begins_once_and_ends_when_nothing_waits() -> None:
    queue = queue_of()
    assert not queue.begin_consuming()
    queue.put_messages([message(0)])
    assert queue.begin_consuming()
    assert not queue.begin_consuming()
    assert taken(queue, 1) == [0]
    assert taken(queue, 1) == []
    assert not queue.begin_consuming()
    queue.put_messages([message(1)])
    assert queue.begin_consuming()


def test_a_lock_expires_after_30_seconds() -> None:
    queue = queue_of()
    queue.lock_granted(5.0)
    assert not queue.is_lock_expired(35.0)
    assert queue.is_lock_expired(35.1)


@given(
    st.lists(st.sampled_from(["take", "commit", "rollback", "again", "put"]), max_size=40), st.integers(1, 4)
)
def test_messages_come_in_order_and_none_is_lost(steps: list[str], batch: int) -> None:
    queue = queue_of(0, 1, 2)
    end, done = 3, 0
    for step in steps:
        if step == "take":
            before = queue.taken_offsets
            came = taken(queue, batch)
            assert came == sorted(came)
            assert not came or not before or came[0] > before[-1]
        elif step == "put":
            queue.put_messages([message(end)])
            end += 1
        elif step == "again" and queue.taken_offsets:
            queue.rollback()
            queue.make_message_to_consume_again(queue.take_messages(1))
        elif step == "rollback":
            queue.rollback()
        elif step == "commit" and queue.taken_offsets:
            done = queue.commit()
        assert queue.cached_count == end - done
    queue.rollback()
    assert taken(queue, end) == list(range(done, end))


def test_acquire_within_waits_no_longer_than_asked() -> None:
    world = World()

    async def main() -> None:
        runtime, lock = world.runtime(), asyncio.Lock()
        assert await acquire_within(lock, 1.0, runtime)
        before = world.now
        assert not await acquire_within(lock, 1.0, runtime)
        assert world.now - before == pytest.approx(1.0)
        runtime.timers.call_later(0.5, lock.release)
        assert await acquire_within(lock, 1.0, runtime)
        assert world.now - before == pytest.approx(1.5)

    world.run(main())


def test_the_selector_uses_javas_hash() -> None:
    queues = [MessageQueue("T", "broker-a", number) for number in range(7)]
    message = Message("T", b"x")
    picked = [select_queue_by_hash(queues, message, arg).queue_id for arg in (0, 8, -8, "a", "ab")]
    assert picked == [0, 1, 1, 97 % 7, 3105 % 7]
