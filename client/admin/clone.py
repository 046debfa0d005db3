"""Copies a group's stored offsets to another group (docs/spec/reset.md D.11)."""

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
    """The offsets that were copied.

    Attributes:
        offset_table: the source's offsets right before the copy; 0 for queues without an offset.
    """

    source: str
    destination: str
    offset_table: dict[MessageQueue, int]

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({queue.topic for queue in self.offset_table})


class CloneAdmin(AdminBase):
    """Copies the offsets of one group to another."""

    async def clone_group_offset(self, source: str, destination: str, topic: str | None) -> CloneResult:
        """Copy the stored offsets of one group to another, broker after broker.

        Each broker gets GET_CONSUME_STATS (208), then CLONE_GROUP_OFFSET (314) for each topic. mqadmin sends
        UPDATE_CONSUMER_OFFSET (15) for each queue instead, and copies every topic, whichever topic you name.
        Running consumers of the destination get no notification. They overwrite the offsets with their next
        commit, at most 5 s later.

        Args:
            topic: copy only this topic; None copies all topics of the source except its retry topic.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic does not exist;
                CONSUMER_NOT_ONLINE (206) if the source has no offsets there; SYSTEM_ERROR (1) if a broker
                refused, for example because the destination was reset in fenced mode.
            RemotingError: no answer. The exception's notes name the brokers that had already copied.
            ClientError: source and destination are the same group.
        """
        if source == destination:
            raise ClientError(f"{source} is both the source and the destination")
        table: dict[MessageQueue, int] = {}
        done: list[str] = []
        for name, address in await (self._remote.brokers_of(topic) if topic else self._remote.brokers()):
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
