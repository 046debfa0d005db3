"""The dashboard finds messages, and shows their bodies bounded and escaped."""

import html
import re
import socket
import threading
import tracemalloc
import zlib

import pytest

from rewindmq import LocalCluster, Message, MessageQueue, SendResult, TopicConfig
from rewindmq.dashboard.data import messages as searches
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.data.messages import MAX_QUESTIONS, PAGE_MESSAGES, since
from rewindmq.dashboard.pages import messages
from rewindmq.dashboard.web import bodies
from rewindmq.dashboard.web.bodies import DUMP_BYTES, EXCERPT, TEXT_BYTES, excerpt, readable_body
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.message_id import offset_message_id
from rewindmq.protocol.message.record import decode_record, encode_record
from rewindmq.protocol.message.sysflag import MessageSysFlag
from tests.client.client_records import HOST
from tests.dashboard.limits import limited_dashboard
from tests.dashboard.site import Answered, Site, dashboard

_PLACE = re.compile(r'href="(/topics/[^"/]+/messages/[^"]+)"')


def _places(page: Answered) -> list[str]:
    return _PLACE.findall(page.text)


async def _send(cluster: LocalCluster, *messages: Message) -> list[SendResult]:
    async with cluster.producer("p") as producer:
        return [await producer.send(message) for message in messages]


async def test_a_message_is_found_by_key_id_offset_id_time_and_queue(cluster: LocalCluster) -> None:
    message = Message("Find", b'{"a": [1, "x"]}', "tag", "key-1 key-2", properties={"who": "<me>"})
    (sent,) = await _send(cluster, message)
    async with dashboard(cluster.namesrv_address) as site:
        (place,) = _places(await site.get("/topics/Find/messages"))
        _, broker, queue_id = sent.message_queue
        for query in (
            "by=key&q=key-2",
            f"by=id&q={sent.msg_id}",
            f"by=id&q={sent.offset_msg_id}",
            "by=time&at=2000-01-01T00:00:00",
            f"by=queue&broker={broker}&queue={queue_id}&offset={sent.queue_offset}",
        ):
            assert _places(await site.get(f"/topics/Find/messages?{query}")) == [place], query
        for query in ("by=key&q=key", "by=id&q=ABC", "by=time&at=33000000000000"):
            page = await site.get(f"/topics/Find/messages?{query}")
            assert "No message was found." in page.text, query
        page = await site.get(place)
        assert "&#34;a&#34;: [\n    1," in page.text
        assert "&lt;me&gt;" in page.text
        body = await site.get(f"{place}/body")
        assert (body.text, body.headers["content-type"]) == ('{"a": [1, "x"]}', "application/octet-stream")
        assert body.headers["content-disposition"].startswith("attachment")


async def test_a_search_does_not_find_the_messages_of_a_topic_with_the_same_hash(
    cluster: LocalCluster,
) -> None:
    # A broker's index has the same hash for this key in both topics.
    sent = []
    address = cluster.brokers["broker-a"].address
    async with cluster.producer("p") as producer, cluster.admin() as admin:
        for topic in ("AaFind", "BBFind"):
            await admin.topics.create_and_update_topic_config(address, TopicConfig(topic_name=topic))
            queue = MessageQueue(topic, "broker-a", 0)
            sent.append(await producer.send(Message(topic, topic.encode(), keys="k"), queue=queue))
    async with dashboard(cluster.namesrv_address) as site:
        for result, other in zip(sent, reversed(sent), strict=True):
            topic, broker, queue_id = result.message_queue
            place = f"/topics/{topic}/messages/{broker}/{queue_id}/{result.queue_offset}"
            assert _places(await site.get(f"/topics/{topic}/messages?by=key&q=k")) == [place]
            assert _places(await site.get(f"/topics/{topic}/messages?by=id&q={result.msg_id}")) == [place]
            page = await site.get(f"/topics/{topic}/messages?by=id&q={other.msg_id}")
            assert "No message was found." in page.text


