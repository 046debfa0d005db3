"""``rewindmq.sync``: blocking clients of a real cluster."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import rewindmq
from rewindmq import ClientError, ConsumeConcurrentlyStatus, Message, MessageExt, sync
from rewindmq.sync.blocking import SyncClient

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


@pytest.fixture(scope="module")
def cluster() -> Iterator[sync.LocalCluster]:
    with sync.LocalCluster(1, time_scale=0.05) as cluster:
        yield cluster


def test_a_message_is_sent_and_consumed_without_asyncio(cluster: sync.LocalCluster) -> None:
    got: list[bytes] = []
    done = threading.Event()

    def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        got.extend(message.body for message in messages)
        done.set()
        return SUCCESS

    consumer = cluster.push_consumer("sync-push", consume_from="first")
    consumer.subscribe("SyncPush")
    consumer.register_message_listener(listener)
    with cluster.producer("sync-producer") as producer, consumer:
        assert producer.is_running
        producer.send(Message("SyncPush", b"Hello"))
        assert done.wait(30)
    assert got == [b"Hello"]
    assert not producer.is_running


def test_many_threads_share_one_producer(cluster: sync.LocalCluster) -> None:
    with cluster.producer("sync-threads") as producer, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda n: producer.send(Message("SyncThreads", b"%d" % n), 30), range(80)))
    places = {(result.message_queue, result.queue_offset) for result in results}
    assert len(places) == 80


@pytest.mark.slow
def test_a_listener_may_send(cluster: sync.LocalCluster) -> None:
    """A plain listener runs on a worker thread, so it does not block the loop that it waits for."""
    done = threading.Event()
    with cluster.producer("sync-relay") as producer:

        def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            producer.send(Message("SyncRelayed", messages[0].body))
            done.set()
            return SUCCESS

        consumer = cluster.push_consumer("sync-relay", consume_from="first")
        consumer.subscribe("SyncRelay")
        consumer.register_message_listener(listener)
        with consumer:
            producer.send(Message("SyncRelay", b"x"))
            assert done.wait(30)


@pytest.mark.slow
def test_a_call_on_the_loop_itself_is_refused(cluster: sync.LocalCluster) -> None:
    """It would wait for itself for ever."""
    refused: list[str] = []
    done = threading.Event()
    with cluster.producer("sync-inner") as producer:

        async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            try:
                producer.send(Message("SyncInner2", b"x"))
            except ClientError as error:
                refused.append(str(error))
            done.set()
            return SUCCESS

        consumer = cluster.push_consumer("sync-inner", consume_from="first")
        consumer.subscribe("SyncInner")
        consumer.register_message_listener(listener)
        with consumer:
            producer.send(Message("SyncInner", b"x"))
            assert done.wait(30)
    assert "make the listener a plain function" in refused[0]


def test_pull_lite_pull_and_admin_clients_block(cluster: sync.LocalCluster) -> None:
    with cluster.producer("sync-pull") as producer, cluster.admin() as admin:
        sent = [producer.send(Message("SyncPull", b"%d" % n)) for n in range(8)]
        assert "SyncPull" in admin.topics.fetch_all_topic_list()
        assert admin.messages.max_offset(sent[0].message_queue) == 2
    with cluster.pull_consumer("sync-pull") as puller:
        queues = puller.fetch_subscribe_message_queues("SyncPull")
        bodies = [m.body for queue in queues for m in puller.pull(queue, "*", 0, 32).messages]
        assert sorted(bodies) == [b"%d" % n for n in range(8)]
        assert len(list(puller.replay("SyncPull", 0, 2**62))) == 8
    lite = cluster.lite_pull_consumer("sync-lite", consume_from="first")
    lite.subscribe("SyncPull")
    polled: list[bytes] = []
    with lite:
        while len(polled) < 8:
            polled += [message.body for message in lite.poll(5_000)]
    assert sorted(polled) == sorted(bodies)


def test_errors_are_those_of_the_asynchronous_clients(cluster: sync.LocalCluster) -> None:
    with pytest.raises(ClientError, match="CREATE_JUST"):
        cluster.producer("sync-errors").send(Message("T", b""))
    with pytest.raises(rewindmq.UnknownOptionError, match="namesrv_addr"):
        sync.Producer("P", namesrv_adr="x")  # type: ignore[call-arg]
    with pytest.raises(ClientError):
        sync.AdminClient("no address")


_FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
from rewindmq import ClientError, Message
from rewindmq.sync import LocalCluster, Producer
with LocalCluster(1) as cluster, cluster.producer("parent") as producer:
    producer.send(Message("T", b"parent"), 30)
    pid = os.fork()
    if pid == 0:
        try:
            producer.send(Message("T", b"x"))
        except ClientError as error:
            assert "after the fork" in str(error), error
            with Producer("child", cluster.namesrv_address) as own:
                own.send(Message("T", b"child"), 30)
            os._exit(42)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    producer.send(Message("T", b"parent again"), 30)
"""

