"""Which broker a consumer should ask next, and what a slave makes of a read (docs/spec/broker.md B.5, B.16).

RocketMQ 4.9.4 and 5.3.3 ``PullMessageProcessor``; only asked where ``slaveReadEnable`` is on, or at a slave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.rules import BrokerRules
from rewindmq.broker.store.model import GetMessageStatus, GetResult
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.subscription_group import SubscriptionGroupManager
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.header.pull import PullMessageRequestHeader

_MASTER: Final = 0
# Their next offset is where the scan ended, and no correction.
_SCANNED: Final = frozenset(
    (GetMessageStatus.FOUND, GetMessageStatus.NO_MATCHED_MESSAGE, GetMessageStatus.MESSAGE_WAS_REMOVING)
)


class Placement(NamedTuple):
    """What the answer says instead.

    Attributes:
        broker_id: whom to ask next, 0 for the master.
    """

    broker_id: int
    next_offset: int
    code: ResponseCode


class PullPlacement:
    """Looks at each read once more.

    Args:
        has_master: whether the name server knew a master when it was last asked.
    """

    def __init__(
        self,
        config: BrokerConfig,
        rules: BrokerRules,
        store: MessageStore,
        groups: SubscriptionGroupManager,
        has_master: Callable[[], bool],
    ) -> None:
        self._is_slave = config.is_slave
        self._suggests = config.slave_read_enable
        self._corrects = not config.is_slave or config.offset_check_in_slave
        self._sends_back = config.is_slave and rules.slave_sends_back
        self._store = store
        self._groups = groups
        self._has_master = has_master

    def place(self, header: PullMessageRequestHeader, result: GetResult, code: ResponseCode) -> Placement:
        """Who is asked next, from which offset, and the code of this answer."""
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
        """Whether the last message looked at is so far behind the log's end that it counts as on disk."""
        if result.status not in _SCANNED:
            return False
        return self._store.is_cold(header.topic, header.queue_id, result.next_begin_offset - 1)
