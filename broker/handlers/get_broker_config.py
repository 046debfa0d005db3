"""GET_BROKER_CONFIG (26): return the configuration in effect, as lines of a property file.

Kept from 4.9.4 ``AdminBrokerProcessor#getBrokerConfig``: every key with its value, and the data version as
JSON.
Changed: the response has only the keys of this broker, and two of functions that it does not have: without
``filterServerNums`` and ``useTLS``, ``mqadmin exportConfigs`` of 4.9 fails. The data version is that of the
topics, which every change of the configuration renews.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import GetBrokerConfigResponseHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_BROKER_CONFIG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    version = fastjson.dumps(msgspec.to_builtins(context.tables.topics.data_version))
    return RemotingCommand(
        ResponseCode.SUCCESS, GetBrokerConfigResponseHeader(version), context.live_config.text()
    )
