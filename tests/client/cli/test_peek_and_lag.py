"""``rewindmq peek`` and ``rewindmq lag`` as processes of their own, at a real cluster."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, Message, MessageQueue, PushConsumer
from rewindmq.sync import LocalCluster, Producer

TIMEOUT = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(1, time_scale=0.1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def producer(cluster: LocalCluster) -> Iterator[Producer]:
    with cluster.producer("peek-producer") as producer:
        yield producer


def run(cluster: LocalCluster, *words: str) -> tuple[int, list[str], str]:
    """Run a command; return its exit code, its lines and its standard error."""
    command = [sys.executable, "-m", "rewindmq", *words, "-n", cluster.namesrv_address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    return done.returncode, done.stdout.splitlines(), done.stderr


def objects(cluster: LocalCluster, *words: str) -> list[dict[str, Any]]:
    code, lines, err = run(cluster, *words, "--json")
    assert (code, err) == (0, "")
    return [json.loads(line) for line in lines]


def start(cluster: LocalCluster, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rewindmq", *words, "-n", cluster.namesrv_address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    with process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, err


def test_peek_prints_the_newest_messages_the_oldest_of_them_first(
    cluster: LocalCluster, producer: Producer
) -> None:
    for number in range(12):
        producer.send(Message("PeekNewest", b"%d" % number))
    assert [int(row["body"]) for row in objects(cluster, "peek", "PeekNewest")] == list(range(2, 12))
    assert [int(row["body"]) for row in objects(cluster, "peek", "PeekNewest", "-c", "3")] == [9, 10, 11]
    assert sorted(int(row["body"]) for row in objects(cluster, "peek", "PeekNewest", "--all")) == list(
        range(12)
    )


def test_peek_shows_place_tags_keys_and_the_escaped_body(cluster: LocalCluster, producer: Producer) -> None:
    queue = MessageQueue("PeekLine", "broker-a", 0)
    producer.send(Message("PeekLine", b"first"))
    result = producer.send(Message("PeekLine", b"two\nlines \x1b[31m", tags="paid", keys="k1"), queue=queue)
    code, lines, _ = run(cluster, "peek", "PeekLine", "-c", "1")
    assert code == 0
    (line,) = lines
    assert f"broker-a/0 @{result.queue_offset} tags=paid keys=k1  two\\nlines \\x1b[31m" in line


def test_peek_writes_a_body_that_is_no_text_as_base64(cluster: LocalCluster, producer: Producer) -> None:
    producer.send(Message("PeekBinary", b"\xff\x00"))
    (row,) = objects(cluster, "peek", "PeekBinary")
    assert base64.b64decode(row["bodyBase64"]) == b"\xff\x00"
    assert "body" not in row


def test_peek_finds_messages_by_key(cluster: LocalCluster, producer: Producer) -> None:
    for number in range(4):
        producer.send(Message("PeekKey", b"%d" % number, keys=f"order-{number % 2} all"))
    assert [row["body"] for row in objects(cluster, "peek", "PeekKey", "--key", "order-1")] == ["1", "3"]
    assert objects(cluster, "peek", "PeekKey", "--key", "none") == []
    # The index has the same hash for this key in both topics.
    for topic in ("AaPeek", "BBPeek"):
        producer.send(Message(topic, topic.encode(), keys="k"))
    assert [row["topic"] for row in objects(cluster, "peek", "AaPeek", "--key", "k")] == ["AaPeek"]


def test_peek_follows_new_messages_until_interrupted(cluster: LocalCluster, producer: Producer) -> None:
    producer.send(Message("PeekFollow", b"old"))
    process = start(cluster, "peek", "PeekFollow", "--follow", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["body"] == "old"
    producer.send(Message("PeekFollow", b"new"))
    assert json.loads(process.stdout.readline())["body"] == "new"
    assert finish(process) == (130, "")


def test_peek_leaves_no_group_and_no_offset_behind(cluster: LocalCluster, producer: Producer) -> None:
    producer.send(Message("PeekNothing", b"x"))
    run(cluster, "peek", "PeekNothing")
    with cluster.admin() as admin:
        assert admin.groups.query_topic_consume_by_who("PeekNothing") == []
        groups = admin.groups.subscription_groups(cluster.brokers["broker-a"].address)
        assert not [name for name in groups if "peek" in name.lower()]


def test_a_topic_that_does_not_exist_is_named_in_one_line(cluster: LocalCluster) -> None:
    code, lines, err = run(cluster, "peek", "NoSuchTopic")
    assert (code, lines) == (1, [])
    assert err.startswith("rewindmq peek: CODE: 17")
    assert len(err.splitlines()) == 1


def test_lag_counts_what_a_group_has_not_consumed(cluster: LocalCluster, producer: Producer) -> None:
    queue = MessageQueue("LagTopic", "broker-a", 0)
    producer.send(Message("LagTopic", b"0"))
    with cluster.pull_consumer("lag-group") as consumer:
        for number in range(1, 5):
            producer.send(Message("LagTopic", b"%d" % number), queue=queue)
        consumer.update_consume_offset(queue, 1)
        consumer.persist_consume_offset(queue)
        with cluster.admin() as admin:
            end = admin.messages.max_offset(queue)
    (looked,) = objects(cluster, "lag", "-g", "lag-group")
    (group,) = looked["groups"]
    of_queue = next(row for row in group["queues"] if row["queue"] == 0)
    assert (of_queue["stored"], of_queue["end"], of_queue["lag"]) == (1, end, end - 1)
    assert group["lag"] == sum(row["lag"] for row in group["queues"])
    code, lines, _ = run(cluster, "lag", "-g", "lag-group")
    assert code == 0
    assert lines[0].split() == ["topic", "queue", "stored", "end", "lag"]
    assert lines[-1] == f"0 consumers, lag {group['lag']}"
    groups = run(cluster, "lag")[1]
    assert ["lag-group", "0", str(group["lag"])] in [line.split() for line in groups]


def test_lag_looks_again_until_interrupted(cluster: LocalCluster) -> None:
    process = start(cluster, "lag", "--watch", "0.05", "--json")
    assert process.stdout is not None
    first, second = (json.loads(process.stdout.readline()) for _ in range(2))
    assert second["at"] > first["at"]
    assert finish(process) == (130, "")


def test_lag_finds_a_group_by_its_offsets_also_if_it_never_connected(
    cluster: LocalCluster, producer: Producer
) -> None:
    queue = MessageQueue("LagCopied", "broker-a", 0)
    producer.send(Message("LagCopied", b"0"))
    producer.send(Message("LagCopied", b"1"), queue=queue)
    with cluster.pull_consumer("lag-source") as consumer, cluster.admin() as admin:
        consumer.update_consume_offset(queue, 1)
        consumer.persist_consume_offset(queue)
        admin.resets.clone_group_offset("lag-source", "lag-copy", "LagCopied")
    (looked,) = objects(cluster, "lag", "-g", "lag-copy")
    (group,) = looked["groups"]
    assert ("LagCopied", 0, 1) in [(row["topic"], row["queue"], row["stored"]) for row in group["queues"]]
    assert ["lag-copy", "0", str(group["lag"])] in [line.split() for line in run(cluster, "lag")[1]]


def test_lag_counts_no_old_offsets_of_a_group_that_is_broadcasting_now(
    cluster: LocalCluster, producer: Producer, tmp_path: Path
) -> None:
    queue = MessageQueue("LagBroadcast", "broker-a", 0)
    producer.send(Message("LagBroadcast", b"0"))
    producer.send(Message("LagBroadcast", b"1"), queue=queue)
    with cluster.pull_consumer("lag-broadcast") as consumer:
        consumer.update_consume_offset(queue, 0)
        consumer.persist_consume_offset(queue)
    assert run(cluster, "lag", "-g", "lag-broadcast")[1][-1] == "0 consumers, lag 2"
    pushed = cluster.push_consumer("lag-broadcast", message_model="broadcasting", offset_root=tmp_path)
    pushed.subscribe("LagBroadcast", "*")
    pushed.register_message_listener(lambda _: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    with pushed:
        (looked,) = objects(cluster, "lag", "-g", "lag-broadcast")
        (group,) = looked["groups"]
        assert (group["consumers"], group["lag"], group["queues"]) == (1, None, [])
        assert "the consumers are broadcasting" in group["notes"][0]
        last, note = run(cluster, "lag", "-g", "lag-broadcast")[1]
        assert last == "1 consumer, lag -"
        assert "the consumers are broadcasting" in note
        lines = run(cluster, "lag")[1]
        assert ["lag-broadcast", "1", "-"] in [line.split() for line in lines]
        assert any(line.startswith("lag-broadcast: the consumers are broadcasting") for line in lines)
        err = run(cluster, "admin", "consumerProgress", "-g", "lag-broadcast")[2]
        assert "the consumers are broadcasting" in err


async def test_lag_names_a_client_id_that_two_consumers_share(
    cluster: LocalCluster, producer: Producer
) -> None:
    producer.send(Message("LagShared", b"0"))
    async with contextlib.AsyncExitStack() as stack:
        # Each seed gives a runtime, and so a connection, of its own.
        for seed in (1, 2):
            consumer = PushConsumer(
                "lag-shared", cluster.namesrv_address, instance_name="same", seed=seed, time_scale=0.1
            )
            consumer.subscribe("LagShared", "*")
            consumer.register_message_listener(lambda _: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
            await stack.enter_async_context(consumer)
        (looked,) = await asyncio.to_thread(objects, cluster, "lag", "-g", "lag-shared")
        lines = (await asyncio.to_thread(run, cluster, "lag", "-g", "lag-shared"))[1]
    (group,) = looked["groups"]
    assert group["consumers"] == 2
    for text in (group["notes"][0], lines[-1]):
        assert text.startswith("2 consumers have the client id 127.0.0.1@same (127.0.0.1:")


@pytest.mark.parametrize("name", ["nobody-at-all", "no group", "%RETRY%x", ""])
def test_lag_of_an_unknown_group_is_one_line(cluster: LocalCluster, name: str) -> None:
    code, lines, err = run(cluster, "lag", "-g", name)
    assert (code, lines) == (1, [])
    assert err.startswith(f"rewindmq lag: CODE: 17  DESC: there is no group {name!r}: ")
    assert len(err.splitlines()) == 1


def test_a_closed_pipe_ends_peek(cluster: LocalCluster, producer: Producer) -> None:
    for _ in range(3):
        producer.send(Message("PeekPipe", b"x" * 100_000))
    with start(cluster, "peek", "PeekPipe", "--follow") as process:
        assert process.stdout is not None
        process.stdout.close()
        producer.send(Message("PeekPipe", b"more"))
        assert process.wait(TIMEOUT) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""
