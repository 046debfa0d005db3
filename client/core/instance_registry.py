"""Client instances of this process: one per event loop, runtime and client id (``MQClientManager``)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import fields
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from rewindmq.client.core.client_config import ClientConfig
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.remoting.runtime import Runtime

# Runtimes are compared by identity: several simulated processes may share one event loop.
_Key = tuple[int, str]
_Instances = WeakValueDictionary[_Key, ClientInstance]
# Weak values: an instance refers to its loop, so a strong reference would keep a loop alive whose clients
# were never shut down.
_INSTANCES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Instances]] = WeakKeyDictionary()

_log = logging.getLogger(__name__)


def get_or_create_instance(runtime: Runtime, config: ClientConfig) -> ClientInstance:
    """Return the instance of this client id; create it if there is none.

    As in RocketMQ, the first client's settings apply to all clients that share the instance. A warning names
    settings in which a later client differs.
    """
    instances = _INSTANCES.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    key = (id(runtime), config.client_id)
    instance = instances.get(key)
    if instance is None:
        instance = instances[key] = ClientInstance(runtime, config)
    elif instance.config != config:
        _warn_of_difference(instance.config, config)
    return instance


def _warn_of_difference(shared: ClientConfig, asked: ClientConfig) -> None:
    names = [field.name for field in fields(shared)]
    different = [name for name in names if getattr(shared, name) != getattr(asked, name)]
    _log.warning(
        "client id %s is shared with an earlier client, whose settings apply (different: %s); give this"
        " client an instance_name of its own",
        shared.client_id,
        ", ".join(different),
    )


async def release_instance(instance: ClientInstance) -> None:
    """Close the instance if no group uses it any more."""
    if instance.is_unused:
        _forget(instance)
        await instance.close()


def abort_instance(instance: ClientInstance) -> None:
    """Like ``release_instance``, but at once and without unregistering at the brokers."""
    if instance.is_unused:
        _forget(instance)
        instance.abort()


def _forget(instance: ClientInstance) -> None:
    instances = _INSTANCES.get(asyncio.get_running_loop())
    key = (id(instance.runtime), instance.client_id)
    # Another client may have created an instance of this id meanwhile.
    if instances is not None and instances.get(key) is instance:
        del instances[key]
