"""Requests of POP consumption, right and wrong, whose answers are compared with those of RocketMQ 5.5.1.

``python -m tests.broker.pop.bad_cases HOST:PORT`` plays them at a fresh broker (``brokerName=broker-a``) and
prints the answers, which ``golden_answers.json`` keeps.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from rewindmq.protocol.body.batch_ack import BatchAck, BatchAckMessageRequestBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.pop.bit_set import encode_bits
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.broker.pop.asking import Lent, lent_messages
from tests.support.peer import Peer

POP: Final = RequestCode.POP_MESSAGE
ACK: Final = RequestCode.ACK_MESSAGE
CHANGE: Final = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
BATCH: Final = RequestCode.BATCH_ACK_MESSAGE
PEEK: Final = RequestCode.PEEK_MESSAGE
NOTIFICATION: Final = RequestCode.NOTIFICATION
POLLING_INFO: Final = RequestCode.POLLING_INFO
_YEARS: Final = 20 * 365 * 86_400_000

Answer = dict[str, Any]


class Script:
    """Plays the cases over one connection, and keeps what was answered.

    Args:
        settle: waits until sent messages can be popped; RocketMQ builds its queues a moment later.
    """

    def __init__(self, peer: Peer, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        self._peer = peer
        self._settle = settle
        self.answers: dict[str, Answer] = {}

    async def play(self) -> dict[str, Answer]:
        """Play all cases; return the answers by case."""
        await self._pops()
        await self._acks()
        await self._changes()
        await self._batches()
        await self._looks()
        await self._revival()
        return self.answers

    # Steps

    async def _topic(self, topic: str, messages: int = 0, *, queues: int = 1, perm: int = 6) -> None:
        await self._peer.create_topic(topic, queues, queues)
        for number in range(messages):
            properties = {"TAGS": "AB"[number % 2], "n": str(number)}
            response = await self._peer.send(
                topic, b"m%d" % number, queue_id=number % queues, properties=properties
            )
            response.require_success()
        if messages and self._settle is not None:
            await self._settle()
        if perm != 6:
            await self._peer.create_topic(topic, queues, queues, perm)

    async def _ask(self, name: str, code: int, body: Any = None, **fields: object) -> RemotingCommand:
        texts = {key: str(value) for key, value in fields.items() if value is not None}
        header = None
        response = await self._peer.ask(code, header, body, timeout=60.0, **texts)
        assert name not in self.answers, name
        self.answers[name] = told(response)
        return response

    async def _pop(self, name: str, topic: str, **fields: object) -> list[Lent]:
        values: dict[str, object] = {
            "consumerGroup": f"G{topic}",
            "topic": topic,
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": 60_000,
            "pollTime": 0,
            "bornTime": 0,
            "initMode": 0,
        }
        response = await self._ask(name, POP, **(values | fields))
        return lent_messages(response, f"G{topic}", topic)

    # Cases

    async def _pops(self) -> None:
        await self._topic("Pop0", 3)
        await self._pop("pop: 0 messages", "Pop0", maxMsgNums=0)
        await self._pop("pop: 33 messages", "Pop0", maxMsgNums=33)
        await self._pop("pop: -1 messages", "Pop0", maxMsgNums=-1)
        await self._pop("pop: unknown topic", "PopNone")
        await self._pop("pop: queue 99", "Pop0", queueId=99)
        await self._pop("pop: no group", "Pop0", consumerGroup=None)
        await self._pop("pop: too late", "Pop0", bornTime=1_000, pollTime=1_000)
        await self._pop("pop: bad SQL92", "Pop0", expType="SQL92", exp="a >")
        await self._pop("pop: SQL92 without text", "Pop0", expType="SQL92", exp="", maxMsgNums=1)
        await self._pop("pop: unknown expression type", "Pop0", expType="X", exp="a")
        await self._pop("pop: tags without a tag", "Pop0", expType="TAG", exp="||")
        await self._pop("pop: the rest", "Pop0")
        await self._pop("pop: nothing left", "Pop0")
        await self._pop("pop: nothing left, negative poll time", "Pop0", pollTime=-1)
        await self._topic("PopTyped", 1)
        await self._pop("pop: no queueId", "PopTyped", queueId=None)
        await self._pop("pop: queueId is no number", "PopTyped", queueId="x")
        await self._pop("pop: no invisibleTime", "PopTyped", invisibleTime=None)
        await self._topic("PopPerm2", 1, perm=2)
        await self._pop("pop: permission 2", "PopPerm2")
        await self._topic("PopPerm4", 1, perm=4)
        await self._pop("pop: permission 4", "PopPerm4")
        await self._topic("PopTags", 6)
        await self._pop("pop: tags", "PopTags", exp="B")
        await self._topic("PopSql", 6)
        await self._pop("pop: SQL92", "PopSql", expType="SQL92", exp="n >= 4")
        await self._topic("PopQueue", 6, queues=2)
        await self._pop("pop: queue 1", "PopQueue", queueId=1, maxMsgNums=2)
        await self._topic("PopAll", 3)
        await self._pop("pop: queue -5 is all", "PopAll", queueId=-5, maxMsgNums=2)
        for name, invisible in (("0", 0), ("negative", -60_000), ("20 years", _YEARS)):
            topic = "PopFor" + name.replace(" ", "")
            await self._topic(topic, 1)
            await self._pop(f"pop: invisible time {name}", topic, invisibleTime=invisible)

    async def _acks(self) -> None:
        await self._topic("Acks", 8, queues=1)
        lent = await self._pop("ack: first pop", "Acks", maxMsgNums=4)

        async def ack(name: str, **fields: object) -> None:
            values: dict[str, object] = {
                "consumerGroup": "GAcks",
                "topic": "Acks",
                "queueId": 0,
                "extraInfo": lent[0].handle,
                "offset": 0,
            }
            await self._ask(f"ack: {name}", ACK, **(values | fields))

        parts = lent[0].handle.split(" ")
        await ack("unknown topic", topic="AcksNone")
        await ack("queue 9", queueId=9)
        await ack("queue -1", queueId=-1)
        await ack("offset -1", offset=-1)
        await ack("offset behind the last", offset=8)
        await ack("offset beyond the end", offset=9)
        await ack("no offset", offset=None)
        await ack("no handle", extraInfo=None)
        await ack("handle of 1 field", extraInfo="x")
        await ack("handle of 3 fields", extraInfo=" ".join(parts[:3]))
        await ack("handle of 5 fields", extraInfo=" ".join(parts[:5]))
        await ack("handle of 6 fields", extraInfo=" ".join(parts[:6]))
        await ack("handle with a text for the POP time", extraInfo=" ".join(["0", "x", *parts[2:]]))
        await ack(
            "handle with a text for the revive queue", extraInfo=" ".join([*parts[:3], "x", *parts[4:]])
        )
        await ack("revive queue 77", extraInfo=" ".join([*parts[:3], "77", *parts[4:]]))
        await ack("other broker", extraInfo=" ".join([*parts[:5], "broker-x", *parts[6:]]))
        await ack("other group", consumerGroup="GOther")
        await ack("right")
        await ack("twice")

    async def _changes(self) -> None:
        await self._topic("Change", 8, queues=1)
        lent = await self._pop("change: first pop", "Change", maxMsgNums=8)

        async def change(name: str, **fields: object) -> None:
            values: dict[str, object] = {
                "consumerGroup": "GChange",
                "topic": "Change",
                "queueId": 0,
                "extraInfo": lent[0].handle,
                "offset": 0,
                "invisibleTime": 30_000,
            }
            await self._ask(f"change: {name}", CHANGE, **(values | fields))

        parts = lent[0].handle.split(" ")
        await change("unknown topic", topic="ChangeNone")
        await change("queue 9", queueId=9)
        await change("offset -1", offset=-1)
        await change("offset behind the last", offset=8)
        await change("handle of 3 fields", extraInfo=" ".join(parts[:3]))
        await change("handle of 4 fields", extraInfo=" ".join(parts[:4]))
        await change("handle of 5 fields", extraInfo=" ".join(parts[:5]))
        await change("handle with a text for the revive queue", extraInfo=" ".join([*parts[:3], "x"]))
        await change("other group", consumerGroup="GOther")
        await change("right")
        await change("with the old handle")
        await change("0", offset=1, extraInfo=lent[1].handle, invisibleTime=0)
        await change("negative", offset=2, extraInfo=lent[2].handle, invisibleTime=-1_000)
        await change("20 years", offset=3, extraInfo=lent[3].handle, invisibleTime=_YEARS)
        await change("no invisibleTime", offset=4, extraInfo=lent[4].handle, invisibleTime=None)

    async def _batches(self) -> None:
        await self._topic("Batch", 8, queues=1)
        await self._pop("batch: first pop", "Batch", maxMsgNums=8)

        async def batch(name: str, *acks: BatchAck) -> None:
            await self._ask(f"batch: {name}", BATCH, BatchAckMessageRequestBody(list(acks), "broker-a"))

        def entry(bits: str | None = None, **fields: Any) -> BatchAck:
            values: dict[str, Any] = {
                "consumer_group": "GBatch",
                "topic": "Batch",
                "retry": "0",
                "revive_queue_id": 0,
                "pop_time": 1,
                "invisible_time": 60_000,
                "bit_set": bits,
            }
            return BatchAck(**(values | fields))

        await self._ask("batch: no body", BATCH)
        await self._ask("batch: garbage", BATCH, b"garbage")
        await self._ask("batch: a list", BATCH, b"[1]")
        await batch("no acks")
        await batch("no bit set", entry())
        await batch("empty bit set", entry(""))
        await batch("bit set is no base64", entry("!"))
        await batch("retry 9", entry(encode_bits([0]), retry="9"))
        await batch("no retry", entry(encode_bits([0]), retry=None))
        await batch("unknown topic", entry(encode_bits([0]), topic="BatchNone"))
        await batch("queue 9", entry(encode_bits([0]), queue_id=9))
        await batch("bits behind the end", entry(encode_bits([500, 501])))
        await batch("start -5", entry(encode_bits([5]), start_offset=-5))
        await batch("revive queue 77", entry(encode_bits([0]), revive_queue_id=77))
        await batch("right", entry(encode_bits([0, 3])))

    async def _looks(self) -> None:
        await self._topic("Look", 6, queues=2)
        await self._topic("LookEmpty", 0, queues=2)
        await self._topic("LookPerm2", 1, perm=2)
        for what, code, more in (
            ("peek", PEEK, {"maxMsgNums": 32}),
            ("notification", NOTIFICATION, {"pollTime": 0, "bornTime": 0}),
            ("polling info", POLLING_INFO, {}),
        ):
            fields: Mapping[str, object] = {"consumerGroup": "GLook", "topic": "Look", "queueId": -1, **more}
            await self._ask(f"{what}: unknown topic", code, **(dict(fields) | {"topic": "LookNone"}))
            await self._ask(f"{what}: queue 99", code, **(dict(fields) | {"queueId": 99}))
            await self._ask(f"{what}: permission 2", code, **(dict(fields) | {"topic": "LookPerm2"}))
            await self._ask(f"{what}: nothing there", code, **(dict(fields) | {"topic": "LookEmpty"}))
            await self._ask(f"{what}: right", code, **dict(fields))
            await self._ask(f"{what}: queue 1", code, **(dict(fields) | {"queueId": 1}))
        fields = {"consumerGroup": "GLook", "topic": "Look", "queueId": 0}
        for count in (0, -1, 2, 33):
            await self._ask(f"peek: {count} messages", PEEK, **fields, maxMsgNums=count)
        await self._ask(
            "notification: tags", NOTIFICATION, **fields, pollTime=0, bornTime=0, expType="TAG", exp="Z"
        )
        await self._ask(
            "notification: bad SQL92",
            NOTIFICATION,
            **fields,
            pollTime=0,
            bornTime=0,
            expType="SQL92",
            exp="a >",
        )

    async def _revival(self) -> None:
        await self._topic("Again", 1)
        await self._pop("revival: first pop", "Again", invisibleTime=1_000)
        await self._pop("revival: second pop", "Again", invisibleTime=1_000, pollTime=20_000)
        await self._pop("revival: third pop", "Again", invisibleTime=60_000, pollTime=20_000)


_TIME: Final = re.compile(r"\b1[78]\d{11}\b")
_ADDRESS: Final = re.compile(r"(?<=broker\[)[\w.:]+(?=\])|/[\w.:]+(?=\])|https?://\S+")
# Where a Java exception was thrown.
_PLACE: Final = re.compile(
    r", (org|java|com)\.[\w.$]+\.[\w$<>]+\([\w.]+(:\d+)?\)$|, java\.base.*$", re.DOTALL
)


def told(response: RemotingCommand) -> Answer:
    """Return what a client learns from a response, without times, addresses and revive queues."""
    answer: Answer = {"code": response.code}
    if response.remark is not None:
        answer["remark"] = _neutral(_PLACE.sub("", response.remark))
    ext = {key: _neutral(str(value)) for key, value in sorted(response.ext.items()) if key != "reviveQid"}
    if ext:
        answer["ext"] = ext
    if isinstance(response.body, (bytes, memoryview)) and response.body:
        answer["messages"] = [
            {
                "topic": message.topic,
                "body": message.body.decode(),
                "queue": f"{message.queue_id} {message.queue_offset}",
                "attempt": message.reconsume_times,
                "properties": {
                    name: _neutral(value) if name in ("POP_CK", "1ST_POP_TIME") else value
                    for name, value in sorted(message.properties.items())
                    if name not in _VARYING
                },
            }
            # The queues are read in a random order.
            for message in sorted(decode_records(bytes(response.body)), key=_place)
        ]
    return answer


def _place(message: MessageExt) -> tuple[int, int]:
    return message.queue_id, message.queue_offset


# Properties whose values depend on the moment or the machine.
_VARYING: Final = frozenset(("UNIQ_KEY", "MSG_REGION", "TRACE_ON", "CLUSTER", "WAIT"))
_REVIVE_QUEUE: Final = re.compile(r"(?<=^\d TIME \d{4} )\d|(?<=^\d TIME \d{5} )\d")


def _neutral(text: str) -> str:
    return _REVIVE_QUEUE.sub("R", _ADDRESS.sub("ADDRESS", _TIME.sub("TIME", text)))


async def main(address: str) -> None:
    peer = Peer(system_runtime(), address, serialize_type=SerializeType.JSON, version=515)
    try:
        answers = await Script(peer, lambda: asyncio.sleep(1)).play()
    finally:
        await peer.client.close()
    print(json.dumps(answers, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
