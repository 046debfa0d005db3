"""With the native kernel a broker answers, counts and commits pulls as it does in pure Python."""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq.broker.config import BrokerRole
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.speedups import SpeedupsModule
from rewindmq.protocol.reset_mode import ResetMode
from tests.protocol.golden.frames import golden
from tests.speedups.requests import (
    KINDS,
    batch,
    commit,
    create_topic,
    delete_topic,
    heartbeat,
    pull,
    reset,
    send,
)
from tests.speedups.stage import PROFILES, answers, play
from tests.speedups.twins import ENTRIES_PER_FILE, TwinState, TwinStep

COMMITS = PullSysFlag.COMMIT_OFFSET | PullSysFlag.SUSPEND
SUBSCRIBES = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND


def played(speedups: SpeedupsModule, *steps: TwinStep, **more: Any) -> tuple[TwinState, int]:
    """Play the steps after ``BEGIN``; return what came of them, and how many pulls the kernel answered."""
    outcome, encoded = play(speedups, *steps, **more)
    return outcome, encoded.pulls


def filled(count: int = 40, tags: str = "TagA", queue_id: int = 0) -> TwinStep:
    """Sends to a queue of T, behind its first message."""
    return TwinStep(
        b"".join(
            send(queue_id=queue_id, body=bytes(n), properties=f"UNIQ_KEY\x01{n}\x02TAGS\x01{tags}", opaque=n)
            for n in range(count)
        )
    )


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_answers_every_plain_pull_of_a_read(
    speedups: SpeedupsModule, profile: Profile, kind: SerializeType
) -> None:
    read = b"".join(pull(n % 2, n // 2 * 5, opaque=n, kind=kind) for n in range(16))
    steps = filled(), filled(queue_id=1), TwinStep(read)
    outcome, answered = played(speedups, *steps, profile=profile, segment_bytes=1 << 17)
    assert answered == 16
    found = answers(outcome)[-16:]
    assert [(answer.opaque, answer.code) for answer in found] == [(n, 0) for n in range(16)]
    for number, answer in enumerate(found):
        first = number // 2 * 5
        offsets = [message.queue_offset for message in decode_records(answer.body)]
        assert offsets == list(range(first, first + len(offsets)))


def test_messages_of_several_queues_are_in_pieces_of_the_log(speedups: SpeedupsModule) -> None:
    sends = b"".join(send(queue_id=n % 3, body=bytes(n), opaque=n) for n in range(60))
    outcome, answered = played(
        speedups, TwinStep(sends), TwinStep(b"".join(map(pull, range(4)))), segment_bytes=1 << 17
    )
    assert answered == 4
    assert [len(decode_records(answer.body)) for answer in answers(outcome)[-4:]] == [
        ENTRIES_PER_FILE,
        ENTRIES_PER_FILE,
        ENTRIES_PER_FILE,
        1,
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_commits_and_a_first_commit_is_python_s(speedups: SpeedupsModule, kind: SerializeType) -> None:
    pulls = [pull(0, 0, sys_flag=COMMITS, commit_offset=offset, kind=kind) for offset in (3, 7, 2, -1)]
    outcome, answered = played(speedups, filled(), TwinStep(b"".join(pulls)))
    # The last one is of a queue that was set back.
    assert answered == 2
    assert '"T@G":{0:2\n' in outcome.offsets.replace("\t", "")


def test_a_pull_that_finds_nothing_commits_once_and_waits(speedups: SpeedupsModule) -> None:
    read = commit(1) + pull(0, 1, sys_flag=COMMITS, commit_offset=5)
    outcome, answered = played(speedups, TwinStep(read), filled(1), TwinStep(seconds=1.0))
    assert answered == 0
    assert [answer.opaque for answer in answers(outcome)[-3:]] == [50, 0, 101]
    outcome, _ = played(speedups, TwinStep(read))
    assert outcome.waiting == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expression", ["TagA", "TagB", "TagA || TagB", "TagC", "*", "", None, "TagX||TagA "])
def test_the_tags_of_a_pull_and_of_its_group_choose_the_messages(
    speedups: SpeedupsModule, kind: SerializeType, expression: str | None
) -> None:
    """The heartbeat subscribes the group to TagA."""
    sends = (filled(5), filled(5, "TagB"), filled(5))
    of_group = pull(opaque=1, kind=kind)
    own = pull(opaque=2, kind=kind, sys_flag=SUBSCRIBES, subscription=expression)
    outcome, answered = played(speedups, *sends, TwinStep(of_group + own))
    is_plain = expression != "TagC" and not (expression == "" and kind is SerializeType.ROCKETMQ)
    assert answered == 1 + is_plain
    assert len(decode_records(answers(outcome)[-2].body)) == 11


def test_more_tags_than_the_kernel_takes_are_python_s(speedups: SpeedupsModule) -> None:
    tags = [" || ".join(f"Tag{n}" for n in (*range(count - 1), "A")) for count in (64, 65)]
    pulls = [pull(sys_flag=SUBSCRIBES, subscription=each) for each in tags]
    _, answered = played(speedups, filled(), TwinStep(b"".join(pulls)))
    assert answered == 1


def test_the_ends_of_segments_and_queue_files_give_the_same(speedups: SpeedupsModule) -> None:
    """A pull that crosses segments is Python's; at the end of a queue's file it is shorter."""
    sends = [
        TwinStep(b"".join(send(queue_id=n % 2, body=bytes(n), opaque=n) for n in range(120)))
        for _ in range(2)
    ]
    pulls = b"".join(pull(queue, offset) for queue in range(2) for offset in range(121))
    outcome, answered = played(speedups, *sends, TwinStep(pulls))
    assert 100 < answered < 242
    found = answers(outcome)[-242:]
    last = ENTRIES_PER_FILE - 1
    assert len(decode_records(found[last].body)) == 1


@pytest.mark.parametrize(
    "limits",
    [
        {"max_transfer_count_on_message_in_memory": 3},
        {"max_transfer_bytes_on_message_in_memory": 700},
        {"max_transfer_count_on_message_in_disk": 2, "physical_memory_bytes": 1_000},
        {"max_transfer_bytes_on_message_in_disk": 1, "physical_memory_bytes": 1_000},
    ],
)
def test_the_limits_of_a_transfer_hold(speedups: SpeedupsModule, limits: dict[str, int]) -> None:
    pulls = b"".join(pull(0, offset, max_msg_nums=20) for offset in range(41))
    outcome, answered = played(
        speedups, filled(), TwinStep(pulls), store_limits=limits, segment_bytes=1 << 17
    )
    assert answered == 41
    assert len(decode_records(answers(outcome)[-41].body)) < 20


def test_pulls_that_are_not_plain_are_python_s(speedups: SpeedupsModule) -> None:
    """Each of these is answered, refused or suspended as without the kernel."""
    others = {
        "beyond the queue": pull(0, 99),
        "below it": pull(0, -1),
        "unknown queue": pull(9),
        "unknown topic": pull(topic="New"),
        "unknown group": pull(consumer_group="H"),
        "epoch": pull(epoch=0),
        "body": pull(body=b"x"),
        "oneway": pull(flag=2),
        "newer subscription": pull(sub_version=2**62),
        "SQL92": pull(sys_flag=SUBSCRIBES, subscription="a > 1", expression_type="SQL92"),
        "response": pull(flag=1),
    }
    for name, data in others.items():
        _, answered = played(speedups, filled(), TwinStep(data + pull(), seconds=1.0))
        assert answered == 1, name


def test_a_queue_that_was_reset_is_python_s(speedups: SpeedupsModule) -> None:
    """In fenced mode its epoch is above 0; in server mode the next pull gets the mark, and more are noted."""
    for mode, plain in ((ResetMode.FENCED, 0), (ResetMode.SERVER, 0)):
        commits = b"".join(commit(3, queue) for queue in range(4))
        steps = TwinStep(commits), TwinStep(reset(mode), seconds=1.0), TwinStep(pull() + pull(), seconds=1.0)
        outcome, answered = played(speedups, filled(), *steps, profile=Profile.V53)
        codes = [answer.code for answer in answers(outcome) if answer.opaque == 100]
        assert (mode, codes[0], answered) == (mode, 21, plain)


def test_a_queue_that_was_set_back_is_python_s_until_it_is_redelivered(speedups: SpeedupsModule) -> None:
    rewound = commit(9) + commit(0) + pull(0, 0)
    redelivered = pull(0, 9) + commit(9)
    outcome, answered = played(
        speedups,
        filled(8),
        TwinStep(rewound),
        TwinStep(redelivered, seconds=1.0),
        filled(1),
        TwinStep(pull(0, 0)),
    )
    assert answered == 1
    assert [answer.code for answer in answers(outcome)][-1] == 0


def test_a_topic_that_changes_or_goes_is_looked_at_again(speedups: SpeedupsModule) -> None:
    steps = (
        *(TwinStep(pull()), TwinStep(create_topic("T", perm=2), seconds=1.0), TwinStep(pull())),
        *(TwinStep(create_topic("T"), seconds=1.0), TwinStep(pull())),
        *(TwinStep(delete_topic("T"), seconds=1.0), TwinStep(pull(), seconds=1.0)),
    )
    outcome, answered = played(speedups, filled(), *steps)
    assert answered == 2
    codes = [answer.code for answer in answers(outcome) if answer.opaque == 100]
    assert codes == [0, 16, 0, 17]


def test_a_broker_that_flushes_before_it_answers_sends_has_the_kernel_of_pulls(
    speedups: SpeedupsModule,
) -> None:
    _, encoded = play(speedups, TwinStep(pull() + pull()), flush=FlushDiskType.SYNC_FLUSH)
    assert encoded == (0, 2)


@pytest.mark.parametrize("switches", [{"slave_read_enable": True}, {"broker_role": BrokerRole.SLAVE}])
def test_a_broker_that_suggests_another_or_has_a_master_has_no_kernel(
    speedups: SpeedupsModule, switches: dict[str, Any]
) -> None:
    if "broker_role" in switches:
        switches = {**switches, "broker_id": 1}
    _, answered = played(speedups, TwinStep(pull() + pull()), **switches)
    assert answered == 0


def test_a_broker_that_is_watched_has_no_kernel(speedups: SpeedupsModule) -> None:
    _, answered = played(speedups, TwinStep(pull()), probe=lambda point, details: None)
    assert answered == 0


def test_a_response_of_more_than_a_mebibyte_is_python_s(speedups: SpeedupsModule) -> None:
    sends = b"".join(send(body=bytes(120_000), opaque=n) for n in range(10))
    limits = {"max_transfer_bytes_on_message_in_memory": 1 << 22}
    pulls = pull(0, 1) + pull(0, 5)
    _, answered = played(
        speedups, TwinStep(sends), TwinStep(pulls), store_limits=limits, segment_bytes=1 << 22
    )
    assert answered == 1


def test_reads_that_end_within_frames_give_the_same(speedups: SpeedupsModule) -> None:
    stream = b"".join(pull(n % 2, n, opaque=n) for n in range(12))
    for size in (1, 40, 400, 1_000):
        steps = [TwinStep(stream[at : at + size]) for at in range(0, len(stream), size)]
        played(speedups, filled(), filled(queue_id=1), *steps)


def test_a_batch_is_pulled_in_one_piece(speedups: SpeedupsModule) -> None:
    outcome, answered = played(speedups, TwinStep(batch() + heartbeat() + pull(0, 1)))
    assert answered == 1
    assert len(decode_records(answers(outcome)[-1].body)) == 3


@pytest.mark.parametrize("profile", PROFILES)
def test_the_pulls_that_java_clients_sent_are_plain(speedups: SpeedupsModule, profile: Profile) -> None:
    """Except those of the tools that stand twice or are signed."""
    recorded = [
        each.data for each in golden()[0] if each.code == RequestCode.PULL_MESSAGE and each.form == "request"
    ]
    plain = [data for data in recorded if b"TOOLS" not in data]
    begin = (
        TwinStep(create_topic("GoldenTopic") + send("GoldenTopic"), seconds=1.0),
        *(
            TwinStep(heartbeat(group, ("GoldenTopic",), 2**62))
            for group in ("golden-consumers", "golden-pullers")
        ),
    )
    _, answered = played(speedups, *begin, TwinStep(b"".join(plain)), profile=profile)
    assert answered == len(plain) >= 4
