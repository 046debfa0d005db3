"""VIEW_BROKER_STATS_DATA (315): return one statistic of the last minute, hour and day.

Kept from 4.9.7 ``AdminBrokerProcessor#ViewBrokerStatsData``: names, keys, windows and remark. As in RocketMQ,
``COMMERCIAL_...``, ``..._FROM_DISK_...`` and ``GROUP_GET_FALL_...`` never have a figure (docs/statistics.md).
Kept from 5.3.3, under v53: seven more names.
Changed: the broker's own reads (checks of transactions) are not counted.
Refused with 1: a name or key without a figure, such as a topic without a message since the broker's start.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.stats.item import StatsSnapshot
from rewindmq.protocol.body.stats import BrokerStatsData, BrokerStatsItem
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import ViewBrokerStatsDataRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.VIEW_BROKER_STATS_DATA


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(ViewBrokerStatsDataRequestHeader)
    name, key = header.stats_name, header.stats_key
    found = None if name is None or key is None else context.stats.find(name, key)
    if found is None:
        told = ("null" if text is None else text for text in (name, key))
        raise RequestError(ResponseCode.SYSTEM_ERROR, "The stats <{}> <{}> not exist".format(*told))
    body = BrokerStatsData(_item(found.minute), _item(found.hour), _item(found.day))
    return RemotingCommand(ResponseCode.SUCCESS, body=body)


def _item(snapshot: StatsSnapshot) -> BrokerStatsItem:
    return BrokerStatsItem(snapshot.sum, snapshot.tps, snapshot.avgpt)
