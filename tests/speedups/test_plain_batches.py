"""With the native kernel a broker stores batches and answers them as it does in pure Python."""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.speedups import SpeedupsModule
from tests.protocol.golden.frames import golden
from tests.speedups.requests import KINDS, OWN, PLAIN, batch, create_topic, inner, pull, send
from tests.speedups.stage import PROFILES, answers, play
from tests.speedups.twins import ENTRIES_PER_FILE, SEGMENT_BYTES, TwinState, TwinStep

# A batch's own properties, as the clients of 4.x and 5.x write them.
SHARED = ("WAIT\x01true", PLAIN)


def played(speedups: SpeedupsModule, *steps: TwinStep, **more: Any) -> tuple[TwinState, int]:
    """Play the steps after ``BEGIN``; return what came of them, and how many sends the kernel encoded."""
    outcome, encoded = play(speedups, *steps, **more)
    return outcome, encoded.sends


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_encodes_every_plain_batch_of_a_read(
    speedups: SpeedupsModule, profile: Profile, kind: SerializeType
) -> None:
    read = b"".join(
        batch(
            kind=kind,
            texts=[OWN] * (n % 4 + 1),
            topic="TU"[n % 2],
            queue_id=n % 4,
            properties=PLAIN,
            opaque=n,
        )
        for n in range(6)
    )
    steps = TwinStep(read), TwinStep(read, connection=1)
    outcome, encoded = played(speedups, *steps, profile=profile, segment_bytes=1 << 17)
    assert encoded == 12
    found = answers(outcome, 1)
    assert [answer.opaque for answer in found] == list(range(6))
    assert [len(answer.ext["msgId"].split(",")) for answer in found] == [1, 2, 3, 4, 1, 2]


def test_sends_and_batches_of_a_read_keep_their_order(speedups: SpeedupsModule) -> None:
    read = b"".join(batch(opaque=n) if n % 3 else send(opaque=n) for n in range(6))
    outcome, encoded = played(speedups, TwinStep(read), segment_bytes=1 << 17)
    assert encoded == 6
    assert [answer.opaque for answer in answers(outcome)[-6:]] == list(range(6))
    assert outcome.queues["T/0"] == (1 + 2 + 4 * 3, 0)


TEXTS = (
    *("", "\x02", "A", "A\x01", "A\x01c", "A\x01c\x02", "A\x01b\x00", "WAIT\x01false", "AWAIT\x01true"),
    *("TAGS\x01A\x02TAGS\x01B", "TAGS\x01A\x02TAGS\x01", "TAGS\x01", "B\x01\x02TAGS\x01Longer than an int32"),
    *(
        "DELAY\x010",
        "DELAY\x011",
        "XDELAY\x011",
        "TRAN_MSG\x01false",
        "TRAN_MSG\x01true",
        "A\x01\xe9",
        "A\x01b\x01",
    ),
    *(OWN + "\x02", OWN + "\x02CLUSTER\x01mine", OWN + "\x02" + "x" * 32_600, OWN + "\x02" + "x" * 32_690),
)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_properties_text_of_a_message_is_stored_as_python_does(
    speedups: SpeedupsModule, profile: Profile
) -> None:
    reads = [
        batch(texts=[OWN, text, OWN], properties=properties, opaque=n)
        for n, text in enumerate(TEXTS)
        for properties in SHARED
    ]
    _, encoded = played(speedups, TwinStep(b"".join(reads)), profile=profile, segment_bytes=1 << 19)
    # Under v53, a batch without its own UNIQ_KEY is Python's.
    assert encoded >= (12 if profile is Profile.V53 else 24)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_properties_text_of_a_batch_is_stored_as_python_does(
    speedups: SpeedupsModule, profile: Profile
) -> None:
    texts = (
        *TEXTS,
        None,
        "CLUSTER\x01mine",
        "MSG_REGION\x01mine",
        "A\x01b\x02A\x01c",
        "\x01b",
        PLAIN + "\x02",
    )
    reads = [
        batch(texts=own, properties=text, opaque=n)
        for n, text in enumerate(texts)
        for own in ([OWN, "A\x01x\x02"], ["", "\x02", "TAGS\x01A"])
    ]
    _, encoded = played(speedups, TwinStep(b"".join(reads)), profile=profile, segment_bytes=1 << 19)
    assert encoded >= 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        inner(b"a", OWN, size_error=1),
        inner(b"a", OWN, size_error=-1),
        inner(b"a", OWN)[:-1],
        inner(b"a", OWN) + b"\0" * 10,
        inner(b"a", OWN) + inner(b"b", OWN, size_error=2**30),
        b"\xff" * 40,
        b"\0\0\0\x16" + bytes(12) + b"\xff\xff\xff\xff\0\0",
    ],
)
def test_a_body_whose_lengths_do_not_add_up_stores_nothing(speedups: SpeedupsModule, body: bytes) -> None:
    outcome, encoded = played(speedups, TwinStep(batch(body=body) + send(opaque=9)))
    assert encoded == 1
    assert [answer.code for answer in answers(outcome)[-2:]] == [13, 0]
    assert outcome.queues["T/0"] == (2, 0)