_LEFT_RUNNING = """
import logging
from rewindmq import Message
from rewindmq.sync import Producer
logging.basicConfig()
producer = Producer("left", {address!r})
producer.start()
producer.send(Message("SyncLeft", b"x"))
print("sent")
"""


def _run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    # A busy machine may cause warnings in the log.
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_a_forked_process_has_clients_of_its_own() -> None:
    assert _run(_FORKED) == "42"


def test_a_client_left_running_does_not_keep_the_interpreter_from_its_end(cluster: sync.LocalCluster) -> None:
    assert _run(_LEFT_RUNNING.format(address=cluster.namesrv_address)) == "sent"


def _awaited(cls: type) -> set[str]:
    """Public coroutine methods that the class documents for applications."""
    return {name for name, value in inspect.getmembers(cls, inspect.iscoroutinefunction) if name[0] != "_"}


# What only the client's own parts call, as the classes' docstrings say.
_INTERNAL = {
    "begin_again", "consume_message_directly", "give_up_queue", "max_offset", "min_offset", "persist_offsets",
    "rebalance", "reset", "running_info", "search_offset", "start_offset", "stored_offset",
}  # fmt: skip


@pytest.mark.parametrize("name", sync.__all__)
def test_every_method_that_an_application_awaits_exists(name: str) -> None:
    blocking, awaited = getattr(sync, name), getattr(rewindmq, name)
    if not issubclass(blocking, SyncClient):
        return
    internal = set() if name == "AdminClient" else _INTERNAL
    missing = {method for method in _awaited(awaited) - internal if not hasattr(blocking, method)}
    assert missing == set()
    coroutines: list[Any] = [v for _, v in inspect.getmembers(blocking, inspect.iscoroutinefunction)]
    assert coroutines == []


@pytest.mark.parametrize("part", ["topics", "groups", "messages", "resets", "brokers"])
def test_every_method_of_a_part_of_the_admin_client_exists(part: str) -> None:
    wanted = _awaited(type(getattr(rewindmq.AdminClient("127.0.0.1:1"), part)))
    blocking = type(getattr(sync.AdminClient("127.0.0.1:1"), part))
    assert len(wanted) > 5
    assert {method for method in wanted if not hasattr(blocking, method)} == set()


def test_a_client_used_on_another_loop_says_so(cluster: sync.LocalCluster) -> None:
    """Its connections belong to the loop that started it; it would wait for ever."""
    client = rewindmq.Producer("two-loops", cluster.namesrv_address, time_scale=0.05)
    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(client.start())
        with pytest.raises(ClientError, match="was started on another event loop"):
            asyncio.run(client.send(Message("T", b"x")))
        first.run_until_complete(client.shutdown())
    finally:
        first.close()


def test_the_thread_is_named_and_does_not_outlive_the_process() -> None:
    threads = [thread for thread in threading.enumerate() if thread.name == "rewindmq-sync"]
    assert len(threads) <= 1
    assert all(thread.daemon for thread in threads)
