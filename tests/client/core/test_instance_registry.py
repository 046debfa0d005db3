"""One client instance per event loop, runtime and client id, kept no longer than needed."""

import gc
import weakref

import pytest

from rewindmq.client.core.client_config import make_config
from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.core.instance_registry import get_or_create_instance
from rewindmq.protocol.command import SerializeType
from rewindmq.race.sim import World


def test_clients_with_one_id_share_an_instance_and_others_do_not() -> None:
    world = World()

    async def main() -> None:
        here, there = world.runtime("here"), world.runtime("there")
        config = make_config("namesrv:9876", instance_name="a")
        instance = get_or_create_instance(here, config)
        assert get_or_create_instance(here, config) is instance
        assert get_or_create_instance(there, config) is not instance
        other = make_config("namesrv:9876", instance_name="b")
        assert get_or_create_instance(here, other) is not instance

    world.run(main())


def test_sharing_an_instance_with_other_settings_logs_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()

    async def main() -> None:
        here = world.runtime("here")
        first = make_config("namesrv:9876", instance_name="a")
        instance = get_or_create_instance(here, first)
        get_or_create_instance(here, first)
        other = make_config("elsewhere:9876", instance_name="a", serialize_type=SerializeType.JSON)
        assert get_or_create_instance(here, other) is instance

    world.run(main())
    [record] = caplog.records
    assert record.getMessage() == (
        "client id 127.0.0.1@a is shared with an earlier client, whose settings apply"
        " (different: namesrv_addrs, serialize_type); give this client an instance_name of its own"
    )


def test_a_loop_whose_clients_were_never_shut_down_is_garbage_collected() -> None:
    left: list[weakref.ref[ClientInstance]] = []

    async def forget(world: World) -> None:
        instance = get_or_create_instance(world.runtime(), make_config("namesrv:9876"))
        await instance.start()
        left.append(weakref.ref(instance))

    for seed in range(3):
        world = World(seed)
        world.run(forget(world))
    del world
    gc.collect()
    assert [reference() for reference in left] == [None] * 3
