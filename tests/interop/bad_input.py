"""Sends the same bytes to a RocketMQ server and to a RewindMQ server, and records both answers.

A case is a few frames over one connection. Its reaction is told in terms that do not depend on the moment,
the machine or the release's own words for what went wrong inside it.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, Literal

from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import BodyError
from tools.interop.raw import RawConnection, frame
from tools.interop.servers import Server

# How long nothing has to be heard before it counts as silence, where that is to be expected and where not.
# The quiet ones all wait at the same time.
QUIET_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 60.0
# Cases at a time: many more, and a real broker that is slow for a moment tells some that it is busy.
_AT_A_TIME: Final = 16
TOPIC: Final = "BadInput"
_PROBE_OPAQUE: Final = 1_000_001
_FIRST_WORDS: Final = re.compile(r"[,:(\[<\n]")
_FAILED: Final = re.compile(r"^[a-z]+(\.[A-Za-z_$0-9]+)+(Exception|Error)\b|^[A-Z]\w+(Exception|Error): ")
# Of these only that they are there.
_OF_THE_MOMENT: Final = frozenset(
    (
        *("msgId", "queueId", "queueOffset", "recallHandle", "transactionId"),
        *("version", "indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"),
    )
)
# What 5.x adds to its answers, and clients do without: docs/differences.md.
_ADDITIONS: Final = frozenset(
    (
        *("IS_SUB_CHANGE", "IS_SUPPORT_HEART_BEAT_V2", "groupSysFlag", "topicSysFlag"),
        *("enableActingMaster", "stateVersion", "attributes"),
    )
)

Role = Literal["namesrv", "broker"]
Reaction = list[Any]


@dataclass(frozen=True)
class Case:
    """Bytes for one connection.

    Attributes:
        name: unique.
        steps: each is sent once the one before it was answered, or was not for a while.
        shows_body: the bodies of the answers are compared, too.
        is_quiet: no answer would be no surprise.
        group: cases of the same group are played one after the other.
        ends: say after the last step that nothing more will come.
    """

    name: str
    role: Role
    steps: tuple[bytes, ...]
    shows_body: bool = False
    is_quiet: bool = False
    group: str = ""
    ends: bool = False


def request(
    code: int, ext: Mapping[str, object] | None = None, body: str | bytes = b"", **members: object
) -> bytes:
    """A JSON frame; ``members`` are more of the header, or replace those that all have."""
    header = {"code": code, "flag": 0, "language": "JAVA", "opaque": 7, "version": 401} | members
    if ext is not None:
        header["extFields"] = ext
    return frame(header, body if isinstance(body, bytes) else body.encode())


async def play_all(cases: Iterable[Case], server: Server) -> dict[str, Reaction]:
    """The reactions of one server, by case."""
    lanes: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        lanes[case.group or case.name].append(case)
    reactions: dict[str, Reaction] = {}
    few = asyncio.Semaphore(_AT_A_TIME)

    async def play_lane(lane: list[Case]) -> None:
        for case in lane:
            async with few if not case.is_quiet else nullcontext():
                reactions[case.name] = await _play(case, server)

    await asyncio.gather(*(play_lane(lane) for lane in lanes.values()))
    return reactions


async def _play(case: Case, server: Server) -> Reaction:
    address = server.namesrv_address if case.role == "namesrv" else server.broker_address
    reaction: Reaction = []
    seconds = QUIET_SECONDS if case.is_quiet or case.ends else ANSWER_SECONDS
    async with await RawConnection.open(address) as connection:
        for data in case.steps:
            connection.send(data)
            if case.ends and data is case.steps[-1]:
                connection.send_end()
            answer = await connection.answer(seconds)
            if answer is None:
                reaction.append("closed" if connection.is_closed else "silence")
            else:
                reaction.append(_told(answer, case, server))
            if connection.is_closed:
                return reaction
        reaction.append(await (_ending(connection) if case.ends else _afterwards(connection)))
    return reaction


async def _ending(connection: RawConnection) -> str:
    """What follows the peer's end."""
    answer = await connection.answer(QUIET_SECONDS)
    return "answers" if answer is not None else "closed" if connection.is_closed else "silence"


async def _afterwards(connection: RawConnection) -> str:
    """Whether the connection still serves."""
    connection.send(request(105, {"topic": "TBW102"}, opaque=_PROBE_OPAQUE))
    answer = await connection.answer(ANSWER_SECONDS)
    if answer is None:
        return "closed" if connection.is_closed else "deaf"
    return "serves" if answer.opaque == _PROBE_OPAQUE else "answers twice"


def _told(answer: RemotingCommand, case: Case, server: Server) -> dict[str, Any]:
    told: dict[str, Any] = {
        "code": answer.code,
        "opaque": answer.opaque,
        "remark": _remark(answer.remark, server),
        "ext": {
            key: "…" if key in _OF_THE_MOMENT else _neutral(str(value), server)
            for key, value in sorted(answer.ext.items())
            if key not in _ADDITIONS
        },
    }
    if case.shows_body and isinstance(answer.body, bytes):
        text = _neutral(answer.body.decode(), server)
        try:
            told["body"] = _without_additions(fastjson.loads(text))
        except BodyError:
            told["body"] = text
    return told


def _without_additions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_additions(member) for key, member in value.items() if key not in _ADDITIONS}
    return [_without_additions(member) for member in value] if isinstance(value, list) else value


def _remark(remark: str | None, server: Server) -> str | None:
    """None, the first words, or that something inside the server failed, said in Java's words."""
    if remark is None:
        return None
    return "(failed)" if _FAILED.match(remark) else _FIRST_WORDS.split(_neutral(remark, server))[0]


def _neutral(text: str, server: Server) -> str:
    for address, name in ((server.namesrv_address, "NAMESRV"), (server.broker_address, "BROKER")):
        text = text.replace(address, name)
    return re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)


def same(rewindmq: Reaction, rocketmq: Reaction) -> bool:
    """Whether a client could not tell them apart; why something failed inside may be said in other words."""
    if len(rewindmq) != len(rocketmq):
        return False
    return all(_alike(mine, other) for mine, other in zip(rewindmq, rocketmq, strict=True))


def _alike(mine: Any, other: Any) -> bool:
    if not isinstance(mine, dict) or not isinstance(other, dict):
        return bool(mine == other)
    if other["remark"] == "(failed)" and mine["remark"]:
        return mine | {"remark": ""} == other | {"remark": ""}
    return mine == other


def in_short(reaction: Reaction) -> str:
    """The codes of the answers, and what became of the connection."""
    return " ".join(str(step["code"]) if isinstance(step, dict) else step for step in reaction)
