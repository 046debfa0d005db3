"""All files of a cluster are for their owner only, also where the umask allows more."""

from __future__ import annotations

import asyncio
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindmq import AdminClient, LocalCluster, Message, SendStatus
from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.header.namesrv import PutKVConfigRequestHeader
from rewindmq.protocol.remoting.runtime import Timers, system_runtime
from tests.support.peer import Peer
from tests.support.processes import WAIT_SECONDS

TIME_SCALE = 0.05
NOW = 1_700_000_000_000
# It does not compress, so that some of them fill a segment.
MESSAGE = Message("T", random.Random(0).randbytes(100_000), keys="key")
SETTINGS = {
    "brokerRole": "SYNC_MASTER",
    "mappedFileSizeCommitLog": 1 << 20,
    "maxHashSlotNum": 1_000,
    "maxIndexNum": 10_000,
}


@pytest.fixture(autouse=True)
def _umask_0() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


async def until_copied(admin: AdminClient, slave: str, timers: Timers) -> None:
    """Wait until a slave has the master's topics, which it asks for at intervals."""
    async with asyncio.timeout(WAIT_SECONDS):
        while "T" not in await admin.topics.broker_topics(slave):
            await timers.sleep(TIME_SCALE)


def modes(root: Path) -> dict[str, str]:
    """The mode of each path below ``root`` and of itself, as text: ``drwx------``."""
    paths = (root, *root.rglob("*"))
    return {str(path.relative_to(root)): stat.filemode(path.lstat().st_mode) for path in paths}


@pytest.mark.slow
async def test_after_work_all_files_of_a_cluster_are_private(tmp_path: Path) -> None:
    directory, events = tmp_path / "new" / "data", tmp_path / "events"
    events.mkdir()
    runtime = system_runtime()
    async with LocalCluster(
        brokers=1,
        slaves=1,
        directory=directory,
        time_scale=TIME_SCALE,
        broker_config=SETTINGS,
        events_directory=events,
    ) as cluster:
        async with cluster.admin() as admin, cluster.producer("p") as producer:
            async with asyncio.timeout(WAIT_SECONDS):
                for _ in range(20):
                    # Until the slave has connected, a send is stored without it.
                    while (
                        await producer.send(MESSAGE, timeout=WAIT_SECONDS)
                    ).status is not SendStatus.SEND_OK:
                        pass
            assert await admin.messages.query_message("T", "key", 1)
            await until_copied(admin, cluster.slaves["broker-a-s1"].address, runtime.timers)
        peer = Peer(runtime, cluster.namesrv_address)
        header = PutKVConfigRequestHeader("namespace", "key", "value")
        (await peer.ask(RequestCode.PUT_KV_CONFIG, header)).require_success()
        peer.address = cluster.brokers["broker-a"].address
        (await peer.commit(1)).require_success()
        await peer.client.close()
    runtime.workers.close()
    found = modes(directory)
    places = {"namesrv/kvConfig.json", "logs/namesrv.log", "broker-a/broker.conf"}
    places |= {"broker-a/store/config/consumerOffset.json", "broker-a/store/consumequeue/T/0/" + "0" * 20}
    for name in ("commitlog/00000000000001048576", "config/topics.json", "checkpoint", "lock"):
        places |= {f"broker-a/store/{name}", f"broker-a-s1/store/{name}"}
    assert places <= set(found)
    assert any(path.startswith("broker-a/store/index/") for path in found)
    assert set(found.values()) == {"drwx------", "-rw-------"}
    assert modes(tmp_path / "new")["."] == "drwx------"
    assert set(modes(events).values()) == {"drwxrwxrwx", "-rw-------"}


def test_an_existing_store_keeps_its_modes_and_new_files_are_private(tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = MessageStore(root, StoreConfig(), lambda: NOW)
    store.open()
    store.close()
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = modes(root)
    assert set(before.values()) == {"drwxr-xr-x", "-rw-r--r--"}
    store = MessageStore(root, StoreConfig(), lambda: NOW)
    store.open()
    while_open = modes(root)
    store.close()
    assert while_open == {**before, "abort": "-rw-------"}


def test_folders_are_private_with_all_their_parents(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b" / "c")
    make_private_folder(tmp_path / "a" / "b" / "c")
    assert set(modes(tmp_path / "a").values()) == {"drwx------"}
    (tmp_path / "wide").mkdir()
    make_private_folder(tmp_path / "wide")
    make_private_folder(tmp_path / "wide" / "inner")
    assert modes(tmp_path / "wide") == {".": "drwxrwxrwx", "inner": "drwx------"}
    with pytest.raises(FileExistsError):
        make_private_folder(_file(tmp_path / "file"))
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "file" / "inner")


def test_a_new_file_is_private_and_an_existing_one_keeps_its_mode(tmp_path: Path) -> None:
    for mode in ("wb", "xb", "ab"):
        with open_private(tmp_path / mode, mode) as file:
            file.write(b"1")
        assert modes(tmp_path)[mode] == "-rw-------"
    wide = _file(tmp_path / "wide")
    with open_private(wide, "ab") as file:
        file.write(b"2")
    assert (wide.read_bytes(), modes(tmp_path)["wide"]) == (b"12", "-rw-rw-rw-")
    with pytest.raises(FileExistsError):
        open_private(wide, "xb")


def _file(path: Path) -> Path:
    path.write_bytes(b"1")
    return path
