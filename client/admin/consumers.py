"""Requests that a broker passes on to a group's consumers: running info, offsets, one message to consume."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.groups import addresses_of_group
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

# The broker itself waits up to 10 s for the client, so DefaultMQAdminExtImpl triples its timeout here.
_TIMEOUT: Final = 3 * TIMEOUT


class ConsumerAdmin(AdminBase):
    """Sends requests to a group's consumers through their broker."""

    async def get_consumer_running_info(
        self, group: str, client_id: str, *, stacks: bool = False, address: str | None = None
    ) -> ConsumerRunningInfo:
        """Return the running info of one consumer: GET_CONSUMER_RUNNING_INFO (307).

        mqadmin asks only the first broker of the group's route, which may not know the client. This method
        asks every broker in turn until one knows it.

        Args:
            stacks: include the stacks of the client's tasks and threads.
            address: ask only the broker at this address.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if no broker knows the group; SYSTEM_ERROR (1) if no broker
                knows the client, or the client refused; CONSUME_MSG_TIMEOUT (207) if it did not answer.
        """
        header = GetConsumerRunningInfoRequestHeader(group, client_id, stacks)
        refusal = not_online(f"no broker knows client {client_id} of group {group}")
        if address is not None:
            addresses = [address]
        else:
            addresses = await addresses_of_group(self._remote, group)
        for where in addresses:
            command = self._remote.command(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
            try:
                return await self._remote.ask_broker_for(where, command, ConsumerRunningInfo, _TIMEOUT)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                refusal = error
        raise refusal

    async def get_consumer_status(
        self, topic: str, group: str, client: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """Return the offsets that a group's consumers have in memory.

        The broker gets INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223). Every consumer reports its queues of all
        brokers. The first broker that knows a consumer is therefore enough.

        Args:
            client: ask only the consumer with this client id; RewindMQ's brokers also accept its address.

        Returns:
            Client id to queue to offset in memory. Consumers that did not answer within 5 s are missing.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17); SYSTEM_ERROR (1) if no consumer is connected, or the release
                of a consumer is too old; CONSUME_MSG_TIMEOUT (207) if no consumer answered.
        """
        header = GetConsumerStatusRequestHeader(topic, group, client)
        refusal = not_online(f"no consumer of group {group} is connected")
        for _, address in await self._remote.brokers_of(topic):
            command = self._remote.command(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
            try:
                answer = await self._remote.ask_broker(address, command, _TIMEOUT)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                refusal = error
                continue
            table = (await self._remote.decode(answer, GetConsumerStatusBody)).consumer_table
            return {name: dict(sorted(table[name].items())) for name in sorted(table)}
        raise refusal

    async def consume_message_directly(
        self, group: str, client_id: str, message_id: str
    ) -> ConsumeMessageDirectlyResult:
        """Pass one stored message to one consumer's listener: CONSUME_MESSAGE_DIRECTLY (309).

        The broker that stores the message sends it to the client.

        Args:
            message_id: the message's offset id.

        Raises:
            ResponseError: SYSTEM_ERROR (1) if the text is not an offset id, the message does not exist, or
                the client is not connected to that broker; CONSUME_MSG_TIMEOUT (207) if the listener took
                more than 10 s. It may still be running then.
        """
        host, _ = parse_offset_message_id(message_id)
        header = ConsumeMessageDirectlyResultRequestHeader(group, client_id, message_id)
        command = self._remote.command(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        answer = await self._remote.ask_broker(format_host(host), command, _TIMEOUT)
        return decode_body(answer, ConsumeMessageDirectlyResult)
