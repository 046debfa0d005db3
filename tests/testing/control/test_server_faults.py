"""The control port at a running cluster: full disks, clock travel, and snapshots in files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from rewindmq import AdminClient, ClusterError, LocalCluster, Message, Producer, RewindMQError
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.up.members import Members
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.testing.control.port import ControlPort
from tests.cluster.up.running_up import RunningUp, running_up
from tests.testing.control.http_client import HttpClient
from tests.testing.control.test_api import done, refused

# The longest level, 2 hours.
DELAY_LEVEL: Final = 18
DELAY_SECONDS: Final = 7_200


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=1, time_scale=0.05) as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the port's files; the first save makes it."""
    return tmp_path / "snapshots"


@contextlib.asynccontextmanager
async def port_of(cluster: LocalCluster, folder: Path | None = None) -> AsyncIterator[HttpClient]:
    """Serve a cluster's port, from the start of ``rewindmq up`` to its end."""
    members = Members(AsyncLocalCluster(cluster))
    async with ControlPort(0, 0, snapshot_dir=folder).beside(cluster, members) as entrances:
        token = (cluster.directory / "control.token").read_text().strip()
        yield HttpClient(entrances.control, token)


def port_at(up: RunningUp) -> HttpClient:
    """The control port of ``rewindmq up``."""
    entrances = up.ready["entrances"]
    return HttpClient(entrances["control"], Path(entrances["token_file"]).read_text().strip())


@pytest_asyncio.fixture
async def port(cluster: LocalCluster, folder: Path) -> AsyncIterator[HttpClient]:
    async with port_of(cluster, folder) as client:
        yield client


async def send(cluster: LocalCluster, message: Message) -> None:
    async with cluster.producer("shop") as producer:
        await producer.send(message, timeout=60)


async def bodies(cluster: LocalCluster, topic: str) -> list[bytes]:
    """Return the bodies of the messages in a topic's first queue."""
    async with cluster.admin() as admin:
        pulled = await admin.messages.pull_messages(MessageQueue(topic, "broker-a", 0), 0, 32)
        return [message.body for message in pulled.messages]


async def until_there(cluster: LocalCluster, topic: str, body: bytes) -> None:
    """Wait until a topic has a message; the broker holds each pull until one comes."""
    async with cluster.lite_pull_consumer("reader", consume_from="first") as consumer:
        consumer.assign([MessageQueue(topic, "broker-a", 0)])
        await consumer.seek_to_begin(MessageQueue(topic, "broker-a", 0))
        found: list[bytes] = []
        while body not in found:
            found += [message.body for message in await consumer.poll(60)]


async def test_a_broker_acts_as_if_its_disk_were_full_until_the_test_ends(
    cluster: LocalCluster, port: HttpClient
) -> None:
    await done(port, "/v1/topics", name="full", queues=1)
    shown = await done(port, "/v1/disk_full", broker="broker-a")
    assert shown == {"full_disks": ["broker-a"], "ahead_seconds": 0.0}
    with pytest.raises(RewindMQError, match="disk is full"):
        await send(cluster, Message("full", b"refused"))
    assert (await done(port, "/v1/disk_full", broker="broker-a", full=False))["full_disks"] == []
    await send(cluster, Message("full", b"1"))
    await done(port, "/v1/disk_full", broker="broker-a")
    assert (await port.get("/v1/cluster")).value["full_disks"] == ["broker-a"]
    assert (await done(port, "/v1/settle"))["full_disks"] == ["broker-a"]
    await send(cluster, Message("full", b"2"))
    assert await bodies(cluster, "full") == [b"1", b"2"]


async def test_a_paused_broker_has_neither(port: HttpClient) -> None:
    await done(port, "/v1/members/broker-a/pause")
    assert "broker-a is paused" in await refused(port, 409, "/v1/disk_full", broker="broker-a")
    assert "broker-a is paused" in await refused(port, 409, "/v1/travel", seconds=1)
    assert await done(port, "/v1/settle") == {
        "complaints": [],
        "holding": [],
        "restored": ["broker-a"],
        "full_disks": [],
        "ahead_seconds": 0.0,
    }


@pytest.mark.slow
async def test_what_is_due_after_a_travel_happens_and_the_end_of_the_test_undoes_it(
    cluster: LocalCluster, port: HttpClient
) -> None:
    await done(port, "/v1/topics", name="before", queues=1)
    await send(cluster, Message("before", b"later", delay_level=DELAY_LEVEL))
    assert await done(port, "/v1/travel", seconds=DELAY_SECONDS - 600) == {
        "full_disks": [],
        "ahead_seconds": DELAY_SECONDS - 600.0,
    }
    assert await bodies(cluster, "before") == []
    await done(port, "/v1/travel", seconds=600)
    assert (await port.get("/v1/cluster")).value["ahead_seconds"] == DELAY_SECONDS
    await until_there(cluster, "before", b"later")
    await send(cluster, Message("before", b"of the future"))
    assert (await done(port, "/v1/settle"))["ahead_seconds"] == DELAY_SECONDS
    assert cluster.ahead_ms == 0
    assert await bodies(cluster, "before") == []
    assert "before-travel" not in (await port.get("/v1/snapshots")).value["snapshots"]


