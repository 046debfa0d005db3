"""statsAll prints rates and counts as mqadmin does (4.9.7 ``StatsAllSubCommand``)."""

from __future__ import annotations

import pytest

from rewindmq.client.admin.commands.stats_all import last_24_hours
from rewindmq.protocol.body.stats import BrokerStatsData, BrokerStatsItem
from rewindmq.protocol.errors import ResponseError
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage

# The printf formats of mqadmin.
HEADING = "%-64s  %-64s %12s %11s %11s %14s %14s"
CONSUMED = "%-64s  %-64s %12d %11.2f %11.2f %14d %14d"
NOT_CONSUMED = "%-64s  %-64s %12d %11.2f %11s %14d %14s"
TITLES = ("#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour", "#OutMsg24Hour")


@played(brokers=2)
async def test_a_line_has_the_sums_of_all_brokers(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        await stage.send(3, TOPIC)
        await stage.world.sleep(21)
    await stage.send(1, TOPIC)
    assert await stage.run(f"statsAll -t {TOPIC}") == [
        HEADING % TITLES,
        CONSUMED % (TOPIC, GROUP, 4, 0.6, 0.6, 12, 12),
    ]


@played()
async def test_a_topic_without_a_group_says_so_and_a_leaves_it_out_if_it_is_idle(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.create_topic("Idle", 1)
    await stage.send(5, TOPIC)
    await stage.world.sleep(21)
    lines = await stage.run("statsAll")
    busy = NOT_CONSUMED % (TOPIC, "", 0, 0.25, "", 5, "NO_CONSUMER")
    assert lines[0] == HEADING % TITLES
    assert busy in lines
    assert NOT_CONSUMED % ("Idle", "", 0, 0.0, "", 0, "NO_CONSUMER") in lines
    assert await stage.run("statsAll -a") == [lines[0], busy]


@played()
async def test_retry_and_dead_letter_topics_are_left_out(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    async with new_consumer(stage):
        await stage.world.sleep(1)
        assert f"%RETRY%{GROUP}" in await stage.run("topicList")
        assert not any("%RETRY%" in line for line in await stage.run("statsAll"))


@pytest.mark.parametrize(
    ("minute", "hour", "day", "shown"), [(0, 0, 0, 0), (3, 0, 0, 3), (3, 20, 0, 20), (0, 20, 500, 500)]
)
def test_the_count_of_24_hours_is_of_the_longest_window_with_a_figure(
    minute: int, hour: int, day: int, shown: int
) -> None:
    windows = (BrokerStatsItem(minute), BrokerStatsItem(hour), BrokerStatsItem(day))
    assert last_24_hours(BrokerStatsData(*windows)) == shown


@played()
async def test_an_unknown_topic_is_an_error(stage: SimStage) -> None:
    with pytest.raises(ResponseError, match="nix"):
        await stage.run("statsAll -t nix")
