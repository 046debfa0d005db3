"""The state that the request handlers of a name server share."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.kv_config import KVConfigManager
from rewindmq.namesrv.profile import NamesrvProfile
from rewindmq.namesrv.registration_queue import RegistrationQueue
from rewindmq.namesrv.route_info import RouteInfoManager
from rewindmq.protocol.remoting.runtime import Clock
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses


@dataclass(frozen=True, slots=True)
class NamesrvContext:
    """The state and the profile of one name server."""

    config: NamesrvConfig
    profile: NamesrvProfile
    routes: RouteInfoManager
    kv_configs: KVConfigManager
    clock: Clock
    large_responses: LargeResponses
    registrations: RegistrationQueue
