"""``QueueLevelConsumerManager``: consumerOrderInfo.json, and what is forgotten."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.pop.orderly.queue_level_consumer_manager import QueueLevelConsumerManager
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.race.sim import World
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.failing_disk import FailingDisk

FILE: Final = Path("/store/config/consumerOrderInfo.json")
BACKUP: Final = FILE.with_name(FILE.name + ".bak")


class Managed:
    """A manager with its tables, a disk and the queues that became free."""

    def __init__(self, world: World, disk: FailingDisk | None = None) -> None:
        self.runtime = world.runtime("10.0.0.1")
        now_ms = self.runtime.clock.now_ms
        self.failing = disk or FailingDisk(now_ms)
        config = BrokerConfig(store_path_root_dir="/store")
        self.topics = TopicConfigManager(config, self._file("topics.json"), now_ms)
        self.groups = SubscriptionGroupManager(self._file("subscriptionGroup.json"), now_ms, auto_create=True)
        self.topics.update(TopicConfig("T", read_queue_nums=2, write_queue_nums=2, perm=6))
        self.groups.find("G")
        self.free: list[tuple[float, int]] = []
        self.epoch = 0
        self.manager = QueueLevelConsumerManager(
            self.runtime,
            self._file(FILE.name),
            self.topics,
            self.groups,
            lambda group, topic, queue_id: self.epoch,
            lambda topic, group, queue_id: self.free.append((round(world.now, 3), queue_id)),
        )
        self.schedule = Schedule(self.runtime.timers)
        self.manager.load()
        self.manager.begin(self.schedule)

    def _file(self, name: str) -> ConfigFile:
        return ConfigFile(FILE.with_name(name), self.failing.disk)

    def pop(self, queue_id: int = 0, *offsets: int, topic: str = "T", seconds: int = 60) -> int:
        """Pop messages as attempt "a" and return the POP time."""
        now = self.runtime.clock.now_ms()
        self.manager.update("a", topic, "G", queue_id, now, seconds * 1_000, offsets or (5,))
        return now

    def is_blocked(self, queue_id: int = 0, topic: str = "T") -> bool:
        return self.manager.is_blocked("b", topic, "G", queue_id, 1_000)

    @property
    def text(self) -> str:
        return (self.failing.disk.read(FILE) or b"").decode()

    async def stop(self) -> None:
        self.schedule.close()
        await self.manager.close()


def play(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario in a world of its own."""
    world = World(0)
    world.run(scenario(world))


def test_a_restart_keeps_what_was_saved_and_wakes_at_the_end() -> None:
    async def scenario(world: World) -> None:
        first = Managed(world)
        popped = first.pop(0, 5, 6)
        first.manager.commit_and_next("T", "G", 0, 5, popped)
        await world.sleep(10.5)
        assert '"cm":1' in first.text
        first.pop(1)
        first.schedule.close()
        # Killed: the second queue was not saved yet.
        second = Managed(world, first.failing)
        assert (second.is_blocked(0), second.is_blocked(1)) == (True, False)
        assert second.manager.commit_and_next("T", "G", 0, 6, popped) == 7
        third_pop = second.pop(1)
        await second.stop()
        third = Managed(world, first.failing)
        assert (third.is_blocked(0), third.is_blocked(1)) == (False, True)
        await world.sleep(70)
        assert third.free == [((third_pop - EPOCH_MS) / 1_000 + 60, 1)]
        await third.stop()

    play(scenario)


def test_the_file_is_written_after_a_change_only() -> None:
    async def scenario(world: World) -> None:
        managed = Managed(world)
        await world.sleep(25)
        assert managed.text == ""
        managed.pop()
        await world.sleep(10)
        first = managed.text
        managed.failing.fail(errno.EIO, "write", "replace")
        await world.sleep(30)
        assert managed.failing.failures == {}
        assert managed.text == first
        await managed.stop()

    play(scenario)


