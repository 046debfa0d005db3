"""The dashboard's pages at a RocketMQ name server and broker."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.names import dlq_topic, retry_topic
from tests.dashboard.reading import reader
from tests.dashboard.site import Site, dashboard
from tools.interop.servers import BROKER, RocketMQServer
from tools.interop.versions import SERVER_4, SERVER_5

TOPIC, GROUP, COUNT = "shown", "shown-readers", 6
SECONDS: Final = 120.0
_LETTER: Final = re.compile(r'name="letter-\d+" value="([^"]+)"')
_PLACE: Final = re.compile(r'href="(/topics/[^"/]+/messages/[^"]+)"')


@pytest.mark.unlisted
@pytest.mark.parametrize("release", [SERVER_4, SERVER_5])
async def test_every_page_works_at_rocketmq_and_greys_out_what_it_does_not_serve(release: str) -> None:
    server = await asyncio.to_thread(RocketMQServer, release)
    try:
        await _look(server, release)
    except BaseException as error:
        server.note_logs(error)
        raise
    finally:
        await asyncio.to_thread(server.close)


async def _look(server: RocketMQServer, release: str) -> None:
    namesrv = server.namesrv_address
    await _create_topic(server, TOPIC)
    consumer, read = reader(GROUP, namesrv, TOPIC, COUNT, "even || odd")
    async with Producer("shown-producer", namesrv) as producer, consumer:
        sent = [
            await producer.send(
                Message(TOPIC, b'{"n": %d}' % number, "odd" if number % 2 else "even", f"key-{number}")
            )
            for number in range(COUNT)
        ]
        await asyncio.wait_for(read.wait(), SECONDS)
        async with dashboard(namesrv) as site:
            await _cluster_pages(site, release)
            await _topic_pages(site, sent[3].msg_id, sent[3].offset_msg_id)
            await _group_pages(site, consumer)
            for is_orderly in (False, True):
                await _dead_letters(server, site, release, is_orderly=is_orderly)


async def _cluster_pages(site: Site, release: str) -> None:
    async with asyncio.timeout(SECONDS):
        # A JVM that has just started may take longer for its first answer than a page waits.
        # 4.9.7 refuses in its first second, before its statistics have a sample.
        while re.search("no answer|NoSuchElement", (front := await site.get("/")).text):
            pass
    assert f'href="/brokers/{BROKER}/0"' in front.text
    assert f"<td>V{release[:3].replace('.', '_')}_" in front.text, front.text
    assert "not measured" in front.text
    broker = await site.get(f"/brokers/{BROKER}/0")
    assert "This broker does not say how much of its limits is used" in broker.text
    assert "brokerClusterName" in broker.text


async def _topic_pages(site: Site, message_id: str, offset_id: str) -> None:
    assert f'href="/topics/{TOPIC}"' in (await site.get("/topics")).text
    assert f"<td>{BROKER}</td>" in (await site.get(f"/topics/{TOPIC}")).text
    path = f"/topics/{TOPIC}/messages"
    async with asyncio.timeout(SECONDS):
        # RocketMQ builds its index of keys a moment after the send.
        while not (places := _PLACE.findall((await site.get(f"{path}?by=key&q=key-3")).text)):
            pass
    assert len(places) == 1
    for query in (f"by=id&q={message_id}", f"by=id&q={offset_id}"):
        assert _PLACE.findall((await site.get(f"{path}?{query}")).text) == places, query
    for query in ("by=newest", "by=time&at=0"):
        assert len(_PLACE.findall((await site.get(f"{path}?{query}")).text)) == COUNT, query
    assert "&#34;n&#34;: 3" in (await site.get(places[0])).text


async def _group_pages(site: Site, consumer: PushConsumer) -> None:
    assert f'href="/groups/{GROUP}"' in (await site.get("/groups")).text
    async with asyncio.timeout(SECONDS):
        while "<dd>0 <small>messages" not in (await site.get(f"/groups/{GROUP}")).text:
            await consumer.persist_offsets()
            await asyncio.sleep(0.1)
    consumers = (await site.get(f"/groups/{GROUP}/consumers")).text
    assert f"<div>{TOPIC} <code>even || odd</code></div>" in consumers
    (client,) = re.findall(rf'href="(/groups/{GROUP}/consumers/[^"]+)"', consumers)
    assert "#Consumer Subscription#" in (await site.get(client)).text
    assert f'href="/groups/{GROUP}"' in (await site.get(f"/topics/{TOPIC}/groups")).text
    assert "The group has no dead letters" in (await site.get(f"/groups/{GROUP}/dead-letters")).text
    fenced = (await site.get(f"/groups/{GROUP}/fenced")).text
    assert f"{BROKER}: RocketMQ&#39;s brokers do not serve this" in fenced.replace(
        "RocketMQ's", "RocketMQ&#39;s"
    )


async def _dead_letters(server: RocketMQServer, site: Site, release: str, *, is_orderly: bool) -> None:
    """A dead letter that is sent again comes to the group again; but 5.x refuses it for orderly listeners."""
    group = f"given-up-{'in-order' if is_orderly else 'at-once'}"
    topic = f"of-{group}"
    for name in (topic, retry_topic(group)):
        await _create_topic(server, name)
    accepts, got = False, asyncio.Queue[MessageExt]()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            got.put_nowait(message)
        status = ConsumeConcurrentlyStatus
        return status.CONSUME_SUCCESS if accepts else status.RECONSUME_LATER

    async def listen_in_order(
        messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        await listen(messages)
        status = ConsumeOrderlyStatus
        return status.SUCCESS if accepts else status.SUSPEND_CURRENT_QUEUE_A_MOMENT

    consumer = PushConsumer(group, server.namesrv_address, consume_from="first", max_reconsume_times=0)
    consumer.subscribe(topic)
    if is_orderly:
        consumer.register_orderly_listener(listen_in_order)
    else:
        consumer.register_message_listener(listen)
    path = f"/groups/{group}/dead-letters"
    async with Producer("p", server.namesrv_address) as producer, consumer, asyncio.timeout(SECONDS):
        sent = await producer.send(Message(topic, b"poison", "t", "key"))
        assert (await got.get()).msg_id == sent.msg_id
        while not (places := _LETTER.findall((await site.get(path)).text)):
            pass
        accepts = True
        page = await site.post(path, {"letter-1": places[0], "csrf": site.settings.csrf})
        if is_orderly and release == SERVER_5:
            assert f"the broker put the copy into {dlq_topic(group)}, as RocketMQ 5.x" in page.text, page.text
            return
        assert "<b>1 of 1</b> sent again" in page.text, page.text
        # An orderly listener may have got the message several times before the client gave it up.
        while (again := await got.get()).reconsume_times or not again.properties.get("RETRY_TOPIC"):
            pass
        assert (again.msg_id, again.topic, again.body) == (sent.msg_id, topic, b"poison")


async def _create_topic(server: RocketMQServer, topic: str) -> None:
    async with AdminClient(server.namesrv_address) as admin:
        config = TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2)
        await admin.topics.create_and_update_topic_config(server.broker_address, config)
        async with asyncio.timeout(SECONDS):
            while topic not in await admin.topics.fetch_all_topic_list():  # noqa: ASYNC110 - in another process
                await asyncio.sleep(0.1)
