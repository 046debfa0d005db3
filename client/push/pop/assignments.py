"""Assignments: asks the brokers which queues a consumer shall read, and sets its group's mode at the start.

Source: RocketMQ 5.5.0 ``MQClientInstance#queryAssignment``. Changed: a consumer that pops sets the mode POP
of its group itself, once for each topic, at the brokers that assign queues for pulling. After that the
brokers' mode counts, as with Java's client, which only mqadmin's setConsumeMode switches.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.body.assignment import (
    MessageQueueAssignment,
    MessageRequestMode,
    QueryAssignmentRequestBody,
)
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX

_log = logging.getLogger(__name__)


class Assignments:
    """The queues of one consumer, as the brokers assign them.

    Args:
        strategy: the name of a strategy that brokers know.
    """

    def __init__(self, instance: ClientInstance, group: str, strategy: str) -> None:
        self._instance = instance
        self._group = group
        self._strategy = strategy
        # Topics whose mode this consumer has set, or found set.
        self._settled: set[str] = set()

    async def query(self, topic: str, broker_names: Sequence[str]) -> list[MessageQueueAssignment] | None:
        """Return the consumer's queues of a topic, from one of its brokers; None: the broker cannot tell.

        Raises:
            RewindMQError: the broker did not answer, or refused.
        """
        await self.settle(topic, broker_names)
        return await self._query(topic, self._instance.runtime.random.choice(broker_names))

    async def settle(self, topic: str, broker_names: Sequence[str]) -> None:
        """Set the mode POP where a broker assigns queues of the topic for pulling; once.

        Raises:
            ClientError: a broker does not know the requests.
            RewindMQError: a broker did not answer, or refused.
        """
        if topic in self._settled or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return
        has_answer = True
        for name in broker_names:
            assigned = await self._query(topic, name)
            if not assigned:
                has_answer = False
            elif any(each.mode is MessageRequestMode.PULL for each in assigned):
                address = await self._instance.routes.find_master_address(topic, name)
                await self._instance.api.set_request_mode(
                    address, topic, self._group, MessageRequestMode.POP, 0
                )
                _log.info("group %s pops topic %s at broker %s from now on", self._group, topic, name)
        if has_answer:
            self._settled.add(topic)

    async def settle_all(self, topics: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Settle topics before consumption starts; a broker that does not answer is asked again later.

        Args:
            topics: each with the names of its brokers.

        Raises:
            ClientError: a broker does not know the requests.
        """
        for topic, broker_names in topics:
            try:
                await self.settle(topic, broker_names)
            except ClientError:
                raise
            except RewindMQError as error:
                _log.warning("the mode of group %s, topic %s is not set yet: %s", self._group, topic, error)

    async def _query(self, topic: str, broker_name: str) -> list[MessageQueueAssignment] | None:
        instance = self._instance
        address = await instance.routes.find_master_address(topic, broker_name)
        body = QueryAssignmentRequestBody(
            topic, self._group, MessageModel.CLUSTERING, instance.client_id, self._strategy
        )
        try:
            return await instance.api.query_assignment(address, body)
        except ResponseError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            raise ClientError(
                f"broker {broker_name} at {address} serves no consumers that pop: RocketMQ does since 5.0,"
                " RewindMQ with profile = v53; use request_mode='pull'"
            ) from error
