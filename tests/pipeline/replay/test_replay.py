"""The replay plan against a plain reading of the log, and its input."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store import Boundary, MessageStore, SearchMode, StoreConfig
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.replay.bins import MAX_BINS, make_bins
from rewindmq.pipeline.replay.job import prepare, replay_plan
from rewindmq.pipeline.replay.page import render_html
from rewindmq.pipeline.replay.plan import Direction, MessageLoad, Mode, QueueReplay, ReplayPlan
from rewindmq.pipeline.replay.target import Target, find_target, parse_target
from rewindmq.pipeline.replay.text import bar_line, render_text
from rewindmq.pipeline.snapshot.queue_view import LogView, QueueView
from rewindmq.pipeline.snapshot.snapshot import take_snapshot
from rewindmq.protocol.message import MessageExt
from tests.pipeline.logs import GROUP, LogWriter, random_store
from tests.pipeline.reference import consumer_offsets, read_log

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

TOPIC = "Orders"
SEARCHES = {Mode.NEAREST: SearchMode.NEAREST, Mode.BOUNDARY: SearchMode.BOUNDARY}
START = 1_700_000_000_000


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two brokers' stores; the first has lost its oldest segments, the second was killed."""
    roots = [tmp_path_factory.mktemp("cluster") / name / "store" for name in ("broker-a", "broker-b")]
    for seed, root in enumerate(roots):
        _write(root, random.Random(seed))
    segments = sorted((roots[0] / "commitlog").iterdir())
    for segment in segments[:2]:
        segment.unlink()
    return roots