@pytest.mark.slow
@pytest.mark.parametrize("end", [RunningUp.stop, lambda up: up.process.kill()], ids=["stopped", "killed"])
async def test_a_cluster_that_ends_during_a_travel_starts_before_it(
    end: Callable[[RunningUp], None], tmp_path: Path
) -> None:
    directory, words = tmp_path / "cluster", ("-p", "0", "--control-port", "0", "--topic", "orders:1")
    with running_up(directory, *words) as up:
        async with Producer("shop", up.namesrv) as producer:
            await producer.send(Message("orders", b"kept"))
            await done(port_at(up), "/v1/travel", seconds=DELAY_SECONDS)
            await producer.send(Message("orders", b"of the future"))
        end(up)
    with running_up(directory, *words) as up:
        assert (await port_at(up).get("/v1/snapshots")).value["snapshots"] == []
        async with AdminClient(up.namesrv) as admin:
            pulled = await admin.messages.pull_messages(MessageQueue("orders", "broker-a", 0), 0, 32)
            assert [message.body for message in pulled.messages] == [b"kept"]
        up.stop()


@pytest.mark.slow
async def test_a_snapshot_is_saved_to_a_file_of_the_folder_and_loaded_by_another_cluster(
    cluster: LocalCluster, port: HttpClient, folder: Path
) -> None:
    await done(port, "/v1/topics", name="saved", queues=1)
    await send(cluster, Message("saved", b"order 1"))
    await done(port, "/v1/snapshots", name="backlog")
    saved = await done(port, "/v1/snapshots/backlog/save", file="backlog.tar")
    assert saved == {"name": "backlog", "path": str(folder / "backlog.tar")}
    assert (await port.get("/v1/snapshots")).value["files"] == ["backlog.tar"]
    with LocalCluster(brokers=1, time_scale=0.05) as other:
        async with port_of(other, folder) as other_port:
            await done(other_port, "/v1/snapshots/orders/load", file="backlog.tar")
            await done(other_port, "/v1/snapshots/orders/restore")
            assert await bodies(other, "saved") == [b"order 1"]


async def test_files_outside_the_folder_are_neither_written_nor_read(
    cluster: LocalCluster, port: HttpClient, folder: Path, tmp_path: Path
) -> None:
    await done(port, "/v1/snapshots", name="kept")
    await done(port, "/v1/snapshots/kept/save", file="kept.tar")
    outside = tmp_path / "outside.tar"
    outside.write_bytes((folder / "kept.tar").read_bytes())
    (folder / "link.tar").symlink_to(outside)
    (folder / "folder.tar").mkdir()
    os.mkfifo(folder / "pipe.tar")
    for name in ("link.tar", "folder.tar", "pipe.tar"):
        for word in ("save", "load"):
            text = await refused(port, 409, f"/v1/snapshots/kept/{word}", file=name)
            assert text == f"{folder / name} is a link, or no file: choose another name"
    wrong = ("../outside.tar", "a/b.tar", ".tar", "kept.txt", "x\0.tar", "a" * 125 + ".tar")
    for name in (str(outside), *wrong):
        for word in ("save", "load"):
            text = await refused(port, 400, f"/v1/snapshots/kept/{word}", file=name)
            assert f"file is the name of a file in {folder}" in text
    assert (await port.get("/v1/snapshots")).value["files"] == ["kept.tar"]
    (folder / "kept.tar").write_bytes(b"no snapshot")
    assert "is not a snapshot" in await refused(port, 409, "/v1/snapshots/other/load", file="kept.tar")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            b'"profile":"v49"',
            b'"profile":"v4\xff"',
            "kept.tar is not a snapshot, or is damaged: 'utf-8' codec",
        ),
        (b"the order", b"an orders", "broker-a/commitlog/00000000000000000000 is not what was saved; save"),
    ],
)
async def test_a_damaged_file_is_refused_and_changes_nothing(
    cluster: LocalCluster, port: HttpClient, folder: Path, old: bytes, new: bytes, complaint: str
) -> None:
    await done(port, "/v1/topics", name="damaged", queues=1)
    await send(cluster, Message("damaged", b"the order"))
    await done(port, "/v1/snapshots", name="kept")
    path = folder / "kept.tar"
    await done(port, "/v1/snapshots/kept/save", file=path.name)
    path.write_bytes(path.read_bytes().replace(old, new))
    before = (await port.get("/v1/snapshots")).value
    assert complaint in await refused(port, 409, "/v1/snapshots/other/load", file=path.name)
    assert (await port.get("/v1/snapshots")).value == before
    assert "there is no snapshot" in await refused(port, 404, "/v1/snapshots/other/restore")


async def test_a_folder_that_is_a_file_is_refused_at_the_start(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="is not a folder: choose another --control-snapshot-dir"):
        async with port_of(cluster, tmp_path / "file"):
            raise AssertionError
