"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): create a consumer group, or replace all its settings.

Kept from 4.9.4 ``AdminBrokerProcessor#updateAndCreateSubscriptionGroup``: the broker saves the group at once.
The group's existing topics stay as they are.
Changed: the broker drops fields that only 5.x knows.
Refused with 1: an invalid name; more retry queues than a topic may have; one group more than the table can
hold; a request to a slave.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.group_settings import check_settings
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    check_master(context.config)
    before = context.tables.flush.versions
    group = decode_body(request, SubscriptionGroupConfig)
    check_settings(group)
    context.tables.groups.update(group)
    return context.tables.flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)