def test_a_message_has_its_own_flag_and_the_batch_s_other_fields(speedups: SpeedupsModule) -> None:
    body = inner(b"a", OWN, flag=5) + inner(b"", "", flag=-(2**31))
    read = batch(body=body, flag=0, reconsume_times=3, sys_flag=16, born_timestamp=-1)
    outcome, encoded = played(speedups, TwinStep(read + pull(0, 1, sys_flag=4, subscription="*")))
    assert encoded == 1
    found = decode_records(answers(outcome)[-1].body)
    assert [(message.flag, message.reconsume_times) for message in found] == [(5, 3), (-(2**31), 3)]


def test_the_ends_of_segments_and_queue_files_are_python_s(speedups: SpeedupsModule) -> None:
    """A batch that does not fit there is stored as a whole behind them."""
    reads = [batch(texts=[OWN] * (n % 7 + 1), queue_id=n % 2, opaque=n) for n in range(120)]
    outcome, encoded = played(speedups, *map(TwinStep, reads))
    assert 60 < encoded < 120
    messages = sum(n % 7 + 1 for n in range(120))
    assert outcome.queues["T/0"][0] + outcome.queues["T/1"][0] == 2 + messages
    files = [path for path in outcome.files if path.startswith("consumequeue/T/")]
    assert len(files) > messages // ENTRIES_PER_FILE
    assert len([path for path in outcome.files if path.startswith("commitlog")]) > 3


def test_large_batches_are_python_s(speedups: SpeedupsModule) -> None:
    """More messages than 1,024, more bytes than a message may have, more than a MiB, more than a segment."""
    many = [batch(texts=["A\x01b"] * count) for count in (700, 1_025)]
    large = [batch(body=inner(bytes(count), OWN) * 10) for count in (25_000, 26_500, 110_000)]
    limits = {"max_message_size": 266_000, "mapped_file_size_consume_queue": 1 << 16}
    _, encoded = played(
        speedups, TwinStep(b"".join([many[0], *large, many[1]])), segment_bytes=1 << 22, store_limits=limits
    )
    assert encoded == 2
    _, encoded = played(speedups, TwinStep(batch(body=inner(bytes(SEGMENT_BYTES), OWN))))
    assert encoded == 0


def test_a_waiting_pull_is_woken_by_a_batch(speedups: SpeedupsModule) -> None:
    read = b"".join(batch(opaque=n) for n in range(3))
    outcome, encoded = played(
        speedups, TwinStep(pull(0, 1), connection=1, seconds=1.0), TwinStep(read, seconds=1.0)
    )
    assert encoded == 2
    assert len(decode_records(answers(outcome, 1)[-1].body)) == 9


def test_reads_that_end_within_batches_give_the_same(speedups: SpeedupsModule) -> None:
    stream = b"".join(batch(texts=[OWN] * (n % 4 + 1), opaque=n) for n in range(8))
    for size in (1, 60, 1_000):
        played(speedups, *(TwinStep(stream[at : at + size]) for at in range(0, len(stream), size)))


def test_a_full_disk_refuses_every_batch(speedups: SpeedupsModule) -> None:
    read = batch() + batch()
    outcome, encoded = played(
        speedups, TwinStep(disk_full=True), TwinStep(read), TwinStep(disk_full=False), TwinStep(read)
    )
    assert encoded == 2
    assert [answer.code for answer in answers(outcome)[-4:]] == [14, 14, 0, 0]


@pytest.mark.parametrize("profile", PROFILES)
def test_the_batches_that_java_clients_sent_are_plain(speedups: SpeedupsModule, profile: Profile) -> None:
    recorded = [
        each.data
        for each in golden()[0]
        if each.code == RequestCode.SEND_BATCH_MESSAGE and each.form == "request"
    ]
    begin = [TwinStep(create_topic("GoldenTopic"), seconds=1.0)]
    begin += [TwinStep(send("GoldenTopic", queue), seconds=1.0) for queue in range(4)]
    _, encoded = played(speedups, *begin, TwinStep(b"".join(recorded)), profile=profile)
    # From 5.0 on, the response names the batch's own UNIQ_KEY.
    named = [data for data in recorded if b"UNIQ_KEY" in data[: 8 + int.from_bytes(data[5:8], "big")]]
    assert encoded == len(named if profile is Profile.V53 else recorded)
    assert recorded
