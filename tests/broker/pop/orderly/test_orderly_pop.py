"""POP with ``order``: answers as seen at RocketMQ 5.5.1, waiting, restarts, resets (docs/spec/pop.md 10)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from rewindmq.broker.pop.orderly import order_info_file
from rewindmq.broker.state import write_state
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.pop import ChangeInvisibleTimeResponseHeader, NotificationResponseHeader
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.pop.asking import Lent, Popped, ack, ack_all, batch_ack, change, notification, pop
from tests.support.answers import present, remark_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

V53: Final = Profile.V53


async def filled(stage: SimStage, count: int = 20, queues: int = 1) -> Peer:
    """Return a peer of a topic with so many messages in each queue, one second after the start."""
    peer = stage.peer()
    await peer.create_topic(write=queues, read=queues)
    for queue_id in range(queues):
        for number in range(count):
            (await peer.send(body=b"m%d" % number, queue_id=queue_id)).require_success()
    await stage.at(1.0)
    return peer


async def take(
    peer: Peer, attempt: str | None, count: int = 3, *, invisible: int = 30_000, **more: Any
) -> Popped:
    """Pop in order from queue 0."""
    options: dict[str, Any] = {"queue_id": 0, **more}
    return await pop(peer, count=count, invisible=invisible, order=True, attempt_id=attempt, **options)


def infos(popped: Popped) -> tuple[str | None, str | None, str | None]:
    header = popped.header
    return header.start_offset_info, header.msg_offset_info, header.order_count_info


async def offset(peer: Peer, queue_id: int = 0) -> int:
    return await peer.stored_offset(queue_id=queue_id)


def handle_at(lent: Lent, offset: int) -> Lent:
    """Return a message of the same POP that claims another offset."""
    return Lent(lent.message, lent.handle, lent.topic, lent.queue_id, offset)


async def has_message(peer: Peer, attempt: str | None, poll: int = 0) -> bool:
    response = await notification(peer, queue_id=0, poll=poll, order=True, attempt_id=attempt)
    return response.require_success().decode_header(NotificationResponseHeader).has_msg


@simulated(profile=V53)
async def test_the_first_pop_and_those_that_the_queue_blocks(stage: SimStage) -> None:
    peer = await filled(stage)
    popped = await take(peer, "a1")
    assert infos(popped) == ("0 0 0", "0 0 0,1,2", "0 0 0")
    assert (popped.header.revive_qid, popped.header.rest_num, popped.response.remark) == (999, 17, "FOUND")
    assert await offset(peer) == 0
    for attempt in ("a2", None):
        blocked = await take(peer, attempt)
        assert (blocked.response.code, remark_of(blocked.response)) == (
            ResponseCode.POLLING_TIMEOUT,
            "NO_MESSAGE_IN_QUEUE",
        )
        assert infos(blocked) == ("", "", "")
        assert (blocked.header.revive_qid, blocked.header.rest_num) == (999, 0)
        assert not await has_message(peer, attempt)
    assert await has_message(peer, "a1")


@simulated(profile=V53)
async def test_the_same_attempt_gets_its_messages_again(stage: SimStage) -> None:
    peer = await filled(stage)
    first = await take(peer, "a1")
    await stage.at(2.0)
    again = await take(peer, "a1", 5)
    assert infos(again) == ("0 0 0", "0 0 0,1,2,3,4", "0 0 0")
    # The acks of the first delivery are ignored.
    (await ack(peer, first.messages[0])).require_success()
    assert await offset(peer) == 0
    await ack_all(peer, again.messages)
    assert await offset(peer) == 5


@simulated(profile=V53)
async def test_acks_move_the_offset_to_the_first_open_message(stage: SimStage) -> None:
    peer = await filled(stage)
    popped = await take(peer, "a1")
    m0, m1, m2 = popped.messages
    for lent, expected in ((m1, 0), (m1, 0), (m0, 2), (m0, 2), (m1, 2)):
        (await ack(peer, lent)).require_success()
        assert await offset(peer) == expected
    assert (await take(peer, "a2")).messages == []
    (await ack(peer, m2)).require_success()
    assert await offset(peer) == 3
    assert infos(await take(peer, "a2")) == ("0 0 3", "0 0 3,4,5", "0 0 0")


@simulated(profile=V53)
async def test_acks_of_unknown_groups_and_other_brokers_do_nothing(stage: SimStage) -> None:
    peer = await filled(stage)
    lent = (await take(peer, "a1")).messages[0]
    handle = lent.handle.replace("broker-a", "broker-b")
    assert handle != lent.handle
    (await ack(peer, lent, extra_info=handle)).require_success()
    (await batch_ack(peer, [lent], broker_name="broker-b")).require_success()
    assert await offset(peer) == 0
    (await ack(peer, lent, group="Unknown")).require_success()
    (await batch_ack(peer, [lent], group="Unknown")).require_success()
    assert stage.broker.context.offsets.table.query("Unknown", "T", 0) == -1
    (await batch_ack(peer, [lent])).require_success()
    assert await offset(peer) == 1


@simulated(profile=V53)
async def test_an_ack_of_a_message_that_was_not_popped_is_refused(stage: SimStage) -> None:
    peer = await filled(stage)
    lent = (await take(peer, "a1")).messages[0]
    for number in (7, 20):
        refused = await ack(peer, handle_at(lent, number))
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        assert remark_of(refused).startswith(
            f"offset is illegal, key:T@G@0, old:0, commit:{number}, next:-1, /"
        )
    for number in (21, -1):
        refused = await ack(peer, handle_at(lent, number))
        assert refused.code == ResponseCode.NO_MESSAGE
        assert remark_of(refused) == f"offset is illegal, key:T@0, commit:{number}, store:0~20"


@simulated(profile=V53)
async def test_a_batch_of_acks_moves_the_offset_message_by_message(stage: SimStage) -> None:
    peer = await filled(stage)
    await ack_all(peer, (await take(peer, "a1", 2)).messages)
    popped = await take(peer, "a2", 5)
    (await batch_ack(peer, popped.messages[:3])).require_success()
    assert await offset(peer) == 5
    refused = await batch_ack(peer, [handle_at(popped.messages[0], 11)])
    assert refused.code == ResponseCode.MESSAGE_ILLEGAL
    assert remark_of(refused).startswith("offset is illegal, key:T@G@0, old:5, commit:11, next:-1, /")
    (await batch_ack(peer, popped.messages[3:])).require_success()
    assert await offset(peer) == 7


@simulated(profile=V53)
async def test_an_ack_without_an_order_info_moves_the_offset_past_the_message(stage: SimStage) -> None:
    """As in RocketMQ, where it skips the messages before."""
    peer = await filled(stage)
    lent = (await take(peer, "a1")).messages[2]
    present(stage.broker.context.pop).orders.clear_block("T", "G", 0)
    (await ack(peer, lent)).require_success()
    assert await offset(peer) == 3


@simulated(profile=V53)
async def test_expired_messages_come_again_and_count_an_attempt(stage: SimStage) -> None:
    peer = await filled(stage)
    await take(peer, "a1", 2, invisible=1_000)
    await stage.at(1.99)
    assert (await take(peer, "a2")).messages == []
    await stage.at(2.01)
    second = await take(peer, "a2")
    assert infos(second) == ("0 0 0", "0 0 0,1,2", "0 qo0%0 1;0 qo0%1 1;0 0 0")
    await stage.at(32.1)
    third = await take(peer, None, 2)
    assert infos(third) == ("0 0 0", "0 0 0,1", "0 qo0%0 2;0 qo0%1 2;0 0 2")
    # No retry topic, and no checkpoint.
    assert stage.broker.context.tables.topics.find("%RETRY%G_T") is None
    assert present(stage.broker.context.pop).revive.open_check_points == 0


@simulated(profile=V53)
async def test_a_changed_invisible_time_keeps_the_pop_time(stage: SimStage) -> None:
    peer = await filled(stage)
    popped = await take(peer, "a1")
    await ack_all(peer, popped.messages[:2])
    m0, _, m2 = popped.messages
    await stage.at(2.0)
    response, changed = await change(peer, m2, 500)
    header = response.decode_header(ChangeInvisibleTimeResponseHeader)
    assert (header.pop_time, header.invisible_time, header.revive_qid) == (EPOCH_MS + 1_000, 1_500, 999)
    # Behind the offset, and outside the queue: no handle.
    behind, _ = await change(peer, m0, 500)
    header = behind.require_success().decode_header(ChangeInvisibleTimeResponseHeader)
    assert (header.pop_time, header.invisible_time, header.revive_qid) == (0, 0, 0)
    assert (await change(peer, handle_at(m2, 20), 500))[0].code == ResponseCode.NO_MESSAGE
    # Not in flight: RocketMQ answers as if it were.
    assert (await change(peer, handle_at(m2, 9), 500))[0].code == 0
    await stage.at(2.49)
    assert (await take(peer, "a2")).messages == []
    await stage.at(2.51)
    again = await take(peer, "a2")
    assert infos(again) == ("0 0 2", "0 0 2,3,4", "0 qo0%2 1;0 0 0")
    (await ack(peer, changed)).require_success()
    assert await offset(peer) == 2


@pytest.mark.parametrize("invisible", [0, -5])
@simulated(profile=V53)
async def test_a_pop_without_an_invisible_time_blocks_once_another_attempt_names_one(
    stage: SimStage, invisible: int
) -> None:
    peer = await filled(stage)
    assert infos(await take(peer, "a1", 1, invisible=invisible))[2] == "0 0 0"
    assert infos(await take(peer, "a2", 1, invisible=invisible))[2] == "0 qo0%0 1;0 0 1"
    assert (await take(peer, "a3", 1, invisible=3_000)).messages == []
    await stage.at(3.99)
    assert (await take(peer, "a4", 1, invisible=20_000)).messages == []
    await stage.at(4.01)
    assert infos(await take(peer, "a5", 1))[2] == "0 qo0%0 2;0 0 2"


@simulated(profile=V53)
async def test_invisible_times_beyond_64_bits_are_over_at_once_as_in_java(stage: SimStage) -> None:
    peer = await filled(stage)
    await take(peer, "a1", 1, invisible=2**63 - 1)
    popped = await take(peer, "a2", 1)
    assert popped.bodies == [b"m0"]
    assert (await take(peer, "a3", 1)).messages == []


@simulated(profile=V53)
async def test_a_pop_of_all_queues_skips_those_that_are_blocked(stage: SimStage) -> None:
    peer = await filled(stage, count=3, queues=2)
    first = await take(peer, "a1", 2, queue_id=1)
    popped = await take(peer, "a2", 32, queue_id=-1)
    assert infos(popped) == ("0 0 0", "0 0 0,1,2", "0 0 0")
    assert popped.header.rest_num == 0
    await ack_all(peer, first.messages)
    rest = await take(peer, "a3", 32, queue_id=-1)
    assert infos(rest) == ("0 1 2", "0 1 2", "0 1 0")


@simulated(profile=V53)
async def test_a_filter_moves_the_offset_only_past_what_it_leaves_out_at_the_front(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    for tag in "AABAB":
        (await peer.send(body=tag.encode(), properties={"TAGS": tag})).require_success()
    await stage.at(1.0)
    popped = await take(peer, "a1", exp="B", exp_type="TAG")
    assert infos(popped) == ("0 0 0", "0 0 2,4", "0 0 0")
    assert await offset(peer) == 0
    (await batch_ack(peer, popped.messages)).require_success()
    assert await offset(peer) == 5
    (await peer.send(body=b"C", properties={"TAGS": "C"})).require_success()
    assert (await take(peer, "a2", exp="B", exp_type="TAG")).messages == []
    assert await offset(peer) == 6


@simulated(profile=V53)
async def test_a_waiting_pop_is_woken_by_the_last_ack(stage: SimStage) -> None:
    peer, other = await filled(stage), stage.peer("c2")
    popped = await take(peer, "a1", 2)
    waiting = asyncio.ensure_future(take(other, "a2", 2, poll=15_000))
    await stage.at(3.0)
    (await ack(peer, popped.messages[0])).require_success()
    await stage.at(4.0)
    assert not waiting.done()
    (await ack(peer, popped.messages[1])).require_success()
    again = await waiting
    assert (again.bodies, stage.world.now < 4.1) == ([b"m2", b"m3"], True)


@simulated(profile=V53)
async def test_waiting_requests_are_woken_when_the_last_open_message_is_visible(stage: SimStage) -> None:
    """RocketMQ wakes them at the first one, and then not until their time is over (seen)."""
    peer, other, third = await filled(stage), stage.peer("c2"), stage.peer("c3")
    m0, m1, m2 = (await take(peer, "a1")).messages
    asked = asyncio.ensure_future(has_message(third, "a3", poll=15_000))
    waiting = asyncio.ensure_future(take(other, "a2", 3, queue_id=-1, poll=15_000))
    await stage.at(1.5)
    for lent, invisible in ((m0, 1_000), (m1, 3_000), (m2, 2_000)):
        await change(peer, lent, invisible)
    again = await waiting
    assert again.bodies == [b"m0", b"m1", b"m2"]
    assert 4.5 <= stage.world.now < 4.6
    # The POP takes what the NOTIFICATION was woken for, or the other way round: both are answered now.
    assert await asked in (True, False)


@simulated(profile=V53)
async def test_a_restart_keeps_the_block_and_its_attempts(stage: SimStage) -> None:
    peer = await filled(stage)
    popped = await take(peer, "a1")
    (await ack(peer, popped.messages[0])).require_success()
    await stage.restart_broker()
    after = stage.peer("c2")
    waiting = asyncio.ensure_future(take(stage.peer("c3"), "a2", 3, poll=60_000))
    assert (await take(after, "a3")).messages == []
    (await ack(after, popped.messages[1])).require_success()
    assert await offset(after) == 2
    again = await waiting
    assert 31.0 <= stage.world.now < 31.1
    assert infos(again) == ("0 0 2", "0 0 2,3,4", "0 qo0%2 1;0 0 0")


@simulated(profile=V53, reset_mode="server")
async def test_a_server_side_reset_ends_the_block_and_ignores_late_acks(stage: SimStage) -> None:
    """Rows A8 and P3: the next POP begins at the target at once; acks of before do not move the offset."""
    peer = await filled(stage)
    before = await take(peer, "a1", 2)
    (await peer.reset(0)).require_success()
    (await ack(peer, before.messages[0])).require_success()
    assert await offset(peer) == 0
    await stage.at(2.0)
    replay = await take(peer, "a2", 2)
    assert infos(replay) == ("0 0 0", "0 0 0,1", "0 0 0")
    (await ack(peer, before.messages[1])).require_success()
    assert await offset(peer) == 0
    await ack_all(peer, replay.messages)
    assert await offset(peer) == 2


@pytest.mark.parametrize("is_restarted", [False, True])
@simulated(profile=V53, reset_mode="fenced")
async def test_no_late_ack_undoes_a_fenced_reset(stage: SimStage, is_restarted: bool) -> None:
    peer = await filled(stage)
    await ack_all(peer, (await take(peer, "a1", 10)).messages)
    before = await take(peer, "a1", 5)
    (await peer.reset(0)).require_success()
    if is_restarted:
        await stage.restart_broker()
        await stage.at(2.0)
        peer = stage.peer("c2")
    (await ack(peer, before.messages[4])).require_success()
    (await batch_ack(peer, before.messages)).require_success()
    assert await offset(peer) == 0
    replay = await take(peer, "a2", 2)
    assert replay.bodies == [b"m0", b"m1"]
    (await ack(peer, before.messages[0])).require_success()
    assert await offset(peer) == 0
    await ack_all(peer, replay.messages)
    assert await offset(peer) == 2


@simulated(profile=V53, reset_mode="fenced")
async def test_after_a_fenced_reset_a_restart_delivers_what_is_in_flight_again(stage: SimStage) -> None:
    peer = await filled(stage)
    await ack_all(peer, (await take(peer, "a1", 1)).messages)
    (await peer.reset(0)).require_success()
    popped = await take(peer, "a1", 2)
    await stage.restart_broker()
    peer = stage.peer("c2")
    (await ack(peer, popped.messages[0])).require_success()
    assert await offset(peer) == 0
    again = await take(peer, "a2", 2)
    assert again.bodies == [b"m0", b"m1"]
    await ack_all(peer, again.messages)
    assert await offset(peer) == 2


@simulated(profile=V53)
async def test_too_long_attempt_ids_and_too_many_queues_are_refused(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewindmq.broker.pop.orderly.order_info_table.MAX_ORDER_INFOS", 1)
    peer = await filled(stage, queues=2)
    refused = (await take(peer, "a" * 1_025)).response
    assert (refused.code, remark_of(refused)) == (
        ResponseCode.SYSTEM_ERROR,
        "the attempt id has 1025 characters: the limit is 1024",
    )
    popped = await take(peer, "a1", 1)
    refused = (await take(peer, "a2", queue_id=1)).response
    assert (refused.code, remark_of(refused)) == (
        ResponseCode.SYSTEM_ERROR,
        "there are 1 queues that are popped in order already",
    )
    (await ack(peer, popped.messages[0])).require_success()
    assert len((await take(peer, "a2", queue_id=1)).messages) == 3


@simulated(profile=V53)
async def test_a_deleted_topic_of_the_same_name_begins_without_a_block(stage: SimStage) -> None:
    peer = await filled(stage)
    await take(peer, "a1")
    deleted = DeleteTopicRequestHeader("T")
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, deleted)).require_success()
    await peer.create_topic(write=1, read=1)
    await peer.fill(2)
    assert infos(await take(peer, "a2"))[1] == "0 0 0,1"


def test_no_attempt_of_a_random_run_overtakes_another(simulate: Any) -> None:
    """The law, by raw peers: see ``Law``."""
    for seed in range(2):
        simulate(lambda stage, seed=seed: Law(stage, seed).play(), profile=V53)


class Law:
    """Consumers that pop in order, acknowledge, postpone, repeat, and forget; a broker that restarts.

    Each queue's messages are delivered in order. None is delivered while an earlier delivery of an earlier or
    of the same message is open, except to the attempt that has it. What is not acknowledged comes again, with
    one more attempt. At the end, everything is acknowledged.
    """

    QUEUES, MESSAGES = 2, 12

    def __init__(self, stage: SimStage, seed: int) -> None:
        self.stage = stage
        self.seed = seed
        self.random = stage.new_runtime("10.9.9.9").random
        self.random.seed(seed)
        # By queue: the offsets that are open, with their end and their attempt.
        self.open: list[dict[int, tuple[float, str]]] = [{} for _ in range(self.QUEUES)]
        self.acked: list[set[int]] = [set() for _ in range(self.QUEUES)]
        self.last: dict[int, str] = {}
        self.attempts = iter(range(1_000_000))
        self.deliveries = 0

    async def play(self) -> None:
        self.peer = await filled(self.stage, self.MESSAGES, self.QUEUES)
        for step in range(150):
            if step in (50, 100):
                await self.stage.restart_broker()
                self.peer = self.stage.peer(f"after {step}")
            await self.consume(may_fail=step < 120)
            await self.stage.world.sleep(self.random.choice((0.01, 0.3, 1.2)))
        for queue_id in range(self.QUEUES):
            assert self.acked[queue_id] == set(range(self.MESSAGES))
            assert await offset(self.peer, queue_id) == self.MESSAGES
        # Some came twice.
        assert self.deliveries > self.QUEUES * self.MESSAGES

    async def consume(self, *, may_fail: bool) -> None:
        draw = self.random
        attempt = f"attempt {next(self.attempts)}"
        queue_id = draw.choice((-1, 0, 1))
        if queue_id >= 0 and draw.random() < 0.2:
            attempt = self.last.get(queue_id, attempt)
        invisible = draw.choice((500, 1_500))
        popped = await take(self.peer, attempt, draw.randint(1, 4), invisible=invisible, queue_id=queue_id)
        for queue, messages in self.by_queue(popped.messages):
            self.check(queue, attempt, [lent.offset for lent in messages])
            self.last[queue] = attempt
            end = popped.header.pop_time + invisible
            self.open[queue] = {lent.offset: (end, attempt) for lent in messages}
            self.deliveries += len(messages)
        for lent in popped.messages:
            what = draw.random()
            if not may_fail or what < 0.6:
                (await ack(self.peer, lent)).require_success()
                self.open[lent.queue_id].pop(lent.offset)
                self.acked[lent.queue_id].add(lent.offset)
            elif what < 0.8:
                response, _ = await change(self.peer, lent, 700)
                header = response.decode_header(ChangeInvisibleTimeResponseHeader)
                end = header.pop_time + header.invisible_time
                self.open[lent.queue_id][lent.offset] = end, attempt

    def by_queue(self, messages: list[Lent]) -> Iterator[tuple[int, list[Lent]]]:
        for queue_id in range(self.QUEUES):
            found = [lent for lent in messages if lent.queue_id == queue_id]
            if found:
                yield queue_id, found

    def check(self, queue_id: int, attempt: str, offsets: list[int]) -> None:
        now = self.stage.runtime.clock.now_ms()
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
        # Nothing before the first message is left out.
        assert set(range(offsets[0])) <= self.acked[queue_id], self.seed
        in_flight = [at for at, (end, of) in self.open[queue_id].items() if end > now and of != attempt]
        assert not in_flight, (self.seed, queue_id, offsets, in_flight)


@simulated(profile=V53)
async def test_a_copy_of_the_store_has_what_is_in_flight_in_order(stage: SimStage, tmp_path: Path) -> None:
    peer = await filled(stage)
    popped = await take(peer, "A")
    write_state(stage.broker.context, tmp_path)
    file = ConfigFile(tmp_path / "config" / "consumerOrderInfo.json", OsDisk())
    ((key, info),) = (file.load(order_info_file.parse) or {}).items()
    assert tuple(key) == ("T@G", 0)
    assert info.pop_time == popped.header.pop_time
