"""A law: what a preview says of each queue is what consumers then see.

Random topics, brokers, groups and resets are played with the whole code under virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyStatus,
    LitePullConsumer,
    MessageExt,
    TopicConfig,
)
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.preview import Preview
from rewindmq.client.admin.watched_reset.routes import Routes
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.admin.support import GROUP, TOPIC
from tests.support.clients import OK
from tests.support.fixtures import RunScenario
from tests.support.properties import few_and_all
from tests.support.stage import SimStage

# Routes are asked for every 30 s, queues are shared every 20 s, and a new consumer commits after 10 s.
_SETTLED = 75.0
# A pending pull ends after 20 s, a client of 4.x waits 10 s and shares queues 20 s later; two brokers.
_SEEN = 130.0


@dataclass(frozen=True)
class BrokerPlan:
    """One broker: the queues of the topic at first, and later; its release, and its mode of resets."""

    profile: Profile
    mode: ResetMode | None
    queues: int
    read: int
    written: int


@dataclass(frozen=True)
class Plan:
    """One play.

    Attributes:
        kind: of the group: its consumers, "stopped", "offsets" (it never connected), or "unknown".
        offsets: of a group that never connected, in turn; None: the queue has none.
        to: 0, -1, "offsets", or the number of a message whose time is the target.
    """

    brokers: list[BrokerPlan]
    messages: int
    kind: str
    profile: Profile
    offsets: list[int | None]
    has_settings: bool
    to: int | str
    force: bool
    mode: ResetMode | None


_BROKERS = st.builds(
    BrokerPlan,
    st.sampled_from(RELEASES),
    st.sampled_from([None, *ResetMode]),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 4),
)
_PLANS = st.builds(
    Plan,
    st.lists(_BROKERS, min_size=1, max_size=2),
    st.integers(1, 4),
    st.sampled_from(["push", "orderly", "lite", "stopped", "offsets", "unknown"]),
    st.sampled_from(RELEASES),
    st.lists(st.none() | st.integers(0, 4), min_size=8, max_size=8),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2, "after", "offsets"]),
    st.booleans(),
    st.sampled_from([None, None, *ResetMode]),
)

_V49 = Profile.V49
# The first broker is reset in fenced mode; the second knows no consumer, so all offsets are written: in vain.
FENCED_AND_CLASSIC = Plan(
    [BrokerPlan(_V49, ResetMode.FENCED, 2, 2, 2), BrokerPlan(_V49, ResetMode.CLASSIC, 1, 2, 1)],
    messages=2,
    kind="offsets",
    profile=_V49,
    offsets=[1, 2, 0, None, 1, 1, 1, 1],
    has_settings=True,
    to=0,
    force=True,
    mode=None,
)
# The first broker's queues are no longer read, so it does not list the group's progress.
UNREAD = Plan(
    [BrokerPlan(_V49, None, 3, 0, 1), BrokerPlan(_V49, None, 3, 3, 2)],
    messages=4,
    kind="stopped",
    profile=_V49,
    offsets=[],
    has_settings=True,
    to=2,
    force=True,
    mode=None,
)


@dataclass
class Lab:
    """Plays a plan, and notes what consumers get."""

    stage: SimStage
    plan: Plan
    seen: set[tuple[str, int, int]] = field(default_factory=set)

    async def build(self) -> None:
        """Start the brokers, create the topic, and fill its queues."""
        for letter, broker in zip("ab", self.plan.brokers, strict=False):
            name = f"broker-{letter}"
            await self.stage.start_broker(name, profile=broker.profile, reset_mode=broker.mode)
            await self.shape(name, broker.queues, broker.queues)
        await self.stage.fill(self.plan.messages, TOPIC)

    async def shape(self, name: str, read: int, written: int) -> None:
        """Set the numbers of the topic's queues at one broker."""
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=read, write_queue_nums=written)
        admin = await self.stage.admin()
        await admin.topics.create_and_update_topic_config(self.stage.brokers[name].address, config)

    async def reshape(self) -> None:
        for letter, broker in zip("ab", self.plan.brokers, strict=False):
            await self.shape(f"broker-{letter}", broker.read, broker.written)

    async def group(self) -> None:
        """Give a group that never connected its settings and offsets."""
        admin = await self.stage.admin()
        offsets = iter(self.plan.offsets)
        for broker in self.stage.brokers.values():
            if self.plan.has_settings:
                settings_of_group = SubscriptionGroupConfig(group_name=GROUP)
                await admin.groups.create_and_update_subscription_group_config(
                    broker.address, settings_of_group
                )
            if self.plan.kind != "offsets":
                continue
            for queue_id in range(4):
                offset = next(offsets, None)
                if offset is not None:
                    end = broker.context.store.max_offset(TOPIC, queue_id)
                    broker.context.offsets.table.commit(GROUP, TOPIC, queue_id, min(offset, end))

    def note(self, messages: Sequence[MessageExt]) -> None:
        self.seen.update(
            (message.broker_name, message.queue_id, message.queue_offset) for message in messages
        )

    @contextlib.asynccontextmanager
    async def consumer(self, kind: str) -> AsyncIterator[None]:
        """Run a consumer of a kind."""
        if kind == "lite":
            async with self._lite():
                yield
            return
        orderly = self._in_order if kind == "orderly" else None
        consumer = self.stage.push_consumer(
            self._each, orderly=orderly, group=GROUP, topic=TOPIC, profile=self.plan.profile
        )
        async with consumer:
            yield

    async def _in_order(self, messages: Sequence[MessageExt], context: object) -> ConsumeOrderlyStatus:
        self.note(messages)
        return ConsumeOrderlyStatus.SUCCESS

    async def _each(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.note(messages)
        return OK

    @contextlib.asynccontextmanager
    async def _lite(self) -> AsyncIterator[None]:
        consumer = LitePullConsumer(
            GROUP, self.stage.namesrv, runtime=self.stage.new_runtime(), profile=self.plan.profile
        )
        consumer.subscribe(TOPIC)

        async def poll() -> None:
            while True:
                self.note(await consumer.poll(1_000))

        async with consumer:
            polling = asyncio.create_task(poll())
            try:
                yield
            finally:
                polling.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await polling

    async def target(self, admin: AdminClient) -> Target:
        """Return the target of the reset."""
        to = self.plan.to
        if to == "after":
            return self.stage.runtime.clock.now_ms()
        if to == "offsets":
            names = (await Routes(admin).shape_of(TOPIC)).queues
            return {queue: min(1, await admin.messages.max_offset(queue)) for queue in names[::2]}
        assert isinstance(to, int)
        if to <= 0:
            return to
        times = [
            broker.context.store.store_time(TOPIC, 0, min(to, self.plan.messages) - 1)
            for broker in self.stage.brokers.values()
        ]
        return max(times)


async def play_plan(lab: Lab) -> None:
    """Preview a reset, carry it out, and compare."""
    stage, plan = lab.stage, lab.plan
    await lab.build()
    admin = await stage.admin()
    if plan.kind in ("offsets", "unknown"):
        await lab.group()
        await lab.reshape()
        await stage.world.sleep(35)
        await _reset(lab, admin, after="push")
    elif plan.kind == "stopped":
        async with lab.consumer("push"):
            await stage.world.sleep(_SETTLED)
        await lab.reshape()
        await stage.world.sleep(35)
        await _reset(lab, admin, after="push")
    else:
        async with lab.consumer(plan.kind):
            await stage.world.sleep(_SETTLED)
            await lab.reshape()
            await stage.world.sleep(_SETTLED)
            await _reset(lab, admin, after=None)


async def _reset(lab: Lab, admin: AdminClient, *, after: str | None) -> None:
    plan = lab.plan
    target = await lab.target(admin)
    if not isinstance(target, int) and not target:
        return
    preview = await make_preview(admin, TOPIC, GROUP, target, force=plan.force, mode=plan.mode)
    lab.seen.clear()
    failure = None
    try:
        await admin.resets.reset(TOPIC, GROUP, target, force=plan.force, mode=plan.mode)
    except RewindMQError as error:
        failure = error
    if after is None:
        await lab.stage.world.sleep(_SEEN)
    else:
        async with lab.consumer(after):
            await lab.stage.world.sleep(_SEEN)
    compare(lab, preview, failure)


def compare(lab: Lab, preview: Preview, failure: RewindMQError | None) -> None:
    """Compare what the preview said with the messages that consumers got."""
    told = f"{lab.plan}\nobstacles {preview.obstacles}\nfailure {failure}\nseen {sorted(lab.seen)}"
    for row in preview.queues:
        if row.stored is None:
            continue
        stored = min(row.stored, row.max_offset)
        got = {
            offset
            for name, queue_id, offset in lab.seen
            if (name, queue_id) == (row.queue.broker_name, row.queue.queue_id)
        }
        again = sum(offset < stored for offset in got)
        assert again == row.redelivered, f"{row}\n{told}"
        # A group that was online had nothing left to skip.
        if lab.plan.kind in ("stopped", "offsets", "unknown") and row.is_read:
            left_out = {*range(max(stored, row.min_offset), row.max_offset)} - got
            assert len(left_out) == row.skipped, f"{row}\n{told}"
    if failure is not None:
        assert preview.obstacles, f"{told}"


@pytest.mark.parametrize("examples", few_and_all(6, 150))
def test_what_a_preview_says_is_what_consumers_see(play: RunScenario, examples: int) -> None:
    # A plan is readable as it is, and to shrink one takes minutes.
    @settings(max_examples=examples, phases=(Phase.explicit, Phase.generate))
    @given(_PLANS)
    @example(FENCED_AND_CLASSIC)
    @example(UNREAD)
    def holds(plan: Plan) -> None:
        async def scenario(stage: SimStage) -> None:
            await play_plan(Lab(stage, plan))

        play(scenario, brokers=0)

    holds()
