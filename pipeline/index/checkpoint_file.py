"""Changes times in the store's ``checkpoint`` (docs/spec/store.md 6) and keeps the rest of the file."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from rewindmq.pipeline.files import LocalFiles

_BYTES: Final = 4_096
# physicMsgTimestamp, logicsMsgTimestamp, indexMsgTimestamp; 5.x appends more fields.
_TIMES: Final = struct.Struct(">qqq")


def set_times(path: Path, *, logics: int, index: int | None = None) -> None:
    """Set the times up to which ConsumeQueue and index entries are durable, ms; None keeps a time.

    Raises:
        OSError: the file cannot be read or written.
    """
    files = LocalFiles()
    data = bytearray((files.read_all(str(path)) or b"").ljust(_BYTES, b"\0"))
    physic, _, index_before = _TIMES.unpack_from(data)
    _TIMES.pack_into(data, 0, physic, logics, index_before if index is None else index)
    files.publish(str(path), bytes(data))
