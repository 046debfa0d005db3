"""GET_ALL_PRODUCER_INFO (328): return every producer group with its producers, for ``mqadmin producer``.

Kept from 4.9.7 ``AdminBrokerProcessor#getAllProducerInfo`` and ``ProducerManager#getProducerTable``.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.connection import ProducerInfo, ProducerTableInfo
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import LanguageCode

CODE: Final = RequestCode.GET_ALL_PRODUCER_INFO


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    clock = context.runtime.clock
    now_ms, now = clock.now_ms(), clock.monotonic()
    table = {
        group: [
            ProducerInfo(
                channel.client_id,
                f"/{channel.connection.remote_address}",
                LanguageCode.parse(channel.language).name,
                channel.version,
                now_ms - round(1_000 * (now - channel.last_update)),
            )
            for channel in context.producers.channels(group)
        ]
        for group in context.producers.groups()
    }
    return RemotingCommand(ResponseCode.SUCCESS, body=ProducerTableInfo(table))
