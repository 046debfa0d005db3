"""Values in pipes between the processes of a search."""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any, Final

_LENGTH: Final = struct.Struct(">I")


def send(descriptor: int, value: Any) -> None:
    """Write one value."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> Any:
    """Read one value; return None if the pipe ends before the value does."""
    head = _read(descriptor, _LENGTH.size)
    data = None if head is None else _read(descriptor, _LENGTH.unpack(head)[0])
    return None if data is None else pickle.loads(data)  # noqa: S301


def _read(descriptor: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            return None
        data += piece
    return data
