"""Check of a consumer group's settings for UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) and its list (225)."""

from __future__ import annotations

from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.limits import MAX_QUEUE_NUMS
from rewindmq.protocol.names import check_group


def check_settings(group: SubscriptionGroupConfig) -> None:
    """Refuse an invalid name, and more retry queues than a topic may have.

    Raises:
        RequestError: SYSTEM_ERROR (1).
    """
    check_group(group.group_name)
    if group.retry_queue_nums > MAX_QUEUE_NUMS:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"retryQueueNums {group.retry_queue_nums} is over {MAX_QUEUE_NUMS}"
        )
