"""Messages: what an application sends, and what it receives."""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Collection, Mapping
from typing import Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.limits import MAX_INFLATED_BODY_BYTES
from rewindmq.protocol.message import properties as names
from rewindmq.protocol.message.arguments import (
    body_of,
    check_numbers,
    keys_of,
    properties_of,
    text_of,
    timer_of,
)
from rewindmq.protocol.message.message_id import offset_message_id
from rewindmq.protocol.message.properties import find_property, parse_properties
from rewindmq.protocol.message.sysflag import (
    COMPRESSION_LZ4,
    COMPRESSION_TYPE_MASK,
    COMPRESSION_ZSTD,
    MessageSysFlag,
)
from rewindmq.protocol.message_queue import MessageQueue


class Message:
    """A message to send.

    Args:
        topic: at most 127 characters of ``[A-Za-z0-9_%|-]``.
        body: at most 4 MiB.
        tags: one tag, or None.
        keys: index keys, separated by spaces or one by one, or None.
        flag: an int32 for the application's own use.
        properties: user properties; names and values must not contain the characters 1 and 2.
        delay_level: 1 to 18; 0 means no delay.
        delay_time_ms: deliver the message so many ms after the broker got it (5.x); None does not. Brokers of
            4.x (v42, v49) ignore this and the next two, and deliver the message at once.
        delay_time_sec: the same in seconds (5.x).
        deliver_time_ms: deliver it at this time, ms since 1970 (5.x). A message has one of the three.
        wait_store_msg_ok: False sends without waiting for flush and replication.

    Raises:
        ClientError: an argument has another type; the text names it and the type to pass. The send checks
            sizes and characters.
    """

    __slots__ = ("body", "flag", "properties", "topic")

    def __init__(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        tags: str | None = None,
        keys: str | Collection[str] | None = None,
        *,
        flag: int = 0,
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        delay_time_ms: int | None = None,
        delay_time_sec: int | None = None,
        deliver_time_ms: int | None = None,
        wait_store_msg_ok: bool = True,
    ) -> None:
        # The usual types are checked without a call, because every send creates a message.
        self.topic = topic if type(topic) is str else text_of("topic", topic)
        self.body = body if type(body) is bytes else body_of(body)
        self.flag = flag
        self.properties: dict[str, str] = {} if properties is None else properties_of(properties)
        if tags is not None:
            tag = tags if type(tags) is str else text_of("tags", tags, "str or None")
            if tag:
                self.properties[names.TAGS] = tag
        if keys is not None:
            text = keys if type(keys) is str else keys_of(keys)
            if text:
                self.properties[names.KEYS] = text
        if flag or delay_level:
            check_numbers(flag, delay_level)
            if delay_level:
                self.properties[names.DELAY] = str(delay_level)
        if delay_time_ms is not None or delay_time_sec is not None or deliver_time_ms is not None:
            name, value = timer_of(delay_time_ms, delay_time_sec, deliver_time_ms)
            if delay_level:
                raise ClientError("delay_level does not go together with a delivery time: pass one")
            self.properties[name] = value
        # Java clients always send WAIT; the broker removes it before it stores the message.
        self.properties[names.WAIT] = "true" if wait_store_msg_ok else "false"

    @property
    def tags(self) -> str | None:
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> str | None:
        return self.properties.get(names.KEYS)

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(names.UNIQ_KEY)

    def __repr__(self) -> str:
        size = len(self.body)
        return f"Message(topic={self.topic!r}, tags={self.tags!r}, keys={self.keys!r}, body={size} bytes)"


# Every fixed field of a record in its order on disk: total size, magic, body CRC, queue id, flag, queue
# offset, physical offset, sys flag, born timestamp, born host, store timestamp, store host, reconsume times,
# prepared transaction offset, length of the body.
RecordFields = tuple[int, int, int, int, int, int, int, int, int, bytes, int, bytes, int, int, int]


