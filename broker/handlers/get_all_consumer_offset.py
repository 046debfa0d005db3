"""GET_ALL_CONSUMER_OFFSET (43): return every stored offset, for a slave to copy.

Kept from 4.9.4 ``AdminBrokerProcessor#getAllConsumerOffset``: the table of consumerOffset.json.
Changed: the broker copies the table in slices and serves other requests meanwhile, so the response may have
some of the offsets that they store. Offsets and epochs of a group in a topic always belong together. The
epochs of fenced resets are in a field that RocketMQ ignores.
Refused: nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_ALL_CONSUMER_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return context.large_responses.reply_in_slices(
        request, len(context.offsets.table), _body(context.offsets.table)
    )


def _body(table: ConsumerOffsetTable) -> Generator[None, None, ConsumerOffsetSerializeWrapper]:
    offsets, epochs = yield from table.copy_in_slices()
    return ConsumerOffsetSerializeWrapper(offsets, epochs or None)
