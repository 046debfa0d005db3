"""GET_BROKER_HA_STATUS (907): return the state of replication, for haStatus.

Kept from 5.3.3 ``DefaultHAService#getRuntimeInfo``: a master returns the end of its log and a row for each
connection at its HA port; a slave returns its own connection to the master's log.
Changed: a slave is in sync only if its reports count (docs/replication.md). ``lastReadTimestamp`` is 0 until
the slave is connected. ``masterFlushOffset`` is 0: it belongs to acting masters, which RewindMQ has not.
Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_BROKER_HA_STATUS


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    if context.replication.slave is not None:
        body = context.replication.slave.runtime_info()
    else:
        body = context.replication.master.runtime_info(context.store.max_commit_log_offset)
    return RemotingCommand(ResponseCode.SUCCESS, body=body)
