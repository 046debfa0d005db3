"""A sample: stored offsets and the positions of all consumers at one moment."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rewindmq.client.admin.groups import shared_client_ids
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.positions import (
    ClientReport,
    Position,
    consumer_positions,
    positions_of,
)
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import ConsumeType, MessageModel
from rewindmq.protocol.body.running_info import ConsumeStatus
from rewindmq.protocol.body.stats import OffsetWrapper
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.slices.run import run_slices

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


@dataclass(frozen=True, slots=True)
class QueueSample:
    """What one sample shows of a queue.

    Attributes:
        stored: the stored offset; None if the broker did not answer.
        max_offset: end of the queue; 0 if the broker did not answer.
        positions: of every consumer that reports the queue. They were asked after the broker, so a correct
            commit is at most the position that its consumer reports.
    """

    stored: int | None
    max_offset: int = 0
    positions: tuple[Position, ...] = ()

    @property
    def live(self) -> list[Position]:
        """The positions of consumers that have not dropped the queue."""
        return [position for position in self.positions if not position.dropped]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of all queues.

    Attributes:
        at: protocol seconds of the admin client's monotonic clock.
        clients: client ids of the connected consumers.
        is_complete: True if a broker told the connected consumers, and each of them has answered.
        consumed: client id to an upper bound of the messages of the topic consumed in the last minute;
            without clients whose rates leave messages out.
        is_broadcasting, is_pulling: the consumers' message model and type.
        succeeded: client id to its rate of consumed messages of the topic, per second over about a minute,
            rounded to two decimals.
        has_failures: a consumer failed to consume a message of the topic in the last minute.
        is_filtered: a subscription leaves out messages of the topic, by tags or SQL92.
        has_silent_broker: a broker did not answer, so it may be restarted.
        shared: client ids that several consumers have. Such consumers count as without an answer.
    """

    at: float
    queues: dict[MessageQueue, QueueSample]
    clients: frozenset[str] = frozenset()
    is_complete: bool = True
    consumed: Mapping[str, float] = field(default_factory=dict)
    is_broadcasting: bool = False
    is_pulling: bool = False
    succeeded: Mapping[str, float] = field(default_factory=dict)
    has_failures: bool = False
    is_filtered: bool = False
    has_silent_broker: bool = False
    shared: frozenset[str] = frozenset()


# Rates are rounded to a hundredth of a message per second, and cover up to 70 s.
_RATE_SECONDS = 70.0
_ROUNDING = 0.01
_QUEUES_IN_SLICE = 256
# The rates of Go's client leave out what it consumed in the 10 s after its first message. No other client's
# were compared with what it consumed.
_COUNTING_LANGUAGES = frozenset({"JAVA", "PYTHON"})
# Consumers send "*" for every message; some send nothing.
_EVERY_MESSAGE = frozenset({"*", ""})


async def take_sample(
    admin: AdminClient,
    topic: str,
    group: str,
    queues: Sequence[MessageQueue],
    brokers: Brokers | None = None,
) -> Sample:
    """Ask the brokers for the stored offsets, then each consumer for its running info.

    A broker that does not answer leaves its queues without a stored offset; a consumer that does not makes
    the sample incomplete. Nothing is raised.

    Args:
        brokers: of a watch, which takes many samples.
    """
    brokers = Brokers(admin) if brokers is None else brokers
    told: Mapping[MessageQueue, OffsetWrapper] = {}
    with contextlib.suppress(RewindMQError):
        told = await brokers.consume_stats(group, topic)
    connection, is_told = None, True
    try:
        connection = await brokers.consumers_of(group)
    except RewindMQError:
        is_told = False
    clients = frozenset(() if connection is None else (each.client_id for each in connection.connection_set))
    # A broker asks only one of the consumers with one client id. The others may be anywhere.
    shared = frozenset(() if connection is None else shared_client_ids(connection))
    reports = await consumer_positions(brokers, group, sorted(clients - shared))
    reports += [ClientReport(client_id, None) for client_id in sorted(shared)]
    table = await run_slices(admin.runtime.timers, _queue_samples(queues, told, reports))
    rates = {
        report.client_id: report.info.status_table[topic]
        for report in reports
        if report.info is not None and topic in report.info.status_table
    }
    counting = _counting(connection)
    is_complete = is_told and all(report.info is not None for report in reports)
    has_silent_broker = any(seen.stored is None for seen in table.values())
    if has_silent_broker or not is_complete:
        brokers.forget()
    return Sample(
        admin.runtime.clock.monotonic(),
        table,
        clients,
        is_complete,
        {client_id: _most(status) for client_id, status in rates.items() if client_id in counting},
        connection is not None and connection.message_model is MessageModel.BROADCASTING,
        connection is not None and connection.consume_type is ConsumeType.CONSUME_ACTIVELY,
        {client_id: status.consume_ok_tps for client_id, status in rates.items()},
        any(status.consume_failed_tps for status in rates.values()),
        _is_filtered(topic, connection, reports),
        has_silent_broker,
        shared,
    )


def _queue_samples(
    queues: Iterable[MessageQueue],
    told: Mapping[MessageQueue, OffsetWrapper],
    reports: Iterable[ClientReport],
) -> Generator[None, None, dict[MessageQueue, QueueSample]]:
    positions = yield from positions_of(reports)
    table = {}
    for number, queue in enumerate(queues, 1):
        entry = told.get(queue)
        seen = tuple(positions.get(queue, ()))
        if entry is None:
            table[queue] = QueueSample(None, 0, seen)
        else:
            table[queue] = QueueSample(entry.consumer_offset, entry.broker_offset, seen)
        if number % _QUEUES_IN_SLICE == 0:
            yield
    return table


def silent_brokers(sample: Sample) -> list[str]:
    """Return the names of the brokers that did not tell the stored offsets of their queues, sorted."""
    return sorted({queue.broker_name for queue, seen in sample.queues.items() if seen.stored is None})


def _counting(connection: ConsumerConnection | None) -> set[str]:
    """Return the clients whose rates count every message."""
    clients = () if connection is None else connection.connection_set
    return {client.client_id for client in clients if client.language in _COUNTING_LANGUAGES}


def _is_filtered(topic: str, connection: ConsumerConnection | None, reports: Iterable[ClientReport]) -> bool:
    """True if the group's subscription, or one of a consumer, leaves out messages of the topic."""
    subscriptions = [] if connection is None else [*connection.subscription_table.values()]
    for report in reports:
        subscriptions += () if report.info is None else report.info.subscription_set
    return any(
        each.topic == topic and (each.class_filter_mode or each.sub_string not in _EVERY_MESSAGE)
        for each in subscriptions
    )


def _most(status: ConsumeStatus) -> float:
    """Return how many messages the consumer consumed at most."""
    return _RATE_SECONDS * (status.consume_ok_tps + status.consume_failed_tps + _ROUNDING)
