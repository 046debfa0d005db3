"""Put-message hook for half messages: redirects them to the half topic, which no consumer reads.

Source: RocketMQ 4.9.4 ``TransactionalMessageBridge#parseHalfMessageInner`` and ``SendMessageProcessor``.
4.2.0 has no half topic: the sysFlag bits mark a half message, and its record is in the log under its real
topic, but in no queue.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.properties import (
    DELAY,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    REAL_QID,
    REAL_TOPIC,
    TRAN_MSG,
    TRANSACTION_ID,
    UNIQ_KEY,
    find_property,
)
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import TRANS_HALF_TOPIC

HALF_QUEUE: Final = 0
# Records with these bits have no entry in the ConsumeQueue.
_UNSEEN: Final = frozenset(
    (int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK))
)
_NO_TRANSACTION: Final = ~int(TRANSACTION_MASK)


class HalfMessages:
    """The put-message hook for half messages; it runs first.

    Args:
        host: the broker's registered host, for remarks.
    """

    def __init__(
        self, config: BrokerConfig, profile: BrokerProfile, topics: TopicConfigManager, host: str
    ) -> None:
        self._is_rejected = config.reject_transaction_message
        self._has_half_topic = profile.half_topic
        self._names_transaction = profile.half_names_transaction
        self._topics = topics
        self._host = host

    def before_put(self, message: StoredMessage, text: str) -> StoredMessage:
        """Return the half message to store instead, or the message itself if it is not one.

        Raises:
            RequestError: NO_PERMISSION (16), ``rejectTransactionMessage`` is set; MESSAGE_ILLEGAL (13), the
                message has transaction bits without TRAN_MSG=true; SYSTEM_ERROR (1), the half topic cannot be
                created.
        """
        mark = find_property(text, TRAN_MSG)
        if not self._has_half_topic:
            if mark is not None and self._is_rejected:
                raise self._rejected()
            return message
        if mark is None or mark.lower() != "true":
            if message.sys_flag & TRANSACTION_MASK in _UNSEEN:
                raise RequestError(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"transaction flags without {TRAN_MSG}=true: no consumer would ever receive the message",
                )
            return message
        if message.reconsume_times > 0 and (find_property(text, DELAY) or "0") != "0":
            # Clients before 4.6.1 keep TRAN_MSG when they send a committed message to its retry topic.
            return msgspec.structs.replace(message, sys_flag=message.sys_flag & _NO_TRANSACTION)
        if self._is_rejected:
            raise self._rejected()
        self._topics.ensure(TRANS_HALF_TOPIC, 1)
        return self._half(message, text)

    def _half(self, message: StoredMessage, text: str) -> StoredMessage:
        added = {REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
        unique_key = find_property(text, UNIQ_KEY) if self._names_transaction else None
        if unique_key is not None:
            added = {TRANSACTION_ID: unique_key, **added}
        # If a name occurs twice, the last value counts.
        pairs = [f"{name}{NAME_VALUE_SEPARATOR}{value}" for name, value in added.items()]
        return msgspec.structs.replace(
            message,
            topic=TRANS_HALF_TOPIC,
            queue_id=HALF_QUEUE,
            sys_flag=message.sys_flag & _NO_TRANSACTION,
            properties=PROPERTY_SEPARATOR.join([text.removesuffix(PROPERTY_SEPARATOR), *pairs]).encode(),
        )

    def _rejected(self) -> RequestError:
        return RequestError(
            ResponseCode.NO_PERMISSION, f"the broker[{self._host}] sending transaction message is forbidden"
        )
