"""Serves pulls: check, filter, read, suspend (docs/spec/broker.md B.4 to B.7).

Source: RocketMQ 4.9.4 ``PullMessageProcessor``.
"""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.filter.property_filter import PropertyFilter
from rewindmq.broker.offsets.committer import Commit, OffsetCommitter
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.pull.broker_suggester import BrokerSuggester
from rewindmq.broker.pull.long_polling import LongPolling, MessageFilter, SuspendedPull
from rewindmq.broker.pull.offset_moved import OffsetMovedEvent, OffsetMovedLog
from rewindmq.broker.pull.reset_redirector import Redirect, ResetRedirector
from rewindmq.broker.pull.validator import PullValidator
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.model import GetMessageStatus, GetResult
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.limits import MAX_PULL_MESSAGES
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.dispatch import failure
from rewindmq.protocol.remoting.runtime import Runtime

_log = logging.getLogger(__name__)

_SUSPEND: Final = int(PullSysFlag.SUSPEND)
_SUBSCRIPTION: Final = int(PullSysFlag.SUBSCRIPTION)
_COMMIT_OFFSET: Final = int(PullSysFlag.COMMIT_OFFSET)
_NOT_FOUND: Final = ResponseCode.PULL_NOT_FOUND
_MOVED: Final = ResponseCode.PULL_OFFSET_MOVED
_MASTER: Final = 0
# The remark of a redirected pull: the name of 5.x's GetMessageStatus for it.
_RESET: Final = "OFFSET_RESET"

_CODES: Final = MappingProxyType(
    {
        GetMessageStatus.FOUND: ResponseCode.SUCCESS,
        GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
        GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
        GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
        GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
        GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
        GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
        GetMessageStatus.NO_MATCHED_LOGIC_QUEUE: ResponseCode.PULL_NOT_FOUND,
        GetMessageStatus.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_NOT_FOUND,
    }
)
_REMARKS: Final = MappingProxyType({status: status.name for status in GetMessageStatus})
# With these statuses, a pull whose offset is not 0 gets PULL_OFFSET_MOVED (21) instead (docs/spec/broker.md
# B.5).
_EMPTY: Final = (GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, GetMessageStatus.NO_MESSAGE_IN_QUEUE)


