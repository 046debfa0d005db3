"""306 CLEAN_EXPIRED_CONSUMEQUEUE: remove the queues that have no message left.

Kept from 4.9.4 ``DefaultMessageStore#cleanExpiredConsumerQueue``: the next message of such a queue gets
offset 0, whatever its groups have stored; the schedule topic stays. Changed: so do the topics of half
messages and their op records (there: half messages that come later lie before the progress of the check, and
nobody is asked about them). Refused with 1: where the disk refuses.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    try:
        context.store.cleaner.remove_expired_queues()
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return RemotingCommand(ResponseCode.SUCCESS)
