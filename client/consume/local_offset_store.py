"""Offsets of a broadcasting member, in a file of its own (docs/spec/client.md C.8).

Path and content are RocketMQ's: ``<root>/<clientId>/<group>/offsets.json`` with the table keyed by queue.
Source: ``LocalFileOffsetStore`` of 4.9.4, and of 5.2.0 (pull request 7740) for the v53 profile.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from rewindmq.client.consume.offset_store import NO_OFFSET, OffsetMemory
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue

_log = logging.getLogger(__name__)


def default_offset_root() -> Path:
    """``.rocketmq_offsets`` in the user's home, as Java's client has it."""
    return Path.home() / ".rocketmq_offsets"


class LocalFileOffsetStore(OffsetMemory):
    """Offsets in a local file.

    Up to 5.1 only ``persist_all`` writes: a single queue's persist and remove do nothing, which is why a
    reset never reaches a broadcasting member there (docs/spec/reset.md D.6).
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        root: Path,
        owners: Mapping[MessageQueue, ProcessQueue] = MappingProxyType({}),
    ) -> None:
        super().__init__(instance, group, owners)
        self._path = root / instance.client_id / group / "offsets.json"
        self._keeps_single = instance.profile.local_store_keeps_single

    async def load(self) -> None:
        """Read the file into memory.

        Raises:
            ClientError: neither the file nor its backup can be read.
        """
        self._table.update(self._read_file())

    async def read(self, queue: MessageQueue) -> int:
        """The offset in memory, else in the file; -1 when there is none.

        Raises:
            ClientError: as ``load``.
        """
        offset = self._table.get(queue, NO_OFFSET)
        return offset if offset >= 0 else await self.read_store(queue)

    async def read_store(self, queue: MessageQueue) -> int:
        """The file's offset, which is then in memory too."""
        offset = self._read_file().get(queue)
        if offset is None:
            return NO_OFFSET
        self.update(queue, offset, increase_only=False)
        return offset

    async def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Write the entries of ``queues``; the 5.2 store keeps what the file says of others.

        A member that owns nothing, as before its first rebalance, leaves the file alone.
        """
        if queues:
            self._merge({queue: offset for queue, offset in self._table.items() if queue in queues})

    async def persist(self, queue: MessageQueue) -> None:
        """Write one entry (5.2), or do nothing."""
        offset = self._table.get(queue)
        if self._keeps_single and offset is not None:
            self._merge({queue: offset})

    async def remove(self, queue: MessageQueue) -> None:
        """Forget one memory entry (5.2), or do nothing."""
        if self._keeps_single:
            self.forget(queue)

    def _merge(self, offsets: dict[MessageQueue, int]) -> None:
        """Write these, and with the 5.2 store what the file holds besides; errors are logged."""
        try:
            kept = self._read_file() if self._keeps_single else {}
        except ClientError as error:
            _log.error("readLocalOffset exception: %s", error)
        else:
            self._write_file(kept | offsets)

    def _read_file(self) -> dict[MessageQueue, int]:
        """The file's table, or its backup's where that is missing, empty or damaged.

        Raises:
            ClientError: a file cannot be read, or the backup is damaged too.
        """
        backup = self._path.with_name("offsets.json.bak")
        for path in (self._path, backup):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ClientError(f"cannot read the offsets in {path}: {error.strerror}") from None
            if not content.strip():
                continue
            try:
                return dict(_decode(content))
            except RewindMQError as error:
                if path is backup:
                    raise ClientError(
                        f"the offsets in {self._path} and its backup are damaged: {error}"
                    ) from None
                _log.warning("readLocalOffset exception, %s: %s", path, error)
        return {}

    def _write_file(self, table: dict[MessageQueue, int]) -> None:
        """Replace the file in one step and keep its old content as ``.bak``; errors are logged."""
        content = encode_body(ResetOffsetBody(table), SerializeType.JSON)
        fresh = self._path.with_name("offsets.json.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(content)
            if self._path.exists():
                self._path.replace(self._path.with_name("offsets.json.bak"))
            fresh.replace(self._path)
        except OSError as error:
            _log.error("persistAll consumer offset Exception, %s: %s", self._path, error)


def _decode(content: bytes) -> dict[MessageQueue, int]:
    command = RemotingCommand(0, None, content, serialize_type=SerializeType.JSON)
    return decode_body(command, ResetOffsetBody).offset_table
