"""The statistics that test_statistics.py compares, and the explained differences."""

from __future__ import annotations

from typing import Final

from tests.interop.statistics_traffic import (
    GROUP,
    HALF,
    LETTERS,
    OP,
    OTHER,
    RETRY,
    SCHEDULE,
    SECOND,
    SYSTEM,
    TOPIC,
    Statistic,
)

_CLUSTER: Final = "DefaultCluster"
_TOPICS: Final = (TOPIC, OTHER, RETRY, LETTERS, SYSTEM, SCHEDULE, HALF, OP, "nix", "")
_GROUPS: Final = (
    f"{TOPIC}@{GROUP}",
    f"{TOPIC}@{SECOND}",
    f"{RETRY}@{GROUP}",
    f"{SYSTEM}@{GROUP}",
    f"{OTHER}@{GROUP}",
    f"{SCHEDULE}@SCHEDULE_CONSUMER",
    f"{TOPIC}@nix",
)
_QUEUES: Final = tuple(f"{topic}@{queue}" for topic in (TOPIC, SCHEDULE) for queue in range(3))
_QUEUES_OF_GROUPS: Final = (
    *(f"{SCHEDULE}@{queue}@SCHEDULE_CONSUMER" for queue in range(3)),
    f"{TOPIC}@0@{GROUP}",
)
_LATENCIES_OF_GROUPS: Final = tuple(f"{queue}@{key}" for queue in range(3) for key in _GROUPS)
_LATENCIES: Final = tuple(
    f"{queue}@{topic}" for queue in range(4) for topic in (TOPIC, SCHEDULE, HALF, RETRY)
)
_OWNED: Final = tuple(
    f"{owner}@{TOPIC}@{GROUP}@{kind}" for owner in ("null", "") for kind in ("SEND_BACK_TO_DLQ", "SEND_BACK")
)
# By statistic the keys to ask for, also some that no broker has.
KEYS: Final[dict[str, tuple[str, ...]]] = {
    "TOPIC_PUT_NUMS": _TOPICS,
    "TOPIC_PUT_SIZE": _TOPICS,
    "GROUP_GET_NUMS": _GROUPS,
    "GROUP_GET_SIZE": _GROUPS,
    "GROUP_GET_LATENCY": _LATENCIES_OF_GROUPS,
    "SNDBCK_PUT_NUMS": _GROUPS,
    "QUEUE_PUT_NUMS": _QUEUES,
    "QUEUE_PUT_SIZE": _QUEUES,
    "QUEUE_GET_NUMS": _QUEUES_OF_GROUPS,
    "QUEUE_GET_SIZE": _QUEUES_OF_GROUPS,
    "BROKER_PUT_NUMS": (_CLUSTER, "nix"),
    "BROKER_GET_NUMS": (_CLUSTER, "nix"),
    "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC": (_CLUSTER,),
    "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC": (_CLUSTER,),
    "PRODUCER_REGISTER_TIME": (_CLUSTER,),
    "CONSUMER_REGISTER_TIME": (_CLUSTER,),
    "CHANNEL_ACTIVITY": ("CONNECT", "CLOSE", "IDLE", "EXCEPTION"),
    "TOPIC_PUT_LATENCY": _LATENCIES,
    "SNDBCK2DLQ_TIMES": _OWNED,
    "DLQ_PUT_NUMS": (*_OWNED, LETTERS),
    "GROUP_GET_FROM_DISK_NUMS": _GROUPS,
    "GROUP_GET_FROM_DISK_SIZE": _GROUPS,
    "BROKER_GET_FROM_DISK_NUMS": (_CLUSTER,),
    "BROKER_GET_FROM_DISK_SIZE": (_CLUSTER,),
    "GROUP_GET_FALL_SIZE": _LATENCIES_OF_GROUPS,
    "GROUP_GET_FALL_TIME": _LATENCIES_OF_GROUPS,
    "COMMERCIAL_SEND_TIMES": _OWNED,
    "COMMERCIAL_SEND_SIZE": _OWNED,
    "COMMERCIAL_RCV_TIMES": _OWNED,
    "COMMERCIAL_RCV_SIZE": _OWNED,
    "COMMERCIAL_RCV_EPOLLS": _OWNED,
    "COMMERCIAL_SNDBCK_TIMES": _OWNED,
    "COMMERCIAL_PERM_FAILURES": _OWNED,
}
# Asked for after a message was popped.
POPPED: Final[dict[str, tuple[str, ...]]] = {
    "BROKER_CK_NUMS": (_CLUSTER,),
    "BROKER_ACK_NUMS": (_CLUSTER,),
    "GROUP_CK_NUMS": (f"{OTHER}@{GROUP}",),
    "GROUP_ACK_NUMS": (f"{OTHER}@{GROUP}",),
}
# Milliseconds, which differ from run to run: only which keys have a figure is compared.
TIMES: Final = frozenset(
    ("GROUP_GET_LATENCY", "TOPIC_PUT_LATENCY", "PRODUCER_REGISTER_TIME", "CONSUMER_REGISTER_TIME")
)
# The keys of GET_BROKER_RUNTIME_INFO (28) that count, and so must have the same values.
COUNTED: Final = (
    "msgPutTotalTodayNow",
    "msgGetTotalTodayNow",
    "msgPutTotalTodayMorning",
    "msgGetTotalTodayMorning",
    "msgPutTotalYesterdayMorning",
    "msgGetTotalYesterdayMorning",
    "putMessageTimesTotal",
    "putMessageFailedTimes",
    "putMessageSizeTotal",
    "putMessageAverageSize",
    "commitLogMinOffset",
    "commitLogMaxOffset",
    "scheduleMessageOffset_1",
    "scheduleMessageOffset_2",
)


def statistics(keys: dict[str, tuple[str, ...]]) -> list[Statistic]:
    return [(name, key) for name, listed in keys.items() for key in listed]


_BATCH: Final = "5.5.0 does not copy the properties of a batch to its messages, 5.3.3 does"
_SIZES_OF_28: Final = ("putMessageSizeTotal", "putMessageAverageSize", "commitLogMaxOffset")
# By statistic or key of 28, and release: why RewindMQ's figure differs.
EXPLAINED: Final[dict[tuple[str, str], str]] = {
    ("putMessageFailedTimes", "4.9.7"): "4.x does not count a message whose properties are too long",
    **{(name, "5.5.0"): _BATCH for name in ("TOPIC_PUT_SIZE", "GROUP_GET_SIZE", *_SIZES_OF_28)},
}
