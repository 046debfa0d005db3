"""190001 LIST_FENCED_COMMITS: the commits that fenced resets have overtaken, which were not stored.

RewindMQ's own, far from RocketMQ's codes. Kept in memory: the newest 1,000, with the total since the broker
started. Refused: nothing.
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
    body = context.fenced_commits.listed(header.group, header.topic)
    return RemotingCommand(ResponseCode.SUCCESS, body=body)
