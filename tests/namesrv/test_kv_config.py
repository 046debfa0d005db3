"""The KV table and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewindmq.namesrv import kv_config
from rewindmq.namesrv.kv_config import KVConfigManager
from rewindmq.protocol.errors import ConfigError, RequestError


def test_a_change_is_on_disk_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "namesrv" / "kvConfig.json"
    manager = KVConfigManager(path)
    manager.put("ORDER_TOPIC_CONFIG", "T", "broker-a:4")
    manager.put("ns", "schlüssel", "wert")
    manager.delete("ns", "schlüssel")
    assert json.loads(path.read_text()) == {
        "configTable": {"ORDER_TOPIC_CONFIG": {"T": "broker-a:4"}, "ns": {}}
    }
    again = KVConfigManager(path)
    assert again.get("ORDER_TOPIC_CONFIG", "T") == "broker-a:4"
    assert again.namespace("ns") == {}
    assert again.namespace("other") is None
    assert [entry.name for entry in path.parent.iterdir()] == ["kvConfig.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"configTable":{"ns":1}}', '{"configTable":{"ns":{"k":1}}}']
)
def test_a_damaged_file_stops_the_start_and_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"kvConfig\.json") as caught:
        KVConfigManager(path)
    assert "\n" not in str(caught.value)
    assert path.read_text() == text


def test_a_file_that_cannot_be_written_refuses_and_keeps_the_old_value(tmp_path: Path) -> None:
    blocker = tmp_path / "namesrv"
    path = blocker / "kvConfig.json"
    manager = KVConfigManager(path)
    manager.put("ns", "k", "old")
    path.unlink()
    blocker.rmdir()
    blocker.write_text("a file where the directory was")
    with pytest.raises(RequestError, match=r"could not write kvConfig\.json"):
        manager.put("ns", "k", "new")
    with pytest.raises(RequestError, match=r"could not write kvConfig\.json"):
        manager.delete("ns", "k")
    assert manager.get("ns", "k") == "old"


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = KVConfigManager(None)
    for namespace, key, value in (
        ("", "k", "v"),
        ("ns", "", "v"),
        ("n" * 256, "k", "v"),
        ("ns", "k" * 256, "v"),
        ("ns", "k", "v" * 32_768),
        ("ns", "k", "\ud800"),
    ):
        with pytest.raises(RequestError):
            manager.put(namespace, key, value)
    assert manager.namespace("ns") is None
    monkeypatch.setattr(kv_config, "MAX_ENTRIES", 2)
    manager.put("ns", "a", "1")
    manager.put("ns", "b", "1")
    with pytest.raises(RequestError, match="2 config items"):
        manager.put("other", "c", "1")
    manager.put("ns", "a", "2")
    assert manager.get("ns", "a") == "2"


def test_the_order_of_topics_never_outgrows_an_answer_to_a_registration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = KVConfigManager(None)
    monkeypatch.setattr(kv_config, "MAX_TABLE_BYTES", 60)
    manager.put(kv_config.ORDER_TOPIC_CONFIG, "T", "broker-a:4;broker-b:4")
    with pytest.raises(RequestError, match="all config items together would have more than 60 bytes"):
        manager.put(kv_config.ORDER_TOPIC_CONFIG, "U", "é" * 20)
    assert manager.get(kv_config.ORDER_TOPIC_CONFIG, "U") is None
    # A value of the same length may still replace it.
    manager.put(kv_config.ORDER_TOPIC_CONFIG, "T", "broker-a:8;broker-b:8")