def _write(root: Path, rng: random.Random) -> None:
    writer = LogWriter(root, segment_bytes=16_384, consume_queue_bytes=400)
    for _ in range(400):
        writer.now += rng.choice((0, 0, 3, 500, 4_000))
        keys = None if rng.random() < 0.2 else f"key {rng.randrange(25)}"
        writer.put(TOPIC, rng.choice((0, 0, 1, 2)), rng.randbytes(rng.randrange(40)), keys=keys)
        writer.put("Other", 0)
    for _ in range(5):
        writer.put(f"%RETRY%{GROUP}", 0)
    ends = [writer.store.max_offset(TOPIC, queue_id) for queue_id in range(3)]
    writer.offsets = {
        f"{TOPIC}@{GROUP}": {0: ends[0], 1: ends[1] * 3 // 4, 2: ends[2] // 5},
        f"%RETRY%{GROUP}@{GROUP}": {0: 3},
        "Other@lagging": {0: 0},
    }
    writer.finish(clean=root.parent.name == "broker-a")


def test_a_view_of_a_queue_searches_as_the_broker_does(tmp_path: Path, full: bool) -> None:
    # 3 was killed and ends with a torn record, 4 lacks its first segment.
    for seed in range(12) if full else (3, 4):
        root = tmp_path / f"store-{seed}"
        random_store(root, seed)
        if seed == 4:
            min((root / "commitlog").iterdir()).unlink()
        snapshot = take_snapshot(root)
        log = LogView(snapshot)
        views = [QueueView(snapshot, queue) for queue in snapshot.queues()]
        times = sorted({message.store_timestamp for message in read_log(root)})
        asked = [0, times[0] - 1, *times, *(time + 1 for time in times), times[-1] + 10**9]
        segment = next((root / "commitlog").iterdir()).stat().st_size
        cq_bytes = next(file for file in (root / "consumequeue").rglob("0" * 20)).stat().st_size
        config = StoreConfig(mapped_file_size_commit_log=segment, mapped_file_size_consume_queue=cq_bytes)
        found = {
            (view.topic, view.queue_id): [
                (find_target(Target(time), mode, view, log)) for mode in Mode for time in asked
            ]
            for view in views
        }
        bounds = {(view.topic, view.queue_id): (view.min_offset, view.max_offset) for view in views}
        store = MessageStore(root, config, lambda: START)
        store.open()
        for (topic, queue_id), offsets in found.items():
            low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
            assert bounds[topic, queue_id] == (low, high)
            assert offsets == [
                store.search_offset(topic, queue_id, time, Boundary.LOWER, SEARCHES[mode])
                for mode in Mode
                for time in asked
            ]
        store.close()


def _plan(runner: Runner, stores: list[Path], share: float) -> ReplayPlan:
    """Back to the moment at which so much of the messages had come."""
    times = sorted(message.store_timestamp for root in stores for message in read_log(root))
    to = str(times[int(len(times) * share)])
    return replay_plan(runner, stores, group=GROUP, topic=TOPIC, to=to, progress=print)


@pytest.fixture(scope="module")
def early(runner: Runner, stores: list[Path]) -> ReplayPlan:
    return _plan(runner, stores, 0.3)


def test_a_plan_says_what_a_plain_reading_of_the_logs_says(early: ReplayPlan, stores: list[Path]) -> None:
    _check_plan(early, stores)


@pytest.mark.slow
def test_a_plan_to_a_later_time_says_what_a_plain_reading_of_the_logs_says(
    runner: Runner, stores: list[Path]
) -> None:
    _check_plan(_plan(runner, stores, 0.75), stores)


def _check_plan(plan: ReplayPlan, stores: list[Path]) -> None:
    logs = [read_log(root) for root in stores]
    assert [store.label for store in plan.stores] == ["broker-a", "broker-b"]
    assert {(queue.store, queue.queue_id) for queue in plan.queues} == {
        (s, q) for s in (0, 1) for q in range(4)
    }
    for mode in Mode:
        keys: dict[Direction, set[str]] = {Direction.BACK: set(), Direction.AHEAD: set()}
        for queue in plan.queues:
            log = [m for m in logs[queue.store] if (m.topic, m.queue_id) == (TOPIC, queue.queue_id)]
            _check_queue(plan, queue, mode, log, keys)
        for direction, loads in ((Direction.BACK, plan.totals), (Direction.AHEAD, plan.skipped)):
            mine = [q.moves[mode].load for q in plan.queues if q.moves[mode].direction is direction]
            total = MessageLoad(*(sum(figures) for figures in zip(*map(_figures, mine), strict=True)))
            assert _figures(loads[mode])[:2] == _figures(total)[:2]
            assert loads[mode].superseded == total.superseded
            assert loads[mode].distinct_keys == len(keys[direction])
            assert sum(plan.histogram(mode, direction)) == total.messages
    assert any(queue.is_deleted for queue in plan.queues) is False
    assert {store.retry_waiting for store in plan.stores} == {2}
    assert json.loads(json.dumps(plan.to_json())) == plan.to_json()


def _figures(load: MessageLoad) -> tuple[int, ...]:
    return (load.messages, load.size, load.distinct_keys, load.without_key, load.superseded, load.unreadable)


def _check_queue(
    plan: ReplayPlan, queue: QueueReplay, mode: Mode, log: list[MessageExt], keys: dict[Direction, set[str]]
) -> None:
    move = queue.moves[mode]
    if queue.position is None:
        assert (move.load, move.direction) == (MessageLoad(), Direction.UNKNOWN)
        assert queue.queue_id == 3
        return
    assert (queue.min_offset, queue.max_offset) == (log[0].queue_offset, log[-1].queue_offset + 1)
    low, high = sorted((queue.position, move.start))
    inside = [message for message in log if low <= message.queue_offset < high]
    newest = {message.keys: message.queue_offset for message in log if message.keys}
    mine = {message.keys for message in inside if message.keys}
    assert move.load == MessageLoad(
        messages=len(inside),
        size=sum(message.store_size for message in inside),
        distinct_keys=len(mine),
        without_key=sum(not message.keys for message in inside),
        superseded=sum(newest.get(m.keys or "", m.queue_offset) > m.queue_offset for m in inside),
    )
    if inside:
        keys[move.direction] |= mine
        assert (move.first_time, move.last_time) == (inside[0].store_timestamp, inside[-1].store_timestamp)
        bins = [0] * plan.bins.count
        for message in inside:
            bins[(message.store_timestamp - plan.bins.start) // plan.bins.width] += 1
        assert list(move.histogram) == bins


def test_a_plan_to_an_offset_shows_what_is_deleted_and_what_is_skipped(
    runner: Runner, stores: list[Path]
) -> None:
    plan = replay_plan(runner, stores[:1], group=GROUP, topic=TOPIC, to="offset:5")
    busy, _, idle, empty = plan.queues
    assert busy.is_deleted
    assert busy.min_offset > 5
    move = busy.moves[Mode.BOUNDARY]
    assert (move.target, move.start, move.direction) == (5, busy.min_offset, Direction.BACK)
    assert move.load.messages == busy.max_offset - busy.min_offset
    assert idle.position is not None
    assert empty.without_offset.startswith("starts at 0")
    text, page = render_text(plan), render_html(plan)
    for words in ("messages are deleted", "RocketMQ 5 refuses", "%RETRY%G"):
        assert words in text
        assert words in page
    assert "(deleted)" in text


def test_a_page_needs_nothing_but_itself_and_no_name_becomes_markup(early: ReplayPlan) -> None:
    page = render_html(early)
    assert not any(word in page for word in ("http:", "https:", "src=", "<script", "<link", "url("))
    assert page.count("<svg") >= 5
    assert 'role="img"' in page
    assert "prefers-color-scheme:dark" in page
    evil = render_html(replace(early, group="<b>&"))
    assert "<b>" not in evil
    hostile = replace(early, group="G\n\x1b[2J\u202e\x9b")
    for text in (render_html(hostile), render_text(hostile)):
        assert all(character.isprintable() or character == "\n" for character in text)
        assert r"G\n\x1b[2J\u202e\x9b" in text
    assert render_text(early, is_plain=True).isascii()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"topic": "Ordres"}, "unknown topic 'Ordres'; known: Orders, Other"),
        ({"group": "nobody"}, "unknown group 'nobody'; known: G, lagging"),
        (
            {"group": "lagging"},
            "group 'lagging' never consumed topic 'Orders': no offset is stored; it has offsets for Other",
        ),
        ({"to": "yesterday"}, "'yesterday' is not a time"),
        ({"to": "offset:-1"}, "'offset:-1' is not a time"),
        ({"to": ""}, "'' is not a time"),
    ],
)
def test_wrong_input_is_reported_before_spark_starts(
    stores: list[Path], change: dict[str, str], complaint: str
) -> None:
    with pytest.raises(PipelineError) as raised:
        prepare(stores, **{"group": GROUP, "topic": TOPIC, "to": "0", **change})
    assert str(raised.value).startswith(complaint)
    assert "\n" not in str(raised.value)