async def test_a_query_that_makes_no_sense_is_explained(cluster: LocalCluster) -> None:
    (sent,) = await _send(cluster, Message("Find", b"one"))
    _, broker, queue_id = sent.message_queue
    async with dashboard(cluster.namesrv_address) as site:
        assert "numbers from 0 on" in (await site.get("/topics/Find/messages?by=queue&queue=-1")).text
        assert "Enter a time such as" in (await site.get("/topics/Find/messages?by=time&at=noon")).text
        assert "numbers from 0 on" in (await site.get("/topics/Find/messages/broker-a/x/0")).text
        assert "the queue holds" in (await site.get(f"/topics/Find/messages/{broker}/{queue_id}/99999")).text
        assert "does not serve" in (await site.get("/topics/Find/messages/absent/0/0")).text


async def test_binary_and_large_bodies_are_bounded_on_the_page(cluster: LocalCluster) -> None:
    await _send(
        cluster, Message("Large", b"\0\x1b<b>" + bytes(3_000_000)), Message("Large", b"<i>" * 900_000)
    )
    async with dashboard(cluster.namesrv_address) as site:
        shown = []
        for place in _places(await site.get("/topics/Large/messages")):
            page = await site.get(place)
            assert len(page.text) < 8 * TEXT_BYTES
            assert "<i><i>" not in page.text
            shown.append(html.unescape(page.text))
        text, binary = sorted(shown, key=lambda page: "binary" in page)
        assert (
            f"The first {TEXT_BYTES:,} of 2,700,000 bytes".replace(",", "\N{NARROW NO-BREAK SPACE}") in text
        )
        assert f"The first {DUMP_BYTES:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") in binary
        assert "00000000  00 1b 3c 62 3e 00" in binary


