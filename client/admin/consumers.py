"""Asking a group's consumers through their broker: their offsets, what they do, and to take one message."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.remote import TIMEOUT, AdminBase, not_online
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.client import GetConsumerRunningInfoRequestHeader
from rewindmq.protocol.header.message import ConsumeMessageDirectlyResultRequestHeader
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message.message import format_host
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic

# A broker itself waits 10 s for a client; DefaultMQAdminExtImpl triples its bound for these calls.
_TIMEOUT: Final = 3 * TIMEOUT


class ConsumerAdmin(AdminBase):
    """Asks a group's consumers through their broker."""

    async def get_consumer_running_info(
        self, group: str, client_id: str, *, stacks: bool = False
    ) -> ConsumerRunningInfo:
        """Return what one consumer is doing now (307), which a broker asks it.

        mqadmin asks the first broker of the group's route only, which may not know the client. Here every
        broker is asked in turn until one does.

        Args:
            stacks: have it tell where its tasks and threads are, too.

        Raises:
            ResponseError: 17, the group never connected; 1, no broker knows the client, or it refused; 207,
                it is connected and does not answer.
        """
        header = GetConsumerRunningInfoRequestHeader(group, client_id, stacks)
        refusal = not_online(f"no broker reaches client {client_id} of group {group}")
        for _, address in await self._remote.brokers_of(retry_topic(group)):
            command = self._remote.command(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
            try:
                return decode_body(
                    await self._remote.ask_broker(address, command, _TIMEOUT), ConsumerRunningInfo
                )
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                refusal = error
        raise refusal

    async def get_consumer_status(
        self, topic: str, group: str, client: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """Return the offsets that a group's consumers have in memory (223), which a broker asks them.

        Each tells of all its queues, wherever they are; so the first broker that knows a consumer is enough.

        Args:
            client: this one only, by its id; brokers of ours take its address as well.

        Returns:
            Client id to queue to offset in memory; consumers that did not answer within 5 s are missing.

        Raises:
            ResponseError: 17, no such topic; 1, no consumer is connected, or a consumer is too old; 207, none
                answered.
        """
        header = GetConsumerStatusRequestHeader(topic, group, client)
        refusal = not_online(f"no member of group {group} is connected")
        for _, address in await self._remote.brokers_of(topic):
            command = self._remote.command(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
            try:
                answer = await self._remote.ask_broker(address, command, _TIMEOUT)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                refusal = error
                continue
            table = decode_body(answer, GetConsumerStatusBody).consumer_table
            return {name: dict(sorted(table[name].items())) for name in sorted(table)}
        raise refusal

    async def consume_message_directly(
        self, group: str, client_id: str, message_id: str
    ) -> ConsumeMessageDirectlyResult:
        """Have one consumer's listener take one message now (309).

        The broker that holds the message passes it on to the client.

        Args:
            message_id: its offset id.

        Raises:
            ResponseError: 1, the text is no offset id, there is no such message, or the client is not
                connected there; 207, its listener took more than 10 s, and may be at it still.
        """
        host, _ = parse_offset_message_id(message_id)
        header = ConsumeMessageDirectlyResultRequestHeader(group, client_id, message_id)
        command = self._remote.command(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        answer = await self._remote.ask_broker(format_host(host), command, _TIMEOUT)
        return decode_body(answer, ConsumeMessageDirectlyResult)
