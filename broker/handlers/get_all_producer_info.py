"""GET_ALL_PRODUCER_INFO (328): return every producer group with its producers, for ``mqadmin producer``.

Kept from 4.9.7 ``AdminBrokerProcessor#getAllProducerInfo`` and ``ProducerManager#getProducerTable``.
Changed: nothing. Refused with 3: the request under v42, as by 4.2.0.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import QUEUES_PER_SLICE
from rewindmq.protocol.body.connection import ProducerInfo, ProducerTableInfo
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.version import LanguageCode

CODE: Final = RequestCode.GET_ALL_PRODUCER_INFO


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    producers = context.clients.producers.memberships.shares.used
    return context.large_responses.reply_in_slices(request, producers, _table(context))


def _table(context: BrokerContext) -> Generator[None, None, ProducerTableInfo]:
    clock = context.runtime.clock
    now_ms, now = clock.now_ms(), clock.monotonic()
    body = ProducerTableInfo()
    left = QUEUES_PER_SLICE
    for group in list(context.clients.producers.groups()):
        # Empty if the group has gone since the first slice.
        for channel in list(context.clients.producers.channels(group)):
            producer = ProducerInfo(
                channel.client_id,
                f"/{channel.connection.remote_address}",
                LanguageCode.parse(channel.language).name,
                channel.version,
                now_ms - round(1_000 * (now - channel.last_update)),
            )
            body.data.setdefault(group, []).append(producer)
            left -= 1
            if not left:
                left = QUEUES_PER_SLICE
                yield
    return body
