"""Encodes large structured bodies in slices, between which a server can serve other requests.

The bytes are those of ``codec.body.encode_body``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from heapq import merge
from typing import Any, Final, Protocol

import msgpack
import msgspec

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.body import PreparedBody, encoded_fields, plain_value
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.protocol.message_queue import MessageQueue

# Values encoded in one slice: about 1 ms.
SLICE_VALUES: Final = 1_000
# A value with at most this many values in it is encoded as a whole.
_WHOLE_VALUES: Final = 100
# This many bytes count like a value.
_BYTES_PER_VALUE: Final = 64
# Keys sorted at once: about 1 ms.
_RUN_KEYS: Final = 2_000

# Yields after each slice.
Slices = Generator[None, None, Any]


def encode_in_slices(
    body: msgspec.Struct, serialize_type: SerializeType, standard_json: bool = False
) -> Generator[None, None, bytes]:
    """Yield after each slice; return the bytes of ``body``, which must not change meanwhile.

    Raises:
        BodyError: see ``encode_body``; or the body does not fit into a frame.
    """
    form: _Form
    if serialize_type is SerializeType.MSGPACK:
        form = _Msgpack()
    else:
        form = _Json(standard_json and isinstance(body, RemotingBody) and body.may_be_standard_json)
    writer = _Writer(form)
    try:
        yield from writer.write(body)
    except (OverflowError, UnicodeEncodeError) as error:
        raise BodyError(f"{type(body).__name__}: {error}") from None
    return writer.content()


def prepare(body: msgspec.Struct, types: Iterable[SerializeType]) -> Generator[None, None, PreparedBody]:
    """Yield after each slice; return the body with its bytes in these serialization types."""
    prepared = PreparedBody(body)
    for serialize_type in types:
        prepared.encoded[serialize_type] = yield from encode_in_slices(body, serialize_type)
    return prepared


class _Form(Protocol):
    """How a serialization type writes the parts of a body."""

    def whole(self, value: Any) -> bytes:
        """Return a small value."""

    def members(self, value: dict[Any, Any]) -> Generator[None, None, Iterable[Any]]:
        """Yield after each slice; return the keys to write, in order."""

    def map_start(self, size: int) -> bytes: ...

    def map_end(self) -> bytes: ...

    def list_start(self, size: int) -> bytes: ...

    def list_end(self) -> bytes: ...

    def separator(self) -> bytes: ...

    def key(self, key: Any) -> bytes: ...


class _Json:
    def __init__(self, standard: bool) -> None:
        self._standard = standard

    def whole(self, value: Any) -> bytes:
        return fastjson.dumps(plain_value(value), standard=self._standard).encode()

    def members(self, value: dict[Any, Any]) -> Generator[None, None, Iterable[Any]]:
        return (yield from _sorted(list(value), lambda key: not _is_left_out(value[key])))

    def map_start(self, size: int) -> bytes:
        return b"{"

    def map_end(self) -> bytes:
        return b"}"

    def list_start(self, size: int) -> bytes:
        return b"["

    def list_end(self) -> bytes:
        return b"]"

    def separator(self) -> bytes:
        return b","

    def key(self, key: Any) -> bytes:
        return f"{fastjson.key_text(key, standard=self._standard)}:".encode()


class _Msgpack:
    def __init__(self) -> None:
        self._packer = msgpack.Packer()

    def whole(self, value: Any) -> bytes:
        packed: bytes = self._packer.pack(plain_value(value))
        return packed

    def members(self, value: dict[Any, Any]) -> Generator[None, None, Iterable[Any]]:
        yield from ()
        return value

    def map_start(self, size: int) -> bytes:
        packed: bytes = self._packer.pack_map_header(size)
        return packed

    def map_end(self) -> bytes:
        return b""

    def list_start(self, size: int) -> bytes:
        packed: bytes = self._packer.pack_array_header(size)
        return packed

    def list_end(self) -> bytes:
        return b""

    def separator(self) -> bytes:
        return b""

    def key(self, key: Any) -> bytes:
        packed: bytes = self._packer.pack(key)
        return packed


class _Writer:
    """Writes values one after the other, and yields after ``SLICE_VALUES`` of them."""

    def __init__(self, form: _Form) -> None:
        self._form = form
        self._parts: list[bytes] = []
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._left = SLICE_VALUES

    def write(self, value: Any) -> Slices:
        values = _count(value, _WHOLE_VALUES)
        if values <= _WHOLE_VALUES:
            encoded = self._form.whole(value)
            self._parts.append(encoded)
            self._left -= values + len(encoded) // _BYTES_PER_VALUE
            if self._left <= 0:
                self._end_slice()
                yield
        elif isinstance(value, dict):
            yield from self._write_map(value)
        elif isinstance(value, msgspec.Struct):
            yield from self._write_map(encoded_fields(value))
        elif isinstance(value, (set, frozenset)):
            yield from self._write_list((yield from _sorted(list(value), _any)))
        else:
            yield from self._write_list(value)

    def content(self) -> bytes:
        self._end_slice()
        return b"".join(self._pieces)

    def _write_map(self, value: dict[Any, Any]) -> Slices:
        form = self._form
        keys = yield from form.members(value)
        self._parts.append(form.map_start(len(value)))
        separator = b""
        for key in keys:
            self._parts += (separator, form.key(key))
            yield from self.write(value[key])
            separator = form.separator()
        self._parts.append(form.map_end())

    def _write_list(self, value: Iterable[Any]) -> Slices:
        form = self._form
        elements = value if isinstance(value, Sequence) else list(value)
        self._parts.append(form.list_start(len(elements)))
        separator = b""
        for element in elements:
            self._parts.append(separator)
            yield from self.write(element)
            separator = form.separator()
        self._parts.append(form.list_end())

    def _end_slice(self) -> None:
        piece = b"".join(self._parts)
        self._parts.clear()
        self._pieces.append(piece)
        self._bytes += len(piece)
        self._left = SLICE_VALUES
        if self._bytes > MAX_FRAME_BYTES:
            raise BodyError(f"the response does not fit into a frame of {MAX_FRAME_BYTES} bytes")


def _is_left_out(member: Any) -> bool:
    """Return True if fastjson writes no field for the value."""
    return member is None or (isinstance(member, float) and not math.isfinite(member))


def _sorted(keys: list[Any], is_written: Callable[[Any], bool]) -> Generator[None, None, Iterable[Any]]:
    runs: list[list[Any]] = []
    for first in range(0, len(keys), _RUN_KEYS):
        runs.append(sorted(filter(is_written, keys[first : first + _RUN_KEYS])))
        yield
    return merge(*runs)


def _any(key: Any) -> bool:
    return True


def _count(value: Any, limit: int) -> int:
    """Return how many values there are in ``value``, with itself; stop above ``limit``."""
    members: Iterable[Any]
    if isinstance(value, msgspec.Struct):
        members = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, MessageQueue) or not isinstance(value, (dict, list, tuple, set, frozenset)):
        return 1
    elif len(value) > limit:
        return limit + 1
    else:
        members = value.values() if isinstance(value, dict) else value
    count = 1
    for member in members:
        count += _count(member, limit - count)
        if count > limit:
            break
    return count
