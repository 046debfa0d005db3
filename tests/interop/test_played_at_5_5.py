"""The steps of docs/spec/broker.md B.18 at RocketMQ 5.5.0 and at RewindMQ under v53: the same answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from rewindmq.protocol.profile import Profile
from tests.interop.bad_input import request
from tests.interop.bad_input_fields import SEND
from tools.interop.raw import RawConnection
from tools.interop.servers import RewindMQServer, RocketMQServer, Server
from tools.interop.versions import SERVER_5

_SECONDS: Final = 60.0
# Fields that RewindMQ omits or adds: docs/differences.md.
_OTHER_FIELDS: Final = frozenset(("groupSysFlag", "topicSysFlag", "forbiddenType", "resetMode"))
Step = tuple[str, bytes]
Answer = tuple[int, str | None, dict[str, str]]


def _topic(topic: str, perm: int = 6, queues: int = 2) -> bytes:
    fields: dict[str, object] = {"topic": topic, "defaultTopic": "TBW102", "perm": perm}
    numbers = {"readQueueNums": queues, "writeQueueNums": queues, "topicSysFlag": 0}
    return request(17, fields | numbers | {"topicFilterType": "SINGLE_TAG", "order": "false"})


def _group(group: str) -> bytes:
    return request(200, None, json.dumps({"groupName": group, "consumeEnable": True, "retryMaxTimes": 16}))


def _sends(topic: str, count: int) -> list[Step]:
    """Return sends, each of which waits until its message is in the queue."""
    send = request(10, SEND | {"topic": topic}, b"x")
    return [(f"fill {topic} {number}", send) for number in range(1, count + 1)]


def _query(topic: str = "T", queue_id: int = 0, **more: str) -> Step:
    return f"14 {topic} {queue_id} {more}", request(14, _of_queue(topic, queue_id) | more)


def _commit(offset: int, topic: str = "T", queue_id: int = 0, group: str = "G") -> Step:
    fields = _of_queue(topic, queue_id, group) | {"commitOffset": offset}
    return f"15 {offset} {topic} {queue_id} {group}", request(15, fields)


def _pull(offset: int, topic: str = "T", queue_id: int = 0, group: str = "G", count: int = 32) -> Step:
    fields = {
        "queueOffset": offset,
        "maxMsgNums": count,
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
        "expressionType": "TAG",
    }
    name = f"11 {offset} {topic} {queue_id} {group} {count}"
    return name, request(11, _of_queue(topic, queue_id, group) | fields)


def _reset(topic: str = "T", group: str = "G", timestamp: int = 0, **more: object) -> Step:
    fields = {"group": group, "topic": topic, "timestamp": timestamp, "isForce": "true"} | more
    return f"222 {topic} {group} {timestamp} {more}", request(222, fields)


def _delete(topic: str) -> Step:
    return f"215 {topic!r}", request(215, {"topic": topic})


def _of_queue(topic: str, queue_id: int, group: str = "G") -> dict[str, Any]:
    return {"consumerGroup": group, "topic": topic, "queueId": queue_id}


STEPS: Final[list[Step]] = [
    *(("make", _topic(topic, perm)) for topic, perm in (("T", 6), ("N", 6), ("Read", 4), ("Write", 2))),
    ("make", _group("G")),
    *_sends("T", 20),
    # 1 to 6
    *(_query(queue_id=1), _query(queue_id=1, setZeroIfNotFound="false"), _query()),
    *(_commit(10), _query(), _commit(3), _query(), _commit(1000), _query()),
    *(_commit(7, queue_id=99), _query(queue_id=99)),
    *(_commit(7, "Nope"), _commit(7, group="Nope"), _commit(7, "Nope", group="Nope"), _query("Nope")),
    # 7 to 10
    *(_commit(15), _reset(), _commit(15), _query(), _query(), _pull(15), _pull(15), _commit(15), _query()),
    *(_reset(queueId=0, offset=5), _query(), _pull(15), _reset(queueId=0, offset=21), _pull(15)),
    *(_reset(queueId=0, offset=22), _reset(queueId=0, offset=-2), _query(), _pull(15)),
    *(_reset(queueId=99, offset=0), _query(queue_id=99), _reset("Nope"), _reset(group="Nope")),
    *(_reset(timestamp=-1), _query(), _pull(15), _pull(0, queue_id=1), _reset(offset=7), _query(), _pull(15)),
    _pull(0, queue_id=1),
    # 11 to 14
    *(_pull(offset) for offset in (19, 20, 21, 1000, -1, -100)),
    *(_pull(offset, queue_id=1) for offset in (0, 5, -1)),
    # 15 to 20
    *(*_sends("Read", 1), *_sends("Write", 1), _pull(0, "Write")),
    *(_pull(0, queue_id=99), _pull(0, queue_id=-1), _pull(0, "Nope"), _pull(0, group="New")),
    _commit(1, group="New"),
    *(_pull(0, count=count) for count in (33, 1000, 0, -1)),
    # 22 to 25
    *(*_sends("N", 8), _commit(8, "N"), _reset("N"), _delete("N"), _commit(8, "N"), _pull(8, "N")),
    *(_query("N", setZeroIfNotFound="false"), _delete("N"), _delete(" "), _delete("TBW102")),
    *(
        ("make", _topic("N", queues=1)),
        *_sends("N", 8),
        _query("N", setZeroIfNotFound="false"),
        _pull(0, "N"),
    ),
    *(_commit(8, "N"), _query("N")),
]


@pytest.fixture(scope="module")
def answers() -> Iterator[tuple[list[Answer], list[Answer]]]:
    """What both servers answer to each step."""
    with ThreadPoolExecutor(2) as threads:
        # Without the timer wheel, 5.5.0 answers every deletion with an exception's text.
        starting = threads.submit(RocketMQServer, SERVER_5, None, {"timerWheelEnable": "true"})
        with RewindMQServer(Profile.V53, config={"resetMode": "server"}) as mine, starting.result() as real:
            yield asyncio.run(_play(mine)), asyncio.run(_play(real))


async def _play(server: Server) -> list[Answer]:
    found: list[Answer] = []
    async with await RawConnection.open(server.broker_address) as connection:
        for name, data in STEPS:
            connection.send(data)
            answer = await connection.answer(_SECONDS)
            assert answer is not None, name
            remark = re.sub(r"127\.0\.0\.1:\d+", "CLIENT", answer.remark or "")
            # RocketMQ's first remark of every answer, which some requests never replace.
            remark = remark.replace("not set any response code", "")
            fields = {key: str(value) for key, value in answer.ext.items() if key not in _OTHER_FIELDS}
            if name.startswith("fill"):
                assert answer.code == 0
                _, topic, number = name.split()
                await _wait_for(connection, topic, int(number))
                fields = {"queueOffset": fields["queueOffset"]}
            found.append((answer.code, remark, fields))
    return found


async def _wait_for(connection: RawConnection, topic: str, end: int) -> None:
    """Wait until queue 0 ends there: RocketMQ writes its entry shortly after it has answered the send."""
    async with asyncio.timeout(_SECONDS):
        while True:
            connection.send(request(30, {"topic": topic, "queueId": 0}))
            answer = await connection.answer(_SECONDS)
            if answer is not None and answer.ext.get("offset") == str(end):
                return
            await asyncio.sleep(0.01)


def test_every_step_has_the_same_answer(answers: tuple[list[Answer], list[Answer]]) -> None:
    mine, real = answers
    different = [
        f"{number} {name}\n  RewindMQ {my}\n  RocketMQ {their}"
        for number, ((name, _), my, their) in enumerate(zip(STEPS, mine, real, strict=True))
        if my != their
    ]
    assert not different, "\n".join(different)
