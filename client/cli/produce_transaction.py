"""What ``rewindmq produce --transaction`` answers: the same about every message."""

from __future__ import annotations

from typing import Any, Final

from rewindmq.client.produce.transaction import LocalTransactionState
from rewindmq.client.produce.transaction_producer import TransactionProducer
from rewindmq.protocol.message import Message, MessageExt

_STATES: Final = {
    "commit": LocalTransactionState.COMMIT_MESSAGE,
    "rollback": LocalTransactionState.ROLLBACK_MESSAGE,
    "unknown": LocalTransactionState.UNKNOW,
}


class _Always:
    """A listener that has no transaction."""

    def __init__(self, state: LocalTransactionState) -> None:
        self._state = state

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self._state

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self._state


def transaction_producer(word: str, group: str, namesrv: str | None, **options: Any) -> TransactionProducer:
    """A producer that ends every transaction the way ``word`` says."""
    return TransactionProducer(group, namesrv, listener=_Always(_STATES[word]), **options)
