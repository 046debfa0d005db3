"""Prints and analyses the running info of consumers as mqadmin does (docs/spec/admin.md 3.2).

Source: RocketMQ 4.9.4 ``ConsumerRunningInfo#formatString`` and its ``analyze`` methods, ``ProcessQueueInfo``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from rewindmq.client.consume.running_info import InfoProperty
from rewindmq.protocol.body.heartbeat import ConsumeType
from rewindmq.protocol.body.running_info import ConsumerRunningInfo, ProcessQueueInfo
from rewindmq.protocol.message_queue import MessageQueue

_SUBSCRIPTIONS_SETTLE_MS: Final = 120_000
_BLOCKED_MS: Final = 60_000
_TABLE: Final = "{:<64}  {:<32}  {:<4}  {:<20}"
_RATES: Final = "{:<64}  {:>14} {:>14} {:>14} {:>14} {:>18} {:>25}"


def format_running_info(info: ConsumerRunningInfo) -> list[str]:
    """Return the lines that mqadmin prints for one consumer."""
    lines = ["#Consumer Properties#"]
    lines += [f"{name:<40}: {value}" for name, value in info.properties.items()]
    lines += ["", "", "#Consumer Subscription#"]
    lines += [
        f"{number:03d} Topic: {item.topic:<40} ClassFilter: {_java(item.class_filter_mode):<8}"
        f" SubExpression: {item.sub_string}"
        for number, item in enumerate(info.subscription_set, 1)
    ]
    queues = sorted(info.mq_table.items())
    lines += ["", "", "#Consumer Offset#", _row("#Topic", "#Broker Name", "#QID", "#Consumer Offset")]
    lines += [_row(*queue, details.commit_offset) for queue, details in queues]
    lines += ["", "", "#Consumer MQ Detail#", _row("#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo")]
    lines += [_row(*queue, _describe(details)) for queue, details in queues]
    lines += ["", "", "#Consumer RT&TPS#"]
    heading = ("#Topic", "#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS", "#ConsumeFailed TPS")
    lines.append(_RATES.format(*heading, "#ConsumeFailedMsgsInHour"))
    for topic, status in sorted(info.status_table.items()):
        rates = (status.pull_rt, status.pull_tps, status.consume_rt, status.consume_ok_tps)
        texts = [f"{rate:.2f}" for rate in (*rates, status.consume_failed_tps)]
        lines.append(_RATES.format(topic, *texts, status.consume_failed_msgs))
    if info.jstack is not None:
        lines += ["", "", "#Consumer jstack#", *info.jstack.splitlines()]
    return lines


def have_same_subscriptions(infos: Mapping[str, ConsumerRunningInfo], now_ms: int) -> bool:
    """Return whether all consumers of a group have the same subscriptions, as mqadmin does.

    Only the consumer with the lowest client id decides whether to compare. The result is True if it is a pull
    consumer, or started less than two minutes ago, because it may still change its subscriptions. Consumers
    without any subscription never agree.

    Args:
        infos: running info by client id; at least one.
    """
    ordered = [infos[client_id] for client_id in sorted(infos)]
    started = _number(ordered[0].properties.get(InfoProperty.CONSUMER_START_TIMESTAMP))
    if not _is_push(ordered[0]) or now_ms - started <= _SUBSCRIPTIONS_SETTLE_MS:
        return True
    subscriptions = [
        {(item.topic, item.sub_string, item.expression_type) for item in info.subscription_set}
        for info in ordered
    ]
    return all(each == subscriptions[0] for each in subscriptions) and bool(subscriptions[0])


def find_trouble(client_id: str, info: ConsumerRunningInfo, now_ms: int) -> list[str]:
    """Return a line for each queue of a push consumer that makes no progress.

    A queue of an orderly consumer makes no progress if it is not locked, or if it was dropped and could not
    be unlocked. Any other queue makes none if it has cached messages, and the listener has finished none of
    them for a minute.
    """
    if not _is_push(info):
        return []
    is_orderly = info.properties.get(InfoProperty.CONSUME_ORDERLY) == "true"
    judge = _locking_trouble if is_orderly else _consuming_trouble
    findings = ((queue, judge(details, now_ms)) for queue, details in sorted(info.mq_table.items()))
    return [f"{client_id} {_name(queue)} {finding}" for queue, finding in findings if finding is not None]


def _locking_trouble(queue: ProcessQueueInfo, now_ms: int) -> str | None:
    if not queue.locked:
        return f"can't lock for a while, {now_ms - queue.last_lock_timestamp}ms"
    if queue.droped and queue.try_unlock_times > 0:
        return f"unlock {queue.try_unlock_times} times, still failed"
    return None


def _consuming_trouble(queue: ProcessQueueInfo, now_ms: int) -> str | None:
    idle = now_ms - queue.last_consume_timestamp
    if idle > _BLOCKED_MS and queue.cached_msg_count > 0:
        return f"can't consume for a while, maybe blocked, {idle}ms"
    return None


def _is_push(info: ConsumerRunningInfo) -> bool:
    return info.properties.get(InfoProperty.CONSUME_TYPE) == ConsumeType.CONSUME_PASSIVELY


def _number(text: str | None) -> int:
    # Clients in other languages may omit the property, or send text that is not a number.
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else 0


def _row(topic: str, broker: str, queue_id: object, last: object) -> str:
    return _TABLE.format(topic, broker, str(queue_id), str(last))


def _name(queue: MessageQueue) -> str:
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def _describe(details: ProcessQueueInfo) -> str:
    return (
        f"ProcessQueueInfo [commitOffset={details.commit_offset},"
        f" cachedMsgMinOffset={details.cached_msg_min_offset},"
        f" cachedMsgMaxOffset={details.cached_msg_max_offset}, cachedMsgCount={details.cached_msg_count},"
        f" cachedMsgSizeInMiB={details.cached_msg_size_in_mi_b},"
        f" transactionMsgMinOffset={details.transaction_msg_min_offset},"
        f" transactionMsgMaxOffset={details.transaction_msg_max_offset},"
        f" transactionMsgCount={details.transaction_msg_count}, locked={_java(details.locked)},"
        f" tryUnlockTimes={details.try_unlock_times},"
        f" lastLockTimestamp={_moment(details.last_lock_timestamp)}, droped={_java(details.droped)},"
        f" lastPullTimestamp={_moment(details.last_pull_timestamp)},"
        f" lastConsumeTimestamp={_moment(details.last_consume_timestamp)}]"
    )


def _moment(milliseconds: int) -> str:
    """Format as ``yyyyMMddHHmmssSSS`` in local time; a number outside the range of dates stays a number."""
    try:
        local = datetime.fromtimestamp(milliseconds // 1000, tz=UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return f"{local:%Y%m%d%H%M%S}{milliseconds % 1000:03d}"


def _java(value: bool) -> str:
    return "true" if value else "false"
