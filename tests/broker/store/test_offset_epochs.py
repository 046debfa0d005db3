"""Epochs beside consumer offsets: one file, saved before they take effect; RocketMQ ignores them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindmq.broker.store import StoreError
from rewindmq.broker.store.tables import consumer_offset
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.codec import fastjson


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "consumerOffset.json"


def load(path: Path) -> ConsumerOffsetTable:
    table = ConsumerOffsetTable(path)
    table.load()
    return table


def reset(table: ConsumerOffsetTable, targets: dict[int, int], group: str = "G") -> dict[int, int]:
    table.save(table.take_reset(group, "T", targets))
    return table.reset(group, "T", targets)


def test_a_reset_raises_the_epoch_with_the_offset(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    table.commit("G", "T", 0, 100)
    assert table.record("G", "T", 0) == (100, 0)
    assert not table.has_epochs("G", "T")
    assert reset(table, {0: 40, 1: 7}) == {0: 1, 1: 1}
    assert reset(table, {0: 50}) == {0: 2}
    assert [table.record("G", "T", queue_id) for queue_id in range(3)] == [(50, 2), (7, 1), (-1, 0)]
    assert table.has_epochs("G", "T")
    assert not table.has_epochs("Other", "T")
    assert table.commit("G", "T", 0, 60) == 50
    assert table.record("G", "T", 0) == (60, 2)


def test_the_offsets_on_disk_before_a_reset_returns_are_those_of_the_reset(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    table.commit("G", "T", 0, 100)
    table.commit("G", "T", 1, 5)
    table.save(table.take_reset("G", "T", {0: 40}))
    assert table.record("G", "T", 0) == (100, 0)
    restarted = load(path)
    assert [restarted.record("G", "T", queue_id) for queue_id in range(2)] == [(40, 1), (5, 0)]
    assert table.reset("G", "T", {0: 40}) == {0: 1}
    assert not table.persist()


def test_a_commit_between_the_write_and_the_reset_is_written_next(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    text = table.take_reset("G", "T", {0: 40})
    table.commit("G", "T", 1, 9)
    table.save(text)
    table.reset("G", "T", {0: 40})
    assert table.persist()
    assert load(path).record("G", "T", 1) == (9, 0)


def test_the_file_with_epochs_and_without(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    table.commit("G", "T", 0, 100)
    table.persist()
    assert "epochTable" not in path.read_text()
    reset(table, {0: 40})
    assert path.read_text() == (
        '{\n\t"offsetTable":{\n\t\t"T@G":{0:40\n\t\t}\n\t},\n\t"epochTable":{\n\t\t"T@G":{0:1\n\t\t}\n\t}\n}'
    )
    # RocketMQ's class has only this field, and ignores others.
    document = fastjson.loads(path.read_bytes())
    assert {int(queue): offset for queue, offset in document["offsetTable"]["T@G"].items()} == {0: 40}


def test_a_file_that_rocketmq_has_rewritten_has_lost_its_epochs(path: Path) -> None:
    table = ConsumerOffsetTable(path)
    reset(table, {0: 40})
    path.write_text(path.read_text().partition(',\n\t"epochTable"')[0] + "\n}")
    assert load(path).record("G", "T", 0) == (40, 0)


@pytest.mark.parametrize(
    ("epochs", "says"),
    [
        ('{"T@G":{0:0}}', "epoch 0 of queue 0 of T@G is out of range"),
        ('{"T@G":{0:-3}}', "epoch -3"),
        ('{"T@G":{0:9223372036854775808}}', "out of range"),
        ('{"T@G":{0:1.5}}', "epoch 1.5 of queue 0 is not a whole number"),
        ('{"T@G":{0:"2"}}', "not a whole number"),
        ('{"T@G":{0:true}}', "not a whole number"),
        ('{"T@G":{1:1}}', "queue 1 of T@G has an epoch but no offset"),
        ('{"U@G":{0:1}}', "queue 0 of U@G has an epoch but no offset"),
        ('{"T@G":{"x":1}}', "invalid literal"),
        ('{"T@G":3}', "epochTable: T@G is not an object of queues"),
        ("[1]", "epochTable is not an object"),
        ("[]", "epochTable is not an object"),
        ("0", "epochTable is not an object"),
    ],
)
def test_epochs_of_a_wrong_shape_are_refused_by_name(path: Path, epochs: str, says: str) -> None:
    path.parent.mkdir()
    path.write_text(f'{{"offsetTable":{{"T@G":{{0:1}}}},"epochTable":{epochs}}}')
    with pytest.raises(StoreError) as refused:
        load(path)
    assert str(path) in str(refused.value)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("epochs", ["null", "{}", '{"T@G":{}}'])
def test_no_epochs_in_any_form(path: Path, epochs: str) -> None:
    path.parent.mkdir()
    path.write_text(f'{{"offsetTable":{{"T@G":{{0:1}}}},"epochTable":{epochs}}}')
    table = load(path)
    assert table.record("G", "T", 0) == (1, 0)
    assert not table.has_epochs("G", "T")


def test_a_reset_counts_its_new_queues(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_offset, "MAX_OFFSETS", 2)
    table = ConsumerOffsetTable(path)
    table.commit("G", "T", 0, 1)
    with pytest.raises(StoreError, match="1 consumer offsets already"):
        table.take_reset("G", "T", {0: 5, 1: 5, 2: 5})
    assert table.persist()
    reset(table, {0: 5, 1: 5})
    with pytest.raises(StoreError, match="2 consumer offsets already"):
        table.commit("G", "T", 2, 1)
