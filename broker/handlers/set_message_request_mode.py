"""SET_MESSAGE_REQUEST_MODE (401): set whether a group pulls or pops a topic, for setConsumeMode.

Kept from 5.3.3 ``QueryAssignmentProcessor#setMessageRequestMode``: the broker stores the mode ``PULL`` in
``config/messageRequestMode.json`` before it responds, also for a topic or group that does not exist, and
refuses a retry topic with NO_PERMISSION (16). Nothing else changes: all groups pull.
Changed: only valid names, and at most 10,000 pairs of topic and group.
Refused with 1: the mode ``POP``, because RewindMQ serves no consumers that pop. Refused with 3: the request
under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX, check_group, check_topic
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SET_MESSAGE_REQUEST_MODE

_PULL: Final = "PULL"


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    before = context.tables.flush.versions
    mode = decode_body(request, SetMessageRequestModeRequestBody)
    if mode.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        raise RequestError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    check_topic(mode.topic)
    check_group(mode.consumer_group)
    if mode.mode != _PULL:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"RewindMQ serves no consumers that pop, so the mode {mode.mode} cannot be set;"
            f" all groups pull, use {_PULL}",
        )
    context.tables.request_modes.update(mode)
    return context.tables.flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)
