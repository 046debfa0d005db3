"""LocalFileOffsetStore: offsets of a broadcasting consumer, in a local file (docs/spec/client.md C.8).

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


def parse_offset_root(root: object) -> Path:
    """Return the directory of broadcasting offsets.

    Args:
        root: a path or its text; None: ``.rocketmq_offsets`` in the user's home, as Java's client has it.

    Raises:
        ClientError: ``root`` is neither, or empty.
    """
    if root is None:
        return Path.home() / ".rocketmq_offsets"
    if not isinstance(root, Path | str) or root == "":
        raise ClientError(f"offset_root must be the path of a directory, as a Path or a text, not {root!r}")
    return Path(root)


class LocalFileOffsetStore(OffsetMemory):
    """Offsets of a broadcasting consumer, in a local file.

    Up to 5.1 only ``persist_all`` writes; ``persist`` and ``remove`` do nothing. Therefore a reset never
    takes effect on a broadcasting consumer of these releases (docs/spec/reset.md D.6).
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
        """Return the offset from memory, else from the file; -1 if there is none.

        Raises:
            ClientError: as ``load``.
        """
        offset = self._table.get(queue, NO_OFFSET)
        return offset if offset >= 0 else await self.read_store(queue)

    async def read_store(self, queue: MessageQueue) -> int:
        """Return the file's offset and keep it in memory; -1 if there is none."""
        offset = self._read_file().get(queue)
        if offset is None:
            return NO_OFFSET
        self.update(queue, offset, increase_only=False)
        return offset

    async def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Write the offsets of ``queues``. The 5.2 store keeps the file's offsets of other queues.

        Without queues, as before the first rebalance, the file stays unchanged.
        """
        if queues:
            self._merge({queue: offset for queue, offset in self._table.items() if queue in queues})

    async def persist(self, queue: MessageQueue) -> None:
        """Write one offset (5.2), or do nothing (earlier releases)."""
        offset = self._table.get(queue)
        if self._keeps_single and offset is not None:
            self._merge({queue: offset})

    async def remove(self, queue: MessageQueue) -> None:
        """Remove one offset from memory (5.2), or do nothing (earlier releases)."""
        if self._keeps_single:
            self.forget(queue)

    def _merge(self, offsets: dict[MessageQueue, int]) -> None:
        """Write these offsets; the 5.2 store keeps the file's other offsets. Errors are logged."""
        try:
            kept = self._read_file() if self._keeps_single else {}
        except ClientError as error:
            _log.error("readLocalOffset exception: %s", error)
        else:
            self._write_file(kept | offsets)

    def _read_file(self) -> dict[MessageQueue, int]:
        """Return the file's table, or the backup's if the file is missing, empty or damaged.

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
        """Replace the file atomically and keep its old content as ``.bak``; errors are logged."""
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
