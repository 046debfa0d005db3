"""LIST_FENCED_COMMITS (190001): return the commits that the broker refused because of a fenced reset.

RewindMQ's own request; its number is far from RocketMQ's.
Kept, in memory: the newest 1,000 refused commits, and their total since the broker started.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import ListFencedCommitsRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.LIST_FENCED_COMMITS


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(ListFencedCommitsRequestHeader)
    body = context.offsets.fenced_commits.listed(header.group, header.topic)
    return RemotingCommand(ResponseCode.SUCCESS, body=body)
