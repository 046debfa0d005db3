"""Copying a group's stored offsets to another group (docs/spec/reset.md D.11)."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.client.admin.groups import broker_consume_stats
from rewindmq.client.admin.remote import AdminBase, not_online
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.header.reset import CloneGroupOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic


@dataclass(frozen=True, slots=True)
class CloneResult:
    """What was copied.

    Attributes:
        offset_table: as the source stood right before; queues it had no offset for count as 0.
    """

    source: str
    destination: str
    offset_table: dict[MessageQueue, int]

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({queue.topic for queue in self.offset_table})


class CloneAdmin(AdminBase):
    """Copies offsets from group to group."""

    async def clone_group_offset(self, source: str, destination: str, topic: str | None) -> CloneResult:
        """Give a group the stored offsets of another: 208, and then 314 for each topic, broker after broker.

        mqadmin writes each offset by itself (15), in every topic of the source whatever topic was named.
        Running consumers of the destination are not told, and overwrite it with their next commit, 5 s later
        at most.

        Args:
            topic: this one only; None copies all topics of the source, without its retries.

        Raises:
            ResponseError: 17, no such topic, or the source never connected; 206, the source has no offsets
                there; 1, a broker refused, as for a destination that was reset in fenced mode.
            RemotingError: no answer; brokers before it have copied (named in the exception's notes).
            ClientError: the two groups are one.
        """
        if source == destination:
            raise ClientError(f"{source} is both the source and the destination")
        table: dict[MessageQueue, int] = {}
        done: list[str] = []
        for name, address in await self._remote.brokers_of(topic or retry_topic(source)):
            try:
                stats = await broker_consume_stats(self._remote, address, source)
                here = {
                    queue: wrapper.consumer_offset
                    for queue, wrapper in stats.offset_table.items()
                    if (queue.topic == topic if topic else queue.topic != retry_topic(source))
                }
                for each in sorted({queue.topic for queue in here}):
                    header = CloneGroupOffsetRequestHeader(source, destination, each, offline=True)
                    await self._remote.ask_broker(
                        address, self._remote.command(RequestCode.CLONE_GROUP_OFFSET, header)
                    )
            except RewindMQError as error:
                if done:
                    error.add_note(f"already copied at: {', '.join(done)}")
                raise
            table.update(here)
            done.append(name)
        if not table:
            raise not_online(f"group {source} has no offsets in {topic or 'any topic'}: nothing is copied")
        return CloneResult(source, destination, dict(sorted(table.items())))
