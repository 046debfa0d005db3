"""Two groups are compared queue by queue, over real HTTP and a real cluster."""

from __future__ import annotations

import pytest

from rewindmq import LocalCluster, Message, MessageQueue
from rewindmq.protocol.names import retry_topic
from tests.dashboard.limits import limited_dashboard
from tests.dashboard.site import dashboard
from tests.dashboard.test_reset_preview import create_topic

TOPIC = "Compared"


async def _queues(cluster: LocalCluster) -> dict[MessageQueue, int]:
    """Return the end of each queue of the topic, three messages in each at least."""
    await create_topic(cluster, TOPIC)
    async with cluster.producer("p") as producer:
        queues = sorted(await producer.fetch_publish_message_queues(TOPIC))
        sent = [await producer.send(Message(TOPIC, b"one"), queue=queue) for queue in queues for _ in "abc"]
    return {MessageQueue(*each.message_queue): each.queue_offset + 1 for each in sent}


async def test_two_groups_are_compared_queue_by_queue_and_lead_to_a_clone(cluster: LocalCluster) -> None:
    ends = await _queues(cluster)
    for group in ("ahead", "behind"):
        await create_topic(cluster, retry_topic(group))
    first, second = ends
    async with cluster.admin() as admin, dashboard(cluster.namesrv_address) as site:
        await admin.resets.reset(TOPIC, "ahead", ends, write=True)
        await admin.resets.reset(TOPIC, "behind", {first: ends[first] - 2, second: ends[second]}, write=True)
        asked = (await site.get("/groups/ahead/compare")).text
        assert '<option value="behind">' in asked
        assert '<option value="ahead">' not in asked
        page = (await site.get("/groups/ahead/compare?with=behind")).text
        assert "<dt>Queues that differ</dt><dd>1 <small>of 2</small>" in page
        assert "<dt>Lag of ahead</dt><dd>0</dd>" in page
        assert "<dt>Lag of behind</dt><dd>2</dd>" in page
        row = f"<td>{first.broker_name}/{first.queue_id}</td>"
        cells = page[page.index(row) + len(row) :].partition("</tr>")[0]
        end = ends[first]
        assert cells == (
            f'<td class="n">{end}</td><td class="n">0</td><td class="n">{end - 2}</td>'
            '<td class="n warm">2</td><td class="n warm">2</td>'
        )
        # The queue that differs stands first.
        assert page.index(row) < page.index(f"<td>{second.broker_name}/{second.queue_id}</td>")
        clone = f"/groups/behind/reset?topic={TOPIC}&to=group&as=ahead"
        assert f'href="{clone.replace("&", "&amp;")}"' in page
        preview = (await site.get(clone)).text
        assert "<dt>To be skipped</dt><dd>2 <small>" in preview
        assert "where ahead is" in preview
        assert "Reset the group and watch it" in preview
        assert await admin.groups.stored_offset("behind", first) == ends[first] - 2


async def test_a_group_without_offsets_can_be_compared_and_be_the_clone(cluster: LocalCluster) -> None:
    ends = await _queues(cluster)
    for group in ("old", "new"):
        await create_topic(cluster, retry_topic(group))
    async with cluster.admin() as admin, dashboard(cluster.namesrv_address) as site:
        await admin.resets.reset(TOPIC, "old", ends, write=True)
        page = (await site.get(f"/groups/old/compare?with=new&topic={TOPIC}")).text
        assert "<dt>Queues that differ</dt><dd>2 <small>of 2</small>" in page
        assert page.count('<td class="n"><span class="none">none</span></td>') == 2
        assert "/groups/old/reset" not in page.partition("<h2>Clone</h2>")[2]
        assert f"/groups/new/reset?topic={TOPIC}&amp;to=group&amp;as=old" in page
        nothing = (await site.get("/groups/old/compare?with=new&topic=Other")).text
        assert "Neither group has a stored offset in topic Other." in nothing


async def test_a_comparison_that_cannot_be_made_says_why(cluster: LocalCluster) -> None:
    await create_topic(cluster, retry_topic("alone"))
    async with dashboard(cluster.namesrv_address) as site:
        itself = (await site.get("/groups/alone/compare?with=alone")).text
        assert "That is this group itself" in itself
        gone = (await site.get("/groups/alone/compare?with=%3Cb%3Egone")).text
        assert "Group &lt;b&gt;gone: " in gone
        assert "<table>" not in gone
        reset = f"/groups/alone/reset?topic={TOPIC}&to=group"
        assert "Enter the group whose offsets" in (await site.get(reset)).text
        assert "The offsets of group none cannot be taken" in (await site.get(f"{reset}&as=none")).text


async def test_a_lag_leads_to_a_look_at_skipping_it(cluster: LocalCluster) -> None:
    ends = await _queues(cluster)
    await create_topic(cluster, retry_topic("slow"))
    async with cluster.admin() as admin, dashboard(cluster.namesrv_address) as site:
        await admin.resets.reset(TOPIC, "slow", {queue: end - 3 for queue, end in ends.items()}, write=True)
        skip = f"/groups/slow/reset?topic={TOPIC}&to=latest"
        assert f'href="{skip.replace("&", "&amp;")}"' in (await site.get("/groups/slow")).text
        assert "<dt>To be skipped</dt><dd>6 <small>" in (await site.get(skip)).text
        await admin.resets.reset(TOPIC, "slow", ends, write=True)
        assert "Skip what has accumulated" not in (await site.get("/groups/slow")).text


@pytest.mark.slow
async def test_a_comparison_names_a_broker_that_hangs_after_2_s(cluster: LocalCluster) -> None:
    for group in ("ahead", "behind"):
        await create_topic(cluster, retry_topic(group))
    hanging = max(cluster.brokers)
    cluster.pause(hanging)
    try:
        async with limited_dashboard(cluster.namesrv_address) as site:
            page = await site.silent_page("/groups/ahead/compare?with=behind")
    finally:
        cluster.resume(hanging)
    assert page.count("no answer within 2 s") == 1
