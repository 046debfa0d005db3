"""Stores a batch, for SEND_BATCH_MESSAGE (320; docs/spec/protocol.md 6.6).

RocketMQ 4.9.4 ``SendMessageProcessor#asyncSendBatchMessage``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from rewindmq.broker.limits import MAX_BATCH_MESSAGES, MAX_BATCH_PART_MESSAGES
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.sender import INNER_BATCH_FLAGS, require_keys, tags_code_of
from rewindmq.broker.send.validator import SendTarget, SendValidator
from rewindmq.broker.store.messages.batch import BatchDraft
from rewindmq.broker.store.model import BatchEntries, PutResult, StoredMessage
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.message.batch import RUN_MESSAGES, BatchMessage, decode_runs
from rewindmq.protocol.message.properties import (
    DELAY,
    PROPERTY_SEPARATOR,
    TRAN_MSG,
    UNIQ_KEY,
    WAIT,
    ended,
    find_property,
    format_properties,
    parse_properties,
)
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses

# Runs of messages that are stored without a pause: at most 4 ms of work.
_AT_ONCE: Final = 4
_SEPARATOR: Final = b"\x02"
_ID_MARK: Final = f"{UNIQ_KEY}\x01".encode()
_ID_MARK_BYTES: Final = len(_ID_MARK)
_DELAY_MARK: Final = "DELAY\x01"
_TRAN_MARK: Final = "TRAN_MSG\x01"
_TAGS_MARK: Final = "TAGS\x01"


class _Stored(NamedTuple):
    """A batch in the store.

    Attributes:
        first, last: the results of its first and last part.
        ids: the messages' ids, joined by commas.
        is_unsaved: its topic's settings are not on disk yet.
    """

    first: PutResult
    last: PutResult
    ids: str
    is_unsaved: bool


class BatchSender:
    """Serves batch sends: each message becomes its own record, with consecutive queue offsets.

    Args:
        added: properties that every message gets, see ``added_properties``.
        ends: the properties of each record end with a separator, see ``BrokerProfile``.
        names_batch: the response has the batch's own UNIQ_KEY (5.3.3 ``SendMessageProcessor``).
        max_bytes: limit of a batch, as it is sent.
        limits_records: the limit is also that of its records; see ``BrokerProfile``.
    """

    def __init__(
        self,
        added: Mapping[str, str],
        validator: SendValidator,
        appender: MessageAppender,
        timers: Timers,
        max_bytes: int,
        *,
        ends: bool = False,
        names_batch: bool = False,
        limits_records: bool = False,
    ) -> None:
        self._validator = validator
        self._appender = appender
        self._answers = appender.answers
        self._added = added
        self._ends = ends
        self._names_batch = names_batch
        self._max_bytes = max_bytes
        self._limits_records = limits_records
        # One large batch at a time, so that each turn of the loop has at most one slice.
        self._turns = LargeResponses(timers)

    def send(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> Reply:
        """Store every message of the body, or none; return None if the response waits for the disk.

        A batch of more than ``_AT_ONCE`` runs is prepared in slices, between which the broker serves other
        requests, and then stored in one step. One of more than ``MAX_BATCH_PART_MESSAGES`` is stored in
        several: other messages may come between its parts, and if the disk fails or the topic goes, the
        earlier parts stay.
        """
        work = self._store(connection, request, header)
        try:
            for _ in range(_AT_ONCE):
                next(work)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        return self._store_in_slices(work)

    async def _store_in_slices(self, work: Generator[None, None, Reply]) -> RemotingCommand | None:
        reply = await self._turns.run(work)
        return await reply if isinstance(reply, Awaitable) else reply

    def _store(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> Generator[None, None, Reply]:
        """Store a batch; yields after about 1 ms of work."""
        remote_address = connection.remote_address
        try:
            target, header.queue_id = self._validator.admit(header, request.version, remote_address)
            if target.is_retry:
                raise RequestError(
                    ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {header.topic}"
                )
            text = header.properties or ""
            _refuse_special(header.sys_flag, text)
            shared = parse_properties(text)
            waits = shared.get(WAIT) != "false"
            name = shared.get(UNIQ_KEY) if self._names_batch else None
            message = StoredMessage(
                target.topic,
                header.queue_id,
                b"",
                sys_flag=header.sys_flag | target.extra_sys_flag,
                born_timestamp=header.born_timestamp,
                born_host=pack_host(remote_address),
                reconsume_times=header.reconsume_times or 0,
            )
            # A received body is bytes.
            body: Any = request.body or b""
            parts = yield from self._fill(
                message, body, {**shared, **self._added}, needs_keys=target.needs_keys
            )
            admit = partial(self._validator.admit, header, request.version, remote_address)
            stored = yield from self._put_parts(parts, target, admit)
        except RequestError as error:
            self._appender.on_refused()
            return self._answers.refused(error)
        response = self._answers.stored(header.queue_id, stored.first, name, stored.ids)
        if stored.is_unsaved:
            return self._appender.answer_when_saved(connection, request, response, stored.last, waits=waits)
        return self._appender.answer_when_durable(connection, request, response, stored.last, waits=waits)

    def _put_parts(
        self, parts: deque[BatchDraft], target: SendTarget, admit: Callable[[], tuple[SendTarget, int]]
    ) -> Generator[None, None, _Stored]:
        """Store each part in one step; yields after about 1 ms of work, and after each step.

        Args:
            parts: are taken out one by one, because it takes some ms to free several of them.
            admit: admits the batch once more, because its topic may have been deleted or changed.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), nothing is stored; or the disk fails or the topic has gone,
                and only the earlier parts are stored.
        """
        for part in parts:
            if not part.is_legal:
                # Refuses it, before another one is stored.
                self._appender.put_batch(part)
        is_large = len(parts) > 1 or len(parts[0]) > RUN_MESSAGES
        results: list[PutResult] = []
        ids: list[str] = []
        is_unsaved = False
        while parts:
            part = parts.popleft()
            if is_large:
                yield from self._appender.prepare(part)
                target, _ = admit()
            result = self._appender.put_batch(part)
            results.append(result)
            is_unsaved = is_unsaved or target.is_unsaved
            if target.planned is not None:
                self._validator.create(target.planned)
            ids.append((yield from self._answers.ids(result.physical_offset, part.starts)))
        return _Stored(results[0], results[-1], ",".join(ids), is_unsaved)

    def _fill(
        self, message: StoredMessage, body: bytes, shared: Mapping[str, str], *, needs_keys: bool
    ) -> Generator[None, None, deque[BatchDraft]]:
        """Return the messages of a body in parts of one step each; yields after about 1 ms of work.

        Args:
            message: the fields that they share.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), as ``_entries``, or the body or the records are too large.
        """
        if len(body) > self._max_bytes:
            raise RequestError(ResponseCode.MESSAGE_ILLEGAL, f"the batch is over {self._max_bytes} bytes")
        parts: deque[BatchDraft] = deque()
        for messages in decode_runs(body, MAX_BATCH_MESSAGES):
            if parts:
                yield
            if not parts or len(parts[-1]) + len(messages) > MAX_BATCH_PART_MESSAGES:
                parts.append(self._appender.draft(message))
            entries = _entries(messages, shared, ends=self._ends)
            if needs_keys:
                for _, properties, _, _ in entries:
                    require_keys(properties.decode("utf-8", "replace"))
            parts[-1].add(entries)
        for part in parts:
            part.complete()
        if self._limits_records and sum(part.size for part in parts) > self._max_bytes:
            raise RequestError(
                ResponseCode.MESSAGE_ILLEGAL, f"the records of the batch are over {self._max_bytes} bytes"
            )
        return parts


def _entries(messages: list[BatchMessage], shared: Mapping[str, str], *, ends: bool) -> BatchEntries:
    """Return messages of a batch with the batch's properties added; a message's own value wins.

    Specification: docs/spec/protocol.md 6.6.

    Args:
        ends: see ``BatchSender``.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), a delayed or transaction message.
    """
    # The properties of a batch's messages mostly differ only in their UNIQ_KEY, which comes first. So only
    # one message of those with the same text after it is parsed.
    rests: list[bytes] = []
    parsed: dict[bytes, bytes] = {}
    id_mark = _ID_MARK if UNIQ_KEY not in shared else None
    for _, properties, _ in messages:
        first, separator, rest = properties.partition(_SEPARATOR)
        if not separator or first[:_ID_MARK_BYTES] != id_mark:
            rest = properties
        if rest not in parsed:
            parsed[rest] = properties
        rests.append(rest)
    found = _parse(parsed, shared, ends=ends)
    if len(found) == 1:
        addition, tags_code = found[rests[0]]
        return [(body, properties + addition, tags_code, flag) for body, properties, flag in messages]
    entries: list[tuple[bytes, bytes, int, int]] = []
    for (body, properties, flag), rest in zip(messages, rests, strict=True):
        addition, tags_code = found[rest]
        entries.append((body, properties + addition, tags_code, flag))
    return entries


def _parse(
    parsed: Mapping[bytes, bytes], shared: Mapping[str, str], *, ends: bool
) -> dict[bytes, tuple[bytes, int]]:
    """Return the text to add and the tagsCode of properties, under the same keys.

    Args:
        ends: see ``BatchSender``.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), a delayed or transaction message.
    """
    # A name that occurs nowhere in the batch is not searched in each message. Decode once: a search is much
    # faster in str than in bytes.
    everything = _SEPARATOR.join(parsed.values()).decode("utf-8", "replace")
    additions = _Additions(shared, everything, ends=ends)
    may_be_refused = _DELAY_MARK in everything or _TRAN_MARK in everything
    has_tags = _TAGS_MARK in everything
    found: dict[bytes, tuple[bytes, int]] = {}
    for key, properties in parsed.items():
        text = properties.decode("utf-8", "replace")
        if may_be_refused:
            _refuse_special(0, text)
        found[key] = additions.to(text), tags_code_of(text) if has_tags else 0
    return found


class _Additions:
    """The text that a batch adds to the properties of its messages.

    Args:
        shared: the batch's own properties.
        everything: the properties texts of all messages.
        ends: see ``BatchSender``.
    """

    def __init__(self, shared: Mapping[str, str], everything: str, *, ends: bool) -> None:
        self._shared = shared
        self._end = _SEPARATOR if ends else b""
        names = [(1 << index, f"{name}\x01") for index, name in enumerate(shared)]
        self._marks = [
            (bit, first, PROPERTY_SEPARATOR + first) for bit, first in names if first in everything
        ]
        # Keyed by the shared properties that a message has itself, one bit each.
        self._known: dict[int, bytes] = {}

    def to(self, text: str) -> bytes:
        """Return the text to add after a message's own properties, with a separator if needed."""
        own = 0
        for bit, first, inside in self._marks:
            if text.startswith(first) or inside in text:
                own |= bit
        addition = self._known.get(own)
        if addition is None:
            addition = self._known[own] = self._missing(own)
        if not text or text[-1] == PROPERTY_SEPARATOR:
            return addition
        return _SEPARATOR + addition if addition else self._end

    def _missing(self, own: int) -> bytes:
        shared = self._shared.items()
        missing = {name: value for index, (name, value) in enumerate(shared) if not own >> index & 1}
        text = format_properties(missing).encode()
        return ended(text) if self._end else text


def _refuse_special(sys_flag: int, text: str) -> None:
    """Refuse a message that would not be stored in the batch's own topic."""
    fault = None
    if sys_flag & TRANSACTION_MASK or (find_property(text, TRAN_MSG) or "").lower() == "true":
        fault = "a batch holds no transaction messages"
    elif sys_flag & INNER_BATCH_FLAGS:
        fault = "this broker does not take inner batches (5.x)"
    elif (level := find_property(text, DELAY)) is not None and level != "0":
        fault = f"a batch cannot be delayed (DELAY {level})"
    if fault is not None:
        raise RequestError(ResponseCode.MESSAGE_ILLEGAL, f"{fault}; nothing was stored")
