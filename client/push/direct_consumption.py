"""Calls the listener for CONSUME_MESSAGE_DIRECTLY (309, docs/spec/protocol.md 5.8).

Source: RocketMQ 4.9.4 ``consumeMessageDirectly`` of both consume services. The call runs beside normal
consumption. It moves no offset; a failure is returned to the administrator and not retried.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.client.core.application_error import must_reach_caller
from rewindmq.client.push.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rewindmq.protocol.body.running_info import CMResult, ConsumeMessageDirectlyResult
from rewindmq.protocol.remoting.runtime import Clock

CONCURRENT_RESULTS: Final = MappingProxyType[object, CMResult](
    {
        ConsumeConcurrentlyStatus.CONSUME_SUCCESS: CMResult.CR_SUCCESS,
        ConsumeConcurrentlyStatus.RECONSUME_LATER: CMResult.CR_LATER,
        None: CMResult.CR_RETURN_NULL,
    }
)
ORDERLY_RESULTS: Final = MappingProxyType[object, CMResult](
    {
        ConsumeOrderlyStatus.SUCCESS: CMResult.CR_SUCCESS,
        ConsumeOrderlyStatus.COMMIT: CMResult.CR_COMMIT,
        ConsumeOrderlyStatus.ROLLBACK: CMResult.CR_ROLLBACK,
        ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: CMResult.CR_LATER,
        None: CMResult.CR_RETURN_NULL,
    }
)

_log = logging.getLogger(__name__)


async def consume_directly(
    call: Callable[[], Awaitable[object]],
    results: Mapping[object, CMResult],
    clock: Clock,
    *,
    order: bool = False,
) -> ConsumeMessageDirectlyResult:
    """Call a listener once, and return the outcome.

    Args:
        call: calls the listener.
        results: the outcome for each result of the listener; any other result counts as ``CR_LATER``.
        order: whether the listener is orderly.
    """
    began = clock.monotonic()
    remark = None
    try:
        answer = await call()
    except BaseException as error:
        if must_reach_caller(error):
            raise
        _log.warning("consumeMessageDirectly exception", exc_info=True)
        result, remark = CMResult.CR_THROW_EXCEPTION, f"{type(error).__name__}, {error}"
    else:
        # A loop, not a look-up: a listener may return an object that is not hashable.
        result = next((told for known, told in results.items() if known == answer), CMResult.CR_LATER)
    return ConsumeMessageDirectlyResult(
        consume_result=result,
        order=order,
        remark=remark,
        spent_time_mills=round(1_000 * (clock.monotonic() - began)),
    )
