"""CLEAN_UNUSED_TOPIC (316): remove the queues of topics that no longer have a configuration.

Kept from 4.9.4 ``DefaultMessageStore#cleanUnusedTopic``: the messages stay in the log until they expire.
Changed: nothing.
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

CODE: Final = RequestCode.CLEAN_UNUSED_TOPIC


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    try:
        await run_slices(
            context.runtime.timers, context.store.cleaner.remove_unused_topics(context.topics.names)
        )
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return RemotingCommand(ResponseCode.SUCCESS)
