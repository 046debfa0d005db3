"""What an application says about its transactions, and what it is told (4.9.4 ``client.producer``)."""

from __future__ import annotations

from collections.abc import Awaitable
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from rewindmq.client.produce.send_result import SendResult
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.sysflag import MessageSysFlag


class LocalTransactionState(StrEnum):
    """How a local transaction stands; the third is RocketMQ's spelling."""

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
    """The application's side. Both may be ``async``; plain ones run on worker threads.

    Whatever is raised, and None, counts as UNKNOW: the broker will ask.
    """

    def execute_local_transaction(
        self, message: Message, arg: Any
    ) -> TransactionAnswer | Awaitable[TransactionAnswer]:
        """Do what the message is about, once the broker holds it unseen.

        Args:
            arg: as given to ``send_message_in_transaction``.
        """

    def check_local_transaction(
        self, message: MessageExt
    ) -> TransactionAnswer | Awaitable[TransactionAnswer]:
        """Say what became of it; asked at any producer of the group, perhaps many times."""


class TransactionSendResult(NamedTuple):
    """Attributes:
    send_result: of the half message; its queue is the one asked for, its offset that in the half topic.
    transaction_id: the message's UNIQ_KEY.
    local_transaction_state: what the broker was told.
    """

    send_result: SendResult
    transaction_id: str
    local_transaction_state: LocalTransactionState
