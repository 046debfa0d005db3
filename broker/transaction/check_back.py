"""Asks a producer for the state of its transaction: CHECK_TRANSACTION_STATE (39).

Source: RocketMQ 4.9.4 ``AbstractTransactionalMessageCheckListener#sendCheckMessage``.
"""

from __future__ import annotations

import logging

from rewindmq.broker.clients.producer_manager import ProducerManager
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.store.model import PutResult, StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.transaction.records import real_queue
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError, RequestError
from rewindmq.protocol.header.message import CheckTransactionStateRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.message_id import offset_message_id
from rewindmq.protocol.message.properties import PGROUP, UNIQ_KEY, WAIT, with_property
from rewindmq.protocol.message.record import encode_record
from rewindmq.protocol.names import TRANS_HALF_TOPIC

_log = logging.getLogger(__name__)


class CheckBacks:
    """Sends CHECK_TRANSACTION_STATE (39) to a producer of the half message's group."""

    def __init__(self, profile: BrokerProfile, store: MessageStore, producers: ProducerManager) -> None:
        # The topic that the request names; 4.x has no such field.
        self._topic = TRANS_HALF_TOPIC if profile.half_names_transaction else None
        self._store = store
        self._producers = producers

    def ask(self, half: MessageExt, copy: StoredMessage, stored: PutResult) -> None:
        """Ask about a half message that was just stored again; log a warning if no producer is connected.

        Args:
            copy: the message as stored again.
            stored: its new position and offset, which END_TRANSACTION (37) must name.
        """
        group = half.properties.get(PGROUP, "")
        connection = self._producers.available(group)
        if connection is None:
            _log.warning("transaction %s not checked: no producer of group %s", half.msg_id, group)
            return
        try:
            connection.send_oneway(self._request(half, copy, stored))
        except (ConnectionLostError, RequestError) as error:
            _log.warning("transaction %s not checked, group %s: %s", half.msg_id, group, error)

    def _request(self, half: MessageExt, copy: StoredMessage, stored: PutResult) -> RemotingCommand:
        topic, queue_id = real_queue(half)
        unique_key = half.properties.get(UNIQ_KEY)
        header = CheckTransactionStateRequestHeader(
            stored.queue_offset,
            stored.physical_offset,
            unique_key,
            unique_key,
            offset_message_id(self._store.store_host, stored.physical_offset),
            self._topic,
        )
        record = encode_record(
            topic=topic,
            stored_body=bytes(copy.body),
            # RocketMQ stores the copy with WAIT=false, because no send waits for it; producers get that
            # property.
            properties=with_property(copy.properties.decode(), WAIT, "false").encode(),
            queue_id=queue_id,
            queue_offset=stored.queue_offset,
            physical_offset=stored.physical_offset,
            born_timestamp=copy.born_timestamp,
            born_host=copy.born_host,
            store_timestamp=stored.store_timestamp,
            store_host=self._store.store_host,
            flag=copy.flag,
            sys_flag=copy.sys_flag,
            reconsume_times=copy.reconsume_times,
        )
        return RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, header, record)
