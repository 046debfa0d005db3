"""The traffic whose statistics test_statistics.py compares: the same requests to either kind of broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.stats import BrokerStatsData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.header.admin import ViewBrokerStatsDataRequestHeader
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader, EndTransactionRequestHeader
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
from rewindmq.protocol.header.pull import PullMessageResponseHeader
from rewindmq.protocol.header.send import SendMessageRequestHeader, SendMessageResponseHeader
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from tests.support.peer import Peer
from tools.interop.servers import BROKER

TOPIC, OTHER, GROUP, SECOND, PRODUCER = "measured", "measured-pop", "readers", "others", "writers"
RETRY, LETTERS = f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"
SYSTEM = "RMQ_SYS_TRACE_TOPIC"
SCHEDULE, HALF, OP = "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
# Delayed messages and retries are due after a second.
CONFIG: Final[dict[str, object]] = {
    "messageDelayLevel": "1s " * 17 + "1s",
    "transactionCheckInterval": 3_600_000,
    "transactionTimeOut": 3_600_000,
    "traceTopicEnable": "true",
}
# The last topic of the traffic: once its send is in the minute's figure, so is everything before it.
_LAST: Final = "measured-last"
_SECONDS: Final = 120.0
_ASK_SECONDS: Final = 0.5
_COMMIT, _ROLLBACK = 8, 12
_INVISIBLE_MS: Final = 60_000

Statistic = tuple[str, str]


@dataclass(frozen=True)
class Figures:
    """What a broker shows after the traffic.

    Attributes:
        statistics: the answers to VIEW_BROKER_STATS_DATA (315), None where the broker has none.
        runtime: the answer to GET_BROKER_RUNTIME_INFO (28).
        popped: as ``statistics``, after a message was popped and acknowledged; empty if nothing was popped.
    """

    statistics: Mapping[Statistic, BrokerStatsData | None]
    runtime: Mapping[str, str]
    popped: Mapping[Statistic, BrokerStatsData | None]


async def figures(address: str, asked: Iterable[Statistic], popped: Iterable[Statistic]) -> Figures:
    """Send the traffic to a broker that nobody used before, and return its figures.

    Args:
        popped: what to ask for after a message was popped; if empty, none is popped.
    """
    asked, popped = [*asked], [*popped]
    runtime = system_runtime()
    peer = Peer(runtime, address, serialize_type=SerializeType.JSON)
    try:
        async with asyncio.timeout(_SECONDS):
            await _traffic(peer)
            statistics = await _settled(peer, asked, "first")
            table = decode_body(
                (await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).require_success(), KVTable
            )
            if popped:
                await _pop(peer, runtime)
            after = await _settled(peer, popped, "second") if popped else {}
        return Figures(statistics, dict(table.table), after)
    finally:
        await peer.client.close()
        runtime.workers.close()


async def _traffic(peer: Peer) -> None:
    for topic in (TOPIC, OTHER, _LAST):
        await peer.create_topic(topic)
    for group in (GROUP, SECOND):
        await peer.heartbeat(group, (TOPIC, f"%RETRY%{group}"), producers=(PRODUCER,))
    position = await _send(peer)
    await _refused(peer)
    await _pull(peer)
    await _send_back(peer, position)
    await _transactions(peer)
    # The delayed message, its delivery behind the three others; and the retry.
    await _stored(peer, TOPIC, 0, 4)
    await _stored(peer, RETRY, 0, 1)
    (await peer.pull(0, RETRY, group=GROUP)).require_success()


async def _send(peer: Peer) -> int:
    """Send messages of every kind; return the log position of the first."""
    first = await _sent(peer, 0, b"first")
    for queue_id in (0, 0, 1, 1):
        await _sent(peer, queue_id, b"body")
    header = SendMessageRequestHeader(PRODUCER, TOPIC, "TBW102", 4, 2, 0, 1, 0, "UNIQ_KEY\x01first\x02")
    (await peer.ask(RequestCode.SEND_MESSAGE, header, b"first release")).require_success()
    batch = encode_batch([Message(TOPIC, b"batched")] * 5)
    answer = await peer.send(TOPIC, batch, queue_id=2, code=RequestCode.SEND_BATCH_MESSAGE, batch=True)
    answer.require_success()
    await _sent(peer, 0, b"delayed", DELAY="2")
    for _ in range(2):
        await _sent(peer, 0, b"system", SYSTEM)
    return parse_offset_message_id(first.msg_id)[1]


async def _sent(
    peer: Peer, queue_id: int, body: bytes, topic: str = TOPIC, *, sys_flag: int = 0, **properties: str
) -> SendMessageResponseHeader:
    properties = {"UNIQ_KEY": "AC1100011E4018B4AAC20000", **properties}
    answer = await peer.send(topic, body, queue_id=queue_id, properties=properties, sys_flag=sys_flag)
    return answer.require_success().decode_header(SendMessageResponseHeader)


async def _refused(peer: Peer) -> None:
    for options in ({"queue_id": 99}, {"properties": {"large": "x" * 40_000}}):
        answer = await peer.send(TOPIC, **options)
        assert answer.code, f"the send with {[*options]} was not refused"


async def _pull(peer: Peer) -> None:
    for group, topic, queue_id in (
        (GROUP, TOPIC, 0),
        (GROUP, TOPIC, 1),
        (SECOND, TOPIC, 2),
        (GROUP, SYSTEM, 0),
    ):
        await _stored(peer, topic, queue_id, 1)
        answer = await peer.pull(0, topic, queue_id=queue_id, group=group)
        header = answer.require_success().decode_header(PullMessageResponseHeader)
        # Nothing is there yet.
        await peer.pull(header.next_begin_offset, topic, queue_id=queue_id, group=group)


async def _send_back(peer: Peer, position: int) -> None:
    """Send the message at a log position back, once for a retry and once to the dead letters."""
    for level, origin in ((1, TOPIC), (-1, TOPIC)):
        header = ConsumerSendMsgBackRequestHeader(position, GROUP, level, origin_topic=origin)
        (await peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).require_success()


async def _transactions(peer: Peer) -> None:
    for verdict in (_COMMIT, _ROLLBACK):
        half = await _sent(peer, 3, b"half", sys_flag=4, TRAN_MSG="true", PGROUP=PRODUCER)
        _, position = parse_offset_message_id(half.msg_id)
        header = EndTransactionRequestHeader(
            PRODUCER, half.queue_offset, position, verdict, half.msg_id, transaction_id=half.transaction_id
        )
        (await peer.ask(RequestCode.END_TRANSACTION, header)).require_success()
        # 5.x writes the op records of 3 s together, so wait for each.
        await _stored(peer, OP, 0, half.queue_offset + 1)


async def _stored(peer: Peer, topic: str, queue_id: int, count: int) -> None:
    """Wait until a queue holds so many messages: a RocketMQ broker fills it after its log."""
    header = GetMaxOffsetRequestHeader(topic, queue_id)
    while True:
        answer = (await peer.ask(RequestCode.GET_MAX_OFFSET, header)).require_success()
        if answer.decode_header(GetMaxOffsetResponseHeader).offset >= count:
            return
        await asyncio.sleep(_ASK_SECONDS)


async def _settled(peer: Peer, asked: list[Statistic], label: str) -> dict[Statistic, BrokerStatsData | None]:
    """Return the figures once every statistic was sampled after the traffic.

    A broker samples all statistics every 10 s, one after the other.
    """
    await _sent(peer, 0 if label == "first" else 1, b"last", _LAST)
    wanted = 1 if label == "first" else 2
    while True:
        last = await _view(peer, "TOPIC_PUT_NUMS", _LAST)
        if last is not None and last.stats_minute.sum == wanted:
            break
        await asyncio.sleep(_ASK_SECONDS)
    seen: dict[Statistic, BrokerStatsData | None] = {}
    while True:
        before, seen = seen, {statistic: await _view(peer, *statistic) for statistic in asked}
        if seen == before:
            return seen
        await asyncio.sleep(_ASK_SECONDS)


async def _view(peer: Peer, name: str, key: str) -> BrokerStatsData | None:
    answer = await peer.ask(RequestCode.VIEW_BROKER_STATS_DATA, ViewBrokerStatsDataRequestHeader(name, key))
    return None if answer.code else decode_body(answer, BrokerStatsData)


async def _pop(peer: Peer, runtime: Runtime) -> None:
    """Pop a message and acknowledge it, where the broker serves that."""
    await _sent(peer, 0, b"popped", OTHER)
    await _stored(peer, OTHER, 0, 1)
    queue: dict[str, Any] = {"consumerGroup": GROUP, "topic": OTHER, "queueId": 0}
    answer = await peer.ask(
        RequestCode.POP_MESSAGE,
        **queue,
        maxMsgNums=1,
        invisibleTime=_INVISIBLE_MS,
        pollTime=0,
        bornTime=runtime.clock.now_ms(),
        initMode=0,
        expType="TAG",
        exp="*",
    )
    if answer.code:
        return
    # ExtraInfoUtil#buildExtraInfo: where the pop began, when, for how long, which revive queue, no retry.
    popped = (0, answer.ext["popTime"], _INVISIBLE_MS, answer.ext["reviveQid"], 0, BROKER, 0, 0)
    info = " ".join(map(str, popped))
    (await peer.ask(RequestCode.ACK_MESSAGE, **queue, offset=0, extraInfo=info)).require_success()
