"""A recorded watch is judged as it would have been live (docs/watched_reset.md)."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq import MessageQueue
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.body.rewind import Rewind
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import Fetched, QueueSample, Sample
from rewindmq.watch.record.judging import find_reset, judge, reset_at
from rewindmq.watch.record.recording import Heading, Recording, heading_line, read_recording, sample_line
from rewindmq.watch.verdict.reset_watch import Change
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
BEFORE = "right before the reset, the broker or a consumer did not answer"
HEADING = Heading(TOPIC, GROUP, 1_700_000_000_000)


def position(low: int, *, dropped: bool = False) -> Position:
    return Position("A", low, None, dropped, last_consume=1_000)


def sample(at: float, stored: int | None, *positions: Position) -> Sample:
    return Sample(at, {Q0: QueueSample(stored, 10, positions)}, frozenset("A"), consumed={"A": 0.0})


def file_of(*samples: Sample) -> bytes:
    return heading_line(HEADING) + b"".join(map(sample_line, samples))


async def recorded(stage: SimStage, seconds: float, *, asks_rewinds: bool = True) -> list[Sample]:
    """Samples of every half second, as ``rewindmq watch record`` takes them."""
    samples = []
    async with AdminClient(stage.namesrv, runtime=stage.new_runtime()) as admin:
        brokers = Brokers(admin, asks_rewinds=asks_rewinds)
        for _ in range(round(seconds / 0.5)):
            samples.append(await take_sample(admin, TOPIC, GROUP, [Q0, Q1], brokers))
            await stage.world.sleep(0.5)
    return samples


def verdicts(recording: Recording) -> tuple[list[Change], set[State]]:
    *changes, watch = judge(recording, find_reset(recording.samples))
    assert not isinstance(watch, Change)
    return [item for item in changes if isinstance(item, Change)], {queue.state for queue in watch.queues}


@pytest.mark.parametrize("mode", [ResetMode.CLASSIC, ResetMode.FENCED])
@pytest.mark.parametrize("asks_rewinds", [True, False], ids=["at RewindMQ", "as at RocketMQ"])
@played()
async def test_a_reset_by_another_tool_is_judged_from_the_file(
    stage: SimStage, mode: ResetMode, asks_rewinds: bool
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(20, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(120)
        recording = asyncio.create_task(recorded(stage, 60, asks_rewinds=asks_rewinds))
        await stage.world.sleep(5)
        await stage.run(f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --mode {mode}")
        samples = await recording
    changes, states = verdicts(read_recording(file_of(*samples)))
    assert states == {State.PROVEN}
    assert max(change.seconds for change in changes) < 30


def test_what_brokers_counted_is_read_as_it_was_written_and_as_older_releases_wrote_it() -> None:
    told = Fetched(0.5, 70, {0: 12, 1: 9}, 60.004, 0.1)
    counted = replace(sample(1.0, 10, position(10)), fetched={"broker-a": told})
    lines = file_of(counted)
    assert read_recording(lines).samples == [counted]
    older = lines.replace(b'[0.5,70,{"0":12,"1":9},60.004,0.1]', b"[0.5,70]")
    assert older != lines
    assert read_recording(older).samples[0].fetched == {"broker-a": Fetched(0.5, 70)}


def test_a_late_commit_in_the_file_is_a_lost_reset() -> None:
    samples = [sample(0.0, 10, position(10)), sample(5.0, 10, position(10, dropped=True))]
    samples += [sample(15.0, 0, replace(position(0), first=0))]
    samples += [sample(15.0 + second, 10, replace(position(10), first=3)) for second in range(1, 9)]
    reset = find_reset(samples)
    assert (reset.index, reset.targets) == (0, {Q0: 0})
    changes, states = verdicts(Recording(HEADING, samples))
    assert states == {State.LOST}
    assert [change.state for change in changes] == [State.REDELIVERING, State.LOST]


def test_a_reset_that_moved_nothing_is_named_by_the_operator() -> None:
    samples = [sample(float(second), 10, position(10)) for second in range(60)]
    with pytest.raises(ClientError, match=r"shows no reset.*--at.*--to-offset"):
        find_reset(samples)
    *_, watch = judge(Recording(HEADING, samples), reset_at(samples, 2.5, {Q0: 0}))
    assert not isinstance(watch, Change)
    assert [(queue.state, "R6b" in queue.races) for queue in watch.queues] == [(State.LOST, True)]


def test_a_reset_of_before_the_recording_is_not_found_when_its_broker_answers_again() -> None:
    earlier = Rewind(1, 1_000, 10, 3, 3, 10, 10, 10)
    samples = [
        Sample(at, {Q0: QueueSample(10, 10, (), earlier) if at != 1.0 else QueueSample(None)}, frozenset())
        for at in (0.0, 1.0, 2.0, 3.0)
    ]
    with pytest.raises(ClientError, match="shows no reset"):
        find_reset(samples)


def test_a_queue_whose_broker_did_not_answer_right_before_the_reset_is_unknown() -> None:
    samples = [sample(0.0, 10, position(10)), sample(1.0, None)]
    samples += [sample(float(second), 0, position(0)) for second in range(2, 100)]
    *_, watch = judge(Recording(HEADING, samples), reset_at(samples, 1.0, {Q0: 0}))
    assert not isinstance(watch, Change)
    (queue,) = watch.queues
    assert (queue.state, queue.reason) == (State.UNKNOWN, BEFORE)


def test_what_a_silent_consumer_had_consumed_before_the_reset_is_unknown() -> None:
    """It may have consumed messages from the target on, and its next commit undoes the reset."""
    before = replace(sample(0.0, 5), is_complete=False)
    samples = [before, *(sample(float(second), 9, position(9)) for second in range(1, 100))]
    *_, watch = judge(Recording(HEADING, samples), reset_at(samples, 0.0, {Q0: 5}))
    assert not isinstance(watch, Change)
    (queue,) = watch.queues
    assert (queue.state, queue.reason) == (State.UNKNOWN, BEFORE)


@pytest.mark.parametrize(
    ("seconds", "queue", "text"),
    [(59.0, Q0, "outside the recording"), (2.0, Q1, "no queue broker-a:1")],
)
def test_a_reset_outside_the_recording_is_refused(seconds: float, queue: MessageQueue, text: str) -> None:
    samples = [sample(float(second), 10, position(10)) for second in range(60)]
    with pytest.raises(ClientError, match=text):
        reset_at(samples, seconds, {queue: 0})


def test_what_was_written_is_read() -> None:
    samples = [sample(0.0, 10, position(10)), sample(0.5, None)]
    assert read_recording(file_of(*samples)) == Recording(HEADING, samples)


def test_a_line_that_a_crash_has_cut_is_left_out() -> None:
    whole = file_of(sample(0.0, 10), sample(0.5, 9))
    for cut in range(1, 20):
        assert len(read_recording(whole[:-cut]).samples) == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "no recording"),
        (b"\n", "no recording"),
        (b"[]\n", "no recording"),
        (b'{"topic": "T", "group": "G", "beganMs": 0, "form": "x"}\n', "no recording"),
        (b'{"topic": "T", "group": "G", "beganMs": 0, "version": 2}\n', "version 2"),
        (heading_line(HEADING), "no sample"),
        (heading_line(HEADING) + b"{}\n", "line 2 .* damaged"),
        (heading_line(HEADING) + b"[" * 5_000 + b"\n", "line 2 .* damaged"),
        (file_of(sample(1.0, 10), sample(0.5, 10)), "line 3 .* damaged"),
        (file_of(sample(0.0, 10)) + sample_line(Sample(1.0, {})), "line 3 .* damaged"),
    ],
)
def test_a_damaged_file_is_refused_in_words(data: bytes, text: str) -> None:
    with pytest.raises(ClientError, match=text):
        read_recording(data)


@given(st.integers(0, 2_000), st.integers(1, 255))
def test_a_changed_byte_is_refused_in_words_or_changes_a_value(place: int, change: int) -> None:
    data = bytearray(file_of(sample(0.0, 10, position(10)), sample(0.5, 0, position(0))))
    data[place % len(data)] ^= change
    with contextlib.suppress(ClientError):
        assert read_recording(bytes(data)).samples
