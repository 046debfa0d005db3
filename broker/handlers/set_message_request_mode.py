"""SET_MESSAGE_REQUEST_MODE (401): set whether a group pulls or pops a topic, for setConsumeMode.

Kept from 5.5.1 ``QueryAssignmentProcessor#setMessageRequestMode``: the broker stores the mode in
``config/messageRequestMode.json`` before it responds. QUERY_ASSIGNMENT (400) reads it. A retry topic fails
with NO_PERMISSION (16), an unknown topic with TOPIC_NOT_EXIST (17), a group that the broker may not create
with SUBSCRIPTION_GROUP_NOT_EXIST (26).
Changed: only valid names, and at most 10,000 pairs of topic and group.
Refused with 1: a mode other than ``PULL`` and ``POP``; RocketMQ stores none. Refused with 3: the request
under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX, check_group, check_topic
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SET_MESSAGE_REQUEST_MODE

_MODES: Final = frozenset(MessageRequestMode)


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    before = context.tables.flush.versions
    mode = decode_body(request, SetMessageRequestModeRequestBody)
    if mode.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        raise RequestError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    check_topic(mode.topic)
    check_group(mode.consumer_group)
    if mode.mode not in _MODES:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"the mode {mode.mode} is neither PULL nor POP")
    if context.tables.topics.find(mode.topic) is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{mode.topic}] not exist")
    if context.tables.groups.find(mode.consumer_group) is None:
        raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
    context.tables.request_modes.update(mode)
    return context.tables.flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)
