"""Accounts: body of 54 (docs/spec/protocol.md 5.8)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody


class PlainAccessConfig(RemotingBody):
    """One account; ``topic_perms`` and ``group_perms`` are lines such as ``T=PUB|SUB``."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] = field(default_factory=list)
    group_perms: list[str] = field(default_factory=list)


class AclConfig(RemotingBody):
    """Every account of a broker and the addresses that need none, GET_BROKER_CLUSTER_ACL_CONFIG (54)."""

    global_white_addrs: list[str] = field(default_factory=list)
    plain_access_configs: list[PlainAccessConfig] = field(default_factory=list)
