"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): create several consumer groups, or replace their settings.

Kept from 5.3.3 ``AdminBrokerProcessor#updateAndCreateSubscriptionGroupList``: the broker treats each group as
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) does, see ``update_and_create_subscription_group``. An empty list
succeeds.
Changed: a refusal changes nothing; the broker drops fields that only 5.x knows.
Refused with 1: more than 2,000 groups, and what 200 refuses. Refused with 3: the request under v42 and v49,
as by brokers before 5.3.1.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.group_settings import check_settings
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.broker.limits import check_list
from rewindmq.protocol.body.group import SubscriptionGroupList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    check_master(context.config)
    before = context.tables.flush.versions
    groups = decode_body(request, SubscriptionGroupList).group_config_list
    check_list("consumer groups", len(groups))
    for group in groups:
        check_settings(group)
    context.tables.groups.update_all({group.group_name: group for group in groups})
    return context.tables.flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)
