"""With the native kernel a broker stores, counts and answers what it does in pure Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.speedups import SpeedupsModule
from tests.protocol.golden.frames import golden
from tests.speedups.requests import (
    KINDS,
    PLAIN,
    batch,
    create_topic,
    delete_topic,
    json_send,
    pull,
    send,
)
from tests.speedups.stage import PROFILES, answers, play, reads
from tests.speedups.twins import ENTRIES_PER_FILE, SEGMENT_BYTES, TwinState, TwinStep
from tests.support.properties import few_and_all


def played(speedups: SpeedupsModule, *steps: TwinStep, **more: Any) -> tuple[TwinState, int]:
    """Play the steps after ``BEGIN``; return what came of them, and how many sends the kernel encoded."""
    outcome, encoded = play(speedups, *steps, **more)
    return outcome, encoded.sends


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_encodes_every_plain_send_of_a_read(
    speedups: SpeedupsModule, profile: Profile, kind: SerializeType
) -> None:
    read = b"".join(send("TU"[n % 2], n % 4, bytes(n), opaque=n, kind=kind) for n in range(12))
    outcome, encoded = played(speedups, TwinStep(read), TwinStep(read, connection=1), profile=profile)
    assert encoded == 24
    assert [answer.opaque for answer in answers(outcome)[-12:]] == list(range(12))
    assert [answer.opaque for answer in answers(outcome, 1)] == list(range(12))


def test_the_kernel_encodes_for_peers_and_brokers_with_IPv6_addresses(speedups: SpeedupsModule) -> None:
    read = b"".join(send(opaque=n) for n in range(5))
    for broker_ip1 in ("10.0.0.1", "fd00::1"):
        _, encoded = played(
            speedups,
            TwinStep(read),
            TwinStep(read, connection=1),
            hosts=("::ffff:10.0.0.8", "fd00::2"),
            broker_ip1=broker_ip1,
        )
        assert encoded == 10


def test_a_frame_that_is_not_plain_takes_its_turn_between_those_that_are(speedups: SpeedupsModule) -> None:
    delayed = send(properties="DELAY\x011", opaque=2)
    read = send(opaque=1) + delayed + send(opaque=3) + batch() + send(opaque=4)
    outcome, encoded = played(speedups, TwinStep(read, seconds=5.0))
    assert encoded == 4
    assert [answer.opaque for answer in answers(outcome)[-5:]] == [1, 2, 3, 7, 4]


@pytest.mark.parametrize("size", [1, 3, 7, 40, 500])
def test_reads_that_end_within_frames_give_the_same(speedups: SpeedupsModule, size: int) -> None:
    stream = b"".join(send("TU"[n % 2], n % 4, bytes(n), opaque=n) for n in range(12)) + pull(0, 0)
    steps = [TwinStep(stream[at : at + size]) for at in range(0, len(stream), size)]
    _, encoded = played(speedups, *steps)
    assert encoded == 12


def test_each_frame_that_a_read_cuts_has_the_whole_time_for_its_rest(speedups: SpeedupsModule) -> None:
    stream = b"".join(send("TU"[n % 2], n % 4, opaque=n) for n in range(12))
    size = len(stream) // 12 - 1
    # Longer in all than a frame may take. A connection whose frame is late is closed.
    steps = [TwinStep(stream[at : at + size], seconds=8.0) for at in range(0, len(stream), size)]
    outcome, encoded = played(speedups, *steps)
    assert encoded == 12
    assert [answer.opaque for answer in answers(outcome)[-12:]] == list(range(12))


def test_the_ends_of_segments_and_queue_files_are_python_s(speedups: SpeedupsModule) -> None:
    reads = [
        b"".join(send(queue_id=n % 2, body=bytes(n * 7 % 150), opaque=n) for n in range(first, first + 128))
        for first in range(0, 1_024, 128)
    ]
    outcome, encoded = played(speedups, *map(TwinStep, reads))
    # Every record has more than 200 bytes.
    assert (
        len([path for path in outcome.files if path.startswith("commitlog")]) > 1_024 * 200 // SEGMENT_BYTES
    )
    assert outcome.queues["T/0"] == (513, 0)
    files = [path for path in outcome.files if path.startswith("consumequeue/T/0/")]
    assert len(files) == 512 // ENTRIES_PER_FILE + 1
    assert 800 < encoded < 1_024


@pytest.mark.parametrize("kind", KINDS)
def test_a_send_whose_header_says_batch_is_python_s(speedups: SpeedupsModule, kind: SerializeType) -> None:
    outcome, encoded = played(speedups, TwinStep(batch(RequestCode.SEND_MESSAGE_V2, kind)))
    assert encoded == 0
    assert outcome.queues["T/0"] == (4, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_oneway_send_has_no_response_and_a_response_is_no_send(
    speedups: SpeedupsModule, kind: SerializeType
) -> None:
    read = b"".join(send(opaque=n, flag=n, kind=kind) for n in range(4))
    outcome, encoded = played(speedups, TwinStep(read))
    assert encoded == 2
    assert [answer.opaque for answer in answers(outcome)[-2:]] == [7, 0]
    assert outcome.queues["T/0"] == (3, 0)
    # A read without any response writes nothing.
    outcome, encoded = played(speedups, TwinStep(send(flag=2, kind=kind) * 3))
    assert encoded == 3
    assert [answer.opaque for answer in answers(outcome)[-1:]] == [7]
    assert outcome.queues["T/0"] == (4, 0)


TEXTS = (
    *("", "\x02", "A", "A\x01", "A\x01b", "A\x01b\x02", "A\x01b\x00"),
    *("WAIT\x01true", "WAIT\x01false", "A\x01b\x02WAIT\x01true", "A\x01b\x02WAIT\x01false", "AWAIT\x01true"),
    *("A\x01b\x02WAIT\x01true\x02", "A\x01b\x02WAIT\x01true\x02WAIT\x01true", "WAIT\x01true\x02A\x01b"),
    *("A\x01b\x02WAIT\x01true\x02C\x01d\x02WAIT\x01true", "A\x01b\x02WAIT\x01true\x02WAIT\x01true\x02C\x01d"),
    *(
        "TAGS\x01A\x02TAGS\x01B",
        "TAGS\x01A\x02TAGS\x01",
        "TAGS\x01",
        "A\x01b\x02TAGS\x01Longer than an int32",
    ),
    *(
        'UNIQ_KEY\x01q"\\',
        "UNIQ_KEY\x01a\x02UNIQ_KEY\x01",
        "UNIQ_KEY\x01a\x02UNIQ_KEY\x01b",
        "UNIQ_KEY\x01a\x01b",
    ),
    *(f"UNIQ_KEY\x01{'k' * length}" for length in (31, 32, 255, 256, 4_000)),
    *(
        "DELAY\x011",
        "A\x01DELAY\x011",
        "TRAN_MSG\x01true",
        "TIMER_DELAY_SEC\x011",
        "A\x01TIMER_DE",
        "A\x01\xe9",
    ),
    *(PLAIN + "\x02" + "x" * length for length in (100, 32_600, 32_700, 32_767)),
)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_properties_text_is_stored_as_python_does(
    speedups: SpeedupsModule, profile: Profile, kind: SerializeType
) -> None:
    read = b"".join(send(properties=text, opaque=n, kind=kind) for n, text in enumerate(TEXTS))
    _, encoded = played(speedups, TwinStep(read, seconds=5.0), profile=profile, segment_bytes=1 << 17)
    assert encoded >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_length_are_answered_as_python_does(
    speedups: SpeedupsModule, kind: SerializeType
) -> None:
    ends = [sign * (1 << bits) + more for bits in range(32) for sign in (1, -1) for more in (-1, 0, 1)]
    opaques = sorted({number for number in ends if -(2**31) <= number < 2**31})
    read = b"".join(send(opaque=number, kind=kind) for number in opaques)
    _, encoded = played(speedups, TwinStep(read), segment_bytes=1 << 17)
    assert encoded > 100


def test_a_waiting_pull_gets_the_first_message_and_the_kernel_the_others(speedups: SpeedupsModule) -> None:
    read = b"".join(send(opaque=n) for n in range(5))
    outcome, encoded = played(
        speedups, TwinStep(pull(0, 1), connection=1, seconds=1.0), TwinStep(read, seconds=1.0)
    )
    assert encoded == 4
    assert [answer.opaque for answer in answers(outcome, 1)] == [101]


def test_a_topic_that_changes_or_goes_is_looked_at_again(speedups: SpeedupsModule) -> None:
    read = b"".join(send(queue_id=n % 4, opaque=n) for n in range(8))
    steps = (
        TwinStep(read),
        TwinStep(create_topic("T", 2), seconds=1.0),
        TwinStep(read),
        TwinStep(delete_topic("T"), seconds=1.0),
    )
    outcome, _ = played(speedups, *steps, TwinStep(read, seconds=1.0))
    codes = [answer.code for answer in answers(outcome)[-26:]]
    assert codes[:8] == [0] * 8
    assert 1 in codes[9:17]


def test_a_full_disk_refuses_every_send(speedups: SpeedupsModule) -> None:
    read = b"".join(send(opaque=n) for n in range(5))
    outcome, encoded = played(
        speedups, TwinStep(disk_full=True), TwinStep(read), TwinStep(disk_full=False), TwinStep(read)
    )
    assert encoded == 5
    assert [answer.code for answer in answers(outcome)[-10:]] == [14] * 5 + [0] * 5


def test_a_wall_clock_that_goes_back_never_takes_store_times_back(speedups: SpeedupsModule) -> None:
    _, encoded = played(
        speedups, TwinStep(send(), ms=500), TwinStep(send(), ms=-1_000), TwinStep(send(), ms=3)
    )
    assert encoded == 3


def test_a_broker_that_answers_when_the_disk_does_has_no_kernel(speedups: SpeedupsModule) -> None:
    _, encoded = played(speedups, TwinStep(send() + send()), flush=FlushDiskType.SYNC_FLUSH)
    assert encoded == 0


def test_a_broker_that_is_watched_has_no_kernel(speedups: SpeedupsModule) -> None:
    _, encoded = played(speedups, TwinStep(send() + send()), probe=lambda point, details: None)
    assert encoded == 0


def test_numbers_out_of_range_are_python_s(speedups: SpeedupsModule) -> None:
    fields = '"a":"P","b":"T","c":"TBW102","d":"4","e":"0","f":"0","g":"1","h":"%s"'
    for flag, is_plain in (("2147483647", 1), ("-2147483648", 1), ("2147483648", 0), ("00", 0), ("", 0)):
        _, encoded = played(speedups, TwinStep(json_send(fields % flag)))
        assert encoded == is_plain, flag


@pytest.mark.parametrize("examples", few_and_all(15, 600))
def test_any_reads_give_the_same_log_queues_counts_and_answers(
    speedups: SpeedupsModule, examples: int
) -> None:
    @settings(max_examples=examples)
    @given(reads(), st.sampled_from(PROFILES))
    def holds(steps: tuple[TwinStep, ...], profile: Profile) -> None:
        played(speedups, *steps, profile=profile)

    holds()


@pytest.mark.parametrize("profile", PROFILES)
def test_the_sends_that_java_clients_sent_are_plain(speedups: SpeedupsModule, profile: Profile) -> None:
    recorded = [
        frame.data
        for frame in golden()[0]
        if frame.code == RequestCode.SEND_MESSAGE_V2 and frame.form == "request"
    ]
    topic = TwinStep(create_topic("GoldenTopic") + send("GoldenTopic"), seconds=1.0)
    first, rest = TwinStep(recorded[0], seconds=1.0), TwinStep(b"".join(recorded))
    _, encoded = played(speedups, topic, first, rest, profile=profile)
    assert encoded == len(recorded) >= 4