def test_stores_are_named_once_and_at_least_one(stores: list[Path]) -> None:
    with pytest.raises(PipelineError, match="a store is given twice"):
        prepare([stores[0], stores[0]], group=GROUP, topic=TOPIC, to="0")
    with pytest.raises(PipelineError, match="no store given"):
        prepare([], group=GROUP, topic=TOPIC, to="0")


def test_unreadable_offsets_are_one_line(stores: list[Path], tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(stores[1], root)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"Orders@G":{"x":1}}}')
    with pytest.raises(PipelineError, match="offsetTable is not a table of queues and numbers"):
        prepare([root], group=GROUP, topic=TOPIC, to="0")


@pytest.mark.parametrize("text", ["-1", "max", "now", " now "])
def test_the_end_has_three_names(text: str) -> None:
    assert parse_target(text) == Target()


def test_a_target_is_a_time_or_an_offset() -> None:
    assert parse_target("offset:17") == Target(offset=17)
    assert parse_target("1700000000000") == Target(timestamp=START)
    assert parse_target("2023-11-14T22:13:20Z") == Target(timestamp=START)


def test_the_stored_offsets_come_from_the_file(stores: list[Path]) -> None:
    prepared = prepare(stores, group=GROUP, topic=TOPIC, to="-1")
    stored = consumer_offsets(stores[0])[f"{TOPIC}@{GROUP}"]
    assert {queue.view.queue_id: queue.current for queue in prepared.queues if queue.store == 0} == {
        **{int(queue_id): offset for queue_id, offset in stored.items()},
        3: None,
    }


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(0, 4 * 10**12), st.integers(0, 4 * 10**12))
def test_bins_hold_every_time_in_few_of_a_round_width(one: int, other: int) -> None:
    first, last = sorted((one, other))
    bins = make_bins(first, last)
    assert 1 <= bins.count <= MAX_BINS
    assert bins.start <= first
    assert last < bins.start + bins.count * bins.width
    assert bins.start % bins.width == 0


def test_a_single_message_is_seen_in_a_line_of_blocks() -> None:
    assert bar_line([0, 1, 1_000, 500]) == " ▁█▄"
