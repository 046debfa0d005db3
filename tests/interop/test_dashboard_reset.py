"""A reset from the dashboard's page at a RocketMQ broker, proven in real time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TopicConfig,
)
from tests.dashboard.site import Site, dashboard
from tools.interop.servers import RocketMQServer
from tools.interop.versions import SERVER_4

TOPIC, GROUP, COUNT = "proven", "proven-readers", 6
SECONDS: Final = 180.0
_EXPECTED: Final = re.compile(r'name="expected" value="([^"]*)"')
_VERDICT: Final = re.compile(r'id="verdict">(\w+)<')


@pytest.mark.interop(full_only="it takes a minute; tests/dashboard proves resets")
@pytest.mark.unlisted
async def test_a_reset_from_the_page_is_proven_at_rocketmq() -> None:
    server = await asyncio.to_thread(RocketMQServer, SERVER_4)
    try:
        await _reset(server)
    except BaseException as error:
        server.note_logs(error)
        raise
    finally:
        await asyncio.to_thread(server.close)


async def _reset(server: RocketMQServer) -> None:
    namesrv = server.namesrv_address
    heard: list[int] = []
    news = asyncio.Event()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        heard.extend(message.queue_offset for message in messages)
        news.set()
        # Slow enough for samples, which are taken twice a second.
        await asyncio.sleep(2)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(GROUP, namesrv, consume_from="first", consume_thread_max=1)
    consumer.subscribe(TOPIC)
    consumer.register_message_listener(listen)
    async with AdminClient(namesrv) as admin, Producer("proven-producer", namesrv) as producer:
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=1, write_queue_nums=1)
        await admin.topics.create_and_update_topic_config(server.broker_address, config)
        async with asyncio.timeout(SECONDS):
            while TOPIC not in await admin.topics.fetch_all_topic_list():  # noqa: ASYNC110 - in another process
                await asyncio.sleep(0.1)
        (queue,) = await producer.fetch_publish_message_queues(TOPIC)
        for _ in range(COUNT):
            await producer.send(Message(TOPIC, b"x"))
        async with consumer, dashboard(namesrv) as site, asyncio.timeout(SECONDS):
            while await admin.groups.stored_offset(GROUP, queue) != COUNT:  # noqa: ASYNC110 - in another process
                await asyncio.sleep(0.1)
            proof = await _confirm(site)
            await _until(site, proof, "the brokers accepted the reset; queues: 1")
            # The broker answers the consumer's suspended pull at once. An answer after the wait is race R1.
            await producer.send(Message(TOPIC, b"new"))
            page = await _until(site, proof, '<span class="badge proven">proven</span>')
            assert _VERDICT.findall(page) == ["proven"]
            # 4.x has no modes, and classic is what it does.
            assert "Modes: broker-a classic." in page
            while heard.count(COUNT) < 1:
                news.clear()
                await news.wait()
    assert heard[:COUNT] == [*range(COUNT)]
    assert [offset for offset in heard[COUNT:] if offset < COUNT] == [*range(COUNT)]


async def _confirm(site: Site) -> str:
    """Confirm a reset to the oldest messages; return the path of its proof."""
    path = f"/groups/{GROUP}/reset?topic={TOPIC}&to=earliest"
    preview = await site.get(path)
    assert f"<dt>To come again</dt><dd>{COUNT} <small>" in preview.text, preview.text
    expected = _EXPECTED.search(preview.text)
    assert expected is not None
    fields = {"csrf": site.settings.csrf, "expected": expected[1], "name": GROUP}
    answered = await site.post(path, fields)
    assert answered.status == 303, answered.text
    return answered.headers["location"]


async def _until(site: Site, path: str, text: str) -> str:
    """Ask for the page, as a browser without script does, until it has the text or its reset is over."""
    while True:
        page = (await site.get(path)).text
        if text in page or _VERDICT.findall(page) != ["running"]:
            assert text in page, page
            return page
        await asyncio.sleep(0.5)
