"""Configuration files and consumer offsets (docs/spec/store.md 8, 16.10)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.broker.store import StoreError
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.store.tables.config_json import format_config
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.codec import fastjson

AS_ROCKETMQ_WRITES_IT = """{
	"offsetTable":{
		"TopicA@CG_a":{0:7,1:4
		},
		"%RETRY%CG_a@CG_a":{0:1
		}
	}
}"""
AS_OTHER_WRITERS_DO = (
    '{"offsetTable": {"TopicA@CG_a": {"0": 7, "1": 4}, "%RETRY%CG_a@CG_a": {"0": 1}}, "x": 1}'
)


class StoppingDisk(OsDisk):
    """Stops working at the n-th change, as a crash would."""

    def __init__(self, works: int) -> None:
        self.left = works

    def _step(self) -> None:
        if self.left == 0:
            raise OSError(errno.EIO, "Input/output error")
        self.left -= 1

    def write(self, path: Path, data: bytes) -> None:
        self._step()
        super().write(path, data)

    def replace(self, source: Path, target: Path) -> None:
        self._step()
        super().replace(source, target)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "consumerOffset.json"


def load(path: Path) -> ConsumerOffsetTable:
    table = ConsumerOffsetTable(path)
    table.load()
    return table


def test_the_file_is_written_exactly_as_rocketmq_writes_it(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    table.commit("CG_a", "TopicA", 0, 7)
    table.commit("CG_a", "TopicA", 1, 4)
    table.commit("CG_a", "%RETRY%CG_a", 0, 1)
    assert table.persist()
    assert path.read_text() == AS_ROCKETMQ_WRITES_IT


@pytest.mark.parametrize("text", [AS_ROCKETMQ_WRITES_IT, AS_OTHER_WRITERS_DO])
def test_bare_and_quoted_keys_are_read(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    table = load(path)
    assert table.offsets_of("CG_a", "TopicA") == {0: 7, 1: 4}
    assert table.query("CG_a", "%RETRY%CG_a", 0) == 1
    assert table.topics_of("CG_a") == ["TopicA", "%RETRY%CG_a"]
    assert table.groups_of("TopicA") == ["CG_a"]


def test_the_last_writer_wins(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    assert table.query("G", "T", 0) == -1
    assert table.commit("G", "T", 0, 100) == -1
    assert table.commit("G", "T", 0, 40) == 100
    assert table.query("G", "T", 0) == 40
    assert table.query("G", "T", 1) == -1
    assert table.offsets_of("Nobody", "T") == {}


def test_a_key_with_a_second_at_sign_belongs_to_no_group(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    table.commit("G@H", "T", 0, 1)
    assert table.topics_of("G@H") == table.topics_of("H") == []
    assert table.query("G@H", "T", 0) == 1


def test_it_is_written_only_when_something_changed(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    assert not table.persist()
    table.commit("G", "T", 0, 1)
    assert table.persist()
    assert not table.persist()
    table.commit("G", "T", 0, 1)
    assert not table.persist()
    table.commit("G", "T", 0, 2)
    assert table.persist()
    assert not load(path).persist()


def test_a_save_that_fails_is_tried_again(path: Path) -> None:
    disk = StoppingDisk(0)
    table = ConsumerOffsetTable(path, disk)
    table.commit("G", "T", 0, 1)
    with pytest.raises(StoreError, match=r"consumerOffset\.json: Input/output error"):
        table.persist()
    disk.left = 10
    assert table.persist()
    assert load(path).query("G", "T", 0) == 1


def test_the_backup_is_one_save_behind(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    for offset in (1, 2, 3):
        table.commit("G", "T", 0, offset)
        table.persist()
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, path.name + ".bak"]
    assert load(path).query("G", "T", 0) == 3
    path.unlink()
    assert load(path).query("G", "T", 0) == 2


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff\xfe", b'{"offsetTable":{"T@G":{0:1.5}}}', b"[]", b"[" * 5_000]
)
def test_a_damaged_file_falls_back_and_never_replaces_the_good_backup(
    path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    table = ConsumerOffsetTable(path)
    for offset in (1, 2):
        table.commit("G", "T", 0, offset)
        table.persist()
    path.write_bytes(damage)
    table = load(path)
    assert table.query("G", "T", 0) == 1
    (said,) = caplog.messages
    assert str(path) in said
    assert said.endswith(f"using {path}.bak, which is one save older")
    table.commit("G", "T", 0, 5)
    table.persist()
    assert load(path).query("G", "T", 0) == 5
    path.unlink()
    assert load(path).query("G", "T", 0) == 1


def test_both_damaged_is_an_error_that_names_the_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{")
    path.with_name(path.name + ".bak").write_text("{")
    with pytest.raises(StoreError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_without_backup_is_an_error(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(StoreError, match=r"consumerOffset\.json"):
        load(path)


def test_neither_file_is_an_empty_table(path: Path) -> None:
    assert load(path).topics_of("G") == []


@pytest.mark.parametrize("works", range(4))
@pytest.mark.parametrize("damaged", [False, True])
def test_a_crash_at_any_point_of_a_save_leaves_a_readable_state(
    path: Path, works: int, damaged: bool
) -> None:
    table = ConsumerOffsetTable(path)
    for offset in (1, 2):
        table.commit("G", "T", 0, offset)
        table.persist()
    if damaged:
        path.write_text("{")
    crashing = ConsumerOffsetTable(path, StoppingDisk(works))
    crashing.load()
    crashing.commit("G", "T", 0, 3)
    completes = works >= (2 if damaged else 3)
    try:
        crashing.persist()
    except StoreError:
        assert not completes
    before = 1 if damaged else 2
    assert load(path).query("G", "T", 0) == (3 if completes else before)


def test_a_save_is_durable_with_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    path.parent.mkdir(exist_ok=True, parents=True)
    monkeypatch.setattr(os, "fsync", noted)
    ConfigFile(path).save({})
    assert synced == ["file", "folder"]


def test_nested_values_are_laid_out_like_fastjson(path: Path) -> None:
    value = {
        "dataVersion": {"counter": 2, "timestamp": 1_700_000_000_000},
        "topicConfigTable": {"T": {"order": False, "topicName": "T", "attributes": {}, "absent": None}},
        "list": ["a", {"b": 1.5}],
        "empty": [],
    }
    text = format_config(value)
    assert text.startswith('{\n\t"dataVersion":{\n\t\t"counter":2,\n\t\t"timestamp":1700000000000\n\t},')
    assert '\n\t"list":[\n\t\t"a",\n\t\t{\n\t\t\t"b":1.5\n\t\t}\n\t],\n\t"empty":[]\n}' in text
    assert "absent" not in text
    config = ConfigFile(path)
    config.save(value)
    assert config.load(lambda document: document["topicConfigTable"]["T"]["topicName"]) == "T"


@given(
    st.dictionaries(
        st.text(max_size=8), st.dictionaries(st.integers(0, 99), st.integers(-1, 2**63 - 1)), max_size=5
    )
)
def test_every_table_survives_a_round_trip(table: dict[str, dict[int, int]]) -> None:
    read = fastjson.loads(format_config({"offsetTable": table}))["offsetTable"]
    assert {key: {int(k): v for k, v in value.items()} for key, value in read.items()} == table