def test_a_failing_disk_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        managed = Managed(world)
        managed.failing.fail(errno.ENOSPC, "write")
        managed.pop()
        await world.sleep(10.5)
        assert "can not save order infos, will try again: cannot save" in caplog.text
        managed.failing.mend()
        await world.sleep(10)
        assert '"T@G"' in managed.text
        await managed.stop()

    play(scenario)


@pytest.mark.parametrize("torn", ["", "garbage", '{"table":{"T@G":{0:{"o":[5]', '{"table":5}', "[]"])
def test_a_torn_file_is_replaced_by_its_backup(torn: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        first = Managed(world)
        first.pop()
        await world.sleep(10.5)
        first.failing.disk.write(BACKUP, first.text.encode())
        first.failing.disk.write(FILE, torn.encode())
        first.schedule.close()
        second = Managed(world, first.failing)
        assert second.is_blocked()
        assert f"using {BACKUP}, which is one save older" in caplog.text
        second.pop(1)
        await second.stop()
        assert '"popTime"' in (second.failing.disk.read(BACKUP) or b"").decode()

    play(scenario)


def test_without_a_readable_file_the_broker_starts_and_says_what_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        first = Managed(world)
        for path in (FILE, BACKUP):
            first.failing.disk.write(path, b'{"table":{"T@G":{"x":{}}}}')
        first.schedule.close()
        second = Managed(world, first.failing)
        assert not second.is_blocked()
        assert [record.levelno for record in caplog.records if "no order infos" in record.message] == [
            logging.ERROR
        ]
        assert "messages that consumers have in flight are delivered again" in caplog.text
        second.pop()
        await second.stop()
        assert '"T@G"' in second.text

    play(scenario)


def test_queues_that_are_gone_or_idle_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(world: World) -> None:
        managed = Managed(world)
        managed.topics.update(TopicConfig("Gone", read_queue_nums=1, write_queue_nums=1, perm=6))
        managed.pop(0)
        managed.pop(1)
        managed.pop(0, topic="Gone")
        managed.pop(0, topic="Odd@Name")
        await world.sleep(10.5)
        assert len(managed.manager) == 4
        managed.topics.delete("Gone")
        managed.topics.update(TopicConfig("T", read_queue_nums=1, write_queue_nums=1, perm=6))
        await world.sleep(10)
        assert "order info of Gone@G, queue 0, removed: the topic does not exist" in caplog.text
        assert "order info of T@G, queue 1, removed: the queue does not exist" in caplog.text
        assert len(managed.manager) == 2
        await world.sleep(86_350)
        assert len(managed.manager) == 2
        await world.sleep(60)
        assert "order info of T@G, queue 0, removed: nothing was popped for a day" in caplog.text
        assert len(managed.manager) == 1
        managed.pop(0)
        managed.groups.delete("G")
        await managed.stop()
        assert "the group does not exist" in caplog.text
        assert '"Odd@Name@G":{' in managed.text
        assert '"T@G"' not in managed.text

    play(scenario)


def test_a_reset_ends_the_block_and_its_timer() -> None:
    async def scenario(world: World) -> None:
        managed = Managed(world)
        popped = managed.pop()
        managed.manager.clear_block("T", "G", 0)
        assert not managed.is_blocked()
        # As in RocketMQ, an ack to a queue without an order info commits.
        assert managed.manager.commit_and_next("T", "G", 0, 5, popped) == 6
        await world.sleep(100)
        assert managed.free == []
        await managed.stop()

    play(scenario)


def test_the_end_moves_with_changes_and_acks() -> None:
    async def scenario(world: World) -> None:
        managed = Managed(world)
        popped = managed.pop(0, 5, 6, 7)
        change = managed.manager.update_next_visible_time
        change("T", "G", 0, 5, popped, popped + 1_000)
        change("T", "G", 0, 6, popped, popped + 3_000)
        change("T", "G", 0, 7, popped, popped + 2_000)
        await world.sleep(2.5)
        assert (managed.free, managed.is_blocked()) == ([], True)
        managed.manager.commit_and_next("T", "G", 0, 6, popped)
        assert not managed.is_blocked()
        await world.sleep(0.001)
        assert managed.free == [(2.5, 0)]
        await managed.stop()

    play(scenario)
