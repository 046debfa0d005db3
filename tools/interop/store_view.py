"""Reads everything that a broker serves of its store, by requests, and digests of the files.

Two brokers that opened the same store must give the same view.
"""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.group import SubscriptionGroupWrapper
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper, DelayOffsetSerializeWrapper
from rewindmq.protocol.body.registration import TopicConfigSerializeWrapper
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.message import QueryMessageRequestHeader
from rewindmq.protocol.header.offset import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
)
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.names import TRANS_OP_HALF_TOPIC
from rewindmq.protocol.remoting.address import parse_address

_SECONDS: Final = 60.0
_CHUNK: Final = 1 << 20
_PER_PULL: Final = 32
_END_OF_TIME: Final = 2**62
_ENTRY_BYTES: Final = 20
_GROUP: Final = "TOOLS_CONSUMER"
ENDED: Final = (TRANS_OP_HALF_TOPIC, 0)
_Queue = tuple[str, int]
B = TypeVar("B", bound=RemotingBody)


class Peer:
    """A blocking connection to one broker; sends one request after another."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_connection(parse_address(address), _SECONDS)
        self._decoder = FrameDecoder()

    def ask(self, code: RequestCode, header: CommandHeader | None = None) -> RemotingCommand:
        """Send a request and return the answer, whatever its code."""
        self._socket.sendall(encode_frame(RemotingCommand(code, header), SerializeType.JSON))
        while data := self._socket.recv(_CHUNK):
            for answer in self._decoder.feed(data):
                return answer
        raise ConnectionError(f"the broker closed the connection instead of answering {code.name}")

    def table(self, code: RequestCode, body: type[B]) -> B:
        return decode_body(self.ask(code).require_success(), body)

    def max_offset(self, topic: str, queue: int) -> int:
        header = GetMaxOffsetRequestHeader(topic, queue)
        answer = self.ask(RequestCode.GET_MAX_OFFSET, header).require_success()
        return answer.decode_header(GetMaxOffsetResponseHeader).offset

    def min_offset(self, topic: str, queue: int) -> int:
        header = GetMinOffsetRequestHeader(topic, queue)
        answer = self.ask(RequestCode.GET_MIN_OFFSET, header).require_success()
        return answer.decode_header(GetMinOffsetResponseHeader).offset

    def search_offset(self, topic: str, queue: int, timestamp: int) -> int:
        header = SearchOffsetRequestHeader(topic, queue, timestamp)
        answer = self.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header).require_success()
        return answer.decode_header(SearchOffsetResponseHeader).offset

    def find(self, topic: str, key: str, *, unique: bool) -> bytes:
        """Return the records that the index has of a key, one after another."""
        header = QueryMessageRequestHeader(topic, key, 64, 0, _END_OF_TIME, unique)
        answer = self.ask(RequestCode.QUERY_MESSAGE, header)
        return b"" if answer.code == ResponseCode.QUERY_NOT_FOUND else _body(answer.require_success())

    def pull(self, topic: str, queue: int, offset: int) -> RemotingCommand:
        header = PullMessageRequestHeader(
            consumer_group=_GROUP,
            topic=topic,
            queue_id=queue,
            queue_offset=offset,
            max_msg_nums=_PER_PULL,
            # Flag 4: the subscription comes with the request.
            sys_flag=4,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
            subscription="*",
            expression_type="TAG",
        )
        return self.ask(RequestCode.PULL_MESSAGE, header)

    def records(self, topic: str, queue: int) -> bytes | int:
        """Return every record of a queue, one after another; or the code that refuses to read them."""
        offset, end = self.min_offset(topic, queue), self.max_offset(topic, queue)
        found = b""
        while offset < end:
            answer = self.pull(topic, queue, offset)
            if answer.code != ResponseCode.SUCCESS:
                return answer.code
            found += _body(answer)
            offset = answer.decode_header(PullMessageResponseHeader).next_begin_offset
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@dataclass
class StoreView:
    """The content that a broker serves.

    Attributes:
        bounds: first and next offset of each queue.
        records: of each queue, or the code that refuses to read them.
        searches: of each queue, the offset for several of its store times.
        keys: the index's records, by topic and key.
    """

    bounds: dict[_Queue, tuple[int, int]] = field(default_factory=dict)
    records: dict[_Queue, bytes | int] = field(default_factory=dict)
    searches: dict[_Queue, dict[int, int]] = field(default_factory=dict)
    keys: dict[tuple[str, str], bytes] = field(default_factory=dict)
    offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    topics: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)

    def messages(self, topic: str) -> list[MessageExt]:
        """Return the messages of a topic's readable queues, by queue and offset."""
        found: list[MessageExt] = []
        for (name, _), records in sorted(self.records.items(), key=lambda item: item[0]):
            if name == topic and isinstance(records, bytes):
                found += decode_records(records)
        return found

    def __sub__(self, other: StoreView) -> list[ViewDifference]:
        """Return the differences from another view."""
        found = []
        for part in fields(self):
            values, others = getattr(self, part.name), getattr(other, part.name)
            found += [
                ViewDifference(part.name, key, values.get(key), others.get(key))
                for key in sorted({*values, *others}, key=str)
                if values.get(key) != others.get(key)
            ]
        return found


@dataclass(frozen=True)
class ViewDifference:
    """A value that differs between two views; None where a view has none."""

    part: str
    key: Any
    this: Any
    other: Any

    def __str__(self) -> str:
        return f"{self.part} {self.key}: {_short(self.this)} != {_short(self.other)}"


