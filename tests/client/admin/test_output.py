"""The output of each command, line by line (docs/spec/admin.md 3)."""

from __future__ import annotations

import pytest

from rewindmq import MessageQueue
from tests.client.admin.support import GROUP, TOPIC, new_consumer, start_mute_broker
from tests.support.fixtures import played
from tests.support.stage import SimStage

pytestmark = pytest.mark.usefixtures("utc")

# The printf formats of mqadmin.
EMPTY_QUEUE = "%-32s  %-4d  %-20d  %-20d    "
TOPICS_HEADER = "%-20s  %-48s  %-48s"
TOPICS = "%-20s  %-64s  %-64s"
CLIENTS = "%-36s %-22s %-10s %s"
SUBSCRIPTIONS = "%-20s %s"


async def consumed_topic(stage: SimStage) -> None:
    """Create a topic of two queues, and send three messages to each."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)


@played(brokers=2)
async def test_topic_route_prints_the_pretty_form_and_the_table(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    assert await stage.run("topicRoute -t TopicTest") == [
        "{",
        '\t"brokerDatas":[',
        "\t\t{",
        '\t\t\t"brokerAddrs":{0:"10.0.1.1:10911"',
        "\t\t\t},",
        '\t\t\t"brokerName":"broker-a",',
        '\t\t\t"cluster":"DefaultCluster"',
        "\t\t},",
        "\t\t{",
        '\t\t\t"brokerAddrs":{0:"10.0.1.2:10911"',
        "\t\t\t},",
        '\t\t\t"brokerName":"broker-b",',
        '\t\t\t"cluster":"DefaultCluster"',
        "\t\t}",
        "\t],",
        '\t"filterServerTable":{},',
        '\t"queueDatas":[',
        "\t\t{",
        '\t\t\t"brokerName":"broker-a",',
        '\t\t\t"perm":6,',
        '\t\t\t"readQueueNums":2,',
        '\t\t\t"topicSysFlag":0,',
        '\t\t\t"writeQueueNums":2',
        "\t\t},",
        "\t\t{",
        '\t\t\t"brokerName":"broker-b",',
        '\t\t\t"perm":6,',
        '\t\t\t"readQueueNums":2,',
        '\t\t\t"topicSysFlag":0,',
        '\t\t\t"writeQueueNums":2',
        "\t\t}",
        "\t]",
        "}",
    ]
    form = "%-45s %-32s %-50s %-10s %-11s %-5s"
    assert await stage.run("topicRoute -t TopicTest -l") == [
        form % ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"),
        form % ("DefaultCluster", "broker-a", "{0=10.0.1.1:10911}", 2, 2, 6),
        form % ("DefaultCluster", "broker-b", "{0=10.0.1.2:10911}", 2, 2, 6),
        "-" * 158,
        form % ("Total:", 2, "", 4, 4, ""),
    ]


@played()
async def test_topic_status_prints_bounds_and_the_newest_store_time(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 3)
    await stage.send(1, TOPIC)
    last = (await (await stage.admin()).topics.examine_topic_stats("TopicTest")).offset_table
    times = [entry.last_update_timestamp % 60_000 for _, entry in sorted(last.items())]
    form = "%-32s  %-4s  %-20s  %-20s    %s"
    stamps = [f"2023-11-14 22:13:{time // 1000:02d},{time % 1000:03d}" for time in times]
    assert await stage.run("topicStatus -t TopicTest") == [
        form % ("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"),
        *(form % ("broker-a", queue_id, 0, 1, stamps[queue_id]) for queue_id in range(3)),
    ]


@played()
async def test_topic_status_leaves_the_time_of_an_empty_queue_blank(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    assert (await stage.run("topicStatus -t TopicTest"))[1] == (EMPTY_QUEUE % ("broker-a", 0, 0, 0))


@played()
async def test_topic_list_prints_names_and_with_c_clusters_and_groups(stage: SimStage) -> None:
    await consumed_topic(stage)
    async with new_consumer(stage):
        await stage.world.sleep(1)
        names = await stage.run("topicList")
        assert "TopicTest" in names
        assert "%RETRY%rewinders" in names
        lines = await stage.run("topicList -c")
        assert lines[0] == TOPICS_HEADER % ("#Cluster Name", "#Topic", "#Consumer Group")
        assert TOPICS % ("DefaultCluster", "TopicTest", "rewinders") in lines
        assert TOPICS % ("DefaultCluster", "TBW102", "") in lines
        assert not any("%RETRY%" in line for line in lines)


@played(brokers=2)
async def test_update_topic_prints_each_broker_and_the_settings(stage: SimStage) -> None:
    assert await stage.run("updateTopic -c DefaultCluster -t Orders -r 4") == [
        "create topic to 10.0.1.1:10911 success.",
        "create topic to 10.0.1.2:10911 success.",
        (
            "TopicConfig [topicName=Orders, readQueueNums=4, writeQueueNums=8, perm=RW-, "
            "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
        ),
    ]
    route = await (await stage.admin()).topics.examine_topic_route_info("Orders")
    assert sorted((q.broker_name, q.read_queue_nums, q.write_queue_nums) for q in route.queue_datas) == [
        ("broker-a", 4, 8),
        ("broker-b", 4, 8),
    ]


@played(brokers=2)
async def test_update_topic_at_one_broker_with_flags_and_order(stage: SimStage) -> None:
    assert await stage.run("updateTopic -b 10.0.1.2:10911 -t Orders -p 4 -o true -u TRUE -s true") == [
        "create topic to 10.0.1.2:10911 success.",
        "set broker orderConf. isOrder=true, orderConf=[broker-b:8]",
        (
            "TopicConfig [topicName=Orders, readQueueNums=8, writeQueueNums=8, perm=R--, "
            "topicFilterType=SINGLE_TAG, topicSysFlag=3, order=true]"
        ),
    ]
    route = await (await stage.admin()).topics.examine_topic_route_info("Orders")
    assert [(queue.broker_name, queue.perm) for queue in route.queue_datas] == [("broker-b", 4)]


@played(brokers=2)
async def test_cluster_list_prints_brokers_with_their_load(stage: SimStage) -> None:
    form = "%-16s  %-22s  %-4s  %-22s %-16s %19s %19s %10s %5s %6s"
    header, *rows = await stage.run("clusterList")
    assert header == form % (
        *("#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version"),
        *("#InTPS(LOAD)", "#OutTPS(LOAD)", "#PCWait(ms)", "#Hour", "#SPACE"),
    )
    load = "     0.00(0,0ms)"
    for row, name, address in zip(
        rows, ("broker-a", "broker-b"), ("10.0.1.1:10911", "10.0.1.2:10911"), strict=True
    ):
        *_, hours, space = row.split()
        assert row == form % (
            *("DefaultCluster", name, 0, address, "V4_9_4"),
            *(load, load, 0, hours, space),
        )
        assert len(space.partition(".")[2]) == 4
        assert hours == "0.00"


@played()
async def test_cluster_list_m_prints_message_counts(stage: SimStage) -> None:
    await consumed_topic(stage)
    form = "%-16s  %-32s %14s %14s %14s %14s"
    assert await stage.run("clusterList -m") == [
        form
        % (
            "#Cluster Name",
            "#Broker Name",
            "#InTotalYest",
            "#OutTotalYest",
            "#InTotalToday",
            "#OutTotalToday",
        ),
        form % ("DefaultCluster", "broker-a", 0, 0, 6, 0),
    ]


@played()
async def test_cluster_list_prints_zeros_for_a_broker_that_does_not_answer(stage: SimStage) -> None:
    await start_mute_broker(stage, "broker-b")
    rows = await stage.run("clusterList")
    assert [row.split()[1] for row in rows[1:]] == ["broker-a", "broker-b"]
    assert rows[2].split()[3:] == ["10.0.1.99:10911", "0.00(,ms)", "0.00(,ms)", "0.00", "0.0000"]


PROGRESS = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s"
PROGRESS_IP = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s  %s"


@played()
async def test_consumer_progress_of_one_group(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
    stats = (await (await stage.admin()).topics.examine_topic_stats("TopicTest")).offset_table
    queue = MessageQueue("TopicTest", "broker-a", 0)
    assert stage.stored_offset(queue, GROUP) == 3
    await stage.send(1, TOPIC)
    lines = await stage.run("consumerProgress -g rewinders")
    assert lines[0] == PROGRESS % (
        *("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff"),
        "#LastTime",
    )
    seconds = [stats[queue._replace(queue_id=i)].last_update_timestamp // 1000 % 60 for i in range(2)]
    own = [line for line in lines if line.startswith("TopicTest")]
    assert own == [
        PROGRESS % ("TopicTest", "broker-a", i, 4, 3, 1, f"2023-11-14 22:13:{seconds[i]:02d}")
        for i in range(2)
    ]
    assert PROGRESS % ("%RETRY%rewinders", "broker-a", 0, 0, 0, 0, "N/A") in lines
    assert lines[-3] == ""
    assert lines[-2].startswith("Consume TPS: ")
    assert len(lines[-2].partition(".")[2]) == 2
    assert lines[-1] == "Diff Total: 2"


@played()
async def test_consumer_progress_prints_NA_for_a_queue_without_a_reported_consumer(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(1, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
    lines = await stage.run("consumerProgress -g rewinders -s true")
    assert lines[0] == PROGRESS_IP % (
        *("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Client IP", "#Diff"),
        "#LastTime",
    )
    assert next(line for line in lines if line.startswith("TopicTest")).split()[3:7] == [
        "1",
        "1",
        "NA",
        "0",
    ]


@played()
async def test_consumer_progress_of_all_groups(stage: SimStage) -> None:
    await consumed_topic(stage)
    async with new_consumer(stage, "gone"):
        await stage.world.sleep(20)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        form = "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s"
        lines = await stage.run("consumerProgress")
        assert lines[0] == form % (
            *("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS"),
            "#Diff Total",
        )
        assert lines[1] == form % ("gone", 0, "OFFLINE", "", "", 0, 0)
        columns = lines[2].split()
        assert columns[:5] == ["rewinders", "1", "V4_9_4", "PUSH", "CLUSTERING"]
        assert columns[-1] == "0"
        assert len(lines) == 3


@played()
async def test_consumer_connection_prints_consumers_and_subscriptions(stage: SimStage) -> None:
    await consumed_topic(stage)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(1)
        connection = await (await stage.admin()).groups.examine_consumer_connection_info("rewinders")
        address = connection.connection_set[0].client_addr
        assert await stage.run("consumerConnection -g rewinders") == [
            CLIENTS % ("#ClientId", "#ClientAddr", "#Language", "#Version"),
            CLIENTS % (consumer.client_id, address, "PYTHON", "V4_9_4"),
            "",
            "Below is subscription:",
            SUBSCRIPTIONS % ("#Topic", "#SubExpression"),
            SUBSCRIPTIONS % ("%RETRY%rewinders", "*"),
            SUBSCRIPTIONS % ("TopicTest", "*"),
            "",
            "ConsumeType: CONSUME_PASSIVELY",
            "MessageModel: CLUSTERING",
            "ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET",
        ]


ONLINE = "%-40s  %-40s  %-40s"


@played()
async def test_reset_offset_by_time_online_prints_sentence_and_table(stage: SimStage) -> None:
    await consumed_topic(stage)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        assert await stage.run("resetOffsetByTime -g rewinders -t TopicTest -s 1000") == [
            (
                "rollback consumer offset by specified group[rewinders], topic[TopicTest], force[true], "
                "timestamp(string)[1000], timestamp(long)[1000]"
            ),
            ONLINE % ("#brokerName", "#queueId", "#offset"),
            ONLINE % ("broker-a", 0, 0),
            ONLINE % ("broker-a", 1, 0),
        ]


@played()
async def test_skip_accumulated_message_online_prints_the_table_alone(stage: SimStage) -> None:
    await consumed_topic(stage)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        assert await stage.run("skipAccumulatedMessage -g rewinders -t TopicTest") == [
            ONLINE % ("#brokerName", "#queueId", "#offset"),
            ONLINE % ("broker-a", 0, 3),
            ONLINE % ("broker-a", 1, 3),
        ]


WRITTEN = "  ".join(["%-20s"] * 6)
WRITTEN_HEADER = WRITTEN % (
    *("#brokerName", "#queueId", "#brokerOffset", "#consumerOffset"),
    *("#timestampOffset", "#rollbackOffset"),
)


@played()
async def test_both_reset_commands_fall_back_to_the_six_column_table(stage: SimStage) -> None:
    await consumed_topic(stage)
    async with new_consumer(stage):
        await stage.world.sleep(20)
    await stage.world.sleep(1)
    assert await stage.run("resetOffsetByTime -g rewinders -t TopicTest -s 1970-01-01#00:00:01:500") == [
        (
            "rollback consumer offset by specified consumerGroup[rewinders], topic[TopicTest], "
            "force[true], timestamp(string)[1970-01-01#00:00:01:500], timestamp(long)[1500]"
        ),
        WRITTEN_HEADER,
        WRITTEN % ("broker-a", 0, 3, 3, 0, 0),
        WRITTEN % ("broker-a", 1, 3, 3, 0, 0),
    ]
    assert await stage.run("skipAccumulatedMessage -g rewinders -t TopicTest -f false") == [
        WRITTEN_HEADER,
        WRITTEN % ("broker-a", 0, 3, 0, 3, 0),
        WRITTEN % ("broker-a", 1, 3, 0, 3, 0),
    ]
    assert await stage.run("skipAccumulatedMessage -g rewinders -t TopicTest") == [
        WRITTEN_HEADER,
        WRITTEN % ("broker-a", 0, 3, 0, 3, 3),
        WRITTEN % ("broker-a", 1, 3, 0, 3, 3),
    ]
