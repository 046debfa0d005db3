"""Time of each page of the dashboard, at a broker with many topics, groups and queues."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from rewindmq import AdminClient, LocalCluster
from rewindmq.broker.store import BatchEntry, MessageStore, StoreConfig, StoredMessage
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import Settings

TOPICS = 1_000
GROUPS = 1_000
# Of each topic. Each group has consumed one topic.
QUEUES = 100
_BUSY_TOPICS = 10
_MESSAGES = 32
_BODY = b'{"order": 1}'
_BUSY, _GROUP = "topic-0007", "group-0007"
PAGES = {
    "clusters": "/",
    "one broker": "/brokers/broker-a/0",
    "topics": "/topics",
    "topics by name": "/topics?q=99",
    "one topic": f"/topics/{_BUSY}",
    "its groups": f"/topics/{_BUSY}/groups",
    "its newest messages": f"/topics/{_BUSY}/messages",
    "its messages by key": f"/topics/{_BUSY}/messages?by=key&q=key-3",
    "its messages by time": f"/topics/{_BUSY}/messages?by=time&at=0",
    "one message": f"/topics/{_BUSY}/messages/broker-a/3/1",
    "groups": "/groups",
    "one group": f"/groups/{_GROUP}",
    "its consumers": f"/groups/{_GROUP}/consumers",
    "its dead letters": f"/groups/{_GROUP}/dead-letters",
    "its fenced commits": f"/groups/{_GROUP}/fenced",
}


@contextlib.contextmanager
def large_cluster() -> Iterator[LocalCluster]:
    """Run a cluster of one broker with all topics and offsets, and messages in ten of the topics."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as name:
        directory = Path(name)
        store = directory / "broker-a" / "store"
        _put_messages(store)
        _write_tables(store / "config")
        with LocalCluster(1, directory=directory, start_seconds=120.0) as cluster:
            yield cluster


def _write_tables(config: Path) -> None:
    config.mkdir(parents=True, exist_ok=True)
    names = [(f"topic-{number:04}", QUEUES) for number in range(TOPICS)]
    names += [(f"%RETRY%group-{number:04}", 1) for number in range(GROUPS)]
    topics = {
        name: {"topicName": name, "readQueueNums": count, "writeQueueNums": count, "perm": 6}
        for name, count in names
    }
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    offsets = {
        f"topic-{number:04}@group-{number:04}": dict.fromkeys(range(QUEUES), _MESSAGES // 2)
        for number in range(GROUPS)
    }
    (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))


def _put_messages(root: Path) -> None:
    store = MessageStore(root, StoreConfig(), lambda: time.time_ns() // 1_000_000)
    store.open()
    for topic in range(_BUSY_TOPICS):
        for queue in range(QUEUES):
            entries = [
                BatchEntry(_BODY, b"KEYS\x01key-%d\x02TAGS\x01blue" % number, 0, 0)
                for number in range(_MESSAGES)
            ]
            store.put_batch(StoredMessage(f"topic-{topic:04}", queue, b""), entries)
    store.close()


async def milliseconds(namesrv: str) -> dict[str, float]:
    """Return the time of each page, from the request to the last byte, by the page's name."""
    async with (
        AdminClient(namesrv) as admin,
        serving(make_app(ClusterSource(admin), Settings("bench")), "127.0.0.1", 0) as url,
    ):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        # The first page opens the connections and compiles the templates.
        for path in PAGES.values():
            await asyncio.to_thread(_get, connection, path)
        times = {}
        for name, path in PAGES.items():
            began = time.perf_counter()
            text = await asyncio.to_thread(_get, connection, path)
            times[name] = (time.perf_counter() - began) * 1e3
            assert 'role="alert"' not in text, f"{path}: {text}"
        connection.close()
        return times


def _get(connection: http.client.HTTPConnection, path: str) -> str:
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == 200, f"{path}: {response.status}"
    return text
