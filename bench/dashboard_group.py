"""``python -m bench.dashboard_group ADDR``: runs consumers until standard input ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

from bench.dashboard_cluster import BUSY, CONSUMERS, GROUP
from rewindmq import ConsumeConcurrentlyStatus, MessageExt, PushConsumer


async def run(namesrv: str) -> None:
    async with AsyncExitStack() as consumers:
        for number in range(CONSUMERS):
            consumer = PushConsumer(GROUP, namesrv, instance_name=f"bench-{number}")
            consumer.subscribe(BUSY)
            consumer.register_message_listener(_accept)
            await consumers.enter_async_context(consumer)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def _accept(_messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
