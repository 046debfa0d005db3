"""Windows of a minute, an hour and a day, with figures computed by hand from RocketMQ's formula.

Source: 4.9.7 and 5.3.3 ``StatsItem#computeStatsData``, ``StatsItemSet``, ``BrokerStatsManager``.
"""

from __future__ import annotations

import pytest

from rewindmq.broker.stats import item_set
from rewindmq.broker.stats.item import StatsSnapshot
from rewindmq.broker.stats.item_set import FULL_SET_IDLE_SECONDS
from rewindmq.broker.stats.manager import SAMPLE_SECONDS, BrokerStatsManager, StatsData
from rewindmq.protocol.remoting.slices.run import run_at_once

NOTHING = StatsSnapshot(0, 0.0, 0.0)
HOUR = 360


class Counted:
    """A manager and the clock that samples it."""

    def __init__(self, *, deletes: bool = True, idle_minutes: int = -1) -> None:
        self.manager = BrokerStatsManager("C", deletes=deletes, idle_minutes=idle_minutes, has_added=True)
        self.puts = 0
        self.gets = 0
        self._samples = 0

    def put(self, topic: str, count: int = 1, size: int = 0) -> None:
        self.manager.topic_puts[topic].add(count, size)
        self.puts += count

    def get(
        self, topic: str, group: str, count: int, *, queue_id: int = 0, size: int = 0, ms: int = 0
    ) -> None:
        self.manager.pulls.count(topic, group, queue_id, count, size)
        if ms:
            self.manager.pulls.add_latency(ms)
        self.gets += count

    def pass_samples(self, count: int = 1) -> None:
        """Let ``count`` times 10 s pass."""
        for _ in range(count):
            self._samples += 1
            run_at_once(self.manager.sample(self._samples * SAMPLE_SECONDS, self.puts, self.gets))

    def find(self, name: str, key: str) -> StatsData | None:
        return self.manager.find(name, key, self.puts, self.gets)

    def minute(self, name: str, key: str) -> StatsSnapshot:
        found = self.find(name, key)
        assert found is not None
        return found.minute

    def keys(self, name: str, *keys: str) -> list[str]:
        """Those of the keys that have a figure."""
        return [key for key in keys if self.find(name, key) is not None]


def test_a_new_item_shows_nothing_until_the_next_sample() -> None:
    counted = Counted()
    counted.pass_samples()
    counted.put("T")
    assert counted.find("TOPIC_PUT_NUMS", "T") == StatsData(NOTHING, NOTHING, NOTHING)


def test_the_first_sample_counts_for_ten_seconds() -> None:
    counted = Counted()
    counted.put("T", 1, size=100)
    counted.put("T", 5, size=200)
    counted.pass_samples()
    assert counted.minute("TOPIC_PUT_NUMS", "T") == (6, 0.6, 3.0)
    assert counted.minute("TOPIC_PUT_SIZE", "T") == (300, 30.0, 150.0)


def test_a_minute_is_that_between_seven_samples() -> None:
    counted = Counted()
    counted.get("T", "G", 30)
    counted.pass_samples()
    assert counted.minute("GROUP_GET_NUMS", "T@G") == (30, 3.0, 30.0)
    counted.pass_samples(2)
    assert counted.minute("GROUP_GET_NUMS", "T@G") == (30, 1.0, 30.0)
    counted.get("T", "G", 60)
    counted.pass_samples(3)
    assert counted.minute("GROUP_GET_NUMS", "T@G") == (90, 1.5, 45.0)
    counted.pass_samples()
    assert counted.minute("GROUP_GET_NUMS", "T@G") == (60, 1.0, 60.0)
    assert counted.manager.group_get_tps("T", "G") == 1.0
    counted.pass_samples(3)
    assert counted.minute("GROUP_GET_NUMS", "T@G") == NOTHING
    assert counted.manager.group_get_tps("T", "other") == 0.0


def test_an_hour_appears_after_ten_minutes_and_a_day_after_an_hour() -> None:
    counted = Counted()
    counted.put("T", 1_200)
    counted.pass_samples(59)
    found = counted.find("TOPIC_PUT_NUMS", "T")
    assert found is not None
    assert (found.hour, found.day) == (NOTHING, NOTHING)
    counted.pass_samples()
    found = counted.find("TOPIC_PUT_NUMS", "T")
    assert found is not None
    assert (found.hour, found.day) == ((1_200, 2.0, 1_200.0), NOTHING)
    counted.pass_samples(HOUR - 60)
    found = counted.find("TOPIC_PUT_NUMS", "T")
    assert found is not None
    assert found.minute == NOTHING
    # Seven samples from the second 0 to 3600.
    assert found.hour == (1_200, 1_200 / 3_600, 1_200.0)
    assert found.day == (1_200, 1_200 / 3_600, 1_200.0)


