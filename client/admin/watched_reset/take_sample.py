"""Takes a sample: asks the brokers for stored offsets, and then the consumers for their positions."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from rewindmq.client.admin.shared_ids import shared_client_ids
from rewindmq.client.admin.watched_reset.brokers import Brokers, ToldOffsets
from rewindmq.client.admin.watched_reset.positions import ClientReport, consumer_positions, positions_of
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import ConsumeType, MessageModel
from rewindmq.protocol.body.running_info import ConsumeStatus
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.slices.run import run_slices
from rewindmq.watch.evidence.sample import Fetched, QueueSample, Sample

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


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
    needed: AbstractSet[str] | None = None,
) -> Sample:
    """Ask the brokers for the stored offsets, then each consumer for its running info.

    A broker that does not answer leaves its queues without a stored offset; a consumer that does not makes
    the sample incomplete. Nothing is raised.

    Args:
        brokers: of a watch, which takes many samples.
        needed: names of the brokers to ask for what they count; None: all.
    """
    brokers = Brokers(admin) if brokers is None else brokers
    told: Mapping[MessageQueue, ToldOffsets] = {}
    with contextlib.suppress(RewindMQError):
        told = await brokers.offsets_of(group, topic)
    fetched: Mapping[str, Fetched] = {}
    with contextlib.suppress(RewindMQError):
        fetched = await brokers.fetched(group, topic, needed)
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
        brokers.routes.forget()
    return Sample(
        admin.runtime.clock.monotonic(),
        table,
        clients,
        is_complete,
        {client_id: _most(status) for client_id, status in rates.items() if client_id in counting},
        connection is not None and connection.message_model is MessageModel.BROADCASTING,
        connection is not None and connection.consume_type is ConsumeType.CONSUME_ACTIVELY,
        frozenset(rates),
        _is_filtered(topic, connection, reports),
        has_silent_broker,
        fetched,
        shared,
        frozenset(report.client_id for report in reports if report.info is None) - shared,
        brokers.rewinders,
    )


def _queue_samples(
    queues: Iterable[MessageQueue],
    told: Mapping[MessageQueue, ToldOffsets],
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
            table[queue] = QueueSample(entry.stored, entry.max_offset, seen, entry.rewind, entry.awaited)
        if number % _QUEUES_IN_SLICE == 0:
            yield
    return table


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
