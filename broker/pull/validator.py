"""Checks a pull and builds its filter (docs/spec/broker.md B.4).

Source: RocketMQ 4.9.4 ``PullMessageProcessor#processRequest``. Without ``enablePropertyFilter``, which is the
default, the broker refuses SQL92 with RocketMQ's remark. It compiles a group's filter from the subscription
itself, so the filter is never outdated and FILTER_DATA_NOT_LATEST (28) does not occur. A pull with a bad
SQL92 expression of its own fails with SUBSCRIPTION_PARSE_FAILED (23). RocketMQ checks such an expression only
by a Java assertion, which is disabled, and returns every message.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.filter.property_filter import PropertyFilter, compile_filter
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.long_polling import MessageFilter
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_attributes import check_queue_type
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import (
    EXPRESSION_SQL92,
    EXPRESSION_TAG,
    MessageModel,
    SubscriptionData,
)
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.message.sysflag import Perm, PullSysFlag
from rewindmq.protocol.names import faq_suffix
from rewindmq.protocol.subscription import SUB_ALL, build_subscription_data

_READ: Final = int(Perm.READ)
# Longest expression that is parsed once and cached, in characters.
_MAX_REMEMBERED: Final = 1_024
_SUBSCRIPTION: Final = int(PullSysFlag.SUBSCRIPTION)


class PullValidator:
    """The checks of a pull, in RocketMQ's order.

    Args:
        host: the broker's registered host, for remarks.
    """

    def __init__(
        self,
        config: BrokerConfig,
        profile: BrokerProfile,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        consumers: ConsumerManager,
        host: str,
    ) -> None:
        self._config = config
        self._host = host
        self._rejects = config.is_slave and profile.slave_rejects_pulls and not config.slave_read_enable
        self._bad_queue_code = profile.bad_queue_code
        self._filters_texts = profile.filters_texts
        self._faq_suffix = faq_suffix(profile.faq_url)
        self._topics = topics
        self._groups = groups
        self._consumers = consumers

    def admit(self, header: PullMessageRequestHeader, client: str) -> MessageFilter:
        """Check a pull and return its filter.

        Args:
            client: the pulling client, ``host:port``, for the remark.

        Raises:
            RequestError: SYSTEM_BUSY (2), NO_PERMISSION (16), SUBSCRIPTION_GROUP_NOT_EXIST (26),
                TOPIC_NOT_EXIST (17), a bad queue id (``BrokerProfile.bad_queue_code``), SYSTEM_ERROR (1) for
                a filter or a queue type that the broker does not support, or one of the subscription's codes
                23 to 25 and 27.
        """
        config = self._config
        if self._rejects:
            raise RequestError(
                ResponseCode.SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while"
            )
        if not config.broker_permission & _READ:
            raise RequestError(
                ResponseCode.NO_PERMISSION, f"the broker[{self._host}] pulling message is forbidden"
            )
        group = self._groups.get(header.consumer_group)
        if group is None and not self._groups.may_create(header.consumer_group):
            raise RequestError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist, {self._faq_suffix}",
            )
        if group is not None and not group.consume_enable:
            raise RequestError(
                ResponseCode.NO_PERMISSION, f"subscription group no permission, {header.consumer_group}"
            )
        self._check_queue(header, client)
        if header.sys_flag & _SUBSCRIPTION:
            wanted = self._requested(header)
        else:
            wanted = self._subscribed(self._registered(group, header))
        if group is None:
            # Last, so that a refused pull creates nothing.
            self._groups.find(header.consumer_group)
        return wanted

    def _check_queue(self, header: PullMessageRequestHeader, client: str) -> None:
        name = header.topic
        topic = self._topics.find(name)
        if topic is None:
            raise RequestError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{name}] not exist, apply first please! {self._faq_suffix}",
            )
        if not topic.perm & _READ:
            raise RequestError(ResponseCode.NO_PERMISSION, f"the topic[{name}] pulling message is forbidden")
        if topic.attributes is not None:
            check_queue_type(topic)
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise RequestError(
                self._bad_queue_code,
                f"queueId[{header.queue_id}] is illegal, topic:[{name}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{client}]",
            )

    def _registered(
        self, config: SubscriptionGroupConfig | None, header: PullMessageRequestHeader
    ) -> SubscriptionData:
        """Return the subscription from the group's heartbeats."""
        group = self._consumers.find(header.consumer_group)
        if group is None:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{self._faq_suffix}"
            )
        may_broadcast = config is None or config.consume_broadcast_enable
        if not may_broadcast and group.message_model is MessageModel.BROADCASTING:
            raise RequestError(
                ResponseCode.NO_PERMISSION,
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
            )
        subscription = group.subscriptions.get(header.topic)
        if subscription is None:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"the consumer's subscription not exist{self._faq_suffix}",
            )
        if subscription.sub_version < header.sub_version:
            raise RequestError(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return subscription

    def _requested(self, header: PullMessageRequestHeader) -> MessageFilter:
        """Build the filter from the subscription in the pull."""
        expression, kind = header.subscription, header.expression_type
        if kind is None or kind == EXPRESSION_TAG:
            if expression is not None and len(expression) > _MAX_REMEMBERED:
                return _parse_tags(expression)
            return _parse_tags_once(expression)
        return self._by_properties(build_subscription_data(header.topic, expression, kind))

    def _subscribed(self, subscription: SubscriptionData) -> MessageFilter:
        """Build the filter from the group's subscription."""
        if subscription.class_filter_mode:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                "The broker does not support consumer to filter message by a class: it has no filter server",
            )
        if subscription.expression_type == EXPRESSION_TAG:
            return _tag_codes(subscription)
        try:
            return self._by_properties(subscription)
        except RequestError as error:
            if error.code != ResponseCode.SUBSCRIPTION_PARSE_FAILED:
                raise
            raise RequestError(
                ResponseCode.FILTER_DATA_NOT_EXIST,
                "The broker's consumer filter data is not exist!Your expression may be wrong!",
            ) from None

    def _by_properties(self, subscription: SubscriptionData) -> PropertyFilter:
        check_property_filter(self._config, subscription)
        return compile_filter(subscription.sub_string, text_tests=self._filters_texts)


def check_property_filter(config: BrokerConfig, subscription: SubscriptionData) -> None:
    """Raise RequestError with SYSTEM_ERROR (1) unless this broker filters by expressions of that type."""
    if not config.enable_property_filter or subscription.expression_type != EXPRESSION_SQL92:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {subscription.expression_type}",
        )


def _parse_tags(expression: str | None) -> MessageFilter:
    return _tag_codes(build_subscription_data("", expression))


_parse_tags_once = lru_cache(maxsize=1_024)(_parse_tags)


def _tag_codes(subscription: SubscriptionData) -> MessageFilter:
    if subscription.sub_string == SUB_ALL or not subscription.sub_string:
        return None
    return frozenset(subscription.code_set)
