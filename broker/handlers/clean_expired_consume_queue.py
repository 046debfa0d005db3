"""CLEAN_EXPIRED_CONSUMEQUEUE (306): remove the queues whose messages have all expired.

Kept from 4.9.4 ``DefaultMessageStore#cleanExpiredConsumerQueue``: the next message of a removed queue gets
offset 0, whatever offsets its groups have stored. The queues of delayed messages stay.
Changed: the queues of half messages and of op records stay, too. RocketMQ removes them. Later half messages
then get offsets below the stored progress of the check, and the broker never checks their transactions.
Refused with 1: a request during which the disk fails.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.slices.run import run_slices

CODE: Final = RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    try:
        await run_slices(context.runtime.timers, context.store.cleaner.remove_expired_queues())
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return RemotingCommand(ResponseCode.SUCCESS)
