"""Single pulls of pull and lite pull consumers (docs/spec/client.md C.13, C.14).

Source: RocketMQ 4.9.4 ``PullAPIWrapper#pullKernelImpl`` in its synchronous form. The request carries the
subscription and commits no offset.
"""

from __future__ import annotations

from typing import Final

from rewindmq.client.consume.offset_store import OffsetMemory
from rewindmq.client.consume.pull_result import PullResult, decode_pull_response
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.message_queue import MessageQueue

BLOCK_HOLD_MS: Final = 20_000
BLOCK_TIMEOUT: Final = 30.0

_LITE: Final = int(PullSysFlag.LITE_PULL_MESSAGE)


def pull_header(
    group: str,
    queue: MessageQueue,
    offset: int,
    max_nums: int,
    *,
    hold_ms: int,
    subscription: SubscriptionData,
    epoch: int | None,
    is_lite: bool = False,
) -> PullMessageRequestHeader:
    """Return the header of a pull that carries its own subscription.

    Args:
        hold_ms: how long the broker may suspend the pull at the end of the queue, ms; 0: not at all.
        epoch: see ``ProcessQueue``.
        is_lite: whether to mark the pull as a lite pull consumer's.
    """
    flags = PullSysFlag.SUBSCRIPTION | (PullSysFlag.SUSPEND if hold_ms else 0)
    return PullMessageRequestHeader(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=max_nums,
        sys_flag=int(flags) | (_LITE if is_lite else 0),
        commit_offset=0,
        suspend_timeout_millis=hold_ms,
        sub_version=0,
        subscription=subscription.sub_string,
        expression_type=subscription.expression_type,
        epoch=epoch,
    )


async def pull_once(
    instance: ClientInstance,
    offsets: OffsetMemory,
    queue: MessageQueue,
    header: PullMessageRequestHeader,
    subscription: SubscriptionData,
    timeout: float,
    broker_id: int = 0,
) -> PullResult:
    """Send a pull, and store the epoch of the response.

    If this is the first response for the queue, and its epoch is not the request's, the queue was reset
    before this consumer used it. The pull is then repeated with the epoch of the response.

    Args:
        timeout: seconds.
        broker_id: the broker to ask among those with the queue's broker name; 0 is the master.

    Raises:
        ClientError: an unknown broker.
        ResponseError: the broker refused.
        RemotingError: no response.
    """
    result = await _ask(instance, queue, header, subscription, timeout, broker_id)
    is_first_response = not offsets.has_epoch(queue)
    offsets.learn_epoch(queue, result.epoch)
    if is_first_response and header.epoch is not None and header.epoch != result.epoch:
        header.epoch = result.epoch
        return await _ask(instance, queue, header, subscription, timeout, broker_id)
    return result


async def _ask(
    instance: ClientInstance,
    queue: MessageQueue,
    header: PullMessageRequestHeader,
    subscription: SubscriptionData,
    timeout: float,
    broker_id: int,
) -> PullResult:
    has_own_code = header.sys_flag & _LITE and instance.profile.lite_pull_request
    code = RequestCode.LITE_PULL_MESSAGE if has_own_code else RequestCode.PULL_MESSAGE
    address = await instance.routes.subscribe_address(queue.topic, queue.broker_name, broker_id)
    response = await instance.remoting.invoke(address, instance.api.command(code, header), timeout)
    return decode_pull_response(response, queue, header.queue_offset, subscription)