def test_a_day_is_that_between_25_samples() -> None:
    counted = Counted()
    counted.put("T", 3_600)
    counted.pass_samples(HOUR)
    counted.put("T", 3_600)
    counted.pass_samples(23 * HOUR)
    found = counted.find("TOPIC_PUT_NUMS", "T")
    assert found is not None
    assert found.day == (7_200, 7_200 / 86_400, 3_600.0)
    counted.pass_samples(HOUR)
    found = counted.find("TOPIC_PUT_NUMS", "T")
    assert found is not None
    assert found.day == (3_600, 3_600 / 86_400, 3_600.0)


def test_a_latency_is_the_mean_of_the_pulls_from_one_queue() -> None:
    counted = Counted()
    for ms in (0, 0, 4, 8):
        counted.get("T", "G", 32, queue_id=3, ms=ms)
    counted.get("T", "G", 32, queue_id=1)
    counted.pass_samples()
    assert counted.minute("GROUP_GET_LATENCY", "3@T@G") == (12, 1.2, 3.0)
    assert counted.minute("GROUP_GET_LATENCY", "1@T@G") == NOTHING
    assert counted.minute("GROUP_GET_NUMS", "T@G").sum == 160


def test_the_broker_counts_messages_of_all_topics_but_no_requests() -> None:
    counted = Counted()
    assert counted.find("BROKER_PUT_NUMS", "C") is None
    counted.put("T", 4)
    counted.put("U", 6)
    counted.get("T", "G", 20)
    counted.pass_samples()
    assert counted.minute("BROKER_PUT_NUMS", "C") == (10, 1.0, 0.0)
    assert counted.minute("BROKER_GET_NUMS", "C") == (20, 2.0, 0.0)


def test_delayed_messages_are_counted_by_queue_and_as_if_a_group_pulled_them() -> None:
    counted = Counted()
    counted.manager.count_delayed(2, 50)
    counted.manager.count_delivered(2, 60)
    counted.manager.count_send_back("T", "G")
    counted.pass_samples()
    assert counted.minute("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@2").sum == 1
    assert counted.minute("QUEUE_PUT_SIZE", "SCHEDULE_TOPIC_XXXX@2").sum == 50
    assert counted.minute("QUEUE_GET_SIZE", "SCHEDULE_TOPIC_XXXX@2@SCHEDULE_CONSUMER").sum == 60
    assert counted.minute("GROUP_GET_NUMS", "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER").sum == 1
    assert counted.minute("SNDBCK_PUT_NUMS", "T@G") == (1, 0.1, 1.0)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("TOPIC_PUT_NUMS", "U"),
        ("TOPIC_PUT_NUMS", ""),
        ("topic_put_nums", "T"),
        ("NO_SUCH", "T"),
        ("", ""),
        ("GROUP_GET_NUMS", "T"),
        ("GROUP_GET_NUMS", "G@T"),
        ("GROUP_GET_LATENCY", "T@G"),
        ("GROUP_GET_FALL_SIZE", "0@T@G"),
        ("COMMERCIAL_SEND_TIMES", "T@G"),
        ("BROKER_PUT_NUMS", "other"),
    ],
)
def test_an_unknown_name_or_key_has_no_figures_and_gets_none(name: str, key: str) -> None:
    counted = Counted()
    counted.put("T")
    counted.get("T", "G", 1)
    assert counted.find(name, key) is None
    assert counted.find(name, key) is None


def test_the_items_of_a_deleted_topic_go_and_come_back_empty() -> None:
    counted = Counted()
    for topic in ("T", "T2"):
        counted.put(topic)
        counted.get(topic, "G", 1)
        counted.manager.count_send_back(topic, "G")
    counted.pass_samples()
    counted.manager.on_topic_deleted("T")
    assert counted.keys("TOPIC_PUT_NUMS", "T", "T2") == ["T2"]
    for name in ("GROUP_GET_NUMS", "GROUP_GET_SIZE", "SNDBCK_PUT_NUMS"):
        assert counted.keys(name, "T@G", "T2@G") == ["T2@G"]
    assert counted.keys("GROUP_GET_LATENCY", "0@T@G", "0@T2@G") == ["0@T2@G"]
    counted.get("T", "G", 7)
    counted.pass_samples()
    assert counted.minute("GROUP_GET_NUMS", "T@G").sum == 7


