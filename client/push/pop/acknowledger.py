"""Acknowledger: acknowledges popped messages, and changes how long they are invisible.

Source: RocketMQ 5.5.0 ``DefaultMQPushConsumerImpl#ackAsync`` and ``#changePopInvisibleTimeAsync``. Changed:
acks that wait while an earlier request runs go out together, as BATCH_ACK_MESSAGE (200151), where the broker
knows it; if it refuses them together, they go out alone. An ack that got no answer, or that a busy broker
refused, is sent again while the message is invisible.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.body.batch_ack import BatchAck, BatchAckMessageRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.header.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
)
from rewindmq.protocol.pop.bit_set import encode_bits
from rewindmq.protocol.pop.extra_info import ExtraInfo
from rewindmq.protocol.remoting.tasks import cancel_tasks

_TIMEOUT: Final = 3.0
_PAUSE_SECONDS: Final = 1.0
# Each may be of a POP of its own, and RewindMQ's brokers take at most 256 POPs in a request.
_ACKS_PER_REQUEST: Final = 256
# Answers of a broker that is busy, or that has become a slave.
_TRANSIENT_CODES: Final = frozenset((ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE))
# An ack further from the start of its POP goes out alone, so that the bit set of a batch stays small.
_MAX_BIT: Final = 8_192

_log = logging.getLogger(__name__)


class _Ack(NamedTuple):
    topic: str
    handle: ExtraInfo
    expires: float


class Acknowledger:
    """Acknowledges messages of one consumer group; a failure is logged, and the message comes again."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        # By broker name.
        self._waiting: dict[str, list[_Ack]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}
        # Brokers that do not know BATCH_ACK_MESSAGE.
        self._without_batches: set[str] = set()

    def ack(self, topic: str, handle: ExtraInfo, expires: float) -> None:
        """Acknowledge a message of ``topic`` soon.

        Args:
            topic: the topic that was popped, also for a message of its retry topic.
            expires: when the message becomes visible, in protocol seconds. The ack is not sent again later.
        """
        name = handle.broker_name
        self._waiting.setdefault(name, []).append(_Ack(topic, handle, expires))
        if name not in self._senders:
            self._senders[name] = self._instance.spawn(self._send_all(name))

    async def ack_now(self, topic: str, handle: ExtraInfo) -> None:
        """Acknowledge a message of ``topic`` by a request of its own, and wait for the answer.

        Raises:
            RewindMQError: the broker did not answer, or refused it.
        """
        address = await self._instance.routes.find_master_address(topic, handle.broker_name)
        await self._ask_single(address, topic, handle)

    async def flush(self) -> None:
        """Wait until all acks are sent or have failed."""
        while self._senders:
            await asyncio.wait(self._senders.values())

    def cancel(self) -> None:
        """Send no more acks."""
        self._waiting.clear()
        cancel_tasks(self._senders.values())

    async def change_invisible_time(self, topic: str, handle: ExtraInfo, milliseconds: int) -> ExtraInfo:
        """Hide a message for so long from now; return its new handle.

        Raises:
            RewindMQError: the broker did not answer, or refused it.
        """
        assert handle.queue_id is not None
        assert handle.offset is not None
        header = ChangeInvisibleTimeRequestHeader(
            self._group,
            handle.real_topic(topic, self._group),
            handle.queue_id,
            handle.text(),
            handle.offset,
            milliseconds,
        )
        instance = self._instance
        address = await instance.routes.find_master_address(topic, handle.broker_name)
        command = instance.api.command(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        response = (await instance.remoting.invoke(address, command, _TIMEOUT)).require_success()
        changed = response.decode_header(ChangeInvisibleTimeResponseHeader)
        return handle._replace(
            start_offset=handle.offset,
            pop_time=changed.pop_time,
            invisible_time=changed.invisible_time,
            revive_queue_id=changed.revive_qid,
            commit_log_offset=None,
        )

    async def _send_all(self, broker_name: str) -> None:
        try:
            while waiting := self._waiting.pop(broker_name, None):
                again: list[_Ack] = []
                for first in range(0, len(waiting), _ACKS_PER_REQUEST):
                    again += await self._send(broker_name, waiting[first : first + _ACKS_PER_REQUEST])
                if again:
                    self._waiting.setdefault(broker_name, []).extend(again)
                    await self._instance.runtime.timers.sleep(_PAUSE_SECONDS)
        finally:
            del self._senders[broker_name]

    async def _send(self, broker_name: str, acks: Sequence[_Ack]) -> Sequence[_Ack]:
        """Send acks; return those that have to be sent again."""
        try:
            address = await self._instance.routes.find_master_address(acks[0].topic, broker_name)
        except RewindMQError as error:
            return self._not_expired(acks, error)
        if len(acks) > 1 and broker_name not in self._without_batches:
            try:
                acks = await self._send_batch(address, broker_name, acks)
            except RewindMQError as error:
                if not isinstance(error, ResponseError) or error.code in _TRANSIENT_CODES:
                    return self._not_expired(acks, error)
                if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    self._without_batches.add(broker_name)
                else:
                    _log.info("%s refuses %d acks together: %s", broker_name, len(acks), error)
        outcomes = await asyncio.gather(*(self._send_single(address, ack) for ack in acks))
        return [ack for left in outcomes for ack in left]

    def _not_expired(self, acks: Sequence[_Ack], error: RewindMQError) -> list[_Ack]:
        """Return the acks whose messages are still invisible after the pause."""
        then = self._instance.runtime.clock.monotonic() + _PAUSE_SECONDS
        left = [ack for ack in acks if ack.expires > then]
        if len(left) < len(acks):
            _log.warning("%d messages are not acknowledged: %s", len(acks) - len(left), error)
        return left

    async def _send_batch(self, address: str, broker_name: str, acks: Sequence[_Ack]) -> list[_Ack]:
        """Send one request for all acks; return those that have to go out alone."""
        alone: list[_Ack] = []
        bits: dict[tuple[str, ExtraInfo], list[int]] = {}
        for ack in acks:
            handle = ack.handle
            bit = (handle.offset or 0) - handle.start_offset
            if 0 <= bit < _MAX_BIT:
                # The fields of the POP itself; the messages differ in the others.
                pop = handle._replace(offset=None, commit_log_offset=None)
                bits.setdefault((ack.topic, pop), []).append(bit)
            else:
                alone.append(ack)
        batches = [self._batch_ack(topic, pop, found) for (topic, pop), found in bits.items()]
        if batches:
            body = BatchAckMessageRequestBody(batches, broker_name)
            command = self._instance.api.command(RequestCode.BATCH_ACK_MESSAGE, None, body)
            (await self._instance.remoting.invoke(address, command, _TIMEOUT)).require_success()
        return alone

    def _batch_ack(self, topic: str, pop: ExtraInfo, bits: Sequence[int]) -> BatchAck:
        return BatchAck(
            bit_set=encode_bits(bits),
            consumer_group=self._group,
            invisible_time=pop.invisible_time,
            pop_time=pop.pop_time,
            queue_id=pop.queue_id or 0,
            retry=pop.topic_type,
            revive_queue_id=pop.revive_queue_id,
            start_offset=pop.start_offset,
            topic=topic,
        )

    async def _send_single(self, address: str, ack: _Ack) -> Sequence[_Ack]:
        """Send an ack alone; return it if it has to be sent again."""
        try:
            await self._ask_single(address, ack.topic, ack.handle)
        except RewindMQError as error:
            if not isinstance(error, ResponseError) or error.code in _TRANSIENT_CODES:
                return self._not_expired((ack,), error)
            _log.warning("message is not acknowledged, %s: %s", ack.handle.text(), error)
        return ()

    async def _ask_single(self, address: str, topic: str, handle: ExtraInfo) -> None:
        assert handle.queue_id is not None
        assert handle.offset is not None
        header = AckMessageRequestHeader(
            self._group,
            handle.real_topic(topic, self._group),
            handle.queue_id,
            handle.text(),
            handle.offset,
        )
        command = self._instance.api.command(RequestCode.ACK_MESSAGE, header)
        (await self._instance.remoting.invoke(address, command, _TIMEOUT)).require_success()
