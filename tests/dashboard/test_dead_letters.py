"""Dead letters are shown, and sent to their group again, over real HTTP and a real cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

import pytest

from rewindmq import ConsumeConcurrentlyStatus, LocalCluster, Message, MessageExt, TopicConfig
from rewindmq.dashboard.data.dead_letters import MAX_RESENT, copy_of
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import dlq_topic, retry_topic
from tests.dashboard.site import HOSTS, Site, dashboard
from tests.dashboard.test_reset_preview import create_topic

SECONDS: Final = 20.0
BINARY: Final = bytes(range(256)) * 40
_LETTER: Final = re.compile(r'name="(letter-\d+)" value="([^"]+)"')


class Listener:
    """Refuses every message until it is told to accept, and keeps what it got."""

    def __init__(self) -> None:
        self.accepts = False
        self.got: list[MessageExt] = []
        self.changed = asyncio.Condition()

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        async with self.changed:
            self.got += messages
            self.changed.notify_all()
        status = ConsumeConcurrentlyStatus
        return status.CONSUME_SUCCESS if self.accepts else status.RECONSUME_LATER

    async def has(self, count: int) -> None:
        async with asyncio.timeout(SECONDS), self.changed:
            await self.changed.wait_for(lambda: len(self.got) >= count)


async def letters_of(site: Site, group: str, count: int) -> dict[str, str]:
    """Return the form fields of the group's dead letters, when there are ``count``."""
    async with asyncio.timeout(SECONDS):
        while True:
            found = dict(_LETTER.findall((await site.get(f"/groups/{group}/dead-letters")).text))
            if len(found) == count:
                return found


async def test_chosen_dead_letters_come_to_the_group_again_as_they_first_were(cluster: LocalCluster) -> None:
    listener = Listener()
    # A consumer looks for the queues of a topic that is made after its start only every 30 s.
    await create_topic(cluster, "Given")
    await create_topic(cluster, retry_topic("giver-up"))
    consumer = cluster.push_consumer("giver-up", consume_from="first", max_reconsume_times=0)
    consumer.subscribe("Given", "t")
    consumer.register_message_listener(listener)
    async with cluster.producer("p") as producer:
        for number in range(3):
            properties = {"colour": "red <i>"}
            await producer.send(Message("Given", BINARY, "t", f"key-{number}", properties=properties))
        async with consumer, dashboard(cluster.namesrv_address) as site:
            await listener.has(3)
            first = {message.keys: message for message in listener.got}
            letters = await letters_of(site, "giver-up", 3)
            page = (await site.get("/groups/giver-up/dead-letters")).text
            assert page.count('<a href="/topics/Given">Given</a>') == 3
            listener.accepts = True
            chosen = {name: letters[name] for name in ("letter-1", "letter-2")}
            path = "/groups/giver-up/dead-letters"
            assert (await site.post(path, chosen | {"csrf": "guessed"})).status == 403
            sent = await site.post(path, chosen | {"csrf": "form-token"})
            assert "<b>2 of 2</b> sent again" in sent.text
            copies = re.findall(r'stored as <a href="([^"]+)"', sent.text)
            await listener.has(5)
            again = listener.got[3:]
            # The page of the copy shows where it is.
            assert (await site.get(copies[0])).status == 200
            assert await letters_of(site, "giver-up", 3) == letters
    assert len({message.keys for message in again}) == 2
    for message in again:
        origin = first[message.keys]
        assert (message.topic, message.body, message.tags) == ("Given", BINARY, "t")
        assert message.msg_id == origin.msg_id
        assert message.properties["colour"] == "red <i>"
        assert message.reconsume_times == 0


