"""The store's ``checkpoint`` (docs/spec/store.md 6), of which only the named times are changed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from rewindmq.pipeline.files import LocalFiles

_BYTES: Final = 4_096
# physicMsgTimestamp, logicsMsgTimestamp, indexMsgTimestamp; 5.x has more behind them.
_TIMES: Final = struct.Struct(">qqq")


def set_times(path: Path, *, logics: int, index: int | None = None) -> None:
    """Change the times up to which queue units and index entries are durable, ms; None leaves one as it is.

    Raises:
        OSError: as the system does.
    """
    files = LocalFiles()
    data = bytearray((files.read_all(str(path)) or b"").ljust(_BYTES, b"\0"))
    physic, _, index_before = _TIMES.unpack_from(data)
    _TIMES.pack_into(data, 0, physic, logics, index_before if index is None else index)
    files.publish(str(path), bytes(data))
