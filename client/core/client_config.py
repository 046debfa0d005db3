"""Settings that every kind of client has."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from ipaddress import ip_address

from rewindmq.client.core.profile import CLIENT_PROFILES, ClientProfile
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.options import parse_choice
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.runtime import Runtime

DEFAULT_INSTANCE_NAME = "DEFAULT"
# RocketMQ uses this value if the option is not positive. RocketMQ's default is the number of processors.
DEFAULT_CALLBACK_THREADS = 4
DEFAULT_API_TIMEOUT_MS = 3_000
NO_NAME_SERVER = "No name server address, please set it."


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings shared by producers, consumers and admin clients (RocketMQ ``ClientConfig``).

    Attributes:
        namesrv_addrs: name servers, ``host:port`` each, at least one.
        instance_name: clients of one process with equal names share connections and timers. DEFAULT is
            replaced at start, see ``with_own_instance_name``.
        client_ip: the address in the client id and in message ids.
        unit_name: a suffix of the client id, "" for none.
        client_callback_executor_threads: how many resets and pull callbacks may run at the same time, at
            least 1. RocketMQ's default is the number of processors; see ``CallbackPool``.
        mq_client_api_timeout: timeout in ms of heartbeats, unregistrations, route and consumer-list queries,
            and filter checks; at least 1.
        profile: the behaviour of the imitated release.
        serialize_type: serialization type of every request; None negotiates it, see ``RemotingClient``.
    """

    namesrv_addrs: tuple[str, ...]
    profile: ClientProfile = CLIENT_PROFILES[Profile.V49]
    serialize_type: SerializeType | None = None
    instance_name: str = DEFAULT_INSTANCE_NAME
    client_ip: str = "127.0.0.1"
    unit_name: str = ""
    client_callback_executor_threads: int = DEFAULT_CALLBACK_THREADS
    mq_client_api_timeout: int = DEFAULT_API_TIMEOUT_MS

    @property
    def client_id(self) -> str:
        """``ip@instanceName[@unitName]`` (docs/spec/client.md C.1)."""
        client_id = f"{self.client_ip}@{self.instance_name}"
        return f"{client_id}@{self.unit_name}" if self.unit_name else client_id

    def with_own_instance_name(self, runtime: Runtime) -> ClientConfig:
        """Return the configuration with DEFAULT replaced by the process id (v42) or ``pid#number``.

        Java takes the number from its nanosecond clock. Here it is random, because virtual time stands still
        while clients start.
        """
        if self.instance_name != DEFAULT_INSTANCE_NAME:
            return self
        name = str(os.getpid())
        if self.profile.unique_instance_name:
            name = f"{name}#{runtime.random.getrandbits(48)}"
        return replace(self, instance_name=name)


def make_config(
    namesrv_addr: str | None,
    *,
    profile: Profile | ClientProfile | str = Profile.V49,
    serialize_type: SerializeType | str | None = None,
    instance_name: str = DEFAULT_INSTANCE_NAME,
    client_ip: str = "127.0.0.1",
    unit_name: str = "",
    client_callback_executor_threads: int = DEFAULT_CALLBACK_THREADS,
    mq_client_api_timeout: int = DEFAULT_API_TIMEOUT_MS,
) -> ClientConfig:
    """Check the options of a client's constructor and return its configuration.

    Args:
        namesrv_addr: ``host:port`` of one or more name servers, separated by ``;``; None takes the
            environment's ``NAMESRV_ADDR``.
        profile: a release's name, or a ``ClientProfile`` of your own, for example with one attribute changed.

    Raises:
        ClientError: no name server, an invalid address, an option out of range, or an unknown profile or
            serialization type.
    """
    text = os.environ.get("NAMESRV_ADDR", "") if namesrv_addr is None else namesrv_addr
    addresses = tuple(address.strip() for address in text.split(";") if address.strip())
    if not addresses:
        raise ClientError(NO_NAME_SERVER)
    for address in addresses:
        try:
            parse_address(address)
        except ValueError as error:
            raise ClientError(f"name server address {error}") from None
    try:
        ip_address(client_ip)
    except ValueError:
        raise ClientError(f"client IP {client_ip!r} is not an IP address") from None
    if client_callback_executor_threads < 1:
        raise ClientError("client_callback_executor_threads must be at least 1")
    if mq_client_api_timeout < 1:
        raise ClientError("mq_client_api_timeout must be at least 1")
    return ClientConfig(
        addresses,
        profile
        if isinstance(profile, ClientProfile)
        else CLIENT_PROFILES[parse_choice(Profile, profile, "profile")],
        None if serialize_type is None else parse_choice(SerializeType, serialize_type, "serialize_type"),
        instance_name,
        client_ip,
        unit_name,
        client_callback_executor_threads,
        mq_client_api_timeout,
    )
