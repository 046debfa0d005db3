"""AdminClient: mqadmin's functions as methods."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rewindmq.client.admin.broker_tables import BrokerTableAdmin
from rewindmq.client.admin.brokers import BrokerAdmin
from rewindmq.client.admin.clone import CloneAdmin
from rewindmq.client.admin.consumers import ConsumerAdmin
from rewindmq.client.admin.fenced import FencedAdmin
from rewindmq.client.admin.group_resets import GroupResetAdmin
from rewindmq.client.admin.groups import GroupAdmin
from rewindmq.client.admin.message_trace import TraceAdmin
from rewindmq.client.admin.offset_resets import OffsetResetAdmin
from rewindmq.client.admin.queue_reset import QueueResetAdmin
from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.timestamp import parse_reset_timestamp
from rewindmq.client.admin.topics import TopicAdmin
from rewindmq.client.core.client_config import make_config
from rewindmq.client.core.profile import ClientProfile
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.options import refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.runtime_lease import lease_runtime


class AdminClient(
    TopicAdmin,
    BrokerAdmin,
    BrokerTableAdmin,
    GroupAdmin,
    ConsumerAdmin,
    CloneAdmin,
    GroupResetAdmin,
    OffsetResetAdmin,
    QueueResetAdmin,
    FencedAdmin,
    TraceAdmin,
):
    """Examines and changes a cluster (RocketMQ 4.9.4 ``DefaultMQAdminExt``).

    Each base class holds the methods of one subject.

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
        self._remote = AdminRemote(config, self.runtime, config.serialize_type)

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
