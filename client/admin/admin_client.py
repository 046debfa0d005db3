"""AdminClient: mqadmin's functions, in one part for each subject."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from rewindmq.client.admin.brokers import BrokerAdmin
from rewindmq.client.admin.groups import GroupAdmin
from rewindmq.client.admin.messages import MessageAdmin
from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.resets import ResetAdmin
from rewindmq.client.admin.timestamp import parse_reset_timestamp
from rewindmq.client.admin.topics import TopicAdmin
from rewindmq.client.core.client_config import make_config
from rewindmq.client.core.profile import ClientProfile
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.options import refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.runtime_lease import lease_runtime


class AdminClient:
    """Examines and changes a cluster (RocketMQ 4.9.4 ``DefaultMQAdminExt``).

    Attributes:
        topics: lists, describes, creates, changes and deletes topics.
        groups: offsets, connected consumers and settings of consumer groups.
        messages: finds messages by id, key or queue offset, and the offsets of queues.
        resets: resets groups, copies their offsets, and lists refused commits.
        brokers: describes, configures and cleans brokers.

    Every method may raise ``ResponseError`` (a server refused, with its code and remark) and
    ``RemotingError`` (no connection, or no answer within 5 s). A call on another event loop than ``start``
    raises ``ClientError``.

    Args:
        namesrv_addr: ``host:port`` of the name servers, separated by ``;``; None (default) takes the
            environment's ``NAMESRV_ADDR``.
        profile: the release to imitate: "v42", "v49" (default) or "v53"; or a variant of v49, "epoch" or
            "unguarded" (docs/consumer.md).
        serialize_type: serialization type of requests, "json", "rocketmq" or "msgpack"; None (default)
            negotiates.
        time_scale: factor on every scheduled wait, above 0; default 1. Use the cluster's (docs/time.md).
        seed: makes random choices repeatable; None (default): random choices differ from run to run.
        runtime: clock, timers, network and threads of a simulated world (docs/time.md), instead of
            ``time_scale`` and ``seed``.

    Raises:
        ClientError: neither ``namesrv_addr`` nor the environment names a name server; or an option is
            invalid.
    """

    @refuse_unknown_options
    def __init__(
        self,
        namesrv_addr: str | None = None,
        *,
        profile: Profile | ClientProfile | str = "v49",
        serialize_type: SerializeType | str | None = None,
        time_scale: float | None = None,
        seed: int | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        config = make_config(namesrv_addr, profile=profile, serialize_type=serialize_type)
        self._lease = lease_runtime(runtime, time_scale, seed)
        self.profile = config.profile
        self.runtime = self._lease.runtime
        self._remote = remote = AdminRemote(config, self.runtime, config.serialize_type)
        self.topics = TopicAdmin(remote)
        self.groups = GroupAdmin(remote)
        self.messages = MessageAdmin(remote)
        self.resets = ResetAdmin(remote)
        self.brokers = BrokerAdmin(remote)

    async def start(self) -> None:
        """Start the client. It connects to a server when it first sends it a request."""
        self._remote.bind()
        self._lease.take()

    async def shutdown(self) -> None:
        """Close every connection. Pending calls fail."""
        try:
            await self._remote.close()
        finally:
            self._lease.give_back()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    def parse_timestamp(self, text: str) -> int:
        """Parse the time of a reset as the commands do; ``ClientError`` if the text is not a time."""
        return parse_reset_timestamp(text, self.profile.release, self.runtime.clock.now_ms())

    @property
    def namesrv_addresses(self) -> tuple[str, ...]:
        """``host:port`` of each name server."""
        return tuple(self._remote.namesrv_addresses)

    def is_decoding(self, task: asyncio.Task[Any]) -> bool:
        """Return whether a broker has answered the task's request, and its answer is being decoded.

        A time limit for brokers is over by then.
        """
        return self._remote.is_decoding(task)
