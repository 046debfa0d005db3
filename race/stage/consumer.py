"""Makes the push consumer of a race, the same on every stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rewindmq.client.core.remedy import Remedy, remedied
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.errors import RaceError
from rewindmq.race.stage.listener import PlannedListener
from rewindmq.race.stage.stage import GROUP, TOPIC

# Converters for options that are neither numbers nor strings.
_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {"consume_from_where": ConsumeFromWhere, "message_model": MessageModel, "offset_root": Path}
)


def make_consumer(
    runtime: Runtime,
    namesrv: str,
    *,
    profile: Profile,
    remedy: Remedy | None,
    instance_name: str,
    listener: PlannedListener,
    tags: str,
    options: Mapping[str, Any],
) -> PushConsumer:
    """Return a push consumer that is not started.

    Args:
        options: keyword arguments of ``PushConsumer``; enumerations may be strings. ``orderly`` registers
            the listener as an orderly one.

    Raises:
        RaceError: push consumers do not have this option.
        ClientError: an option is out of range.
    """
    named: dict[str, Any] = {"instance_name": instance_name, **options}
    is_orderly = named.pop("orderly", False)
    try:
        named.update({name: kind(named[name]) for name, kind in _KINDS.items() if name in named})
        consumer = PushConsumer(
            GROUP,
            namesrv,
            runtime=runtime,
            profile=remedied(profile, remedy),
            **named,
        )
    except (TypeError, ValueError) as error:
        raise RaceError(f"options of the consumer: {error}") from None
    consumer.subscribe(TOPIC, tags)
    if is_orderly:
        consumer.register_orderly_listener(listener.consume_in_order)
    else:
        consumer.register_message_listener(listener)
    return consumer
