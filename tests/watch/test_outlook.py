"""What a watch will be able to say of a reset, by the sample right before it (docs/watched_reset.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rewindmq import MessageQueue
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import Fetched, QueueSample, Sample
from rewindmq.watch.verdict.outlook import PROMISES, Evidence, Outlook, Promise, outlook_of

OURS, THEIRS = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-b", 0)
SECOND = MessageQueue("T", "broker-b", 1)
AT_END = Position("A", 10, None, dropped=False, last_consume=1_000, last_pull=30_000)
IDLE = QueueSample(10, 10, (AT_END,))
BEFORE = Sample(
    0.0,
    {OURS: IDLE, THEIRS: IDLE, SECOND: IDLE},
    frozenset({"A"}),
    consumed={"A": 0.7},
    fetched={"broker-b": Fetched(0.0, 0)},
    rewinders=frozenset({"broker-a"}),
)
TO_START = dict.fromkeys(BEFORE.queues, 0)


def with_queues(*queues: MessageQueue, seen: QueueSample) -> Sample:
    return replace(BEFORE, queues={**BEFORE.queues, **dict.fromkeys(queues, seen)})


def found(before: Sample, targets: Mapping[MessageQueue, int] = TO_START) -> dict[str, Outlook]:
    """Return the outlooks by where they are of."""
    return {outlook.where: outlook for outlook in outlook_of(before, targets)}


def test_each_broker_has_the_evidence_that_it_gives() -> None:
    outlooks = found(BEFORE)
    assert {where: outlook.evidence for where, outlook in outlooks.items()} == {
        "broker-a": Evidence.REWINDS,
        "broker-b": Evidence.COUNT,
    }
    assert str(outlooks["broker-a"]) == (
        "broker-a: the broker tells what it hands out again: proven about 1 s after the last redelivered"
        " message is consumed"
    )
    assert outlooks["broker-b"].queues == (THEIRS, SECOND)


def test_brokers_with_the_same_evidence_share_a_sentence() -> None:
    (outlook,) = outlook_of(replace(BEFORE, rewinders=frozenset({"broker-a", "broker-b"})), TO_START)
    assert (outlook.where, outlook.promise) == ("broker-a, broker-b", Promise.PROVEN)


def test_a_queue_that_differs_from_its_broker_is_named() -> None:
    outlooks = found(with_queues(SECOND, seen=IDLE), {**TO_START, SECOND: 10})
    assert {where: outlook.evidence for where, outlook in outlooks.items()} == {
        "broker-a": Evidence.REWINDS,
        "broker-b:0": Evidence.COUNT,
        "broker-b:1": Evidence.UNMOVED,
    }


@pytest.mark.parametrize(
    ("before", "why", "evidence"),
    [
        (
            replace(BEFORE, fetched={"broker-b": Fetched(0.0, 7)}),
            "the group fetched 7 messages from broker-b in the minute before",
            Evidence.MINUTE,
        ),
        (
            replace(BEFORE, fetched={}),
            "broker-b does not tell how many messages the group fetched",
            Evidence.REDELIVERY,
        ),
        (
            with_queues(SECOND, seen=QueueSample(8, 10, (replace(AT_END, offset=8),))),
            "the group was at 8 in broker-b:1, stored 8 of 10",
            Evidence.MINUTE,
        ),
        (
            with_queues(SECOND, seen=replace(IDLE, positions=(replace(AT_END, last_consume=25_000),))),
            "the group consumed a message of broker-b:1 in the 10 s before",
            Evidence.MINUTE,
        ),
        (
            replace(BEFORE, is_filtered=True),
            "the subscription leaves out messages of the topic",
            Evidence.REDELIVERY,
        ),
    ],
    ids=["fetched", "not told", "lag", "just now", "tags"],
)
def test_a_busy_group_at_a_broker_without_rewinds_depends_on_the_redelivery(
    before: Sample, why: str, evidence: Evidence
) -> None:
    outlook = next(item for item in outlook_of(before, TO_START) if THEIRS in item.queues)
    assert (outlook.evidence, outlook.promise) == (evidence, Promise.DEPENDS)
    assert outlook.text.startswith(why)
    assert "preview again when the group has been idle for a minute" in outlook.text


def test_a_reset_of_some_queues_cannot_be_counted() -> None:
    outlook = found(BEFORE, {THEIRS: 0})["broker-b"]
    assert (outlook.evidence, outlook.text.split(":")[0]) == (
        Evidence.REDELIVERY,
        "the reset does not cover broker-a",
    )


NOBODY = replace(IDLE, positions=())


@pytest.mark.parametrize(
    ("before", "evidence", "named"),
    [
        (replace(with_queues(OURS, seen=NOBODY), clients=frozenset()), Evidence.NO_CONSUMER, "after 30 s"),
        (with_queues(OURS, seen=NOBODY), Evidence.NO_HOLDER, "unless a consumer takes it"),
        (
            replace(with_queues(OURS, seen=NOBODY), is_pulling=True),
            Evidence.NO_HOLDER,
            "pull by themselves",
        ),
        (
            replace(with_queues(OURS, seen=NOBODY), is_complete=False, silent=frozenset({"B"})),
            Evidence.SILENT_CONSUMER,
            "consumer B does not answer GET_CONSUMER_RUNNING_INFO (307)",
        ),
        (
            replace(with_queues(OURS, seen=NOBODY), is_complete=False, shared=frozenset({"B"})),
            Evidence.SHARED_ID,
            "the client id B",
        ),
        (replace(with_queues(OURS, seen=NOBODY), is_complete=False), Evidence.NOT_TOLD, "group's consumers"),
        (with_queues(OURS, seen=QueueSample(None)), Evidence.NOT_TOLD, "group's offsets"),
        (replace(BEFORE, is_broadcasting=True), Evidence.BROADCASTING, "never proven"),
    ],
)
def test_what_leaves_a_kept_reset_unknown_is_named_before(
    before: Sample, evidence: Evidence, named: str
) -> None:
    outlook = next(item for item in outlook_of(before, TO_START) if OURS in item.queues)
    assert (outlook.evidence, outlook.promise) == (evidence, Promise.UNKNOWN)
    assert named in outlook.text


def test_two_consumers_in_a_queue_and_a_target_that_is_not_yet_stored_are_no_promise() -> None:
    both = replace(IDLE, positions=(AT_END, replace(AT_END, client_id="B")))
    assert found(with_queues(OURS, seen=both))["broker-a"].evidence is Evidence.SEVERAL_HOLDERS
    behind = found(with_queues(OURS, seen=replace(IDLE, stored=2)), {**TO_START, OURS: 5})["broker-a"]
    assert (behind.evidence, behind.promise) == (Evidence.REDELIVERY, Promise.DEPENDS)


def test_skips_name_the_messages_that_they_leave_out_and_what_was_consumed() -> None:
    queues = {OURS: QueueSample(4, 10, (replace(AT_END, offset=4),)), THEIRS: IDLE, SECOND: IDLE}
    before = replace(BEFORE, queues=queues)
    assert "(6; in the last minute, at most 1)" in found(before, {OURS: 10})["broker-a"].text
    far = found(replace(before, queues={**queues, THEIRS: queues[OURS]}), {OURS: 10, THEIRS: 9})
    assert "(5 to 6 by queue; " in far["broker-a, broker-b"].text
    untold = found(replace(before, consumed={}), {OURS: 10})["broker-a"].text
    assert untold == "a skip, unknown unless consumer A tells how much it consumes"


def test_many_queues_are_counted_instead_of_listed() -> None:
    queues = [MessageQueue("T", "broker-a", number) for number in range(64)]
    before = replace(BEFORE, queues=dict.fromkeys(queues, IDLE))
    targets = {queue: 10 if queue.queue_id == 63 else 0 for queue in queues}
    assert list(found(before, targets)) == [
        "broker-a:0, broker-a:1, broker-a:2, broker-a:3 and 59 more",
        "broker-a:63",
    ]


def test_every_kind_of_evidence_has_a_promise() -> None:
    assert PROMISES.keys() == set(Evidence)
