"""Splits the header of a sample response where its values stand, for the native kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from rewindmq.protocol.codec import HEADER_CODECS
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType

# A value that a header has nowhere else.
_SAMPLE_OPAQUE: Final = 1_765_432_109


def split_header(
    response: RemotingCommand, serialize_type: SerializeType, values: Sequence[int | str]
) -> list[bytes] | None:
    """Return the encoded header in pieces, between which the opaque and ``values`` stand.

    The opaque stands before the values in msgpack, and behind them in JSON. A ROCKETMQ header has the opaque
    of a sample. There and in msgpack, a piece before a text ends with the length of the sample's text.

    Args:
        response: has ``values`` in its header; its opaque is replaced.
        values: numbers and texts in the order of the header's fields. A text has at most 31 bytes, so that
            its length is one byte in msgpack.

    Returns:
        The pieces; None if a value stands twice in the header, or not in this order.
    """
    response.flag = FLAG_RESPONSE
    response.opaque = _SAMPLE_OPAQUE
    is_msgpack = serialize_type is SerializeType.MSGPACK
    number: Callable[[int], bytes] = msgspec.msgpack.encode if is_msgpack else _digits
    samples = [value.encode() if isinstance(value, str) else number(value) for value in values]
    if is_msgpack:
        samples.insert(0, number(_SAMPLE_OPAQUE))
    elif serialize_type is SerializeType.JSON:
        samples.append(number(_SAMPLE_OPAQUE))
    rest = HEADER_CODECS[serialize_type].encode_header(response)
    pieces = []
    for sample in samples:
        if rest.count(sample) != 1:
            return None
        piece, _, rest = rest.partition(sample)
        pieces.append(piece)
    return [*pieces, rest]


def _digits(number: int) -> bytes:
    return b"%d" % number
