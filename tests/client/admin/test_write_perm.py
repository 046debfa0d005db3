"""wipeWritePerm and addWritePerm: their output, and the effect on routes and producers."""

from __future__ import annotations

import argparse

import pytest

from rewindmq import AdminClient, Producer
from rewindmq.client.admin.commands import write_perm
from rewindmq.protocol.errors import ConnectError
from rewindmq.protocol.profile import Profile
from tests.client.admin.support import TOPIC
from tests.support.fixtures import played
from tests.support.stage import SimStage

UNREACHABLE = "10.0.0.77:9876"


async def perms(stage: SimStage) -> dict[str, int]:
    route = await (await stage.admin()).topics.examine_topic_route_info(TOPIC)
    return {queues.broker_name: queues.perm for queues in route.queue_datas}


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@played(brokers=2)
async def test_producers_leave_a_broker_until_its_write_permission_is_restored(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC)
    await stage.world.sleep(1)
    topics = len(stage.brokers["broker-a"].context.tables.topics.table().topic_config_table)
    assert await stage.run("wipeWritePerm -b broker-a") == [
        f"wipe write perm of broker[broker-a] in name server[{stage.namesrv}] OK, {topics}"
    ]
    assert await perms(stage) == {"broker-a": 4, "broker-b": 6}
    runtime = stage.world.runtime("10.0.9.2")
    async with Producer("senders", stage.namesrv, runtime=runtime, profile=profile) as producer:
        queues = await producer.fetch_publish_message_queues(TOPIC)
        assert {queue.broker_name for queue in queues} == {"broker-b"}
    assert await stage.run("addWritePerm -b broker-a") == [
        f"add write perm of broker[broker-a] in name server[{stage.namesrv}] OK, {topics}"
    ]
    assert await perms(stage) == {"broker-a": 6, "broker-b": 6}


@played()
async def test_wiping_an_unknown_broker_counts_0_topics(stage: SimStage) -> None:
    assert await stage.data("wipeWritePerm -b unknown") == {
        "brokerName": "unknown",
        "namesrvAddr": stage.namesrv,
        "topicCount": 0,
    }


async def print_wipe(admin: AdminClient, lines: list[str]) -> None:
    words = argparse.Namespace(brokerName=" broker-a ")
    async for printed in write_perm.WIPE_COMMAND.execute(admin, words):
        lines += printed.lines


@played()
async def test_every_name_server_is_asked_even_if_one_fails(stage: SimStage) -> None:
    await stage.create_topic(TOPIC)
    await stage.world.sleep(1)
    lines: list[str] = []
    runtime = stage.world.runtime("10.0.9.1")
    async with AdminClient(f"{UNREACHABLE};{stage.namesrv}", runtime=runtime) as admin:
        with pytest.raises(ConnectError):
            await print_wipe(admin, lines)
    failed, done = lines
    assert failed == f"wipe write perm of broker[broker-a] in name server[{UNREACHABLE}] Failed"
    assert done.startswith(f"wipe write perm of broker[broker-a] in name server[{stage.namesrv}] OK, ")
    assert await perms(stage) == {"broker-a": 4}
