"""The reset page previews a reset of a group, over real HTTP and a real cluster."""

from __future__ import annotations

import pytest

from rewindmq import LocalCluster, Message, MessageQueue, TopicConfig
from rewindmq.dashboard.data.reset_previews import target_of
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import retry_topic
from tests.dashboard.limits import limited_dashboard
from tests.dashboard.site import dashboard


async def create_topic(cluster: LocalCluster, topic: str = "Rewound") -> None:
    """Create the topic on every broker; brokers take it as it is if they have it."""
    async with cluster.admin() as admin:
        for broker in cluster.brokers.values():
            await admin.topics.create_and_update_topic_config(
                broker.address, TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1)
            )


async def test_the_page_previews_what_a_reset_would_do_to_each_queue(cluster: LocalCluster) -> None:
    await create_topic(cluster)
    async with cluster.producer("p") as producer, cluster.admin() as admin:
        sent = [await producer.send(Message("Rewound", b"one")) for _ in range(4)]
        ends: dict[MessageQueue, int] = {}
        for result in sent:
            queue = MessageQueue(*result.message_queue)
            ends[queue] = max(ends.get(queue, 0), result.queue_offset + 1)
        await admin.resets.reset("Rewound", "rewinder", ends, write=True)
        async with dashboard(cluster.namesrv_address) as site:
            asked = await site.get("/groups/rewinder/reset")
            assert "A preview changes nothing" in asked.text
            page = (await site.get("/groups/rewinder/reset?topic=Rewound&to=earliest")).text
            assert "<dt>To come again</dt><dd>4 <small>" in page
            assert "<dt>To be skipped</dt><dd>0 <small>" in page
            queue, end = next(iter(ends.items()))
            row = f"<tr><td>{queue.broker_name}/{queue.queue_id}</td>" + "".join(
                f'<td class="n">{number}</td>' for number in (0, end, end, 0)
            )
            assert row in page
            assert "no consumer is connected" in page
            ago = (await site.get("/groups/rewinder/reset?topic=Rewound&to=ago&ago=1h")).text
            assert "<dt>To come again</dt><dd>4 <small>" in ago
            assert "?topic=Rewound&amp;to=time&amp;at=" in ago
            end_page = (await site.get("/groups/rewinder/reset?topic=Rewound&to=latest&at=&ago=")).text
            assert "<dt>To come again</dt><dd>0 <small>" in end_page
        assert {queue: await admin.groups.stored_offset("rewinder", queue) for queue in ends} == ends


async def test_the_page_says_why_brokers_would_refuse_a_reset(cluster: LocalCluster) -> None:
    await create_topic(cluster)
    await create_topic(cluster, retry_topic("newcomer"))
    async with dashboard(cluster.namesrv_address) as site:
        page = await site.get("/groups/newcomer/reset?topic=Rewound&to=earliest")
    assert "<b>Obstacle:</b> group newcomer has no stored offset in the topic" in page.text
    assert "<dt>To come again</dt><dd>0 <small>" in page.text


async def test_the_page_previews_the_mode_that_it_will_ask_for(cluster: LocalCluster) -> None:
    """A group that exists and never connected: classic brokers refuse to move it, others store the target."""
    await create_topic(cluster)
    async with cluster.admin() as admin:
        for broker in cluster.brokers.values():
            settings = SubscriptionGroupConfig(group_name="made")
            await admin.groups.create_and_update_subscription_group_config(broker.address, settings)
    async with dashboard(cluster.namesrv_address) as site:
        page = "/groups/made/reset?topic=Rewound&to=earliest"
        classic, server = await site.get(page), await site.get(f"{page}&mode=server")
        wrong = await site.get(f"{page}&mode=%3Cb%3E")
    assert "<b>Obstacle:</b> group made has no stored offset in the topic" in classic.text
    assert "the next consumer starts there" not in classic.text
    assert "<b>Obstacle:</b>" not in server.text
    assert "the next consumer starts there" in server.text
    assert '<option value="server" selected>' in server.text
    assert wrong.status == 400
    assert "Choose one of the modes classic, server, fenced, or none." in wrong.text


async def test_a_preview_that_cannot_be_made_says_why_in_one_sentence(cluster: LocalCluster) -> None:
    await create_topic(cluster)
    async with dashboard(cluster.namesrv_address) as site:
        for query, status, sentence in (
            ("topic=Gone&to=earliest", 404, "Topic Gone: no broker has this topic."),
            ("topic=Rewound&to=earliest", 404, "Group absent is gone, or has another name"),
            ("topic=Rewound", 400, "Choose both, a topic and where the group goes."),
            (
                "topic=Rewound&to=elsewhere",
                400,
                "Choose where the group goes: earliest, latest, time, ago, ",
            ),
            ("topic=Rewound&to=time&at=soon", 400, "Enter the time to go to"),
            ("topic=Rewound&to=ago&ago=%3Cb%3E", 400, "must be a number and s, m, h or d"),
            ("topic=Rewound&to=group", 400, "Enter the group whose offsets"),
        ):
            page = await site.get(f"/groups/absent/reset?{query}")
            assert page.status == status, query
            assert sentence in page.text
            assert "<table>" not in page.text
            assert "<b>" not in page.text


@pytest.mark.slow
async def test_a_preview_names_a_broker_that_hangs_after_2_s(cluster: LocalCluster) -> None:
    await create_topic(cluster)
    await create_topic(cluster, retry_topic("rewinder"))
    hanging = max(cluster.brokers)
    cluster.pause(hanging)
    try:
        async with limited_dashboard(cluster.namesrv_address) as site:
            for query in ("to=earliest", "to=group&as=other"):
                page = await site.silent_page(f"/groups/rewinder/reset?topic=Rewound&{query}")
                assert f"{hanging}: no answer within 2 s." in page, query
    finally:
        cluster.resume(hanging)


def test_a_target_is_a_time_that_exists() -> None:
    assert target_of("ago", None, "2h", 10_000_000) == 2_800_000
    assert target_of("ago", None, "999999999d", 10_000_000) == 0
    assert target_of("time", 5, "", 0) == 5
    with pytest.raises(ClientError, match="1970"):
        target_of("time", -1, "", 0)
