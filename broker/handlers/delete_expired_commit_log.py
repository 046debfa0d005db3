"""DELETE_EXPIRED_COMMITLOG (329): delete files older than fileReservedTime without waiting for deleteWhen.

Kept from 4.9.4 ``DefaultMessageStore#executeDeleteFilesManually``: each of the next 20 runs of the
cleaning task, every 10 s, deletes files at any hour.
Changed: nothing. Refused with 3: the request under v42, as by 4.2.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.DELETE_EXPIRED_COMMITLOG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    context.background.retention.delete_soon()
    return RemotingCommand(ResponseCode.SUCCESS)
