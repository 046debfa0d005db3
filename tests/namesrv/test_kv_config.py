"""The KV table and its file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rewindmq.namesrv import kv_config
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.kv_config import KVConfigManager
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.errors import ConfigError, RequestError
from rewindmq.protocol.header.namesrv import (
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
    RegisterBrokerResponseHeader,
)
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.remoting.workers import ThreadWorkers
from tests.support.hand_workers import HandWorkers
from tests.support.stage import ServerStage


@pytest.fixture
def workers() -> Iterator[ThreadWorkers]:
    pool = ThreadWorkers(max_workers=1)
    yield pool
    pool.close()


async def test_a_change_is_on_disk_and_read_back(tmp_path: Path, workers: ThreadWorkers) -> None:
    path = tmp_path / "namesrv" / "kvConfig.json"
    manager = KVConfigManager(path, workers)
    await manager.put("ORDER_TOPIC_CONFIG", "T", "broker-a:4")
    await manager.put("ns", "schlüssel", "wert")
    await manager.delete("ns", "schlüssel")
    assert json.loads(path.read_text()) == {
        "configTable": {"ORDER_TOPIC_CONFIG": {"T": "broker-a:4"}, "ns": {}}
    }
    again = KVConfigManager(path, workers)
    assert again.get("ORDER_TOPIC_CONFIG", "T") == "broker-a:4"
    assert again.namespace("ns") == {}
    assert again.namespace("other") is None
    assert [entry.name for entry in path.parent.iterdir()] == ["kvConfig.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"configTable":{"ns":1}}', '{"configTable":{"ns":{"k":1}}}']
)
def test_a_damaged_file_stops_the_start_and_stays(tmp_path: Path, text: str, workers: ThreadWorkers) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"kvConfig\.json") as caught:
        KVConfigManager(path, workers)
    assert "\n" not in str(caught.value)
    assert path.read_text() == text


async def test_a_file_that_cannot_be_written_refuses_and_keeps_the_old_value(
    tmp_path: Path, workers: ThreadWorkers
) -> None:
    blocker = tmp_path / "namesrv"
    path = blocker / "kvConfig.json"
    manager = KVConfigManager(path, workers)
    await manager.put("ns", "k", "old")
    path.unlink()
    blocker.rmdir()
    blocker.write_text("a file where the directory was")
    with pytest.raises(RequestError, match=r"could not write kvConfig\.json"):
        await manager.put("ns", "k", "new")
    with pytest.raises(RequestError, match=r"could not write kvConfig\.json"):
        await manager.delete("ns", "k")
    assert manager.get("ns", "k") == "old"


async def test_bounds(monkeypatch: pytest.MonkeyPatch, workers: ThreadWorkers) -> None:
    manager = KVConfigManager(None, workers)
    for namespace, key, value in (
        ("", "k", "v"),
        ("ns", "", "v"),
        ("n" * 256, "k", "v"),
        ("ns", "k" * 256, "v"),
        ("ns", "k", "v" * 32_768),
        ("ns", "k", "\ud800"),
    ):
        with pytest.raises(RequestError):
            await manager.put(namespace, key, value)
    assert manager.namespace("ns") is None
    monkeypatch.setattr(kv_config, "MAX_ENTRIES", 2)
    await manager.put("ns", "a", "1")
    await manager.put("ns", "b", "1")
    with pytest.raises(RequestError, match="2 config items"):
        await manager.put("other", "c", "1")
    await manager.put("ns", "a", "2")
    assert manager.get("ns", "a") == "2"


async def test_the_order_of_topics_never_outgrows_an_answer_to_a_registration(
    monkeypatch: pytest.MonkeyPatch, workers: ThreadWorkers
) -> None:
    manager = KVConfigManager(None, workers)
    monkeypatch.setattr(kv_config, "MAX_TABLE_BYTES", 60)
    await manager.put(kv_config.ORDER_TOPIC_CONFIG, "T", "broker-a:4;broker-b:4")
    with pytest.raises(RequestError, match="all config items together would have more than 60 bytes"):
        await manager.put(kv_config.ORDER_TOPIC_CONFIG, "U", "é" * 20)
    assert manager.get(kv_config.ORDER_TOPIC_CONFIG, "U") is None
    # A value of the same length may still replace it.
    await manager.put(kv_config.ORDER_TOPIC_CONFIG, "T", "broker-a:8;broker-b:8")


async def test_a_control_character_counts_as_in_the_answer(
    monkeypatch: pytest.MonkeyPatch, workers: ThreadWorkers
) -> None:
    manager = KVConfigManager(None, workers)
    monkeypatch.setattr(kv_config, "MAX_TABLE_BYTES", len("ns") + len("k") + len(r"\u0001") * 10)
    await manager.put("ns", "k", "\x01" * 10)
    with pytest.raises(RequestError, match="all config items together"):
        await manager.put("ns", "k", "\x01" * 10 + "x")
    await manager.delete("ns", "k")
    await manager.put("ns", "k", "x" * 60)


async def test_a_change_counts_when_it_is_in_the_file(tmp_path: Path) -> None:
    workers = HandWorkers()
    manager = KVConfigManager(tmp_path / "kvConfig.json", workers)
    putting = asyncio.ensure_future(manager.put("ns", "k", "v"))
    await asyncio.sleep(0)
    assert manager.namespace("ns") is None
    await workers.finish()
    await putting
    assert manager.get("ns", "k") == "v"


async def test_changes_that_arrive_during_a_write_share_the_next_one(tmp_path: Path) -> None:
    workers = HandWorkers()
    path = tmp_path / "kvConfig.json"
    manager = KVConfigManager(path, workers)
    first = asyncio.ensure_future(manager.put("ns", "first", "1"))
    await asyncio.sleep(0)
    others = asyncio.gather(
        manager.put("ns", "second", "2"), manager.delete("ns", "first"), manager.delete("ns", "first")
    )
    await asyncio.sleep(0)
    await workers.finish()
    await first
    assert manager.namespace("ns") == {"first": "1"}
    await workers.finish()
    await others
    assert manager.namespace("ns") == {"second": "2"}
    assert not workers.jobs
    assert json.loads(path.read_text()) == {"configTable": {"ns": {"second": "2"}}}


async def test_a_failed_write_refuses_its_changes_and_those_built_on_them(tmp_path: Path) -> None:
    workers = HandWorkers()
    manager = KVConfigManager(tmp_path / "kvConfig.json", workers)
    changes = [asyncio.ensure_future(manager.put("ns", key, "v")) for key in ("a", "b")]
    await asyncio.sleep(0)
    future, _ = workers.jobs.pop()
    future.set_exception(OSError(28, "No space left on device"))
    for change in changes:
        with pytest.raises(RequestError, match=r"could not write kvConfig\.json: No space left on device"):
            await change
    assert manager.namespace("ns") is None
    later = asyncio.ensure_future(manager.put("ns", "c", "v"))
    await asyncio.sleep(0)
    await workers.finish()
    await later
    assert manager.namespace("ns") == {"c": "v"}


async def test_a_change_takes_effect_although_its_caller_stops_waiting(tmp_path: Path) -> None:
    workers = HandWorkers()
    manager = KVConfigManager(tmp_path / "kvConfig.json", workers)
    putting = asyncio.ensure_future(manager.put("ns", "k", "v"))
    await asyncio.sleep(0)
    putting.cancel()
    closing = asyncio.ensure_future(manager.close())
    await asyncio.sleep(0)
    assert not closing.done()
    await workers.finish()
    await closing
    assert manager.get("ns", "k") == "v"


async def test_others_are_served_while_a_worker_writes_the_file(stage: ServerStage, tmp_path: Path) -> None:
    workers = HandWorkers()
    config = NamesrvConfig(listen_port=0, kv_config_path=str(tmp_path / "kvConfig.json"))
    namesrv = NameServer(replace(system_runtime(), workers=workers), config)
    await namesrv.start()
    stage.at_exit(namesrv.close)
    writer, other = stage.peer(address=namesrv.address), stage.peer("c2", address=namesrv.address)
    put = PutKVConfigRequestHeader(namespace="ns", key="k", value="v")
    putting = asyncio.ensure_future(writer.ask(RequestCode.PUT_KV_CONFIG, put))
    every = GetKVListByNamespaceRequestHeader(namespace="ns")
    await writer.cluster_info()
    assert (await other.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, every)).code == ResponseCode.QUERY_NOT_FOUND
    await workers.finish()
    (await putting).require_success()
    listed = await other.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, every)
    assert decode_body(listed, KVTable).table == {"k": "v"}


@pytest.mark.parametrize("pairs", [3, 2_000])
async def test_a_registration_returns_all_pairs_however_many_there_are(
    stage: ServerStage, pairs: int
) -> None:
    namesrv = await stage.start_namesrv()
    order = {f"T{number}": "broker-a:4" for number in range(pairs)}
    await asyncio.gather(
        *(namesrv.context.kv_configs.put(kv_config.ORDER_TOPIC_CONFIG, *pair) for pair in order.items())
    )
    broker = stage.peer()
    (await broker.register("10.0.0.1:1")).require_success()
    answer = await broker.register("10.0.0.2:1", broker_id=1)
    assert decode_body(answer, KVTable).table == order
    header = answer.decode_header(RegisterBrokerResponseHeader)
    assert header.master_addr == "10.0.0.1:1"
