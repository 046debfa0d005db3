"""The test kit: clusters, waits and faults for the tests of an application.

pytest loads it as a plugin. A test asks for the fixture ``rmq``::

    async def test_orders_are_consumed(rmq: Rmq) -> None:
        orders = await rmq.topic("orders")
        await orders.send_many([b"one", b"two"])
        async with rmq.push("billing", orders) as billing:
            await billing.caught_up()
            assert billing.received == orders.sent

docs/testkit/README.md is the tutorial. A name's module is loaded when the name is first used.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.testing.clusters.options import ClusterOptions
    from rewindmq.testing.errors import KitError, KitWarning, NotSeenError
    from rewindmq.testing.factories import cluster, rmq
    from rewindmq.testing.handles.group import Group
    from rewindmq.testing.handles.group_reset import GroupReset
    from rewindmq.testing.handles.mark import Mark
    from rewindmq.testing.handles.pop_group import PopGroup
    from rewindmq.testing.handles.rmq import Rmq
    from rewindmq.testing.handles.topic import Topic
    from rewindmq.testing.handles.watched_group import WatchedGroup
    from rewindmq.testing.messages.deliveries import Delivery, Outcome
    from rewindmq.testing.messages.kit_message import KitMessage
    from rewindmq.testing.messages.lent_message import LentMessage
    from rewindmq.testing.simulation.decorator import simulated
    from rewindmq.testing.wire.link_fault import LinkFault
    from rewindmq.testing.wire.request_rule import RequestRule

__all__ = [
    "ClusterOptions",
    "Delivery",
    "Group",
    "GroupReset",
    "KitError",
    "KitMessage",
    "KitWarning",
    "LentMessage",
    "LinkFault",
    "Mark",
    "NotSeenError",
    "Outcome",
    "PopGroup",
    "RequestRule",
    "Rmq",
    "Topic",
    "WatchedGroup",
    "cluster",
    "rmq",
    "simulated",
]

_MODULES: Final = MappingProxyType(
    {
        "ClusterOptions": "clusters.options",
        "Delivery": "messages.deliveries",
        "Group": "handles.group",
        "GroupReset": "handles.group_reset",
        "KitError": "errors",
        "KitMessage": "messages.kit_message",
        "KitWarning": "errors",
        "LentMessage": "messages.lent_message",
        "LinkFault": "wire.link_fault",
        "Mark": "handles.mark",
        "NotSeenError": "errors",
        "Outcome": "messages.deliveries",
        "PopGroup": "handles.pop_group",
        "RequestRule": "wire.request_rule",
        "Rmq": "handles.rmq",
        "Topic": "handles.topic",
        "WatchedGroup": "handles.watched_group",
        "cluster": "factories",
        "rmq": "factories",
        "simulated": "simulation.decorator",
    }
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value
