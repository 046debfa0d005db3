"""Topic, group, consumers and a mute broker for the scenarios of this folder."""

from __future__ import annotations

from typing import Any

from rewindmq import PushConsumer
from rewindmq.client.push.listener import MessageListener
from rewindmq.protocol.body.registration import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import RegisterBrokerRequestHeader
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Handler
from rewindmq.protocol.remoting.server import RemotingServer
from tests.support.stage import SimStage

TOPIC, GROUP = "TopicTest", "rewinders"
MUTE_HOST = "10.0.1.99"


def new_consumer(
    stage: SimStage,
    group: str = GROUP,
    *,
    host: str = "10.0.2.1",
    listener: MessageListener | None = None,
    **options: Any,
) -> PushConsumer:
    """Return a consumer of the topic, not started. Its messages are recorded in ``stage.consumed``.

    Args:
        listener: gets the messages instead; nothing is recorded then.
    """
    return stage.push_consumer(listener, group=group, topic=TOPIC, host=host, **options)


async def start_mute_broker(
    stage: SimStage, name: str, reset: Handler = lambda connection, request: None, *, queues: int = 0
) -> None:
    """Register a broker that refuses every request except INVOKE_BROKER_TO_RESET_OFFSET (222).

    Args:
        reset: handles INVOKE_BROKER_TO_RESET_OFFSET (222); by default it never answers.
        queues: of the topic at the broker. Without queues, consumers do not use the broker.
    """
    runtime = stage.new_runtime(MUTE_HOST)
    server = RemotingServer(runtime, {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: reset})
    await server.start(MUTE_HOST, 10911)
    client = RemotingClient(runtime)
    stage.at_exit(server.close)
    stage.at_exit(client.close)
    # v53 refuses a first registration with only one topic.
    table = {
        topic: TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
        for topic in (TOPIC, name)
    }
    version = DataVersion(timestamp=1, counter=1)
    body = RegisterBrokerBody(topic_config_serialize_wrapper=TopicConfigSerializeWrapper(table, version))
    header = RegisterBrokerRequestHeader(name, f"{MUTE_HOST}:10911", "DefaultCluster", "", 0)
    command = RemotingCommand(RequestCode.REGISTER_BROKER, header, body)
    (await client.invoke(stage.namesrv, command)).require_success()
