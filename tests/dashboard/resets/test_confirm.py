"""A reset is carried out only if the group's name was typed and nothing moved since the preview."""

from __future__ import annotations

import asyncio
import html
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest

from rewindmq import AdminClient, LocalCluster, Message, MessageQueue, TopicConfig
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.resets import service
from rewindmq.dashboard.resets.history import open_folder
from rewindmq.dashboard.web.page import DashboardSettings
from tests.dashboard.resets.test_history import fail_full, new_record
from tests.dashboard.site import HOSTS, Answered, Site, dashboard

GROUP: Final = "confirmer"
PAGE: Final = f"/groups/{GROUP}/reset?topic=Confirmed&to=earliest"
_EXPECTED: Final = re.compile(r'name="expected" value="([^"]*)"')
_AGAIN: Final = re.compile(r'href="([^"]*)">Preview again<')
_VERDICT: Final = re.compile(r'id="verdict">(\w+)<')


async def store_offset(cluster: LocalCluster, group: str = GROUP, topic: str = "Confirmed") -> MessageQueue:
    """Create the topic with one queue at each broker; store offset 3 of the group, which has no consumer."""
    async with cluster.admin() as admin, cluster.producer("p") as producer:
        for broker in cluster.brokers.values():
            config = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1)
            await admin.topics.create_and_update_topic_config(broker.address, config)
        queues = sorted(await producer.fetch_publish_message_queues(topic))
        for queue in queues:
            for _ in range(3):
                await producer.send(Message(topic, b"one"), queue=queue)
        await admin.resets.reset(topic, group, dict.fromkeys(queues, 3), write=True)
    return MessageQueue(*queues[0])


async def preview(site: Site, page: str = PAGE) -> dict[str, str]:
    """Return the fields of the page's form, with the name typed."""
    found = _EXPECTED.search((await site.get(page)).text)
    assert found is not None
    return {"csrf": site.settings.csrf, "expected": found[1], "name": page.split("/")[2], "repairs": "0"}


async def confirm(site: Site, fields: Mapping[str, str], page: str = PAGE) -> Answered:
    return await site.post(page, fields)


async def offset_of(cluster: LocalCluster, queue: MessageQueue, group: str = GROUP) -> int | None:
    async with cluster.admin() as admin:
        return await admin.groups.stored_offset(group, queue)


def record_file(folder: Path) -> Path:
    """Return the file of the only record."""
    (path,) = folder.glob("*.json")
    return path


def refusal(answered: Answered) -> str:
    """Return the text of the page's first alert."""
    found = re.search(r'role="alert">(.*?)</div>', answered.text, re.DOTALL)
    assert found is not None, answered
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", found[1])).split())


