"""Validates topic and group names, lists the reserved names, and turns names of others into paths.

Source: RocketMQ 4.9.4 ``TopicValidator``, ``Validators``, ``MixAll``; docs/spec/protocol.md 7.5.
"""

from __future__ import annotations

import re
from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError, RewindMQError
from rewindmq.protocol.limits import MAX_GROUP_LENGTH, MAX_TOPIC_LENGTH

# Template for auto-created topics.
DEFAULT_TOPIC: Final = "TBW102"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
TRANS_HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_EVENT: Final = "OFFSET_MOVED_EVENT"

NOT_SENDABLE_TOPICS: Final = frozenset(
    (
        SCHEDULE_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
    )
)
SYSTEM_TOPICS: Final = NOT_SENDABLE_TOPICS | {DEFAULT_TOPIC, BENCHMARK_TOPIC, TRACE_TOPIC}
# Since 5.2.0, for the RocksDB store.
CHECKPOINT_TOPIC: Final = "CHECKPOINT_TOPIC"
SYSTEM_TOPICS_53: Final = SYSTEM_TOPICS | {CHECKPOINT_TOPIC}
SYSTEM_TOPIC_PREFIX: Final = "rmq_sys_"

RETRY_GROUP_TOPIC_PREFIX: Final = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX: Final = "%DLQ%"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
# The group under which a broker stores its progress through half messages.
TRANS_GROUP: Final = "CID_RMQ_SYS_TRANS"

FAQ_URL: Final = "http://rocketmq.apache.org/docs/faq/"
FAQ_URL_5: Final = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"

_LEGAL: Final = re.compile(r"[%|a-zA-Z0-9_-]*")
_LEGAL_IN_WORDS: Final = "^[%|a-zA-Z0-9_-]+$"

# The limit of Linux's file systems, and of most others.
MAX_NAME_BYTES: Final = 255
_UNSAFE_IN_PATH: Final = re.compile(r"[^A-Za-z0-9_.@#-]|^\.")


class PathNameError(RewindMQError):
    """A name cannot be the name of one file or folder."""


def retry_topic(group: str) -> str:
    """Return the topic of the messages that the group retries."""
    return RETRY_GROUP_TOPIC_PREFIX + group


def dlq_topic(group: str) -> str:
    """Return the topic of the messages that exceeded the group's retries (dead letters)."""
    return DLQ_GROUP_TOPIC_PREFIX + group


def reply_topic(cluster: str) -> str:
    """Return the topic of the replies to requests, which every broker of the cluster has."""
    return f"{cluster}_REPLY_TOPIC"


def is_system_topic(topic: str, system_topics: frozenset[str] = SYSTEM_TOPICS) -> bool:
    """Return True if the name is reserved, in a release with these system topics."""
    return topic in system_topics or topic.startswith(SYSTEM_TOPIC_PREFIX)


def topic_fault(topic: str) -> str | None:
    """Return why a broker refuses the name, in ``TopicValidator#validateTopic``'s words, or None."""
    if not topic.strip():
        return "The specified topic is blank."
    if not _LEGAL.fullmatch(topic):
        return f"The specified topic contains illegal characters, allowing only {_LEGAL_IN_WORDS}"
    if len(topic) > MAX_TOPIC_LENGTH:
        return "The specified topic is longer than topic max length."
    return None


def group_fault(group: str) -> str | None:
    """Return why a client refuses the name, in ``Validators#checkGroup``'s words, or None."""
    if not group.strip():
        return "the specified group is blank"
    if len(group) > MAX_GROUP_LENGTH:
        return f"the specified group is longer than group max length {MAX_GROUP_LENGTH}."
    if not _LEGAL.fullmatch(group):
        return f"the specified group[{group}] contains illegal characters, allowing only {_LEGAL_IN_WORDS}"
    return None


def is_valid_group(group: str) -> bool:
    return group_fault(group) is None


def check_topic(topic: str, code: ResponseCode = ResponseCode.SYSTEM_ERROR) -> None:
    """Refuse a name with characters outside RocketMQ's table: the broker creates a directory of that name.

    Raises:
        RequestError: the name is invalid; its code is ``code``.
    """
    fault = topic_fault(topic)
    if fault is not None:
        raise RequestError(code, fault)


def check_group(group: str) -> None:
    """Refuse a group name with characters outside RocketMQ's table.

    Raises:
        RequestError: SYSTEM_ERROR (1), the name is invalid.
    """
    fault = group_fault(group)
    if fault is not None:
        raise RequestError(ResponseCode.SYSTEM_ERROR, fault)


def check_not_system_topic(topic: str, system_topics: frozenset[str] = SYSTEM_TOPICS) -> None:
    """Refuse to create or delete a reserved topic of a release with these system topics.

    Raises:
        RequestError: SYSTEM_ERROR (1), the topic is reserved.
    """
    if is_system_topic(topic, system_topics):
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"The topic[{topic}] is conflict with system topic.")


def check_sendable(topic: str) -> None:
    """Refuse a client's message to a topic that only the broker writes.

    Raises:
        RequestError: NO_PERMISSION (16).
    """
    if topic in NOT_SENDABLE_TOPICS:
        raise RequestError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")


def faq_suffix(url: str = FAQ_URL) -> str:
    """Return the suffix of some remarks (``FAQUrl#suggestTodo``)."""
    return f"\nSee {url} for further details."


def topic_not_exist_remark(topic: str, faq_url: str = FAQ_URL) -> str:
    """Return the remark of TOPIC_NOT_EXIST (17) for a send (``AbstractSendMessageProcessor#msgCheck``)."""
    return f"topic[{topic}] not exist, apply first please!{faq_suffix(faq_url)}"


def is_path_name(name: str) -> bool:
    """Return True if the name can be that of one file or folder: it has no separator and is not ``..``."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        return False
    try:
        return len(name.encode()) <= MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def relative_path(*names: str) -> str:
    """Return ``name/name/…``, which stays below the folder that it is joined to.

    Every path with a name from a request, a record, a file or a listing is made by this function.

    Raises:
        PathNameError: a name is no path name.
    """
    for name in names:
        if not is_path_name(name):
            raise PathNameError(f"{name[:MAX_NAME_BYTES]!r} cannot be the name of a file or folder")
    return "/".join(names)


def path_name(text: str) -> str:
    """Return a path name that resembles the text, for a file that is named after a peer."""
    return relative_path(_UNSAFE_IN_PATH.sub("_", text)[:MAX_NAME_BYTES] or "_")
