"""A plain listener on a real worker thread: while it blocks, the event loop goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.remoting.runtime import system_runtime


async def test_a_blocking_plain_listener_does_not_block_the_loop(tmp_path: Path) -> None:
    runtime = system_runtime(time_scale=0.1, max_workers=2)
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()
    release = threading.Event()
    threads: set[str] = set()

    def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        threads.add(threading.current_thread().name)
        loop.call_soon_threadsafe(entered.set)
        assert release.wait(20)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with AsyncExitStack() as exits:
        namesrv = NameServer(runtime, NamesrvConfig(listen_port=0))
        exits.push_async_callback(namesrv.close)
        await namesrv.start()
        config = BrokerConfig(
            listen_port=0, namesrv_addr=namesrv.address, store_path_root_dir=str(tmp_path / "store")
        )
        broker = Broker(runtime, config)
        exits.push_async_callback(broker.close)
        await broker.start()
        producer = await exits.enter_async_context(Producer("P", namesrv.address, runtime=runtime))
        result = await producer.send(Message("T", b"first"))
        consumer = PushConsumer(
            "G",
            namesrv.address,
            runtime=runtime,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe("T")
        consumer.register_message_listener(listen)
        await exits.enter_async_context(consumer)
        await asyncio.wait_for(entered.wait(), 60)
        # The listener blocks its thread; the loop still sends, and gets answers.
        sent = await producer.send(Message("T", b"second"), queue=result.message_queue)
        assert sent.queue_offset == 1
        release.set()
        store = consumer.offset_store
        async with asyncio.timeout(60):
            while store.read_memory(result.message_queue) != 2:
                await runtime.timers.sleep(0.05)
        assert all(name.startswith("rewindmq-worker") for name in threads)
    runtime.workers.close()
