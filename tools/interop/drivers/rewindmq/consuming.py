"""The operations of push consumers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageModel,
    MessageSelector,
    PushConsumer,
)
from tools.interop.drivers.rewindmq.lines import Fields, describe_message, say

FROM: Final = {
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
}


def make_expression(fields: Fields) -> str | MessageSelector:
    expression: str = fields.get("expression", "*")
    if fields.get("expression_type") == "SQL92":
        return MessageSelector.by_sql(expression)
    return expression


class _Listener:
    """Reports each call to the suite, and returns the status that the suite asked for."""

    def __init__(self, fields: Fields) -> None:
        self._consumer = fields["name"]
        self._fail_times = fields.get("fail_times", 0)
        self._calls: Counter[str] = Counter()
        self.released = asyncio.Event()
        if not fields.get("hold"):
            self.released.set()

    async def concurrently(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        if await self._succeeds(messages):
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    async def orderly(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        if await self._succeeds(messages):
            return ConsumeOrderlyStatus.SUCCESS
        return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT

    async def _succeeds(self, messages: Sequence[MessageExt]) -> bool:
        told = [describe_message(message) for message in messages]
        say({"event": "delivered", "consumer": self._consumer, "messages": told})
        await self.released.wait()
        self._calls.update(message.msg_id for message in messages)
        return all(self._calls[message.msg_id] > self._fail_times for message in messages)


class DriverConsumers:
    """The push consumers, by the names that the suite gave them.

    Args:
        offsets: directory for the offsets of broadcasting consumers.
    """

    def __init__(self, options: dict[str, Any], offsets: Path) -> None:
        self._options = options
        self._offsets = offsets
        self._consumers: dict[str, tuple[PushConsumer, _Listener]] = {}
        self.ops: Final = {
            "consume.concurrent": self.start_concurrent,
            "consume.orderly": self.start_orderly,
            "consume.release": self.release,
            "consume.stop": self.stop,
        }

    async def start_concurrent(self, fields: Fields) -> Fields:
        consumer, listener = self._make(fields), _Listener(fields)
        consumer.register_message_listener(listener.concurrently)
        return await self._start(fields, consumer, listener)

    async def start_orderly(self, fields: Fields) -> Fields:
        consumer, listener = self._make(fields), _Listener(fields)
        consumer.register_orderly_listener(listener.orderly)
        return await self._start(fields, consumer, listener)

    def _make(self, fields: Fields) -> PushConsumer:
        model = MessageModel[fields.get("model", "CLUSTERING")]
        options = dict(self._options)
        if model is MessageModel.BROADCASTING:
            # The instance name tells the broadcasting consumers of one process, and their offsets, apart.
            options["instance_name"] = fields["name"]
        return PushConsumer(
            fields["group"],
            fields["namesrv"],
            consume_from_where=FROM[fields.get("from", "last")],
            message_model=model,
            consume_thread_max=fields.get("threads"),
            max_reconsume_times=fields.get("max_reconsume_times"),
            enable_msg_trace=fields.get("trace", False),
            offset_root=self._offsets,
            **options,
        )

    async def _start(self, fields: Fields, consumer: PushConsumer, listener: _Listener) -> Fields:
        consumer.subscribe(fields["topic"], make_expression(fields))
        # Registered before the start: a first message may block, and be released, while ``start`` still runs.
        self._consumers[fields["name"]] = consumer, listener
        await consumer.start()
        return {}

    async def release(self, fields: Fields) -> Fields:
        _, listener = self._consumers[fields["consumer"]]
        listener.released.set()
        return {}

    async def stop(self, fields: Fields) -> Fields:
        consumer, listener = self._consumers.pop(fields["consumer"])
        await consumer.shutdown()
        listener.released.set()
        return {}

    async def shutdown(self) -> None:
        for consumer, listener in self._consumers.values():
            listener.released.set()
            await consumer.shutdown()
