"""AdminClient: what mqadmin does, as an object."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rewindmq.client.admin.brokers import BrokerAdmin
from rewindmq.client.admin.clone import CloneAdmin
from rewindmq.client.admin.consumers import ConsumerAdmin
from rewindmq.client.admin.fenced import FencedAdmin
from rewindmq.client.admin.group_resets import GroupResetAdmin
from rewindmq.client.admin.groups import GroupAdmin
from rewindmq.client.admin.message_trace import TraceAdmin
from rewindmq.client.admin.queue_reset import QueueResetAdmin
from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.timestamp import parse_reset_timestamp
from rewindmq.client.admin.topics import TopicAdmin
from rewindmq.client.core.client_config import make_config
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime


class AdminClient(
    TopicAdmin,
    BrokerAdmin,
    GroupAdmin,
    ConsumerAdmin,
    CloneAdmin,
    GroupResetAdmin,
    QueueResetAdmin,
    FencedAdmin,
    TraceAdmin,
):
    """Examines and changes a cluster (RocketMQ 4.9.4 ``DefaultMQAdminExt``).

    Each base class holds the methods of one subject.

    Every method may raise ``ResponseError`` (a server refused; code and remark are its own) and
    ``RemotingError`` (no connection, or no answer within 5 s).

    Args:
        namesrv_addr: ``host:port``, several separated by ``;``; without it the environment's NAMESRV_ADDR.
        runtime: clock, network and chance; the system's unless given.
        profile: the release whose reading of ``now`` applies.
        wire: the header codec to speak; None finds out what the peer does.

    Raises:
        ClientError: no name server is named anywhere.
    """

    def __init__(
        self,
        namesrv_addr: str | None = None,
        runtime: Runtime | None = None,
        *,
        profile: Profile = Profile.V49,
        wire: SerializeType | None = None,
    ) -> None:
        self.profile = profile
        self.runtime = runtime if runtime is not None else system_runtime()
        self._remote = AdminRemote(make_config(namesrv_addr, profile=profile), self.runtime, wire)

    async def start(self) -> None:
        """Ready to ask; connections are made when first needed."""

    async def shutdown(self) -> None:
        """Close every connection; pending calls fail."""
        await self._remote.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    def parse_timestamp(self, text: str) -> int:
        """Read a reset's time as the commands do; ``ClientError`` when it is none."""
        return parse_reset_timestamp(text, self.profile, self.runtime.clock.now_ms())