async def test_one_dead_letter_has_a_page_that_its_message_leads_to(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        sent = await producer.send(Message(dlq_topic("single"), b"one"))
    queue = sent.message_queue
    async with dashboard(cluster.namesrv_address) as site:
        place = f"{queue.broker_name}/{queue.queue_id}/{sent.queue_offset}"
        message = await site.get(f"/topics/%25DLQ%25single/messages/{place}")
        (link,) = re.findall(r'href="(/groups/single/dead-letters\?letter=[^"]+)"', message.text)
        page = await site.get(link)
        assert f'value="{place}" aria-label="Send {place} again" checked' in page.text
        answered = await site.post("/groups/single/dead-letters", {"letter-1": place, "csrf": "form-token"})
        # No consumer of the group ever connected, so no broker has its retry topic.
        assert "<b>0 of 1</b> sent again" in answered.text
        assert "group single has no retry topic to send to" in answered.text
        for wrong in ("none", "broker-a/0", "broker-a/x/0", "/0/0"):
            assert (
                "place is BROKER/QUEUE/OFFSET"
                in (await site.get(f"/groups/single/dead-letters?letter={wrong}")).text
            )


async def test_a_broker_that_hangs_is_not_taken_for_one_without_dead_letters(cluster: LocalCluster) -> None:
    hanging = max(cluster.brokers)
    async with cluster.admin() as admin:
        config = TopicConfig(topic_name=dlq_topic("unheard"))
        await admin.topics.create_and_update_topic_config(cluster.brokers[hanging].address, config)
    cluster.pause(hanging)
    try:
        async with dashboard(cluster.namesrv_address) as site:
            page = await site.get("/groups/unheard/dead-letters")
    finally:
        cluster.resume(hanging)
    assert f"<b>{hanging}</b>: no answer within 2 s" in page.text
    assert "The group has no dead letters" not in page.text
    assert "Send the chosen ones again" not in page.text


async def test_a_form_that_chooses_none_too_many_or_nonsense_sends_nothing(cluster: LocalCluster) -> None:
    path = "/groups/any/dead-letters"
    many = {f"letter-{number}": f"broker-a/0/{number}" for number in range(MAX_RESENT + 1)}
    async with dashboard(cluster.namesrv_address) as site:
        for fields, sentence in (
            ({}, "No dead letter is chosen."),
            ({"letter-1": "broker-a/0/-1"}, "The form names a place that is none."),
            (many, f"At most {MAX_RESENT} dead letters are sent at a time."),
        ):
            answered = await site.post(path, fields | {"csrf": "form-token"})
            assert (answered.status, sentence in answered.text) == (400, True)
        gone = await site.post(path, {"letter-1": "broker-a/0/0", "csrf": "form-token"})
        assert "it could not be read" in gone.text


async def test_a_read_only_dashboard_sends_no_dead_letter_again(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        await producer.send(Message(dlq_topic("looked-at"), b"one"))
    settings = DashboardSettings("form-token", read_only=True, hosts=HOSTS)
    async with dashboard(cluster.namesrv_address, settings) as site:
        page = await site.get("/groups/looked-at/dead-letters")
        assert "read-only, so it sends nothing again" in page.text
        assert "checkbox" not in page.text
        fields = {"letter-1": "broker-a/0/0", "csrf": "form-token"}
        assert (await site.post("/groups/looked-at/dead-letters", fields)).status == 403


async def test_a_copy_has_no_trace_of_retries_delays_and_timers(cluster: LocalCluster) -> None:
    kept = {"KEYS": "k", "RETRY_TOPIC": "Given", "ORIGIN_MESSAGE_ID": "o", "mine": "x"}
    dropped = {
        "RECONSUME_TIME": "16",
        "MAX_RECONSUME_TIMES": "16",
        "REAL_TOPIC": "t",
        "TIMER_DELAY_SEC": "60",
    }
    async with cluster.producer("p") as producer, cluster.admin() as admin:
        topic = dlq_topic("copied")
        sent = await producer.send(Message(topic, b"one", properties=kept | dropped))
        copy = copy_of(await admin.messages.message_at(sent.message_queue, sent.queue_offset), "copied")
        assert (copy.topic, copy.body, copy.unique_key) == (retry_topic("copied"), b"one", sent.msg_id)
        assert kept.items() <= copy.properties.items()
        assert not dropped.keys() & copy.properties.keys()
        sent = await producer.send(Message(topic, b"two"))
        with pytest.raises(ClientError, match="RETRY_TOPIC"):
            copy_of(await admin.messages.message_at(sent.message_queue, sent.queue_offset), "copied")
