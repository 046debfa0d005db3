"""Messages for tests, encoded like the broker's."""

from __future__ import annotations

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_record, encode_record

HOST = bytes((10, 0, 0, 9)) + (10911).to_bytes(4, "big")


def record(
    offset: int,
    body: bytes = b"x",
    *,
    topic: str = "T",
    queue_id: int = 0,
    properties: bytes = b"",
    stored_at: int = 0,
    reconsume_times: int = 0,
) -> bytes:
    return encode_record(
        topic=topic,
        stored_body=body,
        properties=properties,
        queue_id=queue_id,
        queue_offset=offset,
        physical_offset=offset * 1000,
        born_timestamp=stored_at,
        born_host=HOST,
        store_timestamp=stored_at,
        store_host=HOST,
        reconsume_times=reconsume_times,
    )


def message(offset: int, body: bytes = b"x", **kwargs: object) -> MessageExt:
    return decode_record(record(offset, body, **kwargs), 0, "broker-a")  # type: ignore[arg-type]