async def test_a_confirmed_reset_moves_the_group_and_leads_to_its_proof(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    queue = await store_offset(cluster)
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        answered = await confirm(site, await preview(site))
        assert answered.status == 303
        proof = answered.headers["location"]
        async with asyncio.timeout(30):
            while "accepted the reset" not in (page := await site.get(proof)).text:
                pass
        assert page.status == 200
        assert _VERDICT.findall(page.text) == ["running"]
        assert await offset_of(cluster, queue) == 0
        # A dashboard that is killed now leaves a record that says so.
        async with asyncio.timeout(30):
            while "accepted the reset" not in await asyncio.to_thread(record_file(tmp_path).read_text):
                pass
        # Until it has its verdict, no second person resets the same group.
        again = await site.get(PAGE)
        assert f'A reset of this group in this topic is running. <a href="{proof}">' in again.text
    # The stop of the dashboard ends the watch, and the record says so.
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        page = await site.get(proof)
        assert _VERDICT.findall(page.text) == ["interrupted"]
        assert "the dashboard was stopped during the watch" in page.text
        assert f'<a href="{proof}">' in (await site.get("/resets")).text


async def test_a_record_is_written_again_and_again_while_no_state_changes(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_SAVE_SECONDS", 0.1)
    await store_offset(cluster)
    files: set[int] = set()
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        assert (await confirm(site, await preview(site))).status == 303
        # Each write makes a new file. Without a consumer, each queue is stored, and stays so for 40 s.
        async with asyncio.timeout(30):
            while len(files) < 6:
                files.add((await asyncio.to_thread(record_file(tmp_path).stat)).st_mtime_ns)


async def test_a_record_that_could_be_written_again_is_no_longer_called_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = new_record(1)
    async with AdminClient("127.0.0.1:1") as admin, open_folder(tmp_path, admin.runtime.workers) as kept:
        resets = service.ResetService(ClusterSource(admin), kept)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail_full)
            await resets._save(record)
        assert record.unsaved == "This record is not on disk: No space left on device"
        await resets._save(record)
        assert record.unsaved == ""
    assert "not on disk" not in record_file(tmp_path).read_text()


async def test_a_group_goes_where_another_group_is(cluster: LocalCluster, tmp_path: Path) -> None:
    await store_offset(cluster)
    queue = await store_offset(cluster, "follower")
    async with cluster.admin() as admin:
        await admin.resets.reset("Confirmed", GROUP, {queue: 1}, write=True)
    page = "/groups/follower/reset?topic=Confirmed&to=group&as=" + GROUP
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        fields = await preview(site, page)
        answered = await confirm(site, fields, page)
        assert answered.status == 303, answered
        path = answered.headers["location"]
        async with asyncio.timeout(30):
            while "accepted the reset" not in (proof := await site.get(path)).text:
                pass
        assert f'<dd class="small">where {GROUP} was</dd>' in proof.text
        assert await offset_of(cluster, queue, "follower") == 1
        assert f"<td>where {GROUP} was</td>" in (await site.get("/resets")).text
    # The record says so after a restart, too, and leads to a preview of the same reset.
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        proof = await site.get(path)
        (again,) = _AGAIN.findall(proof.text)
        assert html.unescape(again) == page
        assert f'<dd class="small">where {GROUP} is</dd>' in (await site.get(page)).text
        assert f"<td>where {GROUP} was</td>" in (await site.get("/resets")).text


async def test_the_proof_names_the_group_of_the_preview_not_of_the_address(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await store_offset(cluster)
    await store_offset(cluster, "previewed")
    page = "/groups/previewed/reset?topic=Confirmed&to=group&as="
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        fields = await preview(site, page + GROUP)
        answered = await confirm(site, fields, page + "elsewhere")
        assert answered.status == 303, answered
        proof = await site.get(answered.headers["location"])
    assert f"where {GROUP} was" in proof.text
    assert "elsewhere" not in proof.text


async def test_a_record_of_before_the_other_group_was_kept_says_what_it_knows(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    record = new_record(1)
    record.timestamp = None
    content = msgspec.json.decode(msgspec.json.encode(record))
    del content["asGroup"]
    (tmp_path / f"{record.id}.json").write_bytes(msgspec.json.encode(content))
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        proof = await site.get(f"/resets/{record.id}")
        assert '<dd class="small">an offset by queue</dd>' in proof.text
        assert _AGAIN.findall(proof.text)[0].endswith("&amp;to=group")


async def test_a_wrong_name_resets_nothing(cluster: LocalCluster) -> None:
    queue = await store_offset(cluster)
    async with dashboard(cluster.namesrv_address) as site:
        fields = await preview(site)
        for name in ("", GROUP.upper(), f"{GROUP}x", "<script>"):
            answered = await confirm(site, fields | {"name": name})
            assert answered.status == 422
            assert f"Nothing was reset. You typed another name than {GROUP}." in refusal(answered)
    assert await offset_of(cluster, queue) == 3


async def test_what_moved_since_the_preview_is_said_and_nothing_is_reset(cluster: LocalCluster) -> None:
    queue = await store_offset(cluster)
    async with dashboard(cluster.namesrv_address) as site:
        fields = await preview(site)
        async with cluster.admin() as admin:
            await admin.resets.reset("Confirmed", GROUP, {queue: 2}, write=True)
        answered = await confirm(site, fields)
        assert answered.status == 409
        assert f"{queue.broker_name}:{queue.queue_id}: stored offset was 3, is 2" in refusal(answered)
        assert await offset_of(cluster, queue) == 2
        # The page that says so has the preview of now, which can be confirmed.
        found = _EXPECTED.search(answered.text)
        assert found is not None
        again = await confirm(site, fields | {"expected": found[1]})
        assert again.status == 303


async def test_of_two_people_who_reset_at_once_the_second_is_led_to_the_proof_of_the_first(
    cluster: LocalCluster,
) -> None:
    await store_offset(cluster)
    async with dashboard(cluster.namesrv_address) as site:
        fields = await preview(site)
        answers = await asyncio.gather(*(confirm(site, fields) for _ in range(4)))
        (first,) = [answer for answer in answers if answer.status == 303]
        others = [answer for answer in answers if answer is not first]
        for other in others:
            assert other.status == 409
            assert f'is running. <a href="{first.headers["location"]}">See its proof</a>' in other.text


async def test_at_most_so_many_resets_are_watched_at_once(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_RUNNING", 1)
    await store_offset(cluster)
    queue = await store_offset(cluster, "other")
    other = PAGE.replace(GROUP, "other")
    async with dashboard(cluster.namesrv_address) as site:
        fields = await preview(site, other)
        assert (await confirm(site, await preview(site))).status == 303
        answered = await confirm(site, fields, other)
        assert answered.status == 409
        assert "1 resets are being watched, which is the most" in refusal(answered)
    assert await offset_of(cluster, queue, "other") == 3


async def test_a_group_or_name_server_that_vanished_since_the_preview_is_named() -> None:
    with LocalCluster() as cluster:
        await store_offset(cluster)
        async with dashboard(cluster.namesrv_address) as site:
            fields = await preview(site)
            async with cluster.admin() as admin:
                for broker in cluster.brokers.values():
                    await admin.groups.delete_subscription_group(broker.address, GROUP, remove_offset=True)
            gone = await confirm(site, fields)
            assert gone.status == 409
            assert f"Group {GROUP} is gone, or has another name" in refusal(gone)
            cluster.kill("namesrv")
            silent = await confirm(site, fields)
    assert silent.status == 409
    assert "Nothing was reset. The name server did not answer: " in refusal(silent)


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"expected": ""}, 400, "The form does not say what its preview showed"),
        ({"expected": "%%%"}, 400, "The form does not say what its preview showed"),
        ({"expected": "ä"}, 400, "The form does not say what its preview showed"),
        ({"expected": "A" * 2_100_000}, 400, "more than 2,097,152 bytes"),
        ({"repairs": "101"}, 400, "Lost queues can be reset again 0 to 100 times"),
        ({"repairs": "-1"}, 400, "Lost queues can be reset again 0 to 100 times"),
    ],
)
async def test_a_form_that_the_page_did_not_make_is_refused_in_one_sentence(
    cluster: LocalCluster, fields: dict[str, str], status: int, sentence: str
) -> None:
    queue = await store_offset(cluster)
    async with dashboard(cluster.namesrv_address) as site:
        answered = await confirm(site, await preview(site) | fields)
    assert answered.status == status
    assert sentence in refusal(answered)
    assert await offset_of(cluster, queue) == 3


