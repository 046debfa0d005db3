"""Builds the responses to sends, stored or refused (docs/spec/protocol.md 3.4)."""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.model import PutResult
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.codec.split_header import split_header
from rewindmq.protocol.command import ExtValue, RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.properties import TIMER_OUT_MS, find_property
from rewindmq.protocol.message.recall_handle import RecallHandle
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX

_SUCCESS: Final = ResponseCode.SUCCESS
_OFFSET_BYTES: Final = 8
_IDS_PER_SLICE: Final = 8_192
# Values that a template's header has nowhere else.
_SAMPLE_IDS: Final = "SAMPLE-OF-MESSAGE-IDS"
_SAMPLE_QUEUE: Final = 1_987_654_321
_SAMPLE_OFFSET: Final = 1_122_334_455_667_788_990
_SAMPLE_TRANSACTION: Final = "SAMPLE-OF-A-TRANSACTION"


class SendAnswers:
    """Builds one broker's responses to sends.

    Every response has the region and the trace switch, because Java clients read them even from errors.

    Args:
        store_host: packed as in records; every message id begins with it.
    """

    def __init__(self, config: BrokerConfig, store_host: bytes) -> None:
        self._id_prefix = store_host.hex().upper()
        self._broker_name = config.broker_name
        self._region = config.region_id
        self._trace_on = config.trace_on
        self._refusal_ext: dict[str, ExtValue] = {
            "MSG_REGION": config.region_id,
            "TRACE_ON": "true" if config.trace_on else "false",
        }

    def stored(
        self,
        queue_id: int,
        result: PutResult,
        transaction_id: str | None = None,
        ids: str | None = None,
        recall_handle: str | None = None,
    ) -> RemotingCommand:
        """Return the response with the messages' ids, and the queue and offset of the first.

        Args:
            ids: of a batch; None: that of the only message.
            recall_handle: of a message that waits for its time.
        """
        if ids is None:
            ids = f"{self._id_prefix}{result.physical_offset:016X}"
        header = SendMessageResponseHeader(
            ids,
            queue_id,
            result.queue_offset,
            transaction_id,
            self._region,
            self._trace_on,
            recall_handle=recall_handle,
        )
        return RemotingCommand(_SUCCESS, header)

    def recall_handle(self, topic: str, properties: bytes, unique_key: str | None) -> str | None:
        """Return the handle of a message that waits in the timer topic; None for retry topics.

        Args:
            properties: as stored; the message has TIMER_OUT_MS unless it was sent to the timer topic.
        """
        out_ms = find_property(properties.decode("utf-8", "replace"), TIMER_OUT_MS)
        if out_ms is None or unique_key is None or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return None
        # RocketMQ adds 1, because the slot's time is cut to the second.
        return RecallHandle(topic, self._broker_name, str(int(out_ms) + 1), unique_key).encode()

    def ids(self, physical_offset: int, starts: Sequence[int]) -> Generator[None, None, str]:
        """Return the ids of a batch; yields between slices of less than 1 ms.

        Args:
            physical_offset: log position of the batch.
            starts: position of each record in the batch.
        """
        prefix, size = self._id_prefix, _IDS_PER_SLICE
        texts: list[str] = []
        for first in range(0, len(starts), size):
            if first:
                yield
            part = starts[first : first + size]
            packed = struct.pack(f">{len(part)}q", *[physical_offset + start for start in part])
            texts.append(prefix + packed.hex(",", _OFFSET_BYTES).upper().replace(",", "," + prefix))
        return ",".join(texts)

    def template(self, serialize_type: SerializeType, *, has_transaction: bool) -> list[bytes] | None:
        """Return ``split_header`` of ``stored``'s response.

        Its values are the message ids, the queue id, the queue offset, and the transaction id if there is
        one.

        Returns:
            The pieces; None if the region's name looks like such a value.
        """
        transaction_id = _SAMPLE_TRANSACTION if has_transaction else None
        header = SendMessageResponseHeader(
            _SAMPLE_IDS, _SAMPLE_QUEUE, _SAMPLE_OFFSET, transaction_id, self._region, self._trace_on
        )
        values: list[int | str] = [
            _SAMPLE_IDS,
            _SAMPLE_QUEUE,
            _SAMPLE_OFFSET,
            *[_SAMPLE_TRANSACTION] * has_transaction,
        ]
        return split_header(RemotingCommand(_SUCCESS, header), serialize_type, values)

    def pushed(self, queue_id: int) -> RemotingCommand:
        """Return the response to a reply that was pushed and not stored; Java clients decode its fields."""
        header = SendMessageResponseHeader("0", queue_id, 0, None, self._region, self._trace_on)
        return RemotingCommand(_SUCCESS, header)

    def refused(self, error: RequestError) -> RemotingCommand:
        """Return the response to a send that stored nothing."""
        return RemotingCommand(error.code, remark=error.remark, ext_fields=self._refusal_ext)
