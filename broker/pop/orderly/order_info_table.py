"""The order infos of all queues that groups pop in order (docs/spec/pop.md 10).

Source: RocketMQ 5.5.1 ``QueueLevelConsumerManager``. The table knows no clock.
Changed: a table of ``MAX_ORDER_INFOS`` queues first forgets those whose messages are all acknowledged, and
then refuses POPs of further queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rewindmq.broker.limits import MAX_ATTEMPT_ID_LENGTH, MAX_ORDER_INFOS, check_room
from rewindmq.broker.pop.orderly.hash_order import hash_order
from rewindmq.broker.pop.orderly.queue_order import OrderInfo
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.pop.offset_info import (
    offset_key,
    order_count_entry,
)
from rewindmq.protocol.pop.topics import topic_type

_BETWEEN: Final = "@"

# ``topic@group``, as in the file, and the queue id.
OrderKey = tuple[str, int]


def order_key(topic: str, group: str, queue_id: int) -> OrderKey:
    """Return the key of a group's queue."""
    return f"{topic}{_BETWEEN}{group}", queue_id


def topic_and_group(key: OrderKey) -> tuple[str, str] | None:
    """Return the names in a key; None if it does not consist of two, as a file may say."""
    names = key[0].split(_BETWEEN)
    return (names[0], names[1]) if len(names) == 2 else None


class OrderInfoTable:
    """Order infos by ``topic@group`` and queue."""

    def __init__(self) -> None:
        self._infos: dict[OrderKey, OrderInfo] = {}
        # Keys of the infos without an open message, oldest first.
        self._done: dict[OrderKey, None] = {}
        self.is_changed = False

    def __len__(self) -> int:
        return len(self._infos)

    def __iter__(self) -> Iterator[OrderKey]:
        return iter(self._infos)

    def get(self, key: OrderKey) -> OrderInfo | None:
        """Return the queue's info; None if nothing was popped."""
        return self._infos.get(key)

    def copy(self) -> dict[OrderKey, OrderInfo]:
        """Return all infos, to write them elsewhere."""
        return dict(self._infos)

    def replace_all(self, infos: Mapping[OrderKey, OrderInfo]) -> None:
        """Replace the table by the content of a file."""
        self._infos = dict(infos)
        self._done = {key: None for key, info in infos.items() if not info.open_offsets}

    def is_blocked(self, key: OrderKey, attempt_id: str | None, invisible_time: int, now_ms: int) -> bool:
        """Return True if this attempt may not pop the queue now.

        Args:
            invisible_time: of the attempt; applies to the messages in flight if their own POP had none.
        """
        info = self._infos.get(key)
        if info is None:
            return False
        given = info.with_invisible_time(attempt_id, invisible_time)
        if given is not info:
            self._put(key, given)
        return given.is_blocking(attempt_id, now_ms)

    def update(
        self,
        key: OrderKey,
        attempt_id: str | None,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
        now_ms: int,
    ) -> OrderInfo:
        """Note a POP of at least one message; return the queue's info.

        Raises:
            RequestError: SYSTEM_ERROR (1), the attempt id is too long, or the queue is new and the table is
                full.
        """
        if attempt_id is not None and len(attempt_id) > MAX_ATTEMPT_ID_LENGTH:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"the attempt id has {len(attempt_id)} characters: the limit is {MAX_ATTEMPT_ID_LENGTH}",
            )
        if key not in self._infos and len(self._infos) >= MAX_ORDER_INFOS:
            self._make_room()
        info = OrderInfo.popped(self._infos.get(key), attempt_id, pop_time, invisible_time, offsets, now_ms)
        self._put(key, info)
        return info

    def acknowledge(self, key: OrderKey, offset: int, pop_time: int) -> int:
        """Note an ack; return the offset to commit, ``ILLEGAL_OFFSET`` or ``NOTHING_TO_COMMIT``.

        The offset of an ack to a queue without an info is one past the message.
        """
        info = self._infos.get(key)
        if info is None:
            return offset + 1
        after, next_offset = info.acknowledge(offset, pop_time)
        if after is not info:
            self._put(key, after)
        return next_offset

    def change_visible_time(self, key: OrderKey, offset: int, pop_time: int, next_visible_ms: int) -> None:
        """Note when a message is visible again; see ``OrderInfo.change_visible_time``."""
        info = self._infos.get(key)
        if info is not None:
            after = info.change_visible_time(offset, pop_time, next_visible_ms)
            if after is not info:
                self._put(key, after)

    def remove(self, key: OrderKey) -> None:
        """Forget a queue: it was reset, or is gone."""
        if self._infos.pop(key, None) is not None:
            self._done.pop(key, None)
            self.is_changed = True

    def remove_all(self, topic: str | None, group: str | None) -> list[OrderKey]:
        """Forget the queues of a topic, of a group, or of both together; return their keys."""
        gone = [key for key in self._infos if _belongs(key, topic, group)]
        for key in gone:
            self.remove(key)
        return gone

    def _put(self, key: OrderKey, info: OrderInfo) -> None:
        self._infos[key] = info
        self._done.pop(key, None)
        if not info.open_offsets:
            self._done[key] = None
        self.is_changed = True

    def _make_room(self) -> None:
        oldest = next(iter(self._done), None)
        if oldest is not None:
            self.remove(oldest)
        check_room("queues that are popped in order", len(self._infos), MAX_ORDER_INFOS)


def _belongs(key: OrderKey, topic: str | None, group: str | None) -> bool:
    name = key[0]
    return (topic is None or name.startswith(topic + _BETWEEN)) and (
        group is None or name.endswith(_BETWEEN + group)
    )


def order_counts(info: OrderInfo, key: OrderKey) -> list[str]:
    """Return the queue's entries in ``orderCountInfo``.

    One for each message that was popped before, and one of the queue with the smallest count, for old
    clients.
    """
    kind, queue_id = topic_type(key[0]), key[1]
    counts = info.consumed_counts or {}
    entries = [
        order_count_entry(kind, offset_key(queue_id, offset), counts[offset]) for offset in hash_order(counts)
    ]
    return [*entries, order_count_entry(kind, str(queue_id), info.lowest_count)]