class MessageExt:
    """A stored message as a consumer receives it; read-only, parsed on demand.

    Attributes:
        topic: the topic; for a retried message its original topic.
        stored_body: the body as stored, perhaps compressed; ``body`` inflates it.
        broker_name: the broker it came from, "" when unknown.
    """

    __slots__ = ("_body", "_fields", "_properties", "_properties_text", "broker_name", "stored_body", "topic")

    def __init__(
        self,
        fields: RecordFields,
        stored_body: bytes,
        topic: str,
        properties_text: bytes,
        broker_name: str = "",
    ) -> None:
        self._fields = fields
        self.stored_body = stored_body
        self.topic = topic
        self.broker_name = broker_name
        self._properties_text = properties_text
        self._properties: dict[str, str] | None = None
        self._body: bytes | None = None

    @property
    def store_size(self) -> int:
        """Bytes of the whole record."""
        return self._fields[0]

    @property
    def body_crc(self) -> int:
        """CRC-32 of the stored body, cut to 31 bits."""
        return self._fields[2]

    @property
    def queue_id(self) -> int:
        """Queue of the topic it is stored in."""
        return self._fields[3]

    @property
    def flag(self) -> int:
        """The application's own flag."""
        return self._fields[4]

    @property
    def queue_offset(self) -> int:
        """Index in its queue."""
        return self._fields[5]

    @property
    def commit_log_offset(self) -> int:
        """Byte position in the broker's log."""
        return self._fields[6]

    @property
    def sys_flag(self) -> int:
        """See ``MessageSysFlag``."""
        return self._fields[7]

    @property
    def born_timestamp(self) -> int:
        """Producer's clock, ms."""
        return self._fields[8]

    @property
    def store_timestamp(self) -> int:
        """Broker's clock, ms."""
        return self._fields[10]

    @property
    def reconsume_times(self) -> int:
        """How often it was sent back."""
        return self._fields[12]

    @property
    def prepared_transaction_offset(self) -> int:
        """Log position of its half message, else 0."""
        return self._fields[13]

    @property
    def born_host(self) -> str:
        """Address of the producer as the broker saw it, ``host:port``."""
        return format_host(self._fields[9])

    @property
    def packed_born_host(self) -> bytes:
        """The same as it is stored: 4 or 16 address bytes and a 4-byte port."""
        return self._fields[9]

    @property
    def store_host(self) -> str:
        """Address the broker advertises, ``host:port``."""
        return format_host(self._fields[11])

    @property
    def offset_message_id(self) -> str:
        """The id that names broker and log position, in upper-case hex."""
        return offset_message_id(self._fields[11], self._fields[6])

    @property
    def msg_id(self) -> str:
        """The producer's unique id where there is one, else the offset id (as Java prints it)."""
        return self.properties.get(names.UNIQ_KEY) or self.offset_message_id

    @property
    def packed_properties(self) -> bytes:
        """The properties text as it is stored."""
        return self._properties_text

    @property
    def properties(self) -> dict[str, str]:
        if self._properties is None:
            self._properties = parse_properties(self._properties_text.decode("utf-8", "replace"))
        return self._properties

    @property
    def tags(self) -> str | None:
        """The tag, found without parsing the other properties, because it is read for every message."""
        if self._properties is None:
            return find_property(self._properties_text.decode("utf-8", "replace"), names.TAGS)
        return self._properties.get(names.TAGS)

    @property
    def keys(self) -> str | None:
        return self.properties.get(names.KEYS)

    @property
    def message_queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker_name, self.queue_id)

    def with_reconsume_times(self, reconsume_times: int) -> MessageExt:
        """Return the same message with another count of redeliveries."""
        fields = (*self._fields[:12], reconsume_times, *self._fields[13:])
        return MessageExt(fields, self.stored_body, self.topic, self._properties_text, self.broker_name)

    @property
    def body(self) -> bytes:
        """The body as it was sent.

        Raises:
            ClientError: its compression is not supported, or it is damaged.
        """
        if not self._fields[7] & MessageSysFlag.COMPRESSED:
            return self.stored_body
        if self._body is None:
            self._body = inflate(self.stored_body, self._fields[7])
        return self._body

    def __repr__(self) -> str:
        return (
            f"MessageExt(topic={self.topic!r}, brokerName={self.broker_name!r}, queueId={self.queue_id}, "
            f"queueOffset={self.queue_offset}, msgId={self.msg_id!r}, storeTimestamp={self.store_timestamp}, "
            f"reconsumeTimes={self.reconsume_times}, body={len(self.stored_body)} bytes)"
        )


_UNREADABLE: Final = {COMPRESSION_LZ4: "LZ4", COMPRESSION_ZSTD: "ZSTD"}


def inflate(stored_body: bytes, sys_flag: int) -> bytes:
    """Undo the producer's compression; type 0 and 3 both mean zlib (docs/spec/protocol.md 6.4).

    Raises:
        ClientError: LZ4 or ZSTD, damaged, or larger than ``MAX_INFLATED_BODY_BYTES``.
    """
    body, is_whole = _inflate_first(stored_body, sys_flag, MAX_INFLATED_BODY_BYTES)
    if not is_whole:
        raise ClientError(f"the body is cut short, or inflates to more than {MAX_INFLATED_BODY_BYTES} bytes")
    return body


def inflate_begin(stored_body: bytes, sys_flag: int, count: int) -> bytes:
    """Return the first ``count`` bytes of a compressed body; it costs the same however long the body is.

    Raises:
        ClientError: LZ4 or ZSTD, or damaged before there.
    """
    return _inflate_first(stored_body, sys_flag, count)[0]


def _inflate_first(stored_body: bytes, sys_flag: int, count: int) -> tuple[bytes, bool]:
    """Return up to ``count`` bytes, and True if they are the whole body."""
    kind = sys_flag & COMPRESSION_TYPE_MASK
    if kind in _UNREADABLE:
        raise ClientError(f"the body is compressed with {_UNREADABLE[kind]}; only zlib bodies can be read")
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored_body, count)
    except zlib.error as error:
        raise ClientError(f"the body is marked as compressed but does not inflate: {error}") from None
    return body, inflater.eof


def format_host(packed: bytes) -> str:
    """``host:port`` of 4 or 16 address bytes followed by a 4-byte port."""
    address, port = packed[:-4], int.from_bytes(packed[-4:], "big")
    if len(address) == 4:
        return f"{ipaddress.IPv4Address(address)}:{port}"
    return f"[{ipaddress.IPv6Address(address)}]:{port}"
