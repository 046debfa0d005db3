"""Client instances of this process: one per event loop, runtime and client id (``MQClientManager``)."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from rewindmq.client.client_config import ClientConfig
from rewindmq.client.instance import ClientInstance
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime

# Runtimes are compared by identity: several simulated processes may share one event loop.
_Key = tuple[int, str]
_Instances = WeakValueDictionary[_Key, ClientInstance]
# An instance refers to its loop: held from here it would keep a loop whose clients were never shut down.
_INSTANCES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Instances]] = WeakKeyDictionary()


@lru_cache(maxsize=1)
def default_runtime() -> Runtime:
    """The system's runtime, shared by every client that is given none."""
    return system_runtime()


def get_or_create_instance(runtime: Runtime, config: ClientConfig) -> ClientInstance:
    """The instance of this client id, made when there is none."""
    instances = _INSTANCES.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    key = (id(runtime), config.client_id)
    instance = instances.get(key)
    if instance is None:
        instance = instances[key] = ClientInstance(runtime, config)
    return instance


async def release_instance(instance: ClientInstance) -> None:
    """Close the instance when no group uses it any more."""
    if not instance.is_unused:
        return
    instances = _INSTANCES.get(asyncio.get_running_loop())
    if instances is not None:
        instances.pop((id(instance.runtime), instance.client_id), None)
    await instance.close()
