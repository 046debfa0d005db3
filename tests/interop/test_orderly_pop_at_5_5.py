"""Orderly POPs at RocketMQ 5.5.0 and at RewindMQ under v53: the same answers (docs/spec/pop.md 10)."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.profile import Profile
from tests.interop.bad_input import request
from tests.interop.bad_input_fields import SEND
from tools.interop.raw import RawConnection
from tools.interop.servers import RewindMQServer, RocketMQServer, Server
from tools.interop.versions import SERVER_5

_SECONDS: Final = 60.0
# Of NOTIFICATION, where RocketMQ sends false; of RewindMQ's resets.
_OTHER_FIELDS: Final = ("pollingFull", "resetMode")
_FILE: Final = "config/consumerOrderInfo.json"
Answer = tuple[str, int, str, dict[str, str]]


class Orderly:
    """A raw client that keeps the answers, with POP times replaced by their order.

    Args:
        connection: to the broker.
    """

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection
        self._times: dict[str, str] = {}
        self.answers: list[Answer] = []

    async def ask(
        self, name: str, code: int, fields: Mapping[str, object], body: bytes = b""
    ) -> RemotingCommand:
        """Send a request and keep the answer."""
        self._connection.send(request(code, fields, body))
        answer = await self._connection.answer(_SECONDS)
        assert answer is not None, name
        remark = re.sub(r"127\.0\.0\.1:\d+", "CLIENT", answer.remark or "")
        # RocketMQ's refusals have the fields of an unset header, RewindMQ's have none.
        found = {key: str(value) for key, value in answer.ext.items()} if answer.code in (0, 210) else {}
        popped = found.get("popTime", "0")
        if code == 200050 and not found.get("msgOffsetInfo"):
            found.pop("popTime", None)
        elif popped != "0":
            found["popTime"] = self._times.setdefault(popped, f"P{len(self._times)}")
        if code == 200053 and found.get("invisibleTime", "0") != "0":
            found["invisibleTime"] = "changed"
        for key in _OTHER_FIELDS:
            found.pop(key, None)
        self.answers.append((name, answer.code, remark.replace("not set any response code", ""), found))
        return answer

    async def pop(self, attempt: str | None, count: int = 3, invisible: int = 60_000, **more: object) -> str:
        """Pop in order and return the POP time."""
        fields = _queue(**more) | {"maxMsgNums": count, "invisibleTime": invisible, "pollTime": 0}
        fields |= {"bornTime": 0, "initMode": 0, "order": "true"}
        if attempt is not None:
            fields["attemptId"] = attempt
        # Two POPs of one millisecond have the same name.
        await asyncio.sleep(0.005)
        answer = await self.ask(f"pop {attempt} {count} {invisible} {more}", 200050, fields)
        return str(answer.ext.get("popTime", "0"))

    async def ack(self, popped: str, offset: int, **more: object) -> None:
        fields = _queue(**more) | {"extraInfo": _handle(popped, offset), "offset": offset}
        await self.ask(f"ack {offset} {more}", 200051, fields)

    async def batch_ack(self, popped: str, start: int, places: Sequence[int]) -> None:
        bits = sum(1 << place for place in places)
        text = b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()
        entry = {
            "c": "G",
            "t": "T",
            "r": "0",
            "so": start,
            "q": 0,
            "rq": 999,
            "pt": int(popped),
            "it": 60_000,
        }
        body = {"brokerName": "broker-a", "acks": [entry | {"b": text}]}
        await self.ask(f"batch {start} {places}", 200151, {}, json.dumps(body).encode())

    async def change(self, popped: str, offset: int, invisible: int, **more: object) -> None:
        fields = _queue(**more) | {"extraInfo": _handle(popped, offset), "offset": offset}
        await self.ask(f"change {offset} {more}", 200053, fields | {"invisibleTime": invisible})

    async def has_message(self, attempt: str) -> None:
        fields = _queue() | {"pollTime": 0, "bornTime": 0, "order": "true", "attemptId": attempt}
        await self.ask(f"has {attempt}", 200054, fields)

    async def offset(self, **more: object) -> None:
        await self.ask(f"offset {more}", 14, _queue(**more))

    async def reset(self, **more: object) -> None:
        fields = {"group": "G", "topic": "T", "timestamp": 0, "isForce": "true"}
        await self.ask(f"reset {more}", 222, fields | more)

    async def fill(self, topic: str, count: int) -> None:
        """Create a topic of one queue with messages that are in it."""
        fields = {"topic": topic, "defaultTopic": "TBW102", "perm": 6, "readQueueNums": 1, "order": "false"}
        more = {"writeQueueNums": 1, "topicSysFlag": 0, "topicFilterType": "SINGLE_TAG"}
        await self.ask("make", 17, fields | more)
        for _ in range(count):
            await self.ask("send", 10, SEND | {"topic": topic}, b"x")
        async with asyncio.timeout(_SECONDS):
            while True:
                answer = await self.ask("end", 30, {"topic": topic, "queueId": 0})
                if answer.ext["offset"] == str(count):
                    break
                await asyncio.sleep(0.01)
        self.answers.clear()


def _queue(**more: object) -> dict[str, object]:
    return {"consumerGroup": "G", "topic": "T", "queueId": 0} | more


def _handle(popped: str, offset: int) -> str:
    return f"0 {popped} 60000 999 0 broker-a 0 {offset}"


async def _play(orderly: Orderly) -> None:
    for topic, count in (("T", 20), ("U", 6), ("E", 0)):
        await orderly.fill(topic, count)
    group = {"groupName": "G", "consumeEnable": True, "retryMaxTimes": 16}
    await orderly.ask("group", 200, {}, json.dumps(group).encode())
    for step in (_attempts, _acks, _changes, _batches, _without_time, _resets, _without_info):
        await step(orderly)


async def _attempts(orderly: Orderly) -> None:
    await orderly.has_message("a1")
    first = await orderly.pop("a1")
    for attempt in ("a1", "a2"):
        await orderly.has_message(attempt)
    await orderly.pop("a2")
    await orderly.pop(None)
    await orderly.pop("a1")
    # Late: the queue has been popped again.
    await orderly.ack(first, 1)
    await orderly.offset()


async def _acks(orderly: Orderly) -> None:
    popped = await orderly.pop("a1")
    for offset in (1, 1, 7, 20, 21, 999, -1, 0, 0, 1):
        await orderly.ack(popped, offset)
        await orderly.offset()
    await orderly.pop("a2")


async def _changes(orderly: Orderly) -> None:
    popped = await orderly.pop("a1")
    for offset in (0, 9):
        await orderly.change(popped, offset, 500)
    for offset in (2, 3, 4):
        await orderly.change(popped, offset, 0)
    await orderly.pop("a3", 5)
    await orderly.pop("a3", 6)


async def _batches(orderly: Orderly) -> None:
    popped = await orderly.pop("a3", 5)
    for places in ([0, 1, 2], [3, 40], [9], [4]):
        await orderly.batch_ack(popped, 2, places)
        await orderly.offset()


async def _without_time(orderly: Orderly) -> None:
    for number, invisible in enumerate((0, -5)):
        await orderly.pop(f"b{number}", 1, invisible)
        await orderly.pop(f"c{number}", 1, invisible)
        await orderly.pop(f"d{number}", 1, 60_000)
        await orderly.reset()


async def _resets(orderly: Orderly) -> None:
    await orderly.has_message("r1")
    before = await orderly.pop("r1", 2)
    await orderly.reset(offset=5, queueId=0)
    await orderly.ack(before, 0)
    await orderly.offset()
    after = await orderly.pop("r2", 2)
    for popped, offset in ((before, 1), (before, 5), (after, 5)):
        await orderly.ack(popped, offset)
        await orderly.offset()


async def _without_info(orderly: Orderly) -> None:
    await orderly.ack("1", 3, topic="U")
    await orderly.offset(topic="U")
    await orderly.change("1", 3, 500, topic="U")
    await orderly.change("1", 5, 500, topic="U")
    await orderly.pop("u", topic="U")
    await orderly.pop("e", topic="E")
    await orderly.pop("n", topic="Nope")


async def _after_the_restart(orderly: Orderly) -> None:
    await orderly.pop("x", topic="U")
    await orderly.pop("u", topic="U")
    await orderly.pop("x")
    await orderly.pop("r2")


Played = tuple[list[Answer], list[Answer], dict[str, Any]]


@pytest.fixture(scope="module")
def played() -> Iterator[tuple[Played, Played]]:
    """What both servers answer before and after a stop, and the order infos on their disks in between."""
    with ThreadPoolExecutor(2) as threads:
        starting = threads.submit(RocketMQServer, SERVER_5, None, {"timerWheelEnable": "true"})
        with RewindMQServer(Profile.V53, config={"resetMode": "server"}) as mine, starting.result() as real:
            playing = threads.submit(_both, real)
            yield _both(mine), playing.result()


def _both(server: Server) -> Played:
    before = asyncio.run(_answers(server, _play))
    server.stop_broker()
    stored = fastjson.loads((server.store_path / _FILE).read_bytes())
    server.start_broker()
    return before, asyncio.run(_answers(server, _after_the_restart)), stored


async def _answers(server: Server, steps: Callable[[Orderly], Awaitable[None]]) -> list[Answer]:
    async with await RawConnection.open(server.broker_address) as connection:
        orderly = Orderly(connection)
        await steps(orderly)
        return orderly.answers


def test_every_step_has_the_same_answer(played: tuple[Played, Played]) -> None:
    mine, real = played
    for before_or_after in (0, 1):
        assert mine[before_or_after], "nothing was played"
        for my, their in zip(mine[before_or_after], real[before_or_after], strict=True):
            assert my == their


def test_both_keep_the_same_order_infos(played: tuple[Played, Played]) -> None:
    mine, real = (_timeless(each[2]) for each in played)
    assert mine == real
    assert mine["table"].keys() == {"T@G", "U@G"}


def _timeless(stored: dict[str, Any]) -> dict[str, Any]:
    for queues in stored["table"].values():
        for info in queues.values():
            del info["l"], info["popTime"]
    return stored
