"""One client instance per event loop, runtime and client id, and none longer than it is needed."""

import gc
import weakref

from rewindmq.client.client_config import make_config
from rewindmq.client.instance import ClientInstance
from rewindmq.client.instance_registry import get_or_create_instance
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


def test_a_loop_whose_clients_were_never_shut_down_is_let_go() -> None:
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