def view_store(address: str, store: Path) -> StoreView:
    """Return what the broker at ``address`` serves of the queues that ``store`` has files of."""
    view = StoreView()
    with Peer(address) as peer:
        view.offsets = peer.table(
            RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetSerializeWrapper
        ).offset_table
        view.levels = peer.table(RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetSerializeWrapper).offset_table
        topics = peer.table(RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigSerializeWrapper)
        # Java treats no attributes and an empty table of attributes alike.
        view.topics = {
            name: msgspec.structs.replace(topic, attributes=topic.attributes or None)
            for name, topic in topics.topic_config_table.items()
        }
        groups = peer.table(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, SubscriptionGroupWrapper)
        view.groups = {**groups.subscription_group_table}
        for queue in queues_of(store):
            view.bounds[queue] = peer.min_offset(*queue), peer.max_offset(*queue)
            records = view.records[queue] = peer.records(*queue)
            if isinstance(records, bytes):
                messages = decode_records(records)
                view.searches[queue] = {at: peer.search_offset(*queue, at) for at in _times(messages)}
                view.keys.update(_look_up(peer, queue[0], messages))
    return view


def queues_of(store: Path) -> list[_Queue]:
    """Return the queues that a store has files of, sorted."""
    return sorted(
        (path.parent.parent.name, int(path.parent.name))
        for path in (store / "consumequeue").glob(f"*/*/{'0' * 20}")
    )


def _times(messages: list[MessageExt]) -> Iterator[int]:
    """Yield store times to search by: at, just before and just after some messages, and far away."""
    yield from (0, _END_OF_TIME)
    for message in (*messages[:3], *messages[3::50], *messages[-3:]):
        yield from (message.store_timestamp + step for step in (-1, 0, 1))


def _look_up(peer: Peer, topic: str, messages: list[MessageExt]) -> dict[tuple[str, str], bytes]:
    found = {}
    for message in (*messages[:10], *messages[10::25], *messages[-5:]):
        if unique := message.properties.get("UNIQ_KEY"):
            found[topic, f"unique {unique}"] = peer.find(topic, unique, unique=True)
        for key in (message.keys or "").split():
            found[topic, key] = peer.find(topic, key, unique=False)
    return found


def wait_until(what: str, holds: Callable[[], bool], seconds: float = 300.0) -> None:
    """Poll until ``holds()`` is true; raise TimeoutError after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not in {seconds:g} s: {what}")
        time.sleep(0.1)


def consumed(addresses: Iterable[str], topic: str, group: str) -> int:
    """Return the sum of a group's offsets in a topic's queues, as these brokers have them."""
    total = 0
    for address in addresses:
        with Peer(address) as peer:
            table = peer.table(RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetSerializeWrapper)
        total += sum(table.offset_table.get(f"{topic}@{group}", {}).values())
    return total


def wait_dispatched(address: str) -> None:
    """Wait until queues and index contain every message of the log."""
    # RewindMQ writes queues and index together with the log, so it always reports 0.
    wait_until("the log is dispatched", lambda: runtime_info(address).get("dispatchBehindBytes", "0") == "0")


def wait_ended(address: str, count: int) -> None:
    """Wait until the queue of ended transactions names ``count`` of them, if it can be read.

    5.5.0 collects them for up to 3 s (``transactionOpBatchInterval``) and writes one message for several.
    """

    def are_there() -> bool:
        with Peer(address) as peer:
            records = peer.records(*ENDED)
            return isinstance(records, int) or ended_count(records) >= count

    wait_until(f"{count} transactions have ended", are_there)


def ended_count(records: bytes) -> int:
    """Return the number of half messages that the records of that queue name."""
    bodies = [bytes(message.body).split(b",") for message in decode_records(records)]
    return sum(bool(piece) for pieces in bodies for piece in pieces)


def log_end(address: str) -> int:
    """Return the offset at which the broker's log ends."""
    return int(runtime_info(address)["commitLogMaxOffset"])


def runtime_info(address: str) -> dict[str, str]:
    """Return the answer to GET_BROKER_RUNTIME_INFO (28), which RocketMQ refuses in its first seconds."""
    with Peer(address) as peer:

        def answer() -> RemotingCommand:
            return peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)

        wait_until("there is runtime information", lambda: answer().code == ResponseCode.SUCCESS)
        return decode_body(answer(), KVTable).table


def log_digest(store: Path, end: int) -> str:
    """Return a digest of the log's bytes up to ``end``."""
    digest = hashlib.sha256()
    for path in sorted((store / "commitlog").iterdir()):
        base = int(path.name)
        if base < end:
            digest.update(path.read_bytes()[: end - base])
    return digest.hexdigest()


def queue_digest(store: Path, bounds: Iterable[tuple[_Queue, tuple[int, int]]]) -> dict[_Queue, str]:
    """Return a digest of each queue's entries up to its end."""
    digests = {}
    for (topic, queue), (_, end) in bounds:
        digest = hashlib.sha256()
        for path in sorted((store / "consumequeue" / topic / str(queue)).iterdir()):
            base = int(path.name)
            if base < end * _ENTRY_BYTES:
                digest.update(path.read_bytes()[: end * _ENTRY_BYTES - base])
        digests[topic, queue] = digest.hexdigest()
    return digests


def _body(answer: RemotingCommand) -> bytes:
    return bytes(answer.body) if isinstance(answer.body, bytes | memoryview) else b""


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes {hashlib.sha256(value).hexdigest()[:12]}"
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}..."
