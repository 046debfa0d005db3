"""The positions of a group's consumers, from GET_CONSUMER_RUNNING_INFO (307)."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Final

from rewindmq.client.admin.asking import ask_each
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.protocol.body.running_info import ConsumerRunningInfo, ProcessQueueInfo
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.position import Position

# A consumer that does not answer takes up its place for some seconds.
_CONSUMERS_AT_ONCE: Final = 128
_POSITIONS_IN_SLICE: Final = 256


@dataclass(frozen=True, slots=True)
class ClientReport:
    """What one consumer answered.

    Attributes:
        info: None if it did not answer.
    """

    client_id: str
    info: ConsumerRunningInfo | None


async def consumer_positions(brokers: Brokers, group: str, clients: Iterable[str]) -> list[ClientReport]:
    """Ask the consumers at the same time; a consumer that does not answer has no running info."""

    async def ask(client_id: str) -> ClientReport:
        try:
            return ClientReport(client_id, await brokers.running_info(group, client_id))
        except RewindMQError:
            return ClientReport(client_id, None)

    return await ask_each(clients, ask, at_once=_CONSUMERS_AT_ONCE)


def positions_of(
    reports: Iterable[ClientReport],
) -> Generator[None, None, dict[MessageQueue, list[Position]]]:
    """Return the consumers' positions in each queue that they report, in slices.

    Consumers that broadcast report every queue.
    """
    positions: dict[MessageQueue, list[Position]] = {}
    count = 0
    for report in reports:
        table = {} if report.info is None else report.info.mq_table
        for queue, info in table.items():
            positions.setdefault(queue, []).append(_position(report.client_id, info))
            count += 1
            if count % _POSITIONS_IN_SLICE == 0:
                yield
    return positions


def _position(client_id: str, info: ProcessQueueInfo) -> Position:
    first = None
    if info.transaction_msg_count:
        # The messages that an orderly listener has; they are the lowest ones of the queue.
        first = info.transaction_msg_min_offset
    elif info.cached_msg_count:
        first = info.cached_msg_min_offset
    return Position(
        client_id,
        info.commit_offset,
        first,
        info.droped,
        info.last_consume_timestamp,
        info.last_pull_timestamp,
        max(0, info.cached_msg_max_offset - info.cached_msg_min_offset + 1 - info.cached_msg_count)
        if info.cached_msg_count
        else 0,
    )
