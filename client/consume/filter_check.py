"""Checks a consumer's filters at a broker before consumption starts (docs/spec/client.md C.2, step 10).

Source: RocketMQ 4.9.4 ``MQClientInstance#checkClientInBroker``, which sends CHECK_CLIENT_CONFIG (46) to one
broker of the topic.
"""

from __future__ import annotations

from rewindmq.client.consume.consumer import Consumer
from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG
from rewindmq.protocol.errors import ClientError, RemotingError


async def check_filters(consumer: Consumer) -> None:
    """Ask a broker to check every filter except tags. Topics without a route are skipped.

    Raises:
        ResponseError: SUBSCRIPTION_PARSE_FAILED (23): the expression is wrong; SYSTEM_ERROR (1): the broker
            does not support expressions of this type.
        ClientError: the broker did not respond.
    """
    for topic, subscription in list(consumer.subscriptions.items()):
        queues = consumer.rebalancer.topic_queues.get(topic)
        if subscription.expression_type == EXPRESSION_TAG or not queues:
            continue
        instance = consumer.instance
        address = instance.routes.master_address(queues[0].broker_name)
        if address is None:
            continue
        try:
            await instance.api.check_client_config(address, instance.client_id, consumer.group, subscription)
        except RemotingError as error:
            raise ClientError(
                f"Check client in broker error, maybe because you use {subscription.expression_type}"
                f" to filter message: {error}"
            ) from error