async def test_the_preview_of_another_group_is_not_confirmed(cluster: LocalCluster) -> None:
    await store_offset(cluster)
    await store_offset(cluster, "other")
    async with dashboard(cluster.namesrv_address) as site:
        other = PAGE.replace(GROUP, "other")
        answered = await confirm(site, await preview(site) | {"name": "other"}, other)
    assert answered.status == 400
    assert f"The form is of group {GROUP}, not other" in refusal(answered)


async def test_read_only_mode_other_sites_and_forms_without_the_token_reset_nothing(
    cluster: LocalCluster,
) -> None:
    queue = await store_offset(cluster)
    async with dashboard(cluster.namesrv_address) as site:
        fields = await preview(site)
        assert (await confirm(site, fields | {"csrf": "another"})).status == 403
        assert (await site.post(PAGE, fields, Origin="http://elsewhere.example")).status == 403
    settings = DashboardSettings("form-token", read_only=True, hosts=HOSTS)
    async with dashboard(cluster.namesrv_address, settings) as site:
        page = await site.get(PAGE)
        assert "so it resets nothing" in page.text
        assert _EXPECTED.search(page.text) is None
        assert (await confirm(site, fields)).status == 403
    assert await offset_of(cluster, queue) == 3


async def test_a_reset_that_a_broker_refuses_is_recorded_with_the_brokers_words(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    queue = await store_offset(cluster, "unsubscribed")
    page = PAGE.replace(GROUP, "unsubscribed")
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        page += "&mode=server"
        shown = (await site.get(page)).text
        assert "does not know group unsubscribed, and refuses to move it in server mode" in shown
        answered = await confirm(site, await preview(site, page), page)
        assert answered.status == 303, answered
        path = answered.headers["location"]
        async with asyncio.timeout(30):
            while "running" in _VERDICT.findall((proof := await site.get(path)).text):
                pass
        assert _VERDICT.findall(proof.text) == ["failed"]
        assert "the reset was refused" in proof.text
        assert "Group unsubscribed does not exist" in proof.text
        # The group is free for the next reset.
        assert _EXPECTED.search((await site.get(page)).text) is not None
    assert await offset_of(cluster, queue, "unsubscribed") == 3


async def test_a_reset_does_not_begin_if_its_record_cannot_be_written(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = await store_offset(cluster, "unwritten")
    page = PAGE.replace(GROUP, "unwritten")
    async with dashboard(cluster.namesrv_address, history=tmp_path) as site:
        fields = await preview(site, page)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail_full)
            answered = await confirm(site, fields, page)
        assert answered.status == 409
        assert "The history cannot be written: No space left on device." in refusal(answered)
        assert await offset_of(cluster, queue, "unwritten") == 3
        assert (await confirm(site, fields, page)).status == 303


async def test_an_address_without_a_reset_says_so(cluster: LocalCluster) -> None:
    async with dashboard(cluster.namesrv_address) as site:
        for name in ("20260101T000000-00000000", "..%2f..%2fetc%2fpasswd", "%3Cb%3E"):
            page = await site.get(f"/resets/{name}")
            assert page.status == 404
            assert "<b>" not in page.text
        assert "No group has been reset from this dashboard yet" in (await site.get("/resets")).text
