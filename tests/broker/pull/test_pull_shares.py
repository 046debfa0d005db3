"""What suspended pulls and pulls after resets leave in the broker's memory, and what stays of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from rewindmq.broker.limits import MAX_SUSPEND_SECONDS
from rewindmq.broker.offsets import fencing
from rewindmq.broker.offsets.fencing import Fencing
from rewindmq.broker.pull import long_polling, reset_notifier
from rewindmq.broker.pull.long_polling import SUSPENDED_BYTES, SUSPENDED_BYTES_PER_CHARACTER
from rewindmq.broker.pull.reset_notifier import ResetNotifier
from rewindmq.broker.store.tables.consumer_offset import OffsetRecord
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.remoting.connection import Connection
from tests.support.ends import new_end
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

# The event loop does not hold its tasks.
_CALLS: set[asyncio.Task[RemotingCommand]] = set()
PLAIN = SUSPENDED_BYTES + SUSPENDED_BYTES_PER_CHARACTER * len("*")


def leave(request: Coroutine[Any, Any, RemotingCommand]) -> None:
    """Send a request to which the test needs no response."""
    call = asyncio.ensure_future(request)
    _CALLS.add(call)
    call.add_done_callback(_ended)


def _ended(call: asyncio.Task[RemotingCommand]) -> None:
    _CALLS.discard(call)
    if not call.cancelled():
        call.exception()


async def suspended(stage: SimStage, peer: Peer, count: int, hold_ms: int = 15_000) -> None:
    """Suspend pulls, which stay when the test is over."""
    polling = stage.broker.context.pulls.long_polling
    before = polling.suspended_count
    for _ in range(count):
        leave(peer.pull(0, hold_ms=hold_ms))
    await stage.until(lambda: polling.suspended_count == before + count)


def test_one_connection_suspends_pulls_up_to_its_share_and_others_are_served(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_polling, "MAX_SUSPENDED_BYTES_PER_CONNECTION", 3 * PLAIN)

    async def scenario(stage: SimStage) -> None:
        polling = stage.broker.context.pulls.long_polling
        greedy, other = stage.peer("greedy"), stage.peer("other")
        await other.create_topic()
        await suspended(stage, greedy, 3)
        refused = await greedy.pull(0, hold_ms=15_000)
        assert refused.code == ResponseCode.SYSTEM_BUSY
        assert refused.remark == (
            f"this connection has {3 * PLAIN} bytes of suspended pulls already, of {3 * PLAIN}"
        )
        await suspended(stage, other, 1)
        assert (polling.suspended_count, polling.shares.used) == (4, 4 * PLAIN)
        await greedy.client.close()
        await stage.at(2.0)
        assert (polling.suspended_count, polling.shares.used) == (1, PLAIN)
        await other.send()
        await stage.at(3.0)
        assert (polling.suspended_count, polling.shares.used) == (0, 0)

    simulate(scenario)


def test_all_suspended_pulls_together_have_a_limit(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_polling, "MAX_SUSPENDED_BYTES", 2 * PLAIN)

    async def scenario(stage: SimStage) -> None:
        first, second = stage.peer("c1"), stage.peer("c2")
        await first.create_topic()
        await suspended(stage, first, 2)
        assert (await second.pull(0, hold_ms=15_000)).code == ResponseCode.SYSTEM_BUSY
        # Only waiting is refused.
        assert (await second.pull(0)).code == ResponseCode.PULL_NOT_FOUND
        await stage.at(21.0)
        await suspended(stage, second, 2)

    simulate(scenario)


def test_a_filter_in_a_pull_counts_by_its_length(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "x" * 1_000
    size = SUSPENDED_BYTES + SUSPENDED_BYTES_PER_CHARACTER * len(text)
    monkeypatch.setattr(long_polling, "MAX_SUSPENDED_BYTES_PER_CONNECTION", size)

    async def scenario(stage: SimStage) -> None:
        polling = stage.broker.context.pulls.long_polling
        peer = stage.peer()
        await peer.create_topic()
        refused = await peer.pull(0, hold_ms=15_000, subscription=text + "x")
        assert refused.code == ResponseCode.SYSTEM_BUSY
        leave(peer.pull(0, hold_ms=15_000, subscription=text))
        await stage.until(lambda: polling.suspended_count == 1)
        assert polling.shares.used == size

    simulate(scenario)


@simulated()
async def test_a_suspended_pull_keeps_neither_body_nor_text_that_it_does_not_use(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    header = PullMessageRequestHeader(
        "G", "T", 0, 0, 32, int(PullSysFlag.SUSPEND), 0, 15_000, 0, "s" * 9_000, "e" * 9_000,
        proxy_froward_client_id="p" * 9_000,
    )  # fmt: skip
    leave(peer.ask(RequestCode.PULL_MESSAGE, header, bytes(9_000), more="m" * 9_000))
    polling = stage.broker.context.pulls.long_polling
    await stage.until(lambda: polling.suspended_count == 1)
    ((pull,),) = polling._suspended.values()
    assert pull.request.received_bytes == 0
    assert pull.request.ext == {}
    kept = pull.header
    assert (kept.subscription, kept.expression_type, kept.proxy_froward_client_id) == (None,) * 3
    await peer.send()


@simulated()
async def test_no_pull_waits_longer_than_an_hour(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    waiting = asyncio.ensure_future(peer.pull(0, hold_ms=2**62))
    while stage.world.now < MAX_SUSPEND_SECONDS - 60:
        await stage.at(stage.world.now + 60)
        await peer.heartbeat()
    assert not waiting.done()
    assert (await waiting).code == ResponseCode.PULL_NOT_FOUND
    assert MAX_SUSPEND_SECONDS <= stage.world.now <= MAX_SUSPEND_SECONDS + 10


def test_a_connection_is_notified_of_resets_of_its_newest_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reset_notifier, "MAX_NOTIFIED_QUEUES_PER_CONNECTION", 2)
    monkeypatch.setattr(reset_notifier, "MAX_NOTIFIED_QUEUES", 3)
    notifier, told = ResetNotifier("broker-a"), list[tuple[str, int]]()

    class Told:
        """A connection that notes the queues of whose resets it is notified."""

        def __init__(self, name: str) -> None:
            self.name = name

        def send_oneway(self, command: RemotingCommand) -> None:
            told.append((self.name, getattr(command.header, "queue_id", -1)))

    def notified() -> list[tuple[str, int]]:
        told.clear()
        for queue_id in range(9):
            if (connection := notifier.puller(("G", "T", queue_id))) is not None:
                notifier.notify(connection, "G", "T", queue_id, 0, 1)
        return list(told)

    greedy, other, third = (cast("Connection", Told(name)) for name in ("greedy", "other", "third"))
    for queue_id in range(5):
        notifier.on_pull(greedy, ("G", "T", queue_id))
    assert notified() == [("greedy", 3), ("greedy", 4)]
    notifier.on_pull(other, ("G", "T", 0))
    assert notified() == [("other", 0), ("greedy", 3), ("greedy", 4)]
    # No room: the queue is not recorded, unless it is another connection's.
    notifier.on_pull(third, ("G", "T", 8))
    notifier.on_pull(third, ("G", "T", 3))
    assert notified() == [("other", 0), ("third", 3), ("greedy", 4)]
    for connection in (greedy, other, third):
        notifier.forget(connection)
    assert (notified(), notifier.shares.used) == ([], 0)


def test_deliveries_have_a_limit_in_all_and_go_with_their_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fencing, "MAX_DELIVERIES", 2)
    monkeypatch.setattr(fencing, "MAX_ALL_DELIVERIES", 3)
    fences, record = Fencing(), OffsetRecord(7, 1)
    one, other, third = new_end(), new_end(), new_end()

    def joins(connection: Connection, queue_id: int) -> bool:
        """Whether the broker remembers that it told the connection where the queue continues."""
        fences.on_query(connection, ("G", "T", queue_id), record)
        return fences.admits_pull(connection, ("G", "T", queue_id), 7, None, record)

    assert all(joins(one, queue_id) for queue_id in range(4))
    assert fences.shares.used == 2
    assert joins(other, 0)
    assert not joins(third, 0)
    # With others' entries the table is full; a connection replaces its own.
    assert joins(other, 1)
    assert fences.shares.used == 3
    for connection in (one, other, third):
        fences.forget(connection)
    assert fences.shares.used == 0
    assert joins(third, 0)
