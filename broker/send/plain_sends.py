"""Stores runs of plain sends and batches through the native kernel of ``rewindmq-speedups``.

The kernel encodes; this module decides what it may encode, and Python writes. A send is plain if
``MessageSender`` or ``BatchSender`` would only store it where it was sent, and answer at once. All other
frames are decoded and handled as without the kernel, and so is the first send to a topic after a change of
the topic table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.sender import SPECIAL_FLAGS
from rewindmq.broker.send.validator import SendValidator
from rewindmq.broker.store.config import CQ_ENTRY_BYTES
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.frame import PREFIX_BYTES
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.speedups import NativeSendKernel, ResolveQueue

_CODES: Final = (int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE))


class PlainSendKernel:
    """A ``FrameKernel`` for one request code.

    Args:
        encode_run: see ``SendRuns.encode_run``.
    """

    def __init__(
        self, code: int, encode_run: Callable[[int, str, bytes, int], tuple[int, bytes] | None]
    ) -> None:
        self.code = code
        self._encode_run = encode_run
        binary = code.to_bytes(2, "big")
        # How the header begins in JSON, in ROCKETMQ, and in msgpack: an array of seven, a uint16.
        self._marks = b'{"code":%d,' % code, binary, b"\x97\xcd" + binary

    def take(self, remote_address: str, data: bytes, position: int) -> tuple[int, bytes] | None:
        """See ``FrameKernel``."""
        # Other requests leave here at once.
        if not data.startswith(self._marks, position + PREFIX_BYTES):
            return None
        return self._encode_run(self.code, remote_address, data, position)


class SendRuns:
    """Stores runs of plain sends of one request code.

    Args:
        awaited: the queues on which pulls wait, a view of what they are at any time.
        make_kernel: makes the kernel with ``resolve``.
    """

    def __init__(
        self,
        store: MessageStore,
        topics: TopicConfigManager,
        validator: SendValidator,
        appender: MessageAppender,
        awaited: Mapping[tuple[str, int], object],
        make_kernel: Callable[[ResolveQueue], NativeSendKernel],
    ) -> None:
        self._store = store
        self._topics = topics
        self._validator = validator
        self._appender = appender
        self._awaited = awaited
        self._kernel = make_kernel(self.resolve)
        self._version = topics.data_version
        self._removed_queues = store.removed_queues

    def encode_run(
        self, code: int, remote_address: str, data: bytes, position: int
    ) -> tuple[int, bytes] | None:
        """Store the leading plain sends of ``code``; see ``FrameKernel.take``."""
        store, kernel = self._store, self._kernel
        start = store.run_start
        if start is None:
            return None
        if self._topics.data_version is not self._version or store.removed_queues != self._removed_queues:
            kernel.clear()
            self._version = self._topics.data_version
            self._removed_queues = store.removed_queues
        offset, room_end, timestamp = start
        encoded = kernel.encode(
            code, data, position, offset, room_end, timestamp, pack_host(remote_address), self._awaited
        )
        if encoded is None:
            return None
        end, responses, records, queues = encoded
        # Python refuses each of these sends with the cause.
        return (end, responses) if self._appender.put_run(records, queues, timestamp) else None

    def resolve(self, topic: str, queue_id: int) -> tuple[ConsumeQueue, tuple[str, int], bytes, int] | None:
        """Return what the kernel must know of a queue; None if Python must decide about its sends."""
        target = self._validator.cached_target(topic)
        if (
            target is None
            or not 0 <= queue_id < target.queue_limit
            or target.is_retry
            or target.needs_keys
            or target.drops_delay
            or target.planned is not None
            or target.is_unsaved
        ):
            return None
        queue = self._store.plain_queue(topic, queue_id)
        return None if queue is None else (queue, (topic, queue_id), queue.topic_field, target.extra_sys_flag)


def plain_sends(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    topics: TopicConfigManager,
    validator: SendValidator,
    appender: MessageAppender,
    awaited: Mapping[tuple[str, int], object],
    added: str,
) -> tuple[PlainSendKernel, ...]:
    """Return the kernels of a broker; none if the runtime has none, or none of its sends can be plain.

    Args:
        awaited: the queues on which pulls wait, a view of what they are at any time.
        added: the text of the properties that every message gets, see ``added_text``.
    """
    speedups = runtime.speedups
    is_watched = runtime.probe is not None or runtime.failpoint is not None
    if speedups is None or is_watched or config.is_slave or not appender.answers_at_once:
        return ()
    has_transaction, answers = profile.adds_unique_key, appender.answers
    json = answers.template(SerializeType.JSON, has_transaction=has_transaction)
    rocketmq = answers.template(SerializeType.ROCKETMQ, has_transaction=has_transaction)
    msgpack = answers.template(SerializeType.MSGPACK, has_transaction=has_transaction)
    if json is None or rocketmq is None or msgpack is None:
        return ()
    runs = SendRuns(
        store,
        topics,
        validator,
        appender,
        awaited,
        lambda resolve: speedups.SendKernel(
            resolve=resolve,
            store_host=store.store_host,
            added=added.encode(),
            keeps_wait=profile.stores_wait,
            has_transaction=has_transaction,
            special_flags=SPECIAL_FLAGS,
            max_message_bytes=config.store.max_message_size,
            entries_per_file=config.store.consume_queue_file_bytes // CQ_ENTRY_BYTES,
            json=json,
            rocketmq=rocketmq,
            msgpack=msgpack,
        ),
    )
    return tuple(PlainSendKernel(code, runs.encode_run) for code in _CODES)
