"""CHECK_CLIENT_CONFIG (46): check that the broker can filter by a subscription's expression.

Kept from 4.9.4 ``ClientManageProcessor#checkClientConfig``: tags always pass. SQL92 fails with 1 unless
enablePropertyFilter is on, and with SUBSCRIPTION_PARSE_FAILED (23) if the expression does not parse.
Changed: the remark says what is wrong with the expression. An unknown expression type fails with 1; RocketMQ
returns SUBSCRIPTION_PARSE_FAILED (23) without a remark.
Refused: nothing else.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.filter.property_filter import compile_filter
from rewindmq.broker.pull.validator import check_property_filter
from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG, CheckClientRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.CHECK_CLIENT_CONFIG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    subscription = decode_body(request, CheckClientRequestBody).subscription_data
    if subscription.expression_type != EXPRESSION_TAG:
        check_property_filter(context.config, subscription)
        compile_filter(subscription.sub_string, text_tests=context.profile.filters_texts)
    return RemotingCommand(ResponseCode.SUCCESS)
