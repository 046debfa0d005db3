"""One message by its id."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.message import ViewMessageRequestHeader
from rewindmq.protocol.message import MessageExt, format_host
from rewindmq.protocol.message_id import parse_offset_message_id
from rewindmq.protocol.record import decode_record


async def view_message(remote: AdminRemote, message_id: str) -> MessageExt:
    """Code 33 at the broker whose address the offset id holds.

    Raises:
        ResponseError: the text is no offset id, or there is no message at that place.
    """
    host, commit_log_offset = parse_offset_message_id(message_id)
    command = remote.command(
        RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=commit_log_offset)
    )
    answer = await remote.ask_broker(format_host(host), command)
    if not isinstance(answer.body, bytes):
        raise ResponseError(ResponseCode.NO_MESSAGE, f"the answer for message {message_id} is empty")
    return decode_record(answer.body)
