"""Reads the reply that a broker pushes to its requester.

Source: RocketMQ 4.9.7 ``ClientRemotingProcessor#receiveReplyMessage``.
"""

from __future__ import annotations

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import ReplyMessageRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import ARRIVE_TIME, with_property
from rewindmq.protocol.message.record import MAGIC_V1, body_crc
from rewindmq.protocol.remoting.address import pack_host


def received_reply(request: RemotingCommand, now_ms: int) -> MessageExt:
    """Return the message in a PUSH_REPLY_MESSAGE_TO_CLIENT (326), with its ARRIVE_TIME.

    It comes from no queue: its offsets, its position and its size in the log are 0.

    Args:
        now_ms: ms since the epoch.

    Raises:
        RequestError: SYSTEM_ERROR (1), the header is incomplete.
    """
    header = request.decode_header(ReplyMessageRequestHeader)
    body = request.body if isinstance(request.body, bytes) else b""
    fields = (
        0,
        MAGIC_V1,
        body_crc(body),
        header.queue_id,
        header.flag,
        0,
        0,
        header.sys_flag,
        header.born_timestamp,
        pack_host(header.born_host),
        header.store_timestamp,
        pack_host(header.store_host),
        header.reconsume_times or 0,
        0,
        len(body),
    )
    properties = with_property(header.properties or "", ARRIVE_TIME, str(now_ms))
    return MessageExt(fields, body, header.topic, properties.encode())
