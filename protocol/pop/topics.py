"""Names and numbers of POP consumption (RocketMQ 5.5.1 ``KeyBuilder``, ``PopAckConstants``)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.names import (
    RETRY_GROUP_TOPIC_PREFIX,
    SYSTEM_GROUP_PREFIX,
    SYSTEM_TOPIC_PREFIX,
    retry_topic,
)

REVIVE_GROUP: Final = SYSTEM_GROUP_PREFIX + "REVIVE_GROUP"
REVIVE_TOPIC_PREFIX: Final = SYSTEM_TOPIC_PREFIX + "REVIVE_LOG_"
# The tags of records in a revive topic.
CK_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
# The revive queue in handles of an orderly POP, which has no record in the revive topic.
POP_ORDER_REVIVE_QUEUE: Final = 999

# Topic types, in handles, offset infos and batches of acks.
NORMAL: Final = "0"
RETRY_V1: Final = "1"
RETRY_V2: Final = "2"
# The queue id of requests and assignments for all queues of a topic at one broker.
ALL_QUEUES: Final = -1

_BETWEEN_V1: Final = "_"
_BETWEEN_V2: Final = "+"


def revive_topic(cluster: str) -> str:
    """Return the topic of the cluster's checkpoints and acks."""
    return REVIVE_TOPIC_PREFIX + cluster


def pop_retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """Return the topic of the messages of ``topic`` that the group popped and did not acknowledge.

    ``%RETRY%group+topic`` (version 2) can be taken apart again, ``%RETRY%group_topic`` cannot always.
    """
    return f"{retry_topic(group)}{_BETWEEN_V2 if v2 else _BETWEEN_V1}{topic}"


def topic_type(topic: str) -> str:
    """Return ``NORMAL``, ``RETRY_V1`` or ``RETRY_V2``; every other retry topic is ``RETRY_V1``, too."""
    if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return NORMAL
    return RETRY_V2 if _BETWEEN_V2 in topic else RETRY_V1


def real_topic(topic: str, group: str, kind: str) -> str:
    """Return the topic in which a message of this topic type is stored.

    Raises:
        ValueError: ``kind`` is no topic type.
    """
    match kind:
        case "0":
            return topic
        case "1":
            return pop_retry_topic(topic, group)
        case "2":
            return pop_retry_topic(topic, group, v2=True)
    raise ValueError("getRetry fail, format is wrong")


def normal_topic(topic: str, group: str) -> str:
    """Return the topic to which the group's retry topic belongs; any other topic is returned as it is."""
    prefix = retry_topic(group)
    if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return topic
    for between in (_BETWEEN_V2, _BETWEEN_V1):
        if topic.startswith(prefix + between):
            return topic[len(prefix) + 1 :]
    return topic
