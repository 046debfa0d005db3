"""Checks a send and finds its topic and queue (docs/spec/broker.md B.2, steps 2 to 7).

RocketMQ 4.9.4 ``AbstractSendMessageProcessor#msgCheck`` and ``SendMessageProcessor#handleRetryAndDLQ``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from types import MappingProxyType
from typing import Final, NamedTuple

from rewindmq.broker.config import BrokerConfig, EmulatedBusy
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_attributes import check_queue_type, is_compacted
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.registration import TopicConfig, TopicFilterType
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.message.sysflag import MessageSysFlag, Perm, TopicSysFlag
from rewindmq.protocol.names import (
    RETRY_GROUP_TOPIC_PREFIX,
    check_sendable,
    check_topic,
    dlq_topic,
    faq_suffix,
    topic_not_exist_remark,
)
from rewindmq.protocol.version import MQVersion

_QUEUED: Final = "broker busy, start flow control for a while, period in queue: 0ms, size of queue: 0"
# 4.9.4 NettyRemotingAbstract, SendMessageProcessor#handlePutMessageResult and BrokerFastFailure.
BUSY_ANSWERS: Final = MappingProxyType(
    {
        EmulatedBusy.REJECTREQUEST: (
            ResponseCode.SYSTEM_BUSY,
            "[REJECTREQUEST]system busy, start flow control for a while",
        ),
        EmulatedBusy.PC_SYNCHRONIZED: (
            ResponseCode.SYSTEM_ERROR,
            "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
        ),
        EmulatedBusy.PCBUSY_CLEAN_QUEUE: (ResponseCode.SYSTEM_BUSY, f"[PCBUSY_CLEAN_QUEUE]{_QUEUED}"),
        EmulatedBusy.TIMEOUT_CLEAN_QUEUE: (ResponseCode.SYSTEM_BUSY, f"[TIMEOUT_CLEAN_QUEUE]{_QUEUED}"),
    }
)


class SendTarget(NamedTuple):
    """A topic as a target of sends.

    Attributes:
        queue_limit: queue ids below it are accepted.
        write_queue_nums: for a negative queue id the broker chooses one of these queues.
        extra_sys_flag: bits that every message of the topic gets.
        is_retry: a group's retry topic; its messages may end in the dead-letter topic.
        needs_keys: a compaction topic, whose messages need KEYS.
        drops_delay: a dead-letter topic whose messages lose their delay (5.x).
        planned: a topic to create after the message is stored, so that a refused send creates no topic.
        is_unsaved: True if the topic's settings are not on disk yet; the response waits until they are.
    """

    topic: str
    queue_limit: int
    write_queue_nums: int
    extra_sys_flag: int
    is_retry: bool
    needs_keys: bool = False
    drops_delay: bool = False
    planned: TopicConfig | None = None
    is_unsaved: bool = False


class SendValidator:
    """Decides about a topic once and caches the decision until the topic table changes.

    Args:
        host: the broker's registered host, for remarks.
        holds_locks: returns True if a consumer of a group holds a lock.
    """

    def __init__(
        self,
        config: BrokerConfig,
        profile: BrokerProfile,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        chance: random.Random,
        host: str,
        holds_locks: Callable[[str], bool],
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._chance = chance
        self._host = host
        self._holds_locks = holds_locks if profile.retry_send_of_locked_ends else _holds_none
        self._dead_letter_perm = profile.dead_letter_perm
        self._retry_limit_shift = profile.retry_send_limit_is_exceeded
        self._drops_delay = not profile.retry_send_keeps_delay
        self._faq_url = profile.faq_url
        self._bad_code = profile.bad_queue_code
        self._targets: dict[str, SendTarget] = {}
        self._version = topics.data_version

    def admit(
        self, header: SendMessageRequestHeader, client_version: int, remote_address: str
    ) -> tuple[SendTarget, int]:
        """Return the topic and queue for a message; a topic to be created is only planned.

        Raises:
            RequestError: one of the codes in docs/spec/broker.md B.2.
        """
        if self._topics.data_version is not self._version:
            self._targets.clear()
            self._version = self._topics.data_version
        target = self._targets.get(header.topic)
        if target is None:
            target = self._examine(header)
        queue_id = header.queue_id
        if queue_id >= target.queue_limit:
            raise RequestError(
                self._bad_code,
                f"request queueId[{queue_id}] is illegal, [{target.topic}] has {target.queue_limit} queues,"
                f" Producer: {remote_address}",
            )
        if queue_id < 0:
            queue_id = self._any_queue(target)
        if target.is_retry:
            return self._dead_letter_target(target, queue_id, header, client_version)
        return target, queue_id

    def cached_target(self, topic: str) -> SendTarget | None:
        """Return the decision about a topic if it is cached and still valid."""
        return self._targets.get(topic) if self._topics.data_version is self._version else None

    def _any_queue(self, target: SendTarget) -> int:
        if not target.write_queue_nums:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"topic[{target.topic}] has no queue to write to")
        return self._chance.randrange(target.write_queue_nums)

    def _examine(self, header: SendMessageRequestHeader) -> SendTarget:
        busy = BUSY_ANSWERS.get(self._config.emulated_busy)
        if busy is not None:
            raise RequestError(*busy)
        name = header.topic
        known = self._topics.find(name)
        if not self._config.broker_permission & Perm.WRITE and known is not None and known.order:
            raise RequestError(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self._host}] sending message is forbidden",
            )
        check_topic(name, self._bad_code)
        check_sendable(name)
        if known is None:
            return _planned_target(self._plan(header))
        check_queue_type(known)
        target = _target(known)
        if not self._topics.is_saved(name):
            return target._replace(is_unsaved=True)
        self._targets[name] = target
        return target

    def _plan(self, header: SendMessageRequestHeader) -> TopicConfig:
        name = header.topic
        is_retry = name.startswith(RETRY_GROUP_TOPIC_PREFIX)
        unit_flag = int(TopicSysFlag.UNIT_SUB if is_retry else TopicSysFlag.UNIT) if header.unit_mode else 0
        planned = self._topics.plan_for_send(
            name, header.default_topic, header.default_topic_queue_nums, unit_flag
        )
        if planned is None and is_retry:
            planned = self._topics.plan(name, 1, topic_sys_flag=unit_flag)
        if planned is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, topic_not_exist_remark(name, self._faq_url))
        return planned

    def create(self, planned: TopicConfig) -> None:
        """Create the planned topic of a stored message, and announce it.

        Raises:
            RequestError: SYSTEM_ERROR (1), there are too many topics.
        """
        self._topics.update(planned)

    def _dead_letter_target(
        self, target: SendTarget, queue_id: int, header: SendMessageRequestHeader, client_version: int
    ) -> tuple[SendTarget, int]:
        """Return the group's dead-letter topic if the message was retried often enough."""
        name = target.topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
        group = self._groups.find(name)
        if group is None:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group not exist, {name} {faq_suffix(self._faq_url)}",
            )
        limit = group.retry_max_times
        if client_version >= MQVersion.V3_4_9 and header.max_reconsume_times is not None:
            limit = header.max_reconsume_times
        is_exhausted = (header.reconsume_times or 0) >= limit + self._retry_limit_shift
        if not is_exhausted and not self._holds_locks(name):
            return target, queue_id
        name = dlq_topic(name)
        known = self._topics.find(name)
        if known is not None:
            dead_letter = _target(known)._replace(is_unsaved=not self._topics.is_saved(name))
        else:
            dead_letter = _planned_target(self._topics.plan(name, 1, self._dead_letter_perm))
        return dead_letter._replace(drops_delay=self._drops_delay), 0


def _holds_none(group: str) -> bool:
    return False


def _target(topic: TopicConfig) -> SendTarget:
    return SendTarget(
        topic.topic_name,
        max(topic.write_queue_nums, topic.read_queue_nums),
        topic.write_queue_nums,
        int(MessageSysFlag.MULTI_TAGS) if topic.topic_filter_type is TopicFilterType.MULTI_TAG else 0,
        topic.topic_name.startswith(RETRY_GROUP_TOPIC_PREFIX),
        is_compacted(topic),
    )


def _planned_target(planned: TopicConfig) -> SendTarget:
    return _target(planned)._replace(planned=planned, is_unsaved=True)
