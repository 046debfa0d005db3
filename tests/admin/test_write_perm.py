"""wipeWritePerm and addWritePerm: what they print, and what routes and producers make of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq.client import AdminClient, Producer
from rewindmq.client.admin.commands import write_perm
from rewindmq.protocol.errors import ConnectError
from rewindmq.protocol.profile import RELEASES, Profile
from tests.admin.conftest import NAMESRV, TOPIC

Play = Callable[..., None]
NOBODY = "10.0.0.77:9876"


async def perms(stage: Any) -> dict[str, int]:
    route = await (await stage.admin()).examine_topic_route_info(TOPIC)
    return {queues.broker_name: queues.perm for queues in route.queue_datas}


@pytest.mark.parametrize("profile", RELEASES)
def test_producers_leave_a_broker_without_write_permission_until_it_has_it_again(
    play: Play, profile: Profile
) -> None:
    async def scenario(stage: Any) -> None:
        await stage.create_topic()
        await stage.sleep(1)
        topics = len(stage.brokers["broker-a"].context.topics.table().topic_config_table)
        assert await stage.run("wipeWritePerm -b broker-a") == [
            f"wipe write perm of broker[broker-a] in name server[{NAMESRV}] OK, {topics}"
        ]
        assert await perms(stage) == {"broker-a": 4, "broker-b": 6}
        runtime = stage.world.runtime("10.0.9.2")
        async with Producer("senders", NAMESRV, runtime=runtime, profile=profile) as producer:
            queues = await producer.fetch_publish_message_queues(TOPIC)
            assert {queue.broker_name for queue in queues} == {"broker-b"}
        assert await stage.run("addWritePerm -b broker-a") == [
            f"add write perm of broker[broker-a] in name server[{NAMESRV}] OK, {topics}"
        ]
        assert await perms(stage) == {"broker-a": 6, "broker-b": 6}

    play(scenario, brokers=2, profile=profile)


def test_an_unknown_broker_has_no_topics(play: Play) -> None:
    async def scenario(stage: Any) -> None:
        assert await stage.data("wipeWritePerm -b nobody") == {
            "brokerName": "nobody",
            "namesrvAddr": NAMESRV,
            "topicCount": 0,
        }

    play(scenario)


async def print_wipe(admin: AdminClient, lines: list[str]) -> None:
    words = argparse.Namespace(brokerName=" broker-a ")
    async for printed in write_perm.WIPE_COMMAND.execute(admin, words):
        lines += printed.lines


def test_a_name_server_that_fails_does_not_keep_the_others_from_being_asked(play: Play) -> None:
    async def scenario(stage: Any) -> None:
        await stage.create_topic()
        await stage.sleep(1)
        lines: list[str] = []
        runtime = stage.world.runtime("10.0.9.1")
        async with AdminClient(f"{NOBODY};{NAMESRV}", runtime) as admin:
            with pytest.raises(ConnectError):
                await print_wipe(admin, lines)
        failed, done = lines
        assert failed == f"wipe write perm of broker[broker-a] in name server[{NOBODY}] Failed"
        assert done.startswith(f"wipe write perm of broker[broker-a] in name server[{NAMESRV}] OK, ")
        assert await perms(stage) == {"broker-a": 4}

    play(scenario)
