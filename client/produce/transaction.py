"""Types for the application's side of a transaction (4.9.4 ``client.producer``)."""

from __future__ import annotations

from collections.abc import Awaitable
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from rewindmq.client.produce.send_result import SendResult
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.sysflag import MessageSysFlag


class LocalTransactionState(StrEnum):
    """The state of a local transaction; ``UNKNOW`` is RocketMQ's spelling."""

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    UNKNOW = "UNKNOW"


COMMIT_OR_ROLLBACK: Final = MappingProxyType(
    {
        LocalTransactionState.COMMIT_MESSAGE: int(MessageSysFlag.TRANSACTION_COMMIT),
        LocalTransactionState.ROLLBACK_MESSAGE: int(MessageSysFlag.TRANSACTION_ROLLBACK),
        LocalTransactionState.UNKNOW: 0,
    }
)

TransactionAnswer = LocalTransactionState | None


class TransactionListener(Protocol):
    """Runs and checks the local transactions of an application.

    Both methods may be ``async``; plain methods run on worker threads. None or an exception counts as
    ``UNKNOW``, so the broker checks the transaction later.
    """

    def execute_local_transaction(
        self, message: Message, arg: Any
    ) -> TransactionAnswer | Awaitable[TransactionAnswer]:
        """Run the local transaction of a message that the broker has stored but does not deliver yet.

        Args:
            arg: the ``arg`` of ``send_message_in_transaction``.
        """

    def check_local_transaction(
        self, message: MessageExt
    ) -> TransactionAnswer | Awaitable[TransactionAnswer]:
        """Return the outcome of a transaction; brokers may ask any producer of the group, repeatedly."""


class TransactionSendResult(NamedTuple):
    """The result of a send in a transaction.

    Attributes:
        send_result: of the half message: the requested queue, and the offset in the half topic.
        transaction_id: the message's UNIQ_KEY.
        local_transaction_state: the state that was reported to the broker.
    """

    send_result: SendResult
    transaction_id: str
    local_transaction_state: LocalTransactionState
