"""Cuts many pieces out of one buffer with Arrow's ``take``, without a loop."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from rewindmq.pipeline.decode.record_block import Int64s

_INT32_MAX: Final = 0x7FFF_FFFF


def gather(data: Any, starts: Int64s, ends: Int64s) -> pa.Array:
    """Return the pieces ``data[starts[i]:ends[i]]`` as one binary array.

    Args:
        data: a buffer of less than 2 GiB.
        starts, ends: ``starts[i] <= ends[i] <= starts[i + 1]``.
    """
    count = len(starts)
    if count == 0:
        return pa.array([], pa.binary())
    if int(ends[-1]) > _INT32_MAX:
        raise ValueError(f"a buffer of {ends[-1]} bytes is beyond Arrow's 32-bit offsets")
    # Pieces and the gaps between them alternate; ``take`` selects the even elements.
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = starts
    offsets[1::2] = ends
    elements = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return elements.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def texts(pieces: pa.Array) -> pa.Array:
    """Return binary as UTF-8 text; U+FFFD replaces invalid bytes."""
    try:
        return pieces.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([piece.decode("utf-8", "replace") for piece in pieces.to_pylist()], pa.string())
