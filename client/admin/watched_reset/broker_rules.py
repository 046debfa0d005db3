"""How a broker resets a group: its mode, its search by time, and what it knows of the group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.asking import ask_each
from rewindmq.protocol.body.stats import ConsumeStats
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.admin.watched_reset.brokers import Brokers

_RELEASE: Final = re.compile(r"V([0-9]+)_([0-9]+)_([0-9]+)")
# The first release that finds the first message at a time or later (docs/spec/broker.md B.10).
_BOUNDARY: Final = (5, 1, 1)


@dataclass(frozen=True, slots=True)
class BrokerRules:
    """What decides the outcome of INVOKE_BROKER_TO_RESET_OFFSET (222) at one broker.

    Attributes:
        address: the master's, or a slave's if no master is registered.
        mode: of resets that name none.
        knows_modes: it is RewindMQ's, and obeys a mode that the request names.
        is_nearest: its search by time returns the nearest message, as RocketMQ up to 5.1.0 does; None: it
            does not tell its release.
        checks_commits: a direct write needs a known group, as in 5.x.
        knows_group: it has settings of the group.
        has_consumers: a consumer of the group is connected to it.
        has_offsets: it lists progress of the group, in the read queues of any topic.
        lists_topic: it lists the group's progress in the topic.
    """

    name: str
    address: str
    mode: ResetMode = ResetMode.CLASSIC
    knows_modes: bool = False
    is_slave: bool = False
    is_nearest: bool | None = None
    checks_commits: bool = False
    knows_group: bool = True
    has_consumers: bool = True
    has_offsets: bool = True
    lists_topic: bool = True


async def rules_of(
    admin: AdminClient,
    topic: str,
    group: str,
    addresses: Iterable[tuple[str, str]],
    brokers: Brokers,
    progress: Mapping[str, ConsumeStats],
) -> list[BrokerRules]:
    """Ask the brokers, in the order in which a reset asks them.

    Args:
        addresses: of the brokers, with their names.
        brokers: knows which brokers told the group's consumers already.
        progress: of the group at each broker, by the broker's name.

    Raises:
        ResponseError: a broker refused.
        RemotingError: a broker did not answer.
    """

    async def ask(broker: tuple[str, str]) -> BrokerRules:
        name, address = broker
        config = await _config(admin, address)
        is_told = address in brokers.connections
        connection = brokers.connections[address] if is_told else await brokers.consumers_at(address, group)
        is_nearest, checks_commits = await _release(admin, address, config)
        queues = progress[name].offset_table
        return BrokerRules(
            name,
            address,
            _mode(config),
            "resetMode" in config,
            config.get("brokerRole") == "SLAVE",
            is_nearest,
            checks_commits,
            connection is not None or await knows_group(admin, group, address),
            connection is not None,
            bool(queues),
            any(queue.topic == topic for queue in queues),
        )

    return await ask_each(sorted(addresses), ask)


async def knows_group(admin: AdminClient, group: str, address: str) -> bool:
    """Return whether a broker has settings of the group, or does not tell."""
    try:
        return group in await admin.groups.subscription_groups(address)
    except ResponseError:
        return True


async def _config(admin: AdminClient, address: str) -> Mapping[str, str]:
    """Return the broker's configuration; nothing if it does not tell it."""
    try:
        return await admin.brokers.get_broker_config(address)
    except ResponseError:
        return {}


def _mode(config: Mapping[str, str]) -> ResetMode:
    """RewindMQ's key, else that of RocketMQ 5, which RocketMQ 4 does not have."""
    own = config.get("resetMode", "")
    if own in list[object](ResetMode):
        return ResetMode(own)
    return ResetMode.SERVER if config.get("useServerSideResetOffset") == "true" else ResetMode.CLASSIC


async def _release(admin: AdminClient, address: str, config: Mapping[str, str]) -> tuple[bool | None, bool]:
    """Return ``is_nearest`` and ``checks_commits``. RewindMQ names its profile, RocketMQ its version."""
    profile = config.get("profile", "")
    if profile in list[object](Profile):
        is_5 = Profile(profile).release is Profile.V53
        return not is_5, is_5
    try:
        version = (await admin.brokers.fetch_broker_runtime_stats(address)).get("brokerVersionDesc", "")
    except ResponseError:
        version = ""
    match = _RELEASE.match(version)
    if match is None:
        return None, False
    release = tuple(map(int, match.groups()))
    return release < _BOUNDARY, release >= (5,)