class MessagePuller:
    """Runs pulls, suspends those that may wait, and runs the suspended pulls again.

    Args:
        offset_moved: stores a message for each pull whose offset is out of range; None in releases that only
            log the event.
        suggester: chooses the broker for the next pull; None if that is always the master.
        accepts_commits: False if the broker ignores the commit in a pull.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        store: MessageStore,
        validator: PullValidator,
        redirector: ResetRedirector,
        rewinds: Rewinds,
        committer: OffsetCommitter,
        long_polling: LongPolling,
        offset_moved: OffsetMovedLog | None,
        stats: BrokerStats,
        suggester: BrokerSuggester | None = None,
        *,
        accepts_commits: bool = True,
    ) -> None:
        self._clock = runtime.clock
        self._probe = runtime.probe
        self._broker_name = config.broker_name
        # Without long polling a pull is still suspended, but briefly.
        self._short_suspend = None if config.long_polling_enable else config.short_polling_time_mills / 1_000
        self._store = store
        # Bound, because each pull calls them: ``./scripts/bench --only hot-path``.
        self._get_message = store.get_message
        self._admit = validator.admit
        self._redirector = redirector
        self._rewinds = rewinds
        self._committer = committer
        self._long_polling = long_polling
        self._offset_moved = offset_moved
        self._stats = stats
        self._pulls = stats.items.pulls
        self._suggester = suggester
        self._commit_flag = _COMMIT_OFFSET if accepts_commits else 0

    def pull(
        self, connection: Connection, request: RemotingCommand, header: PullMessageRequestHeader
    ) -> RemotingCommand | None:
        """Return the response, or None if the pull is suspended.

        Raises:
            RequestError: see ``PullValidator.admit``; SYSTEM_ERROR (1), the commit does not fit into the
                table; SYSTEM_BUSY (2), there are too many suspended pulls.
        """
        wanted = self._admit(header, connection.remote_address)
        epoch = self._redirector.epoch(header)
        redirect = self._redirector.redirect(connection, header, epoch)
        if redirect is None:
            response, code = self._read(connection, header, wanted, epoch)
        else:
            response, code = self._redirected(connection, header, redirect), _MOVED
        flags = header.sys_flag
        # Store the commit whatever the read's result is, but not again when a suspended pull wakes. A
        # negative offset means that the pull has no commit.
        if flags & self._commit_flag and header.commit_offset >= 0:
            self._committer.commit(
                Commit(
                    connection,
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    header.commit_offset,
                    header.epoch,
                    RequestCode.PULL_MESSAGE,
                )
            )
        # Never suspend a oneway pull: it gets no response, and oneway requests are not counted against a
        # limit.
        if code is _NOT_FOUND and flags & _SUSPEND and not request.is_oneway:
            self._suspend(connection, request, header, wanted)
            if self._rewinds.open:
                self._note_progress(connection, header, None, was_suspended=False)
            return None
        # Record the delivery after the commit: the commit cannot include the messages of this response.
        if epoch and redirect is None:
            self._note_delivery(connection, header, epoch, response)
        if self._rewinds.open:
            self._note_progress(connection, header, response, was_suspended=False)
        self._probe_answered(connection, header, response)
        return response

    def answer_suspended(self, pull: SuspendedPull) -> None:
        """Run a suspended pull again; it neither waits nor commits a second time."""
        connection, request, header = pull.connection, pull.request, pull.header
        if connection.is_closed:
            return
        try:
            response = self._answer_again(connection, header)
        except Exception as error:
            response = failure(request, error)
        self._probe_answered(connection, header, response)
        connection.reply(request, response)

    def _answer_again(self, connection: Connection, header: PullMessageRequestHeader) -> RemotingCommand:
        wanted = self._admit(header, connection.remote_address)
        epoch = self._redirector.epoch(header)
        redirect = self._redirector.redirect(connection, header, epoch)
        if redirect is None:
            response, _ = self._read(connection, header, wanted, epoch)
            if epoch:
                self._note_delivery(connection, header, epoch, response)
        else:
            response = self._redirected(connection, header, redirect)
        if self._rewinds.open:
            self._note_progress(connection, header, response, was_suspended=True)
        return response

    def _redirected(
        self, connection: Connection, header: PullMessageRequestHeader, redirect: Redirect
    ) -> RemotingCommand:
        """Return PULL_OFFSET_MOVED (21) with the offset of a reset; read nothing."""
        if redirect.is_mark and self._probe is not None:
            self._probe(Point.MARK_COLLECTED, {**_details(connection, header), "offset": redirect.offset})
        topic, queue_id = header.topic, header.queue_id
        response_header = PullMessageResponseHeader(
            _MASTER,
            redirect.offset,
            self._store.min_offset(topic, queue_id),
            self._store.max_offset(topic, queue_id),
            epoch=redirect.epoch or None,
        )
        return RemotingCommand(_MOVED, response_header, remark=_RESET)

    def _note_delivery(
        self,
        connection: Connection,
        header: PullMessageRequestHeader,
        epoch: int,
        response: RemotingCommand,
    ) -> None:
        answer = response.header
        assert isinstance(answer, PullMessageResponseHeader)
        moved = response.code == _MOVED
        self._redirector.on_delivery(connection, header, epoch, answer.next_begin_offset, moved)

    def _note_progress(
        self,
        connection: Connection,
        header: PullMessageRequestHeader,
        response: RemotingCommand | None,
        *,
        was_suspended: bool,
    ) -> None:
        """Tell the rewind of the pull's queue of a response; None: the pull is suspended."""
        queue = header.consumer_group, header.topic, header.queue_id
        if queue not in self._rewinds.open:
            return
        next_offset, is_moved = header.queue_offset, False
        if response is not None:
            answer = response.header
            assert isinstance(answer, PullMessageResponseHeader)
            next_offset, is_moved = answer.next_begin_offset, response.code == _MOVED
        self._rewinds.on_pull(
            connection,
            queue,
            header.queue_offset,
            next_offset,
            is_moved=is_moved,
            was_suspended=was_suspended,
        )

    def _read(
        self, connection: Connection, header: PullMessageRequestHeader, wanted: MessageFilter, epoch: int
    ) -> tuple[RemotingCommand, ResponseCode]:
        count = min(max(header.max_msg_nums, 1), MAX_PULL_MESSAGES)
        topic, queue_id, offset = header.topic, header.queue_id, header.queue_offset
        if isinstance(wanted, PropertyFilter):
            result = self._get_message(topic, queue_id, offset, count, None, wanted.scan())
        else:
            result = self._get_message(topic, queue_id, offset, count, wanted)
        status = result.status
        code = _CODES[status]
        if status in _EMPTY and header.queue_offset:
            code = _MOVED
        broker_id, next_offset = _MASTER, result.next_begin_offset
        if self._suggester is not None:
            broker_id, next_offset, code = self._suggester.place(header, result, code)
        if code is _MOVED:
            self._on_moved(connection, header, result)
        found = result.message_count
        if found:
            self._pulls.count(topic, header.consumer_group, queue_id, found, len(result.body))
        else:
            self._stats.missed_total += 1
            self._pulls.last = None
        response_header = PullMessageResponseHeader(
            broker_id,
            next_offset,
            result.min_offset,
            result.max_offset,
            epoch=epoch or None,
        )
        return RemotingCommand(code, response_header, result.body or None, remark=_REMARKS[status]), code

    def _suspend(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        wanted: MessageFilter,
    ) -> None:
        limit = header.suspend_timeout_millis / 1_000 if self._short_suspend is None else self._short_suspend
        request.drop_content()
        # Drop text of any length that the broker does not use.
        header.proxy_froward_client_id = None
        if not header.sys_flag & _SUBSCRIPTION:
            header.subscription = header.expression_type = None
        self._long_polling.suspend(
            SuspendedPull(
                connection,
                request,
                header,
                header.queue_offset,
                self._clock.monotonic(),
                limit,
                wanted,
                self.answer_suspended,
            )
        )
        if self._probe is not None:
            self._probe(Point.PULL_SUSPENDED, _details(connection, header))

    def _probe_answered(
        self, connection: Connection, header: PullMessageRequestHeader, response: RemotingCommand
    ) -> None:
        if self._probe is not None:
            answer = response.header
            next_offset = answer.next_begin_offset if isinstance(answer, PullMessageResponseHeader) else None
            details = {**_details(connection, header), "code": int(response.code), "next": next_offset}
            self._probe(Point.PULL_ANSWERED, details)

    def _on_moved(self, connection: Connection, header: PullMessageRequestHeader, result: GetResult) -> None:
        queue = MessageQueue(header.topic, self._broker_name, header.queue_id)
        _log.warning(
            "PULL_OFFSET_MOVED: %s of group %s asked %s for %d, next is %d",
            connection.remote_address,
            header.consumer_group,
            queue,
            header.queue_offset,
            result.next_begin_offset,
        )
        if self._offset_moved is not None:
            event = OffsetMovedEvent(
                header.consumer_group, queue, header.queue_offset, result.next_begin_offset
            )
            self._offset_moved.record(event, connection.remote_address)


def _details(connection: Connection, header: PullMessageRequestHeader) -> dict[str, object]:
    return {
        "client": connection.remote_address,
        "group": header.consumer_group,
        "topic": header.topic,
        "queue_id": header.queue_id,
        "offset": header.queue_offset,
    }
