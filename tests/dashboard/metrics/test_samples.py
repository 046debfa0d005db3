"""What the brokers answered, as samples: slaves, broadcasting, retries and dead letters."""

from __future__ import annotations

import pytest

from rewindmq import AdminClient
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.metrics.questions import Questions
from rewindmq.dashboard.metrics.report import BrokerPlace, BrokerReport, TopicGroup, TopicSums
from rewindmq.dashboard.metrics.samples import Samples, add_reports
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.message_queue import MessageQueue
from tests.dashboard.metrics.exposition import Exposed, exposed, total


async def report(name: str = "a", broker_id: int = 0, **answers: object) -> BrokerReport:
    async with AdminClient("127.0.0.1:1") as admin:
        questions = Questions(ClusterSource(admin), 0)
    made = BrokerReport(BrokerPlace("c", name, broker_id, f"{name}-{broker_id}:1"), questions)
    for key, value in answers.items():
        setattr(made, key, value)
    return made


def stats(topic: str, stored: int, end: int) -> ConsumeStats:
    return ConsumeStats({MessageQueue(topic, "a", 0): OffsetWrapper(end, stored)})


def samples_of(*reports: BrokerReport, now_ms: int = 10_000) -> Exposed:
    samples = Samples()
    add_reports(samples, reports, now_ms)
    return exposed(samples.collect())


async def test_a_slave_says_how_far_it_is_behind_and_its_master_does_not() -> None:
    found = samples_of(
        await report(stats={"commitLogMaxOffset": "500"}),
        await report(broker_id=1, stats={"commitLogMaxOffset": "420"}),
    )
    assert len(found["rocketmq_broker_commitlog_diff"]) == 1
    assert total(found, "rocketmq_broker_commitlog_diff", brokerIP="a-1:1", broker="a") == 80


async def test_lag_is_summed_over_the_brokers_and_retries_stand_apart() -> None:
    groups = {"g": [stats("t", 2, 5), stats("%RETRY%g", 0, 1)]}
    found = samples_of(
        await report("a", stats={}, groups=groups),
        await report("b", stats={}, groups={"g": [stats("t", 0, 4)]}),
    )
    assert total(found, "rocketmq_group_diff", group="g", topic="t") == 7
    assert total(found, "rocketmq_group_retrydiff", group="g", topic="%RETRY%g") == 1
    assert total(found, "rocketmq_consumer_lag_messages", node_id="a", is_retry="true") == 1


async def test_a_sum_is_left_out_while_the_part_of_a_master_is_unknown() -> None:
    found = samples_of(
        await report("a", stats={}, groups={"g": [stats("t", 2, 5)]}),
        await report("b", stats={}, groups=None),
    )
    assert "rocketmq_group_diff" not in found
    assert total(found, "rocketmq_consumer_lag_messages", node_id="a") == 3


async def test_popped_messages_are_counted_for_brokers_that_count_them() -> None:
    name = "rocketmq_consumer_inflight_messages"
    popped = stats("t", 5, 5)
    for queue_id in (1, 2):
        popped.offset_table[MessageQueue("t", "a", queue_id)] = OffsetWrapper(9, 9, pop_inflight=queue_id)
    groups = {"g": [popped, stats("%RETRY%g_t", 0, 1)]}
    found = samples_of(await report(stats={"popRevive_0": "0,0"}, groups=groups))
    assert total(found, name, topic="t", consumer_group="g", is_retry="false") == 3
    assert total(found, name, topic="%RETRY%g_t", is_retry="true") == 0
    assert name not in samples_of(await report(stats={}, groups=groups))


async def test_the_revive_topic_and_timers_say_how_far_they_are_behind() -> None:
    found = samples_of(
        await report(
            stats={
                "popRevive_0": "12,3400",
                "popRevive_7": "1,20",
                "popRevive_odd": "many",
                "timerOffsetBehind": "4",
                "timerCongestNum": "1000000",
                "timerReadBehind": "2",
            }
        )
    )
    assert total(found, "rocketmq_pop_revive_lag", node_id="a", queue_id="0") == 12
    assert total(found, "rocketmq_pop_revive_latency", queue_id="0") == 3400
    assert total(found, "rocketmq_pop_revive_lag") == 13
    assert total(found, "rocketmq_timer_enqueue_lag", node_id="a") == 4
    assert total(found, "rocketmq_timer_dequeue_lag", node_id="a") == 1_000_000
    assert total(found, "rocketmq_timer_dequeue_latency", node_id="a") == 2_000


async def test_a_broadcasting_group_has_no_lag_as_its_consumers_keep_the_offsets() -> None:
    members = ConsumerConnection(message_model=MessageModel.BROADCASTING)
    found = samples_of(await report(stats={}, groups={"g": [stats("t", 0, 5)]}, members={"g": members}))
    assert "rocketmq_group_diff" not in found


async def test_a_topic_of_dead_letters_is_shown_by_its_group() -> None:
    found = samples_of(await report(stats={}, topics={"%DLQ%g": TopicSums(9, 0)}))
    assert total(found, "rocketmq_topic_dlq_offset", cluster="c", broker="a", group="g") == 9
    assert "rocketmq_producer_offset" not in found


async def test_the_age_of_the_oldest_message_is_from_its_time_and_absent_without_messages() -> None:
    name = "rocketmq_storage_message_reserve_time"
    found = samples_of(await report(stats={"earliestMessageTimeStamp": "4000"}), now_ms=10_000)
    assert total(found, name, node_id="a") == 6000
    assert name not in samples_of(await report(stats={"earliestMessageTimeStamp": "-1"}))


async def test_fill_and_stalls_are_numbers_and_odd_texts_are_left_out() -> None:
    found = samples_of(
        await report(
            stats={
                "usageTopics": "12/25000",
                "usageOdd": "many",
                "eventLoopStallCount": "3",
                "eventLoopWorstStallMs": "84.0",
            }
        )
    )
    assert total(found, "rewindmq_usage", table="Topics") == 12
    assert total(found, "rewindmq_usage_limit", table="Topics") == 25_000
    assert len(found["rewindmq_usage"]) == 1
    assert total(found, "rewindmq_event_loop_stalls_total") == 3
    assert total(found, "rewindmq_event_loop_longest_stall_seconds") == pytest.approx(0.084)


async def test_resets_are_those_of_a_topic_and_a_group() -> None:
    found = samples_of(await report(stats={}, fenced_resets={TopicGroup("t", "g"): 4}, fenced_commits=2))
    assert total(found, "rewindmq_fenced_resets_total", topic="t", group="g") == 4
    assert total(found, "rewindmq_fenced_commits_total", broker="a") == 2


def test_wrong_labels_are_an_error_of_the_program() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Samples().add("rewindmq_namesrv_up", ("one too many",), 1)
