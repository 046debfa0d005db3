"""Checks of half messages that no producer ended: B30, immunity, limits, progress, restarts.

Specification: docs/spec/broker.md B.14.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from rewindmq.broker.store.model import PutResult, PutStatus
from rewindmq.broker.transaction import check
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.record import decode_record, decode_records
from rewindmq.protocol.profile import Profile
from tests.support.answers import body_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

HALF, OP, MAX_TIME = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"
CHECK = RequestCode.CHECK_TRANSACTION_STATE
COMMIT, ROLLBACK = 8, 12


async def send_half(
    stage: SimStage, peer: Peer, properties: Mapping[str, str] | None = None, key: str = "K1"
) -> dict[str, Any]:
    """Send a half message; return the header of END_TRANSACTION (37) for it."""
    properties = {"TRAN_MSG": "true", "PGROUP": "PG", "UNIQ_KEY": key, **(properties or {})}
    born = stage.runtime.clock.now_ms()
    answer = await peer.send("T", properties=properties, born_timestamp=born, sys_flag=4)
    header = answer.require_success().decode_header(SendMessageResponseHeader)
    _, position = parse_offset_message_id(header.msg_id)
    return {"tran_state_table_offset": header.queue_offset, "commit_log_offset": position}


async def end(peer: Peer, offsets: dict[str, Any], verdict: int, *, asked: bool = False) -> None:
    header = EndTransactionRequestHeader(
        producer_group="PG",
        commit_or_rollback=verdict,
        msg_id="K1",
        from_transaction_check=asked,
        **offsets,
    )
    (await peer.ask(RequestCode.END_TRANSACTION, header)).require_success()


def offsets_of(request: RemotingCommand) -> dict[str, Any]:
    """Return the header of END_TRANSACTION (37) that answers a check."""
    header = request.decode_header(CheckTransactionStateRequestHeader)
    return {
        "tran_state_table_offset": header.tran_state_table_offset,
        "commit_log_offset": header.commit_log_offset,
    }


def checks(peer: Peer) -> list[tuple[float, Any]]:
    """The 39s that came, with their second."""
    return [(round(second, 1), request) for second, request in peer.received if request.code == CHECK]


async def producer(stage: SimStage, client_id: str = "p1") -> Any:
    peer = stage.peer(client_id)
    await peer.create_topic(write=1, read=1)
    await peer.heartbeat("", producers=["PG"])
    return peer


async def live_until(stage: SimStage, second: int, *peers: Peer) -> None:
    """Let time pass while the peers send heartbeats."""
    now = int(stage.runtime.clock.monotonic())
    for tick in range(now + 25, second, 25):
        await stage.at(tick + 0.5)
        for peer in peers:
            await peer.heartbeat("", producers=["PG"])
    await stage.at(second)


def max_offset(stage: SimStage, topic: str) -> int:
    return int(stage.broker.context.store.max_offset(topic, 0))


def progress(stage: SimStage, topic: str = HALF) -> int:
    return int(stage.broker.context.offsets.table.query("CID_RMQ_SYS_TRANS", topic, 0))


@pytest.mark.scenario("B30", "v49", "v53")
@pytest.mark.parametrize(("profile", "interval"), [(Profile.V49, 60), (Profile.V53, 30)])
@simulated()
async def test_B30_a_half_message_never_ended_is_checked_15_times_and_discarded(
    stage: SimStage, profile: Profile, interval: int
) -> None:
    """First at the first tick with an age above 6 s, then at every tick; after 15 it is moved elsewhere."""
    peer = await producer(stage)
    await stage.at(interval - 5.0)
    await send_half(stage, peer)
    await live_until(stage, 18 * interval, peer)
    asked = checks(peer)
    assert [second for second, _ in asked] == [(2 + times) * interval for times in range(15)]
    for times, (_, request) in enumerate(asked, start=1):
        header = request.decode_header(CheckTransactionStateRequestHeader)
        message = decode_record(request.body)
        assert (message.topic, message.queue_id, message.body) == ("T", 0, b"hello")
        assert message.properties["TRANSACTION_CHECK_TIMES"] == str(times)
        assert message.queue_offset == header.tran_state_table_offset == times
        assert message.commit_log_offset == header.commit_log_offset
        assert header.offset_msg_id == message.offset_message_id
        assert (header.msg_id, header.transaction_id) == ("K1", "K1")
        assert header.topic == (HALF if profile == Profile.V53 else None)
    assert (max_offset(stage, HALF), progress(stage)) == (16, 16)
    given_up = decode_records(body_of(await peer.pull(0, MAX_TIME)))
    assert [message.properties["REAL_TOPIC"] for message in given_up] == ["T"]
    assert (await peer.pull(0)).body is None


@simulated(profile=Profile.V42)
async def test_v42_never_checks_transactions(stage: SimStage) -> None:
    peer = await producer(stage)
    await send_half(stage, peer)
    await live_until(stage, 200, peer)
    assert checks(peer) == []


@pytest.mark.parametrize(("verdict", "seen"), [(COMMIT, 1), (ROLLBACK, 0)])
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated()
async def test_an_answer_settles_the_message_for_good(
    stage: SimStage, profile: Profile, verdict: int, seen: int
) -> None:
    peer = await producer(stage)
    await send_half(stage, peer)
    await live_until(stage, 61, peer)
    _, request = checks(peer)[-1]
    await end(peer, offsets_of(request), verdict, asked=True)
    asked = peer.count(CHECK)
    await live_until(stage, 250, peer)
    assert peer.count(CHECK) == asked
    assert max_offset(stage, "T") == seen
    assert progress(stage) == max_offset(stage, HALF)
    assert progress(stage, OP) == max_offset(stage, OP) == 1


@simulated()
async def test_an_ended_message_is_never_checked(stage: SimStage) -> None:
    """The ends have another order than the messages, and one is missing; 300 op records take two reads."""
    peer = await producer(stage)
    halves = [await send_half(stage, peer, key=f"K{number}") for number in range(301)]
    for number in reversed(range(301)):
        if number != 150:
            await end(peer, halves[number], ROLLBACK)
    await live_until(stage, 61, peer)
    ((_, request),) = checks(peer)
    assert request.decode_header(CheckTransactionStateRequestHeader).msg_id == "K150"
    assert (progress(stage), progress(stage, OP)) == (301, 300)


@simulated()
async def test_a_message_ended_behind_a_younger_unchecked_one_stays_ended(stage: SimStage) -> None:
    """The run stops at the young message, and must keep the op records that it has read."""
    peer = await producer(stage)
    await live_until(stage, 57, peer)
    await send_half(stage, peer, key="young")
    await end(peer, await send_half(stage, peer, key="ended"), COMMIT)
    await live_until(stage, 61, peer)
    assert (progress(stage), progress(stage, OP)) == (0, 0)
    await live_until(stage, 121, peer)
    ((_, request),) = checks(peer)
    assert request.decode_header(CheckTransactionStateRequestHeader).msg_id == "young"
    assert (progress(stage), progress(stage, OP)) == (2, 1)


@simulated()
async def test_no_producer_means_no_check_but_another_ones_turn_comes(stage: SimStage) -> None:
    """The check counts without a producer; a producer that registers later gets the next check."""
    first = await producer(stage)
    await send_half(stage, first)
    await first.client.close()
    await stage.at(100)
    other = stage.peer("p2")
    await other.heartbeat("", producers=["PG"])
    await stage.at(121)
    ((second, request),) = checks(other)
    assert second == 120.0
    assert decode_record(request.body).properties["TRANSACTION_CHECK_TIMES"] == "2"


@simulated()
async def test_checks_go_to_the_connected_producers_of_a_group_in_turn(stage: SimStage) -> None:
    peers = [await producer(stage, f"p{number}") for number in range(3)]
    for number in range(6):
        await send_half(stage, peers[0], key=f"K{number}")
    await live_until(stage, 61, *peers)
    assert [peer.count(CHECK) for peer in peers] == [2, 2, 2]
    await peers[1].client.close()
    await live_until(stage, 121, peers[0], peers[2])
    assert peers[0].count(CHECK) + peers[2].count(CHECK) == 4 + 6


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated()
async def test_an_immunity_of_its_own_puts_the_first_check_off(stage: SimStage, profile: Profile) -> None:
    """Longer than 15 intervals even: until then each tick stores the message again, which counts nothing."""
    peer = await producer(stage)
    await send_half(stage, peer, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "1000"})
    await live_until(stage, 1_000, peer)
    assert peer.count(CHECK) == 0
    await live_until(stage, 1_081, peer)
    assert checks(peer)[0][0] in (1_020.0, 1_080.0)
    properties = decode_record(checks(peer)[0][1].body).properties
    # 4.9.4 and 5.3.3 send the check with a copy whose write was not awaited.
    assert (properties["TRANSACTION_CHECK_TIMES"], properties["WAIT"]) == ("1", "false")


@simulated()
async def test_a_message_ended_within_its_immunity_is_not_checked_later(stage: SimStage) -> None:
    """It was stored again at 60 s, and the producer ends the record it knows."""
    peer = await producer(stage)
    half = await send_half(stage, peer, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "90"})
    await live_until(stage, 70, peer)
    assert max_offset(stage, HALF) == 2
    await end(peer, half, COMMIT)
    await live_until(stage, 300, peer)
    assert (peer.count(CHECK), max_offset(stage, "T")) == (0, 1)
    assert (progress(stage), progress(stage, OP)) == (2, 1)


@simulated()
async def test_half_messages_older_than_the_retention_are_discarded_without_a_check(stage: SimStage) -> None:
    peer = await producer(stage)
    await peer.send("T", properties={"TRAN_MSG": "true", "PGROUP": "PG"}, born_timestamp=1)
    await live_until(stage, 61, peer)
    assert (peer.count(CHECK), max_offset(stage, MAX_TIME)) == (0, 1)


@pytest.mark.parametrize("in_order", [True, False], ids=["stopped", "killed"])
@simulated()
async def test_a_restart_loses_no_half_message_and_no_verdict(stage: SimStage, in_order: bool) -> None:
    """One message is committed, one rolled back, one open; the next broker checks the open message, too."""
    peer = await producer(stage)
    for number, verdict in enumerate((COMMIT, ROLLBACK, 0)):
        half = await send_half(stage, peer, key=f"K{number}")
        if verdict:
            await end(peer, half, verdict)
    await live_until(stage, 70, peer)
    assert peer.count(CHECK) == 1
    if in_order:
        await stage.broker.close()
        await stage.start_broker()
    else:
        shutil.copytree(stage.root / "broker-a", stage.root / "crashed")
        await stage.start_broker(store_path_root_dir=str(stage.root / "crashed"))
    again = await producer(stage, "p2")
    assert (progress(stage), progress(stage, OP)) == (3, 2)
    assert max_offset(stage, "T") == 1
    await live_until(stage, 131, again)
    ((_, request),) = checks(again)
    assert request.decode_header(CheckTransactionStateRequestHeader).msg_id == "K2"
    await end(again, offsets_of(request), COMMIT, asked=True)
    await live_until(stage, 250, again)
    assert (again.count(CHECK), max_offset(stage, "T")) == (1, 2)


@simulated()
async def test_a_full_disk_loses_no_half_message(stage: SimStage) -> None:
    peer = await producer(stage)
    await send_half(stage, peer)
    context = stage.broker.context
    put = context.sends.appender._put_message
    context.sends.appender._put_message = lambda message: PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED)
    await live_until(stage, 70, peer)
    assert (peer.count(CHECK), progress(stage)) == (0, 0)
    context.sends.appender._put_message = put
    await live_until(stage, 121, peer)
    assert peer.count(CHECK) == 1


@simulated()
async def test_an_interrupted_check_run_keeps_the_outcome_of_messages_stored_again(stage: SimStage) -> None:
    """The first copy's op record is read by a run that the disk ends before the second copy's turn comes."""
    peer = await producer(stage)
    half = await send_half(stage, peer, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "90"})
    await live_until(stage, 57, peer)
    await send_half(stage, peer, key="K2")
    await live_until(stage, 70, peer)
    assert (max_offset(stage, HALF), progress(stage)) == (3, 1)
    await end(peer, half, COMMIT)
    context = stage.broker.context
    put = context.sends.appender._put_message
    context.sends.appender._put_message = lambda message: PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED)
    await live_until(stage, 130, peer)
    context.sends.appender._put_message = put
    await live_until(stage, 190, peer)
    asked = [request.decode_header(CheckTransactionStateRequestHeader).msg_id for _, request in checks(peer)]
    assert asked == ["K2"]


def test_a_run_ends_after_its_time_and_the_next_goes_on(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "RUN_SECONDS", -1.0)

    async def scenario(stage: SimStage) -> None:
        peer = await producer(stage)
        await send_half(stage, peer)
        await live_until(stage, 61, peer)
        assert (peer.count(CHECK), progress(stage)) == (0, 0)
        monkeypatch.setattr(check, "RUN_SECONDS", 60.0)
        await live_until(stage, 121, peer)
        assert (peer.count(CHECK), progress(stage)) == (1, 1)

    simulate(scenario)


@simulated(transaction_check_interval=10_000, transaction_time_out=15_000, transaction_check_max=2)
async def test_the_configured_interval_age_and_limit_count(stage: SimStage) -> None:
    peer = await producer(stage)
    await send_half(stage, peer)
    await live_until(stage, 51, peer)
    assert [second for second, _ in checks(peer)] == [20.0, 30.0]
    assert max_offset(stage, MAX_TIME) == 1


@simulated()
async def test_checks_go_on_when_the_clock_was_set_back(stage: SimStage) -> None:
    """The log's store times stand still, until the clock reaches them in two hours."""
    peer = await producer(stage)
    await stage.at(50.0)
    (await peer.send("T", body=b"x")).require_success()
    stage.world.wall_ahead_ms -= 7_200_000
    await send_half(stage, peer)
    await live_until(stage, 200, peer)
    assert [second for second, _ in checks(peer)] == [60.0, 120.0, 180.0]
