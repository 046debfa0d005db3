"""Ends transactions, for END_TRANSACTION (37): commits or discards the half message.

RocketMQ 4.9.4 ``EndTransactionProcessor``, and that of 4.2.0 for v42.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.transaction.immunity import ended_too_late
from rewindmq.broker.transaction.records import copied, op_record, real_queue
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.message import EndTransactionRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import PGROUP
from rewindmq.protocol.message.record import decode_record
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import TRANS_HALF_TOPIC
from rewindmq.protocol.remoting.runtime import Clock

_log = logging.getLogger(__name__)
_UNKNOWN: Final = 0
_COMMIT: Final = int(MessageSysFlag.TRANSACTION_COMMIT)
_ROLLBACK: Final = int(MessageSysFlag.TRANSACTION_ROLLBACK)
_PREPARED: Final = int(MessageSysFlag.TRANSACTION_PREPARED)


class TransactionEnds:
    """Commits and rolls back transactions."""

    def __init__(
        self,
        config: BrokerConfig,
        profile: BrokerProfile,
        store: MessageStore,
        appender: MessageAppender,
        clock: Clock,
    ) -> None:
        # 4.2.0 has no such check; there, a slave's store refuses the record.
        self._is_refused = config.is_slave and profile.half_topic
        self._timeout_ms = config.transaction_time_out
        self._profile = profile
        self._store = store
        self._appender = appender
        self._clock = clock

    def end(self, header: EndTransactionRequestHeader) -> bool:
        """Commit or roll back one message.

        Returns:
            False if the producer does not know the state yet; then the request gets no response.

        Raises:
            RequestError: SLAVE_NOT_AVAILABLE (11), this broker is a slave; SYSTEM_ERROR (1), the state is
                invalid, or the position does not have the half message that the request describes;
                ILLEGAL_OPERATION (604, v53), the message's own immunity is over; or see
                ``MessageAppender.put``.
        """
        if self._is_refused:
            raise RequestError(ResponseCode.SLAVE_NOT_AVAILABLE, "a slave cannot end transactions")
        verdict = header.commit_or_rollback
        if verdict == _UNKNOWN:
            return False
        if verdict not in (_COMMIT, _ROLLBACK):
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"commitOrRollback {verdict}: expected {_UNKNOWN}, {_COMMIT} or {_ROLLBACK}",
            )
        half = self._find(header)
        if self._profile.half_topic:
            self._end_half(half, commits=verdict == _COMMIT)
        else:
            self._end_prepared(half, verdict)
        return True

    def _end_half(self, half: MessageExt, *, commits: bool) -> None:
        if commits:
            topic, queue_id = real_queue(half)
            self._appender.put_other(
                copied(
                    half,
                    topic,
                    queue_id,
                    transaction_flag=_COMMIT,
                    prepared_offset=half.commit_log_offset,
                ),
                is_counted=self._profile.counts_transactions,
            )
        record = op_record(
            half.queue_offset, self._profile.op_separator, self._clock.now_ms(), self._store.store_host
        )
        try:
            self._appender.put_other(record, is_counted=self._profile.counts_transactions)
        except RequestError as error:
            # As in RocketMQ, the commit or rollback succeeds without its op record. The broker will ask the
            # producer once more.
            _log.error(
                "can not store the op record of the half message at %d: %s",
                half.commit_log_offset,
                error.remark,
            )

    def _end_prepared(self, half: MessageExt, verdict: int) -> None:
        """Store 4.2.0's second record in the same topic; consumers receive it if it is a commit."""
        body = b"" if verdict == _ROLLBACK else None
        self._appender.put_other(
            copied(
                half,
                half.topic,
                half.queue_id,
                transaction_flag=verdict,
                prepared_offset=half.commit_log_offset,
                body=body,
            ),
            is_counted=False,
        )

    def _age_ms(self, half: MessageExt) -> float:
        return (self._clock.now_ms() - half.born_timestamp) / self._clock.scale

    def _find(self, header: EndTransactionRequestHeader) -> MessageExt:
        record = self._store.look_message(header.commit_log_offset)
        half = None if record is None else decode_record(record)
        if half is None or not self._is_half(half):
            raise self._fault("Find prepared transaction message failed")
        if (
            self._profile.late_end_is_refused
            and not header.from_transaction_check
            and ended_too_late(half, self._age_ms(half), self._timeout_ms)
        ):
            raise RequestError(
                ResponseCode.ILLEGAL_OPERATION,
                "the transaction ends after its CHECK_IMMUNITY_TIME_IN_SECONDS: wait for the check",
            )
        if half.properties.get(PGROUP) != header.producer_group:
            raise self._fault("The producer group wrong")
        if half.queue_offset != header.tran_state_table_offset:
            raise self._fault("The transaction state table offset wrong")
        return half

    def _is_half(self, message: MessageExt) -> bool:
        if self._profile.half_topic:
            return message.topic == TRANS_HALF_TOPIC
        return message.sys_flag & TRANSACTION_MASK == _PREPARED

    def _fault(self, remark: str) -> RequestError:
        if not self._profile.half_topic:
            # 4.2.0 writes these remarks in lower case.
            remark = remark[0].lower() + remark[1:]
        return RequestError(ResponseCode.SYSTEM_ERROR, remark)
