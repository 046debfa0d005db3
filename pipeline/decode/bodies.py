"""Decompresses stored bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.limits import MAX_INFLATED_BODY_BYTES
from rewindmq.protocol.message.message import inflate
from rewindmq.protocol.message.sysflag import (
    COMPRESSION_LZ4,
    COMPRESSION_TYPE_MASK,
    COMPRESSION_ZSTD,
    MessageSysFlag,
)

_RUN_BYTES: Final = 32 << 20
# Formats that protocol.message does not read, by pyarrow's names.
_CODECS: Final = {COMPRESSION_LZ4: "lz4", COMPRESSION_ZSTD: "zstd"}


def inflated_runs(bodies: pa.Array, sys_flags: npt.NDArray[np.int32]) -> Iterator[tuple[int, int, pa.Array]]:
    """Yield decompressed bodies in runs: index of the first, index after the last, and the bodies.

    A run has at most about 32 MiB, or one body, because a few kilobytes may inflate to megabytes. A body is
    null if it does not inflate, or inflates to more than ``MAX_INFLATED_BODY_BYTES``.
    """
    is_compressed = (sys_flags & int(MessageSysFlag.COMPRESSED)) != 0
    if not is_compressed.any():
        yield 0, len(bodies), bodies
        return
    start, run_bytes = 0, 0
    run: list[bytes | None] = []
    for number, stored in enumerate(bodies.to_pylist()):
        body = _inflate(stored, int(sys_flags[number])) if is_compressed[number] else stored
        if run and run_bytes + len(body or b"") > _RUN_BYTES:
            yield start, number, pa.array(run, pa.binary())
            start, run_bytes, run = number, 0, []
        run.append(body)
        run_bytes += len(body or b"")
    yield start, len(bodies), pa.array(run, pa.binary())


def _inflate(stored: bytes, sys_flag: int) -> bytes | None:
    codec = _CODECS.get(sys_flag & COMPRESSION_TYPE_MASK)
    try:
        return inflate(stored, sys_flag) if codec is None else _stream(stored, codec)
    except (ClientError, OSError, pa.ArrowException):
        return None


def _stream(stored: bytes, codec: str) -> bytes | None:
    with pa.CompressedInputStream(pa.BufferReader(stored), codec) as stream:
        body: Any = stream.read(MAX_INFLATED_BODY_BYTES + 1)
    return None if len(body) > MAX_INFLATED_BODY_BYTES else bytes(body)