async def test_pages_by_time_show_every_message_once(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        # One queue has most messages in the same millisecond, others have some.
        batch = [Message("Many", b"%d" % number) for number in range(2 * PAGE_MESSAGES + 5)]
        await producer.send_batch(batch)
        sent = [*batch, *batch[:10]]
        for message in batch[:10]:
            await producer.send(Message("Many", message.body))
    async with dashboard(cluster.namesrv_address) as site:
        found = await _all_pages(site, "?by=time&at=0")
    assert len(found) == len(set(found)) == len(sent)


async def _all_pages(site: Site, query: str) -> list[str]:
    found = []
    while True:
        page = await site.get(f"/topics/Many/messages{query}")
        found += _places(page)
        following = re.search(r'rel="next" href="([^"]+)">Later', page.text)
        if following is None:
            return found
        query = html.unescape(following[1])


async def test_an_id_with_an_address_of_another_server_opens_no_connection(cluster: LocalCluster) -> None:
    await _send(cluster, Message("Find", b"one"))
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.setblocking(False)
        packed = socket.inet_aton("127.0.0.1") + stranger.getsockname()[1].to_bytes(4, "big")
        async with dashboard(cluster.namesrv_address) as site:
            page = await site.get(f"/topics/Find/messages?by=id&q={offset_message_id(packed, 0)}")
        assert "No message was found." in page.text
        try:
            stranger.accept()
        except BlockingIOError:
            return
        raise AssertionError("the dashboard connected to a server that is none of the cluster's")


@pytest.mark.slow
async def test_a_broker_that_hangs_leaves_the_messages_of_the_others(cluster: LocalCluster) -> None:
    async with cluster.admin() as admin:
        for broker in cluster.brokers.values():
            await admin.topics.create_and_update_topic_config(broker.address, TopicConfig(topic_name="Both"))
    async with cluster.producer("p") as producer:
        for queue in await producer.fetch_publish_message_queues("Both"):
            await producer.send(Message("Both", b"one", keys="k"), queue=queue)
    hanging, alive = sorted(cluster.brokers)
    cluster.pause(hanging)
    try:
        async with limited_dashboard(cluster.namesrv_address) as site:
            for path in ("/topics/Both/messages", "/topics/Both/messages?by=key&q=k", "/topics/Both"):
                page = await site.silent_page(path)
                assert f"<b>{hanging}</b>: no answer within 2 s" in page, path
                assert f"{alive}/" in page or f"<td>{alive}</td>" in page, path
    finally:
        cluster.resume(hanging)


async def test_a_search_reads_at_most_one_response_more_for_each_question_at_a_time(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = 4 * MAX_QUESTIONS
    async with cluster.admin() as admin:
        config = TopicConfig(topic_name="Wide", read_queue_nums=queues, write_queue_nums=queues)
        await admin.topics.create_and_update_topic_config(
            next(iter(cluster.brokers.values())).address, config
        )
        async with cluster.producer("p") as producer:
            for queue in await producer.fetch_publish_message_queues("Wide"):
                await producer.send(Message("Wide", b"x"), queue=queue)
        monkeypatch.setattr(searches, "MAX_BYTES", 1)
        found = (await since(ClusterSource(admin), "Wide", 0, count=queues)).value
    assert found is not None
    assert found.is_cut
    assert len(found.messages) <= MAX_QUESTIONS


@pytest.mark.parametrize(
    "body",
    ['{"a":1,"a":2}', '{"n":1.00000000000000000001}', '{"n":1e400}', '{"n":NaN}', "[" * 900 + "]" * 900],
)
async def test_json_that_indenting_would_change_or_blow_up_is_shown_as_it_is(
    cluster: LocalCluster, body: str
) -> None:
    (sent,) = await _send(cluster, Message("AsItIs", body.encode()))
    async with dashboard(cluster.namesrv_address) as site:
        (place,) = _places(await site.get(f"/topics/AsItIs/messages?by=id&q={sent.msg_id}"))
        page = await site.get(place)
    assert html.escape(body) in page.text.replace("&#34;", "&quot;")
    assert len(page.text) < 8 * TEXT_BYTES


def _compressed(part: bytes, times: int = 1) -> MessageExt:
    """Return a message whose compressed body is the part so many times."""
    deflater = zlib.compressobj()
    stored = b"".join(deflater.compress(part) for _ in range(times)) + deflater.flush()
    return decode_record(
        encode_record(
            topic="T",
            stored_body=stored,
            properties=b"",
            queue_id=0,
            queue_offset=0,
            physical_offset=0,
            born_timestamp=0,
            born_host=HOST,
            store_timestamp=0,
            store_host=HOST,
            sys_flag=MessageSysFlag.COMPRESSED,
        ),
        0,
        "broker-a",
    )


def test_a_list_inflates_no_more_of_a_body_than_it_shows() -> None:
    """A message of 100 KiB may inflate to 100 MiB, and a list has twenty."""
    large = _compressed(b"<a>" * 350_000, times=60)
    assert len(large.stored_body) < 1_000_000
    tracemalloc.start()
    try:
        shown = excerpt(large)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shown == "<a>" * 26 + "<a…"
    assert peak < 1_000_000
    assert excerpt(_compressed("Ä".encode() * 1000)) == "Ä" * EXCERPT + "…"
    assert excerpt(_compressed(b"short")) == "short"
    assert excerpt(_compressed(b"")) == ""
    assert excerpt(_compressed(b"\x00" * 1000)).startswith("00 00")


async def test_a_body_is_inflated_beside_the_loop(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 MiB take half a second, in which every other visitor would wait."""
    threads: set[int] = set()

    def readable(message: MessageExt) -> tuple[bytes, str | None]:
        threads.add(threading.get_ident())
        return readable_body(message)

    for module in (bodies, messages):
        monkeypatch.setattr(module, "readable_body", readable)
    await _send(cluster, Message("Inflated", b"<i>" * 10_000))
    async with dashboard(cluster.namesrv_address) as site:
        (place,) = _places(await site.get("/topics/Inflated/messages"))
        assert threads == set()
        assert "&lt;i&gt;" in (await site.get(place)).text
        assert (await site.get(f"{place}/body")).text == "<i>" * 10_000
    assert threads
    assert threading.get_ident() not in threads