def test_the_messages_of_a_removed_system_topic_stay_in_no_ordinary_count() -> None:
    """A topic's item goes with the topic; what it counted never counts as an ordinary topic's."""
    counted = Counted()
    for topic in ("T", "rmq_sys_own"):
        counted.put(topic, 3)
        counted.get(topic, "G", 2)
    name, system = "BROKER_{}_NUMS_WITHOUT_SYSTEM_TOPIC", "rmq_sys_own"
    counted.pass_samples()
    assert [counted.minute(name.format(what), "C").sum for what in ("PUT", "GET")] == [3, 2]
    counted.manager.on_topic_deleted(system)
    counted.put(system, 4)
    counted.get(system, "G", 4)
    counted.put("T", 1)
    counted.pass_samples()
    assert [counted.minute(name.format(what), "C").sum for what in ("PUT", "GET")] == [4, 2]


def test_a_registration_time_is_the_mean_of_the_groups_of_heartbeats() -> None:
    counted = Counted()
    for ms in (3, 5):
        counted.manager.count_consumer_register(ms)
    counted.manager.count_producer_register(2)
    counted.pass_samples()
    assert counted.minute("CONSUMER_REGISTER_TIME", "C") == StatsSnapshot(8, 0.8, 4.0)
    assert counted.minute("PRODUCER_REGISTER_TIME", "C") == StatsSnapshot(2, 0.2, 2.0)


def test_the_items_of_a_deleted_group_go() -> None:
    counted = Counted()
    counted.put("T")
    for group in ("G", "H"):
        counted.get("T", group, 1)
        counted.manager.count_send_back("T", group)
    counted.manager.on_group_deleted("G")
    for name in ("GROUP_GET_NUMS", "SNDBCK_PUT_NUMS"):
        assert counted.keys(name, "T@G", "T@H") == ["T@H"]
    assert counted.keys("GROUP_GET_LATENCY", "0@T@G", "0@T@H") == ["0@T@H"]
    assert counted.keys("TOPIC_PUT_NUMS", "T") == ["T"]


def test_items_stay_where_autoDeleteUnusedStats_is_off() -> None:
    counted = Counted(deletes=False)
    counted.put("T")
    counted.get("T", "G", 1)
    counted.manager.on_topic_deleted("T")
    counted.manager.on_group_deleted("G")
    assert counted.keys("TOPIC_PUT_NUMS", "T") == ["T"]
    assert counted.keys("GROUP_GET_NUMS", "T@G") == ["T@G"]


@pytest.mark.parametrize(
    ("minutes", "stays", "goes"),
    # Measured every ten minutes. Up to 10 minutes mean 30, as in RocketMQ.
    [(0, 30, 40), (10, 30, 40), (20, 20, 30), (60, 60, 70)],
)
def test_idle_items_go_after_maxStatsIdleTimeInMinutes(minutes: int, stays: int, goes: int) -> None:
    counted = Counted(idle_minutes=minutes)
    counted.put("T")
    counted.pass_samples(60)
    counted.pass_samples(stays * 6)
    assert counted.keys("TOPIC_PUT_NUMS", "T") == ["T"]
    counted.pass_samples((goes - stays) * 6)
    assert counted.keys("TOPIC_PUT_NUMS", "T") == []


def test_idle_items_stay_by_default() -> None:
    counted = Counted()
    counted.put("T")
    counted.pass_samples(48 * HOUR)
    assert counted.keys("TOPIC_PUT_NUMS", "T") == ["T"]


def test_keys_beyond_the_limit_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_set, "MAX_STATS_ITEMS", 2)
    counted = Counted()
    for group in ("A", "B", "C", "A"):
        counted.get("T", group, 10)
    for topic in ("T", "U", "V"):
        counted.put(topic)
    counted.pass_samples()
    assert [counted.manager.group_get_tps("T", group) for group in "ABC"] == [2.0, 1.0, 0.0]
    assert counted.keys("GROUP_GET_NUMS", "T@A", "T@B", "T@C") == ["T@A", "T@B"]
    assert counted.keys("TOPIC_PUT_NUMS", "T", "U", "V") == ["T", "U"]
    # The broker's own figures have no keys of peers.
    assert counted.minute("BROKER_GET_NUMS", "C").sum == 40


def test_a_full_set_drops_keys_that_are_idle_for_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_set, "MAX_STATS_ITEMS", 2)
    counted = Counted()
    counted.put("idle")
    ten_minutes = int(600 / SAMPLE_SECONDS)
    for _ in range(int(FULL_SET_IDLE_SECONDS / 600) + 2):
        counted.put("busy")
        counted.put("late")
        counted.get("idle", "late", 1)
        counted.pass_samples(ten_minutes)
    assert counted.keys("TOPIC_PUT_NUMS", "busy", "idle", "late") == ["busy"]
    counted.put("late")
    assert counted.keys("TOPIC_PUT_NUMS", "busy", "idle", "late") == ["busy", "late"]
