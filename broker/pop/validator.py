"""Checks requests of POP consumption, in RocketMQ's order (5.5.1 ``PopMessageProcessor`` and its like)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.filter.property_filter import compile_filter
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.long_polling import MessageFilter
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.sysflag import Perm
from rewindmq.protocol.names import MAX_NAME_BYTES, faq_suffix, is_path_name
from rewindmq.protocol.pop.topics import pop_retry_topic
from rewindmq.protocol.subscription import SUB_ALL, build_subscription_data

_READ: Final = int(Perm.READ)
# Messages of one POP.
MAX_POP_MESSAGES: Final = 32
# Longest expression that is parsed once and cached, in characters.
_MAX_REMEMBERED: Final = 1_024


class PopValidator:
    """The checks of POP, PEEK, NOTIFICATION, POLLING_INFO, ACK and CHANGE_MESSAGE_INVISIBLETIME.

    Args:
        host: the broker's registered host, for remarks.
    """

    def __init__(
        self,
        config: BrokerConfig,
        profile: BrokerProfile,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        host: str,
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._host = host
        self._is_slave = config.is_slave
        self._text_tests = profile.filters_texts
        self._faq_suffix = faq_suffix(profile.faq_url)

    def check_master(self) -> None:
        """Refuse what writes a record: a slave's log has the master's records only.

        Raises:
            RequestError: SERVICE_NOT_AVAILABLE (14).
        """
        if self._is_slave:
            raise RequestError(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                f"the broker[{self._host}] is a slave: POP and acks go to the master",
            )

    def check_readable(self, what: str) -> None:
        """Refuse a read that the broker's own permission forbids.

        Args:
            what: RocketMQ's words for the request, for the remark.

        Raises:
            RequestError: NO_PERMISSION (16).
        """
        if not self._config.broker_permission & _READ:
            raise RequestError(ResponseCode.NO_PERMISSION, f"the broker[{self._host}] {what} is forbidden")

    def check_count(self, count: int) -> None:
        """Refuse a POP of more than 32 messages, or of a negative number.

        Raises:
            RequestError: INVALID_PARAMETER (29); SYSTEM_ERROR (1), the number is negative.
        """
        if count > MAX_POP_MESSAGES:
            raise RequestError(
                ResponseCode.INVALID_PARAMETER,
                f"the broker[{self._host}] pop message's num is greater than {MAX_POP_MESSAGES}",
            )
        check_capacity(count)

    def timed_out(self) -> RequestError:
        """Return the error of a POP that arrives long after its poll time."""
        return RequestError(
            ResponseCode.POLLING_TIMEOUT, f"the broker[{self._host}] pop message is timeout too much"
        )

    def admit(self, topic_name: str, group_name: str, queue_id: int, client: str) -> TopicConfig:
        """Check the topic, the queue and the group of a read; create the group if that is allowed.

        Args:
            queue_id: a negative one means all queues.
            client: ``host:port``, for the remark.

        Raises:
            RequestError: TOPIC_NOT_EXIST (17), NO_PERMISSION (16), INVALID_PARAMETER (29),
                SUBSCRIPTION_GROUP_NOT_EXIST (26); SYSTEM_ERROR (1), there are too many groups.
        """
        topic = self._find(topic_name)
        if not topic.perm & _READ:
            raise RequestError(
                ResponseCode.NO_PERMISSION, f"the topic[{topic_name}] peeking message is forbidden"
            )
        if queue_id >= topic.read_queue_nums:
            raise self._bad_queue(topic, queue_id, client, ResponseCode.INVALID_PARAMETER)
        if not is_path_name(pop_retry_topic(topic_name, group_name, v2=False)):
            raise RequestError(
                ResponseCode.INVALID_PARAMETER,
                f"the names of group and topic are too long for their retry topic, of {MAX_NAME_BYTES} bytes",
            )
        group = self._groups.find(group_name)
        if group is None:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{group_name}] does not exist, {self._faq_suffix}",
            )
        if not group.consume_enable:
            raise RequestError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group_name}")
        return topic

    def admit_handle(self, topic_name: str, queue_id: int, client: str) -> None:
        """Check the topic and the queue of an ack or of a change of the invisible time.

        Raises:
            RequestError: TOPIC_NOT_EXIST (17), MESSAGE_ILLEGAL (13).
        """
        topic = self._find(topic_name)
        if not 0 <= queue_id < topic.read_queue_nums:
            raise self._bad_queue(topic, queue_id, client, ResponseCode.MESSAGE_ILLEGAL)

    def filter_of(self, expression: str | None, kind: str | None) -> MessageFilter:
        """Return the filter of an expression; SQL92 works without ``enablePropertyFilter``, too.

        Raises:
            RequestError: SUBSCRIPTION_PARSE_FAILED (23).
        """
        if not expression:
            return None
        try:
            if not kind or kind == EXPRESSION_TAG:
                return (_tags if len(expression) > _MAX_REMEMBERED else _tags_once)(expression)
            if kind == EXPRESSION_SQL92:
                return compile_filter(expression, text_tests=self._text_tests)
        except RequestError:
            pass
        raise RequestError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")

    def _find(self, name: str) -> TopicConfig:
        topic = self._topics.find(name)
        if topic is None:
            raise RequestError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{name}] not exist, apply first please! {self._faq_suffix}",
            )
        return topic

    def _bad_queue(self, topic: TopicConfig, queue_id: int, client: str, code: ResponseCode) -> RequestError:
        return RequestError(
            code,
            f"queueId[{queue_id}] is illegal, topic:[{topic.topic_name}]"
            f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{client}]",
        )


def check_capacity(count: int) -> None:
    """Refuse to read a negative number of messages.

    Raises:
        RequestError: SYSTEM_ERROR (1), with the Java exception's words.
    """
    if count < 0:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"java.lang.IllegalArgumentException: Illegal Capacity: {count}"
        )


def _tags(expression: str) -> MessageFilter:
    subscription = build_subscription_data("", expression)
    if subscription.sub_string == SUB_ALL:
        return None
    return frozenset(subscription.code_set)


_tags_once = lru_cache(maxsize=1_024)(_tags)
