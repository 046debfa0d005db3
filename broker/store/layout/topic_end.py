"""The record that ends a topic's life: everything before it in the log belongs to a deleted topic.

The log says where a topic was deleted, because nothing else keeps the order of a deletion and the messages
around it: the record goes to slaves, snapshots and offline readers with them, and expires with them.

It is a rollback record of the topic, with an empty body and the property ``REWINDMQ_TOPIC_END``. Current
releases of RocketMQ write no rollback records, and give none an entry of a ConsumeQueue or of the key index
(docs/spec/store.md 4.3, 5.4), so RocketMQ passes over it.
"""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

TOPIC_END: Final = "REWINDMQ_TOPIC_END"
TOPIC_END_PROPERTIES: Final = format_properties({TOPIC_END: "true"}).encode()
TOPIC_END_SYS_FLAG: Final = int(MessageSysFlag.TRANSACTION_ROLLBACK)


def is_topic_end(sys_flag: int, properties: bytes) -> bool:
    """Return True if a record with these fields ends its topic's life."""
    return sys_flag & TRANSACTION_MASK == TOPIC_END_SYS_FLAG and properties.startswith(TOPIC_END_PROPERTIES)
