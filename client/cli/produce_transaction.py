"""The producer of ``rewindmq produce --transaction``: it ends every transaction in the same state."""

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


class _FixedStateListener:
    """A transaction listener that returns the same state for every message."""

    def __init__(self, state: LocalTransactionState) -> None:
        self._state = state

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self._state

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self._state


def transaction_producer(word: str, group: str, namesrv: str | None, **options: Any) -> TransactionProducer:
    """Return a producer that ends every transaction in the state ``word``: commit, rollback or unknown."""
    return TransactionProducer(group, namesrv, listener=_FixedStateListener(_STATES[word]), **options)
