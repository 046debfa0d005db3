"""Compactions of stores that change between two runs, or during a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC
from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.errors import PipelineError
from rewindmq.protocol.message.record import QUEUE_OFFSET_AT
from tests.pipeline.compact.compact_reference import content, expected_store
from tests.pipeline.logs import LogWriter
from tests.pipeline.reference import consumer_offsets, read_log

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

OPTIONS = CompactOptions(format=Format.STORE)


class Stopped(BaseException):
    """Ends a run in the middle."""


def put(store: Path, body: bytes, count: int, *, first: int = 0, later_ms: int = 0) -> None:
    """Add messages of ten keys, from number ``first`` on, to the store."""
    writer = LogWriter(store, segment_bytes=8_192)
    writer.now += later_ms
    for number in range(count):
        writer.now += 100
        writer.put("Orders", 0, body, keys=f"key-{(first + number) % 10}")
    writer.finish()


@pytest.mark.slow
@pytest.mark.parametrize(("step", "body"), [("selecting", b"after"), ("reading", b"afterwards")])
def test_an_interrupted_run_is_forgotten_when_a_crash_cut_its_log(
    runner: Runner, tmp_path: Path, step: str, body: bytes
) -> None:
    """The broker lost its newest messages in a crash, and others stand there now: of the same size, or of
    another, so that none ends where the interrupted run would have."""
    store, durable, out = tmp_path / "store", tmp_path / "durable", tmp_path / "out"
    put(store, b"first", 20)
    shutil.copytree(store, durable)
    put(store, b"other", 10, later_ms=10_000)

    def stop(text: str) -> None:
        if text.startswith(step):
            raise Stopped

    with pytest.raises(Stopped):
        compact(runner, store, out, OPTIONS, stop)
    shutil.rmtree(store)
    durable.rename(store)
    put(store, body, 25, first=5, later_ms=20_000)
    assert compact(runner, store, out, OPTIONS).damage_count == 0
    wanted = expected_store(store, ["Orders"], OPTIONS)
    assert [content(m) for m in read_log(out / "current")] == [content(m) for m in wanted]


@pytest.mark.slow
def test_a_live_brokers_groups_and_deliveries_are_those_of_the_messages_read(
    runner: Runner, tmp_path: Path
) -> None:
    """A group that went on beyond what is read would be sent to its queue's beginning, and a delayed message
    that was delivered meanwhile would be in the output neither as pending nor as delivered."""
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store)
    writer.put("Orders", 0, b"first", keys="key")
    writer.put_delayed("Orders", 0, b"delayed", "other", 1, deliver=False)
    writer.offsets, writer.delay_offsets = {"Orders@G": {0: 1}}, {1: 0}
    writer.finish()

    def go_on(text: str) -> None:
        if text.startswith("selecting"):
            live = LogWriter(store, now=writer.now + 5_000)
            live.put("Orders", 0, b"delayed", keys="other")
            live.offsets, live.delay_offsets = {"Orders@G": {0: 2}}, {1: 1}
            live.finish()

    compact(runner, store, out, OPTIONS, go_on)
    root = out / "current"
    assert [(m.topic, m.stored_body) for m in read_log(root)] == [
        ("Orders", b"first"),
        (SCHEDULE_TOPIC, b"delayed"),
    ]
    assert consumer_offsets(root) == {"Orders@G": {"0": 1}}
    assert json.loads((root / "config/delayOffset.json").read_text()) == {"offsetTable": {"1": 0}}
    compact(runner, store, out, OPTIONS)
    assert [(m.topic, m.stored_body) for m in read_log(root)] == [
        ("Orders", b"first"),
        ("Orders", b"delayed"),
    ]
    assert consumer_offsets(root) == {"Orders@G": {"0": 2}}


@pytest.mark.slow
def test_an_interrupted_run_keeps_to_the_deliveries_it_began_with(runner: Runner, tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store)
    writer.put_delayed("Orders", 0, b"delayed", "key", 1, deliver=False)
    writer.finish()

    def stop(_text: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        compact(runner, store, out, OPTIONS, stop)
    live = LogWriter(store, now=writer.now + 5_000)
    live.put("Orders", 0, b"delayed", keys="key")
    live.delay_offsets = {1: 1}
    live.finish()
    compact(runner, store, out, OPTIONS)
    assert [m.topic for m in read_log(out / "current")] == [SCHEDULE_TOPIC]


@pytest.mark.slow
def test_groups_that_went_on_are_followed_without_a_new_message(runner: Runner, tmp_path: Path) -> None:
    """One store has a new message; in the other a group has consumed the existing messages."""
    stores, out = [tmp_path / "broker-a", tmp_path / "broker-b"], tmp_path / "out"
    for store in stores:
        put(store, b"first", 12)
    compact(runner, stores, out, OPTIONS)
    put(stores[0], b"next", 1, later_ms=10_000)
    (stores[1] / "config/consumerOffset.json").write_text(
        json.dumps({"offsetTable": {"Orders@G": {"0": 12}}})
    )
    assert compact(runner, stores, out, OPTIONS).messages_read == 1
    for store in stores:
        wanted = expected_store(store, ["Orders"], OPTIONS)
        assert [content(m) for m in read_log(out / "current" / store.name)] == [content(m) for m in wanted]
    kept = consumer_offsets(out / "current" / "broker-b")
    assert kept == {"Orders@G": {"0": 10}}
    assert not compact(runner, stores, out, OPTIONS).is_new


@pytest.mark.slow
def test_a_group_behind_a_damaged_message_stands_at_the_end(runner: Runner, tmp_path: Path) -> None:
    """The queue's newest message has not its CRC; a group that consumed it is not sent beyond the new end."""
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store)
    writer.put("Orders", 0, b"first", keys="key")
    writer.put("Orders", 0, b"spoiled", keys="key")
    writer.put("Prices", 0, b"other", keys="key")
    writer.offsets = {"Orders@G": {0: 2}}
    writer.finish()
    (segment,) = (store / "commitlog").iterdir()
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(b"spoiled"))
        file.write(b"S")
    summary = compact(runner, store, out, OPTIONS)
    assert [place.kind for place in summary.damage] == ["bad CRC"]
    root = out / "current"
    assert [m.stored_body for m in read_log(root)] == [b"first", b"other"]
    assert consumer_offsets(root) == {"Orders@G": {"0": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("between_runs", [False, True], ids=["in one log", "between two runs"])
def test_a_topic_that_was_created_again_is_refused(
    runner: Runner, tmp_path: Path, *, between_runs: bool
) -> None:
    """A deleted topic's messages stay in the log; the queue of the new topic starts at 0 again."""
    store, out = tmp_path / "store", tmp_path / "out"
    put(store, b"old", 10)
    options = CompactOptions(log_file_bytes=4_096, cq_file_bytes=506)
    if between_runs:
        compact(runner, store, out, options)
    put(store, b"new", 3, later_ms=10_000)
    for number, message in enumerate(read_log(store)[10:]):
        renumber(store, message.commit_log_offset, number)
    with pytest.raises(PipelineError, match="queue 0 of Orders restarts its numbering"):
        compact(runner, store, out, options)


def renumber(store: Path, position: int, queue_offset: int) -> None:
    """Give the record at a log position another queue offset."""
    for segment in (store / "commitlog").iterdir():
        base = int(segment.name)
        if base <= position < base + segment.stat().st_size:
            with segment.open("r+b") as file:
                file.seek(position - base + QUEUE_OFFSET_AT)
                file.write(queue_offset.to_bytes(8, "big"))
