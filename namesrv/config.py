"""The name server's settings, read from RocketMQ's own property file (``-c namesrv.properties``)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Final

import msgspec

from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.property_loader import load_properties
from rewindmq.protocol.remoting.traffic.held_bytes import (
    FRAME_SECONDS,
    MAX_UNFINISHED_BYTES,
    MAX_UNREAD_BYTES,
)

DEFAULT_PORT: Final = 9876
# With less, no connection could send or receive the largest frame.
FrameBytes = Annotated[int, msgspec.Meta(ge=MAX_FRAME_BYTES)]

_log = logging.getLogger(__name__)


class NamesrvConfig(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Keys and defaults of RocketMQ's ``NamesrvConfig`` and ``NettyServerConfig``.

    Attributes:
        listen_port: 0 lets the system choose.
        bind_address: the interface to listen on (5.x key); the default serves this machine only.
        allow_open_access: a ``bind_address`` that is not loopback may be used (RewindMQ's own key).
        rocketmq_home: the directory of ``namesrv/kvConfig.json``, unless ``kv_config_path`` is set.
        kv_config_path: the KV file; without it and without a home the name server keeps KV pairs in memory.
        order_message_enable: route responses include ORDER_TOPIC_CONFIG.
        scan_not_active_broker_interval: ms between two scans for silent brokers (5.x key); None takes
            the profile's.
        server_max_connections: accepted connections in all; None means what the process's open files permit
            (RewindMQ's own key).
        server_max_connections_per_address: accepted connections from one IP address; None means half of
            ``server_max_connections`` (RewindMQ's own key).
        server_frame_timeout_millis: time for the rest of a frame after its first bytes, not scaled
            (RewindMQ's own key).
        server_max_unfinished_frame_bytes: bytes of frames whose rest is missing, of all connections
            (RewindMQ's own key).
        server_max_unread_bytes: bytes that clients have not read, of all connections (RewindMQ's own key).
        profile: the release to imitate (RewindMQ's own key).
    """

    listen_port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = DEFAULT_PORT
    bind_address: str = "127.0.0.1"
    allow_open_access: bool = False
    rocketmq_home: str = ""
    kv_config_path: str = ""
    server_frame_timeout_millis: Annotated[int, msgspec.Meta(ge=1)] = int(FRAME_SECONDS * 1_000)
    server_max_unfinished_frame_bytes: FrameBytes = MAX_UNFINISHED_BYTES
    server_max_unread_bytes: FrameBytes = MAX_UNREAD_BYTES
    order_message_enable: bool = False
    scan_not_active_broker_interval: Annotated[int, msgspec.Meta(ge=1)] | None = None
    server_max_connections: Annotated[int, msgspec.Meta(ge=1)] | None = None
    server_max_connections_per_address: Annotated[int, msgspec.Meta(ge=1)] | None = None
    profile: Profile = Profile.V49

    @property
    def kv_config_file(self) -> Path | None:
        if self.kv_config_path:
            return Path(self.kv_config_path)
        if self.rocketmq_home:
            return Path(self.rocketmq_home) / "namesrv" / "kvConfig.json"
        return None


def read_namesrv_config(path: Path | None, **overrides: object) -> NamesrvConfig:
    """Read the configuration from a file; options of the command line override it.

    Args:
        overrides: checked values by field name; None means not given.

    Raises:
        ConfigError: the file cannot be read or holds a bad value; the text names file, line and key.
    """
    fields: dict[str, object] = {}
    if path is not None:
        loaded = load_properties(NamesrvConfig, path)
        fields = loaded.fields
        if loaded.unknown_keys:
            _log.warning("%s: ignored unknown keys: %s", path, ", ".join(loaded.unknown_keys))
    fields.update({name: value for name, value in overrides.items() if value is not None})
    return msgspec.structs.replace(NamesrvConfig(), **fields)
