"""Suggests the broker for the next pull, and adapts a slave's response (docs/spec/broker.md B.5, B.16).

Source: RocketMQ 4.9.4 and 5.3.3 ``PullMessageProcessor``. Used at a slave, and where ``slaveReadEnable`` is
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.store.model import GetMessageStatus, GetResult
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.header.pull import PullMessageRequestHeader

_MASTER: Final = 0
# With these statuses the next offset is the end of the scan, not a correction of the client's offset.
_SCANNED: Final = frozenset(
    (GetMessageStatus.FOUND, GetMessageStatus.NO_MATCHED_MESSAGE, GetMessageStatus.MESSAGE_WAS_REMOVING)
)


class Placement(NamedTuple):
    """The adapted part of a response.

    Attributes:
        broker_id: the broker for the next pull, 0 for the master.
    """

    broker_id: int
    next_offset: int
    code: ResponseCode


class BrokerSuggester:
    """Adapts the response to each read.

    Args:
        has_master: returns True if the name server knew a master at the last registration.
    """

    def __init__(
        self,
        config: BrokerConfig,
        profile: BrokerProfile,
        store: MessageStore,
        groups: SubscriptionGroupManager,
        has_master: Callable[[], bool],
    ) -> None:
        self._is_slave = config.is_slave
        self._suggests = config.slave_read_enable
        self._corrects = not config.is_slave or config.offset_check_in_slave
        self._sends_back = config.is_slave and profile.slave_sends_back
        self._store = store
        self._groups = groups
        self._has_master = has_master

    def place(self, header: PullMessageRequestHeader, result: GetResult, code: ResponseCode) -> Placement:
        """Return the broker and offset of the next pull, and the code of this response."""
        group = self._groups.get(header.consumer_group)
        own_broker = _MASTER if group is None else group.broker_id
        is_slow = self._is_slow(header, result)
        broker_id = _MASTER
        if self._suggests:
            broker_id = group.which_broker_when_consume_slowly if is_slow and group else own_broker
        next_offset = result.next_begin_offset
        if not self._corrects:
            if result.status not in _SCANNED:
                next_offset = header.queue_offset
            if code is ResponseCode.PULL_OFFSET_MOVED:
                code, broker_id = ResponseCode.PULL_RETRY_IMMEDIATELY, own_broker
        if self._sends_back and not is_slow and self._has_master():
            broker_id = _MASTER
            if result.status is not GetMessageStatus.FOUND:
                code = ResponseCode.PULL_RETRY_IMMEDIATELY
        return Placement(broker_id, next_offset, code)

    def _is_slow(self, header: PullMessageRequestHeader, result: GetResult) -> bool:
        """Return True if the last message read is so far behind the log's end that it counts as on disk."""
        if result.status not in _SCANNED:
            return False
        return self._store.is_cold(header.topic, header.queue_id, result.next_begin_offset - 1)
