"""What the outlook promises before a reset is what its watch then says (docs/watched_reset.md, Preview)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, MessageQueue
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.follow import follow
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.verdict.outlook import Evidence, Outlook, Promise
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.reset_watch import ResetWatch
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage

# Protocol seconds.
IDLE, BUSY = 150.0, 20.0
# The plays of the default group.
FAST = frozenset({"idle", "at the target", "nobody", "RocketMQ, idle", "RocketMQ, nobody"})
# What may follow each promise.
ENDS = {
    Promise.PROVEN: {State.PROVEN},
    Promise.DEPENDS: {State.PROVEN, State.UNKNOWN},
    Promise.UNKNOWN: {State.UNKNOWN, State.LOST},
}
# From the last redelivered message on, in the worst case: brokers count every 10 s, asked every 3 s.
WITHIN = {Evidence.REWINDS: 2.5, Evidence.COUNT: 15.0}


@dataclass(frozen=True)
class Play:
    """A group and its reset, which is kept.

    Attributes:
        consumers: how many.
        seconds: that a consumer works on a message.
        idle: protocol seconds from the last message to the reset.
        expression, model: of the consumers.
        names: their instance names; equal ones share a client id.
        to: 0, -1, or an offset of every queue.
        at_rocketmq: watch as at RocketMQ's brokers.
    """

    consumers: int = 1
    seconds: float = 0.0
    idle: float = IDLE
    expression: str = "*"
    model: MessageModel = MessageModel.CLUSTERING
    names: Sequence[str] = ()
    to: int = 0
    at_rocketmq: bool = False
    mode: ResetMode = ResetMode.FENCED
    messages: int = 10


@dataclass
class Played:
    """The outlooks before the reset, and what the watch said after it."""

    outlooks: Sequence[Outlook]
    queues: Sequence[QueueWatch]
    began: float
    heard: dict[MessageQueue, float] = field(default_factory=dict)


@asynccontextmanager
async def group_of(stage: SimStage, play: Play, played: dict[MessageQueue, float]) -> AsyncIterator[None]:
    """Run the consumers; note when each queue's last message was consumed."""

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        if play.seconds:
            await stage.runtime.timers.sleep(play.seconds)
        for message in messages:
            queue = MessageQueue(TOPIC, str(message.broker_name), message.queue_id)
            played[queue] = stage.world.now
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with AsyncExitStack() as stack:
        for number in range(play.consumers):
            names = {"client_ip": "172.17.0.1", "instance_name": play.names[number]} if play.names else {}
            consumer = new_consumer(
                stage,
                host=f"10.0.2.{number + 1}",
                listener=listener,
                expression=play.expression,
                message_model=play.model,
                consume_thread_max=1,
                **names,
            )
            await stack.enter_async_context(consumer)
        yield


async def carried_out(stage: SimStage, play: Play) -> Played:
    """Preview the reset, carry it out, and watch it."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(play.messages, TOPIC)
    if not play.consumers:
        for queue_id in range(2):
            stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, queue_id, play.messages)
    heard: dict[MessageQueue, float] = {}
    admin = AdminClient(stage.namesrv, runtime=stage.new_runtime())
    async with admin, group_of(stage, play, heard):
        await stage.world.sleep(play.idle)
        brokers = Brokers(admin, asks_rewinds=not play.at_rocketmq)
        queues = (await brokers.routes.shape_of(TOPIC)).queues
        target = play.to if play.to <= 0 else dict.fromkeys(queues, play.to)
        preview = await make_preview(admin, TOPIC, GROUP, target, mode=play.mode, brokers=brokers)
        before = await take_sample(admin, TOPIC, GROUP, queues, brokers)
        began = admin.runtime.clock.monotonic()
        outcome = await admin.resets.reset(TOPIC, GROUP, target, mode=play.mode)
        watch = ResetWatch(before, outcome.offset_table, began)
        async for _ in follow(admin, TOPIC, GROUP, watch, brokers=brokers):
            pass
    return Played(preview.outlooks, watch.queues, began, heard)


PLAYS = {
    "idle": (Play(), Evidence.REWINDS),
    "idle, classic": (Play(mode=ResetMode.CLASSIC), Evidence.REWINDS),
    "busy": (Play(idle=BUSY), Evidence.REWINDS),
    "two consumers": (Play(consumers=2), Evidence.REWINDS),
    "slow": (Play(seconds=1.0, idle=60), Evidence.REWINDS),
    "tags": (Play(expression="TagB"), Evidence.REWINDS),
    "to an offset": (Play(to=4), Evidence.REWINDS),
    "at the target": (Play(to=10), Evidence.UNMOVED),
    "nobody": (Play(consumers=0), Evidence.NO_CONSUMER),
    "broadcasting": (
        Play(model=MessageModel.BROADCASTING, mode=ResetMode.SERVER, to=5),
        Evidence.BROADCASTING,
    ),
    "one id": (Play(consumers=2, names=("same", "same")), Evidence.SHARED_ID),
    "a long skip": (Play(to=400, messages=400, seconds=2.0, idle=60), Evidence.SKIP),
    "a short skip": (Play(to=40, messages=40, seconds=1.0, idle=60), Evidence.SKIP),
    "RocketMQ, idle": (Play(at_rocketmq=True), Evidence.COUNT),
    "RocketMQ, idle, classic": (Play(at_rocketmq=True, mode=ResetMode.CLASSIC), Evidence.COUNT),
    "RocketMQ, idle, 200 messages": (Play(at_rocketmq=True, messages=200), Evidence.COUNT),
    "RocketMQ, two consumers": (Play(at_rocketmq=True, consumers=2), Evidence.COUNT),
    "RocketMQ, busy": (Play(at_rocketmq=True, idle=BUSY), Evidence.MINUTE),
    "RocketMQ, slow": (Play(at_rocketmq=True, seconds=8.0, idle=100), Evidence.MINUTE),
    "RocketMQ, tags": (Play(at_rocketmq=True, expression="TagB"), Evidence.REDELIVERY),
    "RocketMQ, nobody": (Play(at_rocketmq=True, consumers=0), Evidence.NO_CONSUMER),
    "RocketMQ, one id": (
        Play(at_rocketmq=True, consumers=2, names=("same", "same")),
        Evidence.SHARED_ID,
    ),
}


@pytest.mark.parametrize(
    ("given", "evidence"),
    [
        pytest.param(*values, id=name, marks=() if name in FAST else pytest.mark.slow)
        for name, values in PLAYS.items()
    ],
)
@played()
async def test_what_was_promised_is_what_the_watch_says(
    stage: SimStage, given: Play, evidence: Evidence
) -> None:
    played = await carried_out(stage, given)
    assert evidence in {outlook.evidence for outlook in played.outlooks}
    watches = {watch.queue: watch for watch in played.queues}
    assert watches.keys() == {queue for outlook in played.outlooks for queue in outlook.queues}
    for outlook in played.outlooks:
        for queue in outlook.queues:
            watch = watches[queue]
            assert watch.state in ENDS[outlook.promise], (str(outlook), watch.reason)
            last = played.heard.get(queue, played.began) - played.began
            # Nothing is heard of messages that the tags leave out.
            last = max(last, 30.0 if given.expression != "*" else 0.0)
            if watch.state is State.PROVEN and outlook.evidence in WITHIN:
                assert watch.since <= last + WITHIN[outlook.evidence], str(outlook)
            if watch.state is State.UNKNOWN:
                assert watch.reason
