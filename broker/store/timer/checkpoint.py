"""The file ``config/timercheck``: how far the timer messages are taken and delivered."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import msgspec

from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.layout.timer import CHECKPOINT, CHECKPOINT_BYTES, SEAL, SEAL_AT, SEAL_MAGIC


class TimerProgress(msgspec.Struct, frozen=True):
    """What the checkpoint holds.

    Attributes:
        read_ms: time of the next slot to deliver; the messages of earlier slots are delivered.
        log_end: position up to which the timer log is durable and belongs to the wheel.
        queue_offset: offset in the timer queue up to which the timer log holds the messages.
        master_offset: offset in the timer queue up to which the master has taken the messages.
        state_version, version_ms, version: the data version, which slaves compare.
    """

    read_ms: int = 0
    log_end: int = 0
    queue_offset: int = 0
    master_offset: int = 0
    state_version: int = 0
    version_ms: int = 0
    version: int = 0

    def encode(self) -> bytes:
        """Return the fields as in the file and in the response to GET_TIMER_CHECK_POINT (60)."""
        return CHECKPOINT.pack(*msgspec.structs.astuple(self))


def decode_progress(data: bytes) -> TimerProgress | None:
    """Return the fields; None if they are not all there."""
    if len(data) < CHECKPOINT.size:
        return None
    return TimerProgress(*CHECKPOINT.unpack_from(data))


def decode_checkpoint(data: bytes) -> tuple[TimerProgress | None, bool]:
    """Return the fields of the file's content, and whether RewindMQ wrote it last.

    Then wheel and timer log are exactly as they were at ``log_end``.
    """
    progress = decode_progress(data)
    if progress is None or len(data) < SEAL_AT + SEAL.size:
        return progress, False
    magic, crc = SEAL.unpack_from(data, SEAL_AT)
    return progress, magic == SEAL_MAGIC and crc == crc32(data[: CHECKPOINT.size])


class TimerCheckpoint:
    """Reads and replaces the file.

    Attributes:
        progress: as loaded or saved last; None if there is no readable file.
        is_sealed: RewindMQ wrote the file last: wheel and timer log are exactly as they were at ``log_end``.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self.progress: TimerProgress | None = None
        self.is_sealed = False

    def load(self) -> None:
        """Read the file. Raise OSError if it cannot be read."""
        self.progress, self.is_sealed = decode_checkpoint(self._disk.read(self._path) or b"")

    def save(self, progress: TimerProgress) -> None:
        """Write the file durably; a crash leaves the old or the new content. May run on a worker thread.

        Raises:
            OSError: the disk fails.
        """
        fields = progress.encode()
        data = bytearray(CHECKPOINT_BYTES)
        data[: len(fields)] = fields
        SEAL.pack_into(data, SEAL_AT, SEAL_MAGIC, crc32(fields))
        temporary = self._path.with_name(self._path.name + ".tmp")
        self._disk.write(temporary, bytes(data))
        self._disk.replace(temporary, self._path)
        self.progress = progress
        self.is_sealed = True
