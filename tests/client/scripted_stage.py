"""Clients against a scripted broker, under virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, PushConsumer
from rewindmq.client.core.profile import ClientProfile
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.scripted_broker import ScriptedBroker

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
ALL = list(Profile)
# Profiles that discard a listener's result for a queue that was given up meanwhile.
GUARDED = [profile for profile in Profile if profile is not Profile.UNGUARDED]
Scene = Callable[[World, ScriptedBroker, Runtime], Awaitable[None]]


def play_scripted(scene: Scene, *, topics: dict[str, int] | None = None, seed: int = 1) -> None:
    """Run a scene against a scripted broker; the client's runtime is on another host."""
    world = World(seed)

    async def main() -> None:
        broker = ScriptedBroker(world.runtime("10.0.0.9"), topics or {"T": 1})
        await broker.start("10.0.0.9")
        try:
            await scene(world, broker, world.runtime("10.0.0.1"))
        finally:
            await broker.close()

    world.run(main())


def consumer_of(
    broker: ScriptedBroker, runtime: Runtime, profile: Profile | ClientProfile = Profile.V49, **options: Any
) -> PushConsumer:
    consumer = PushConsumer(
        "G", broker.address, runtime=runtime, profile=profile, instance_name="c1", **options
    )
    consumer.subscribe("T")
    consumer.register_message_listener(succeed)
    return consumer


async def succeed(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
    return OK


def commits(broker: ScriptedBroker) -> list[tuple[float, int]]:
    return [
        (round(at, 1), header.commit_offset)
        for at, code, header in broker.seen
        if code == RequestCode.UPDATE_CONSUMER_OFFSET
    ]
