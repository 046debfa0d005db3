"""Decodes the body of REGISTER_BROKER (103), plain or compressed (docs/spec/protocol.md 5.4)."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import msgspec
from msgspec.structs import replace

from rewindmq.protocol.body.registration import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicFilterType,
)
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_FRAME_BYTES

# A few compressed kilobytes can unpack to gigabytes; a real registration fits into a frame.
MAX_UNPACKED_BYTES: Final = MAX_FRAME_BYTES

_LENGTH: Final = struct.Struct(">i")


def decode_register_broker_body(request: RemotingCommand, *, compressed: bool) -> RegisterBrokerBody:
    """Return the decoded body; without a body, no topics and data version 0 (4.9.4).

    Raises:
        BodyError: the body does not decode, or unpacks to more than ``MAX_UNPACKED_BYTES``.
    """
    if request.body is None:
        return RegisterBrokerBody()
    if not compressed:
        return decode_body(request, RegisterBrokerBody)
    assert isinstance(request.body, bytes | memoryview)
    try:
        return _decode_compressed(_unpack(request.body))
    # msgspec's decoding errors are ValueErrors, except for nesting beyond the interpreter's depth.
    except (zlib.error, struct.error, ValueError, RecursionError) as error:
        raise BodyError(f"compressed registration: {error}") from None


def _unpack(data: bytes | memoryview) -> bytes:
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(data, MAX_UNPACKED_BYTES + 1)
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise ValueError(f"more than {MAX_UNPACKED_BYTES} bytes")
    return unpacked


def _decode_compressed(data: bytes) -> RegisterBrokerBody:
    reader = _Reader(data)
    version = msgspec.json.decode(reader.block(), type=DataVersion)
    topics = {}
    # Most topics of a broker have the same settings: each text of them is decoded once.
    settings: dict[str, TopicConfig] = {}
    for _ in range(reader.number()):
        name, _, text = reader.block().decode().partition(" ")
        config = settings.get(text)
        if config is None:
            config = settings[text] = _decode_settings(text)
        topics[name] = replace(config, topic_name=name)
    filter_servers = msgspec.json.decode(reader.block() or b"[]", type=list[str])
    return RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigSerializeWrapper(
            topic_config_table=topics, data_version=version
        ),
        filter_server_list=filter_servers,
    )


def _decode_settings(text: str) -> TopicConfig:
    """Decode ``readQueueNums writeQueueNums perm filterType`` behind a name; 5.x may append attributes."""
    parts = text.split(" ")
    if len(parts) < 4:
        raise ValueError(f"not the settings of a topic: {text[:128]!r}")
    fields = dict(zip(("readQueueNums", "writeQueueNums", "perm"), parts[:3], strict=True))
    config = msgspec.convert({"topicName": "", **fields}, TopicConfig, strict=False)
    config.topic_filter_type = TopicFilterType(parts[3])
    return config


class _Reader:
    """Reads length-prefixed blocks one after the other."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        (value,) = _LENGTH.unpack_from(self._data, self._position)
        self._position += _LENGTH.size
        return int(value)

    def block(self) -> bytes:
        length = self.number()
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise ValueError(f"a block of {length} bytes at {self._position} of {len(self._data)}")
        block = self._data[self._position : end]
        self._position = end
        return block
