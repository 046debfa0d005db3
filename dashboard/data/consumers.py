"""The consumers of a group: who is connected where, and what each has subscribed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rewindmq.client.admin.running_info_report import find_trouble
from rewindmq.client.admin.shared_ids import shared_client_ids, shared_id_warning
from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.protocol.body.connection import Connection, ConsumerConnection
from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG, MessageModel, SubscriptionData
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX

# Consumers that are asked for their running info on one page.
MAX_ASKED: Final = 50


@dataclass
class ConnectedConsumer:
    """A connected consumer.

    Attributes:
        brokers: names of the brokers that it has a connection to.
        info: its own answer (GET_CONSUMER_RUNNING_INFO, 307); None: it was not asked.
    """

    connection: Connection
    brokers: list[str] = field(default_factory=list)
    info: Answer[ConsumerRunningInfo] | None = None

    @property
    def subscriptions(self) -> dict[str, str]:
        """Return the expression of each topic, without the group's retry topic."""
        known = self.info.value.subscription_set if self.info and self.info.value else ()
        subscribed = sorted(known, key=lambda item: item.topic)
        return {
            item.topic: _expression(item)
            for item in subscribed
            if not item.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        }

    @property
    def failed_per_second(self) -> float:
        """Return the messages of all topics that its listener failed per second, as it says itself."""
        known = self.info.value.status_table.values() if self.info and self.info.value else ()
        return sum(status.consume_failed_tps for status in known)

    @property
    def failed_in_hour(self) -> int:
        """Return the messages of all topics that its listener failed in the last hour, as it says itself."""
        known = self.info.value.status_table.values() if self.info and self.info.value else ()
        return sum(status.consume_failed_msgs for status in known)


@dataclass
class GroupConsumers:
    """The consumers of a group, by client id.

    Attributes:
        problems: a sentence for each broker that could not be asked.
        shared: addresses of the consumers that have one client id, by that id; ``consumers`` has one of them.
    """

    consumers: dict[str, ConnectedConsumer] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    group: ConsumerConnection | None = None
    shared: dict[str, list[str]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of consumers, each of those that share a client id counted."""
        return len(self.consumers) + sum(len(addresses) - 1 for addresses in self.shared.values())

    @property
    def is_broadcasting(self) -> bool:
        """True if the consumers keep their own offsets, so that those of the brokers say nothing."""
        return self.group is not None and self.group.message_model is MessageModel.BROADCASTING

    def sharing(self) -> list[str]:
        """Return a sentence for each client id that several consumers have."""
        return [shared_id_warning(client_id, addresses) for client_id, addresses in self.shared.items()]

    def differing(self) -> list[str]:
        """Return the topics that two consumers subscribed differently, or only one of them; RocketMQ
        expects the same of all consumers of a group, else messages are lost without an error."""
        known = [each.subscriptions for each in self.consumers.values() if each.info and each.info.value]
        topics = sorted({topic for each in known for topic in each})
        return [topic for topic in topics if len({each.get(topic) for each in known}) > 1]

    def without_progress(self, now_ms: int) -> list[str]:
        """Return a line for each queue that its consumer has, and does not get on with, as mqadmin's."""
        return [
            line
            for client_id, each in self.consumers.items()
            if each.info and each.info.value
            for line in find_trouble(client_id, each.info.value, now_ms)
        ]

    def owners(self) -> dict[MessageQueue, str]:
        """Return the client id of the consumer that pulls each queue, as the consumers say."""
        return {
            queue: client_id
            for client_id, each in self.consumers.items()
            if each.info and each.info.value
            for queue, state in each.info.value.mq_table.items()
            if not state.droped
        }


async def consumers_of(
    source: ClusterSource, group: str, *, ask_each: bool = True, stacks: bool = False
) -> Answer[GroupConsumers]:
    """Return the consumers of a group.

    Args:
        ask_each: ask each of the first 50 for its state.
        stacks: the state has the stacks of its threads or tasks.
    """
    masters = await source.group_masters(group)
    if masters.value is None:
        return masters.failed()
    result = GroupConsumers()
    admin = source.admin
    answers = await source.ask_each(
        masters.value.values(), lambda address: admin.groups.examine_consumer_connection_info(group, address)
    )
    for name, address in masters.value.items():
        answer = answers[address]
        if answer.value is not None:
            result.group = result.group or answer.value
            # A consumer has another address at each broker, so one broker's are named.
            result.shared = shared_client_ids(answer.value) | result.shared
            for connection in answer.value.connection_set:
                known = result.consumers.setdefault(connection.client_id, ConnectedConsumer(connection))
                if name not in known.brokers:
                    known.brokers.append(name)
        elif answer.code != ResponseCode.CONSUMER_NOT_ONLINE:
            result.problems[name] = answer.problem or ""
    result.consumers = dict(sorted(result.consumers.items()))
    if ask_each:
        asked = [*result.consumers][:MAX_ASKED]
        # A broker that has just answered passes the request on; another might hang.
        through = {client: masters.value[each.brokers[0]] for client, each in result.consumers.items()}
        infos = await source.ask_each(
            asked,
            lambda client: admin.groups.get_consumer_running_info(
                group, client, stacks=stacks, address=through[client]
            ),
        )
        for client_id, info in infos.items():
            result.consumers[client_id].info = info
    return Answer(result)


def _expression(item: SubscriptionData) -> str:
    """Return the expression in a form in which equal subscriptions are equal texts."""
    if item.expression_type != EXPRESSION_TAG:
        return f"{item.expression_type}: {item.sub_string}"
    return " || ".join(sorted(item.tags_set)) or item.sub_string
