"""Answers pulls that find messages through the native kernel of ``rewindmq-speedups``.

The kernel reads the request and writes the response. In between, this module decides and counts with the
parts that ``MessagePuller`` uses. Until it is certain that the kernel can answer, nothing changes: any other
pull is decoded and handled as without the kernel. So are pulls that find nothing, pulls of new groups, first
commits, pulls of reset queues and SQL92 filters.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.pull.validator import PullValidator
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.model import GetMessageStatus
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import NO_OFFSET
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.split_header import split_header
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.frame import PREFIX_BYTES
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.limits import MAX_PULL_MESSAGES
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.speedups import NativePullKernel

_CODE: Final = int(RequestCode.PULL_MESSAGE)
# How the header of a plain pull begins in JSON, in ROCKETMQ, and in msgpack: an array of seven.
_MARKS: Final = (b'{"code":%d,' % _CODE, _CODE.to_bytes(2, "big"), bytes((0x97, _CODE)))
_COMMIT_OFFSET: Final = int(PullSysFlag.COMMIT_OFFSET)
_MASTER: Final = 0
# Values that a template's header has nowhere else.
_SAMPLES: Final = (1_122_334_455_667_788_990, 1_233_445_566_778_899_001, 1_344_556_677_889_900_112)


class PlainPulls:
    """A ``FrameKernel`` for PULL_MESSAGE (11) at a master."""

    code = _CODE

    def __init__(
        self,
        kernel: NativePullKernel,
        store: MessageStore,
        validator: PullValidator,
        groups: SubscriptionGroupManager,
        offsets: Offsets,
        stats: BrokerStats,
    ) -> None:
        # Methods are bound, because each pull calls them: ``./scripts/bench --only hot-path``.
        self._parse = kernel.parse
        self._encode = kernel.encode
        self._find_messages = store.find_messages
        self._admit = validator.admit
        self._find_group = groups.get
        self._offsets = offsets.table
        self._find_mark = offsets.marks.find
        self._rewound = offsets.rewinds.open
        self._commit_again = offsets.committer.commit_again
        self._pulls = stats.items.pulls

    def take(self, remote_address: str, data: bytes, position: int) -> tuple[int, bytes] | None:
        """See ``FrameKernel``; it handles one frame, so that each pull's time is measured."""
        if not data.startswith(_MARKS, position + PREFIX_BYTES):
            return None
        request = self._parse(data, position)
        if request is None:
            return None
        end, serialize_type, opaque, fields = request
        response = self._answer(PullMessageRequestHeader(*fields), remote_address, serialize_type, opaque)
        return None if response is None else (end, response)

    def _answer(
        self, header: PullMessageRequestHeader, client: str, serialize_type: int, opaque: int
    ) -> bytes | None:
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        # ``admit`` would create an unknown group.
        if self._find_group(group) is None or self._find_mark(group, topic, queue_id) is not None:
            return None
        if self._rewound and (group, topic, queue_id) in self._rewound:
            return None
        offsets = self._offsets
        commits = header.sys_flag & _COMMIT_OFFSET and header.commit_offset >= 0
        if offsets.epoch(group, topic, queue_id) or (
            commits and offsets.query(group, topic, queue_id) == NO_OFFSET
        ):
            return None
        try:
            wanted = self._admit(header, client)
        except RequestError:
            return None
        if wanted is not None and not isinstance(wanted, frozenset):
            return None
        count = min(max(header.max_msg_nums, 1), MAX_PULL_MESSAGES)
        place = self._find_messages(topic, queue_id, header.queue_offset, count)
        if place is None:
            return None
        found_at, entries, segment, limits, queue = place
        encoded = self._encode(serialize_type, opaque, found_at, wanted, entries, segment, limits)
        if encoded is None:
            return None
        frame, found, size = encoded
        # As ``PullCounts.count``, without a call.
        counts = self._pulls
        pulls = queue.pulls.get(group) or counts.in_queue(queue, group)
        if not pulls.requests:
            counts.begin(pulls)
        pulls.requests += 1
        pulls.messages += found
        pulls.size += size
        counts.last = pulls
        if commits:
            self._commit_again(client, group, topic, queue_id, header.commit_offset)
        return frame


def plain_pulls(
    runtime: Runtime,
    config: BrokerConfig,
    store: MessageStore,
    validator: PullValidator,
    groups: SubscriptionGroupManager,
    offsets: Offsets,
    stats: BrokerStats,
) -> tuple[PlainPulls, ...]:
    """Return the kernel of a broker whose responses name the master as the next pull's broker.

    None if the runtime has no kernels or is watched, and at a slave.
    """
    speedups = runtime.speedups
    is_watched = runtime.probe is not None or runtime.failpoint is not None
    if speedups is None or is_watched or config.is_slave:
        return ()
    json, rocketmq, msgpack = map(_template, SerializeType)
    if json is None or rocketmq is None or msgpack is None:
        return ()
    kernel = speedups.PullKernel(json=json, rocketmq=rocketmq, msgpack=msgpack)
    return (PlainPulls(kernel, store, validator, groups, offsets, stats),)


def _template(serialize_type: SerializeType) -> list[bytes] | None:
    """Return the header of a response with messages, see ``split_header``."""
    header = PullMessageResponseHeader(_MASTER, *_SAMPLES)
    response = RemotingCommand(ResponseCode.SUCCESS, header, remark=GetMessageStatus.FOUND.name)
    return split_header(response, serialize_type, _SAMPLES)
