"""Formats a message for the query commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.timestamp import format_milliseconds

if TYPE_CHECKING:
    from rewindmq.protocol.message import MessageExt

# mqadmin formats a label as %-20s.
_LABEL_WIDTH: Final = 20


def details(message: MessageExt) -> dict[str, object]:
    """Return the values that mqadmin prints for a message, by label."""
    properties = ", ".join(f"{name}={value}" for name, value in message.properties.items())
    return {
        "Topic": message.topic,
        "Tags": f"[{message.tags or 'null'}]",
        "Keys": f"[{message.keys or 'null'}]",
        "Queue ID": message.queue_id,
        "Queue Offset": message.queue_offset,
        "CommitLog Offset": message.commit_log_offset,
        "Reconsume Times": message.reconsume_times,
        "Born Timestamp": format_milliseconds(message.born_timestamp),
        "Store Timestamp": format_milliseconds(message.store_timestamp),
        "Born Host": message.born_host,
        "Store Host": message.store_host,
        "System Flag": message.sys_flag,
        "Properties": f"{{{properties}}}",
        "Message Body": f"{len(message.stored_body)} bytes as stored",
    }


def data(message: MessageExt) -> dict[str, Any]:
    """Return a message's fields for ``--json``."""
    return {
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_message_id,
        "topic": message.topic,
        "brokerName": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commit_log_offset,
        "reconsumeTimes": message.reconsume_times,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "sysFlag": message.sys_flag,
        "properties": message.properties,
        "storedBodyBytes": len(message.stored_body),
    }


def lines(shown: dict[str, object]) -> list[str]:
    """Return the lines of one message, with an empty line at the end."""
    return [*(f"{label + ':':<{_LABEL_WIDTH}} {value}" for label, value in shown.items()), ""]
