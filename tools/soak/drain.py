"""The end of a soak: waits until each group has consumed every queue to its end, and reads dead letters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.consume.pull_result import PullStatus
from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import dlq_topic
from tools.soak.journal import DeadLetter, JournalWriter, now_us
from tools.soak.message import TOPICS, MessageId, read_body
from tools.soak.options import SoakGroup
from tools.soak.pauses import pause

_LOOK_SECONDS: Final = 1.0
_PATIENCE: Final = 90.0


async def drain(
    admin: AdminClient, groups: Sequence[SoakGroup], delivered: Callable[[], int], quiet_seconds: float
) -> list[str]:
    """Wait until every group has committed every message, and no message has been delivered for a while.

    Returns:
        What is still open when the time is up, a line each; empty if all is consumed.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE + 4 * quiet_seconds
    quiet_since, last = loop.time(), delivered()
    while True:
        await pause(_LOOK_SECONDS)
        now = loop.time()
        if delivered() != last:
            quiet_since, last = now, delivered()
        behind = await _behind(admin, groups)
        if now - quiet_since >= quiet_seconds and not behind:
            return []
        if now > deadline:
            return behind or ["deliveries do not end"]


async def _behind(admin: AdminClient, groups: Sequence[SoakGroup]) -> list[str]:
    behind = []
    for group in groups:
        try:
            stats = await admin.groups.examine_consume_stats(group.name)
        except RewindMQError as error:
            behind.append(f"{group.name}: {error}")
            continue
        seen = {queue.topic for queue in stats.offset_table}
        behind += [
            f"{group.name}: {queue} is at {entry.consumer_offset} of {entry.broker_offset}"
            for queue, entry in stats.offset_table.items()
            if entry.consumer_offset < entry.broker_offset
        ]
        behind += [
            f"{group.name}: no offsets in {TOPICS[letter]}"
            for letter in group.rules.topics
            if TOPICS[letter] not in seen
        ]
    return behind


async def make_readable(admin: AdminClient, group: SoakGroup, addresses: Sequence[str]) -> None:
    """Make a group's dead letter queue readable, which a 4.2.0 broker does not do by itself.

    Raises:
        RewindMQError: a broker refused.
    """
    topic = dlq_topic(group.name)
    with contextlib.suppress(ResponseError):
        await admin.topics.examine_topic_route_info(topic)
        for address in addresses:
            config = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1)
            await admin.topics.create_and_update_topic_config(address, config)


async def journal_dead_letters(group: SoakGroup, consumer: PullConsumer, journal: JournalWriter) -> None:
    """Write a group's dead letters, if any, to the journal.

    Raises:
        RewindMQError: they cannot be read.
    """
    topic = dlq_topic(group.name)
    try:
        queues = await consumer.fetch_subscribe_message_queues(topic)
    except ResponseError:
        return
    for queue in queues:
        await _journal_queue(group, consumer, journal, queue)


async def _journal_queue(
    group: SoakGroup, consumer: PullConsumer, journal: JournalWriter, queue: MessageQueue
) -> None:
    offset = 0
    while True:
        result = await consumer.pull(queue, "*", offset, 32)
        for message in result.messages:
            message_id = read_body(message.body) or MessageId(-1, -1)
            journal.dead_letter(DeadLetter(now_us(), group.name, *message_id))
        if result.status is PullStatus.NO_NEW_MSG:
            return
        offset = result.next_begin_offset
