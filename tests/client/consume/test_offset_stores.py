"""Offsets in memory, and in a broadcasting consumer's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindmq import MessageQueue
from rewindmq.client.consume.local_offset_store import LocalFileOffsetStore
from rewindmq.client.consume.offset_store import RemoteOffsetStore
from rewindmq.client.core.client_config import make_config
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim import World

ADDRESS = "127.0.0.1:9876"
Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


@pytest.mark.parametrize("profile", list(Profile))
def test_the_local_offset_file(tmp_path: Path, profile: Profile) -> None:
    world = World()

    async def main() -> None:
        instance = ClientInstance(world.runtime(), make_config(ADDRESS, profile=profile, instance_name="i"))
        store = LocalFileOffsetStore(instance, "G", tmp_path)
        path = tmp_path / "127.0.0.1@i" / "G" / "offsets.json"
        await store.load()
        assert await store.read(Q0) == -1
        store.update(Q0, 5, increase_only=False)
        store.update(Q1, 7, increase_only=False)
        await store.persist(Q0)
        assert path.exists() is (profile is Profile.V53)
        await store.persist_all([Q0, Q1])
        store.update(Q0, 6, increase_only=True)
        await store.persist_all([Q0])
        fresh = LocalFileOffsetStore(instance, "G", tmp_path)
        await fresh.load()
        # Only 5.2 and later keep the file's offsets of queues that are not owned now.
        kept = {Q0: 6, Q1: 7} if profile is Profile.V53 else {Q0: 6}
        assert fresh.offsets() == kept
        path.write_text("{not json")
        damaged = LocalFileOffsetStore(instance, "G", tmp_path)
        await damaged.load()
        assert damaged.offsets() == {Q0: 5, Q1: 7}
        store.update(Q0, 99, increase_only=False)
        await store.remove(Q0)
        assert store.read_memory(Q0) == (-1 if profile is Profile.V53 else 99)
        await instance.remoting.close()

    world.run(main())


def test_offsets_in_memory() -> None:
    world = World()

    async def main() -> None:
        instance = ClientInstance(world.runtime(), make_config(ADDRESS, instance_name="i"))
        store = RemoteOffsetStore(instance, "G")
        store.update(Q0, 5, increase_only=True)
        store.update(Q0, 3, increase_only=True)
        assert store.read_memory(Q0) == 5
        store.update(Q0, 3, increase_only=False)
        assert store.read_memory(Q0) == 3
        store.update_and_freeze(Q0, 1)
        store.update(Q0, 9, increase_only=False)
        assert store.read_memory(Q0) == 1
        store.forget(Q0)
        store.update(Q0, 9, increase_only=False)
        assert store.read_memory(Q0) == 9
        await instance.remoting.close()

    world.run(main())
