"""CLEAN_UNUSED_TOPIC (316): remove the queues of topics that no longer have a configuration.

Kept from 4.9.4 ``DefaultMessageStore#cleanUnusedTopic``: the messages stay in the log until they expire.
Changed: as for DELETE_TOPIC_IN_BROKER (215), the log has a durable record of each topic's end.
Refused with 1: a request during which the disk fails.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.unused_topics import remove_unused_topics
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.CLEAN_UNUSED_TOPIC


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    try:
        await remove_unused_topics(context)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return RemotingCommand(ResponseCode.SUCCESS)
