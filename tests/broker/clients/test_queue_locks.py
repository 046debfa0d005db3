"""Locks of orderly consumers at the broker: 41, 42, B28."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rewindmq.broker.clients import queue_locks
from rewindmq.broker.clients.queue_locks import RebalanceLockManager
from rewindmq.protocol.body.lock import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from tests.support.ends import new_end
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


async def lock(peer: Peer, *queues: MessageQueue, group: str = "G", **fields: Any) -> set[MessageQueue]:
    body = LockBatchRequestBody(group, peer.client_id, set(queues), **fields)
    response = (await peer.ask(RequestCode.LOCK_BATCH_MQ, body=body)).require_success()
    return decode_body(response, LockBatchResponseBody).lock_ok_mq_set


async def unlock(peer: Peer, *queues: MessageQueue, group: str = "G") -> None:
    body = UnlockBatchRequestBody(group, peer.client_id, set(queues))
    (await peer.ask(RequestCode.UNLOCK_BATCH_MQ, body=body)).require_success()


@pytest.mark.scenario("B28", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated()
async def test_B28_the_lock_of_a_dead_client_is_granted_after_60_seconds(
    stage: SimStage, profile: Profile
) -> None:
    """C1 locked q0 at 0 and dies: C2 is refused at 59.9 and granted at 60.1."""
    dying, other = stage.peer("c1"), stage.peer("c2")
    assert await lock(dying, Q0) == {Q0}
    await dying.client.close()
    await stage.at(59.9)
    assert await lock(other, Q0, Q1) == {Q1}
    await stage.at(60.1)
    assert await lock(other, Q0) == {Q0}


@simulated()
async def test_a_lock_lives_60_seconds_from_its_last_refresh(stage: SimStage) -> None:
    owner, other = stage.peer("c1"), stage.peer("c2")
    for second in (0.0, 50.0, 100.0):
        await stage.at(second)
        assert await lock(owner, Q0) == {Q0}
    await stage.at(160.0)
    assert await lock(other, Q0) == set()
    await stage.at(160.1)
    assert await lock(other, Q0) == {Q0}
    assert await lock(owner, Q0) == set()


@simulated()
async def test_only_the_holder_unlocks_and_groups_do_not_meet(stage: SimStage) -> None:
    owner, other = stage.peer("c1"), stage.peer("c2")
    assert await lock(owner, Q0, Q1, only_this_broker=True) == {Q0, Q1}
    assert await lock(other, Q0, group="H") == {Q0}
    await unlock(other, Q0, Q1)
    await unlock(other, Q0, group="unknown")
    assert await lock(other, Q0, Q1) == set()
    await unlock(owner, Q0)
    assert await lock(other, Q0, Q1) == {Q0}


@simulated()
async def test_a_restarted_broker_knows_no_locks(stage: SimStage) -> None:
    assert await lock(stage.peer("c1"), Q0) == {Q0}
    await stage.broker.close()
    await stage.start_broker()
    assert await lock(stage.peer("c2"), Q0) == {Q0}


@pytest.mark.parametrize(
    "body",
    [
        LockBatchRequestBody("G!", "c1", {Q0}),
        LockBatchRequestBody("G", "", {Q0}),
        LockBatchRequestBody("G", "c" * 1_025, {Q0}),
        LockBatchRequestBody("G", "c1", {Q0._replace(topic="T" * 128)}),
        LockBatchRequestBody("G", "c1", {Q0._replace(broker_name="b" * 1_025)}),
    ],
)
@simulated()
async def test_names_that_would_be_kept_are_checked(stage: SimStage, body: LockBatchRequestBody) -> None:
    answer = await stage.peer().ask(RequestCode.LOCK_BATCH_MQ, body=body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert not stage.broker.context.clients.queue_locks.is_any_held(body.consumer_group)


def queues_of(count: int, first: int = 0) -> list[MessageQueue]:
    return [MessageQueue("T", "broker-a", number) for number in range(first, first + count)]


def test_the_table_is_bounded_and_forgets_expired_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_locks, "MAX_QUEUE_LOCKS", 3)
    now = 0.0
    locks, one = RebalanceLockManager(lambda: now), new_end()
    queues = queues_of(6)
    assert len(locks.lock(one, "G", "c1", queues)) == 3
    now = 60.0
    assert locks.lock(one, "H", "c1", queues) == set()
    assert locks.is_any_held("G")
    now = 60.1
    assert not locks.is_any_held("G")
    now = 120.1
    assert len(locks.lock(one, "H", "c1", queues)) == 3
    held = locks.lock(one, "H", "c1", queues)
    locks.unlock("H", "c1", held)
    assert not locks.is_any_held("H")
    assert len(locks.lock(one, "G", "c2", queues)) == 3


def test_no_connection_locks_more_queues_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_locks, "MAX_QUEUE_LOCKS_PER_CONNECTION", 2)
    monkeypatch.setattr(queue_locks, "MAX_QUEUE_LOCKS", 5)
    locks, greedy, other, third = RebalanceLockManager(lambda: 0.0), new_end(), new_end(), new_end()
    assert len(locks.lock(greedy, "G", "c1", queues_of(6))) == 2
    assert len(locks.lock(other, "H", "c2", queues_of(2))) == 2
    assert len(locks.lock(third, "I", "c3", queues_of(2))) == 1
    # The refused client may lock after the release.
    locks.unlock("G", "c1", queues_of(6))
    assert len(locks.lock(third, "I", "c3", queues_of(2))) == 2
    assert len(locks.lock(greedy, "G", "c1", queues_of(6, first=10))) == 1
    assert len(locks) == 5


def test_locks_of_closed_connections_make_room_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_locks, "MAX_QUEUE_LOCKS", 4)
    now = 0.0
    locks = RebalanceLockManager(lambda: now)
    first, second, third = new_end(), new_end(), new_end()
    assert len(locks.lock(first, "G", "c1", queues_of(2))) == 2
    assert len(locks.lock(second, "H", "c2", queues_of(2))) == 2
    locks.on_close(first)
    assert (len(locks), locks.shares.used) == (4, 2)
    # The client returns over another connection: one of its locks is its own again.
    assert locks.lock(third, "G", "c1", queues_of(1)) == {Q0}
    # Only the lock that the closed connection left goes.
    assert len(locks.lock(third, "I", "c3", queues_of(2))) == 1
    assert locks.lock(second, "H", "c2", queues_of(2)) == {Q0, Q1}
    assert locks.lock(third, "G", "c1", queues_of(1)) == {Q0}
    for connection in (second, third):
        locks.on_close(connection)
    assert (len(locks), locks.shares.used) == (4, 0)
    now = 60.1
    assert locks.lock(first, "J", "c4", ()) == set()
    assert len(locks) == 0


@pytest.mark.parametrize(("profile", "topic"), [(Profile.V49, "%RETRY%G"), (Profile.V53, "%DLQ%G")])
@simulated()
async def test_v53_makes_a_retry_of_an_orderly_group_a_dead_letter_at_once(
    stage: SimStage, profile: Profile, topic: str
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    assert await lock(peer, Q0) == {Q0}
    (await peer.send("%RETRY%G", reconsume_times=1, max_reconsume_times=9)).require_success()
    assert stage.broker.context.store.max_offset(topic, 0) == 1
    await stage.at(60.1)
    (await peer.send("%RETRY%G", reconsume_times=1, max_reconsume_times=9)).require_success()
    assert stage.broker.context.store.max_offset("%RETRY%G", 0) == (2 if topic == "%RETRY%G" else 1)


def test_a_request_for_many_queues_is_one_line_of_the_log(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each of thousands of queues would hold the event loop."""
    monkeypatch.setattr(queue_locks, "MAX_QUEUE_LOCKS", 650)
    queues = [MessageQueue("T", "broker-a", queue_id) for queue_id in range(700)]

    async def scenario(stage: SimStage) -> None:
        owner, other = stage.peer("c1"), stage.peer("c2")
        assert await lock(owner, *queues[:600]) == set(queues[:600])
        caplog.set_level(logging.INFO)
        granted = await lock(other, *queues)
        assert len(granted) == 50
        assert granted <= set(queues[600:])

    simulate(scenario)
    lines = [record.getMessage() for record in caplog.records if "tryLockBatch" in record.getMessage()]
    assert [line.partition(", group")[0] for line in lines] == [
        "tryLockBatch, 600 queues held by others, not c2",
        "tryLockBatch, no room for 50 queues",
    ]
