"""Sends the same bytes to a RocketMQ server and to a RewindMQ server, and records both answers.

A case is a few frames over one connection. Its reaction is described without times, addresses and texts of
internal errors, which differ between runs and releases.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, Literal

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import BodyError
from tools.interop.raw import RawConnection, frame
from tools.interop.servers import Server

# How long a server may be silent before that counts as its reaction: if silence is expected, and if not. All
# cases that expect silence wait at the same time.
QUIET_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 60.0
# Cases at a time; with many more, a RocketMQ broker that is slow for a moment answers some with SYSTEM_BUSY.
_AT_A_TIME: Final = 16
TOPIC: Final = "BadInput"
_PROBE_OPAQUE: Final = 1_000_001
_UNSET: Final = "not set any response code"
_FIRST_WORDS: Final = re.compile(r"[,:(\[<\n]")
_FAILED: Final = re.compile(r"^[a-z]+(\.[A-Za-z_$0-9]+)+(Exception|Error)\b|^[A-Z]\w+(Exception|Error): ")
# Of these fields only the presence is compared.
_OF_THE_MOMENT: Final = frozenset(
    (
        *("msgId", "queueId", "queueOffset", "recallHandle", "transactionId"),
        *("version", "indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"),
    )
)
# Fields that 5.x adds to its answers and that clients do not need: docs/differences.md.
_ADDITIONS: Final = frozenset(
    (
        *("IS_SUB_CHANGE", "IS_SUPPORT_HEART_BEAT_V2", "groupSysFlag", "topicSysFlag"),
        *("stateVersion", "attributes"),
    )
)

Role = Literal["namesrv", "broker"]
Reaction = list[Any]


@dataclass(frozen=True)
class BadInput:
    """Bytes for one connection.

    Attributes:
        name: unique.
        steps: each is sent after the answer to the one before, or after a time without an answer.
        shows_body: the bodies of the answers are compared, too.
        is_quiet: silence is a likely reaction.
        group: cases of the same group run one after another.
        ends: close the sending side after the last step.
    """

    name: str
    role: Role
    steps: tuple[bytes, ...]
    shows_body: bool = False
    is_quiet: bool = False
    group: str = ""
    ends: bool = False


def named(code: int) -> str:
    """Return a request's name and code, for the name of a case."""
    return f"{RequestCode(code).name} ({code})"


def request(
    code: int, ext: Mapping[str, object] | None = None, body: str | bytes = b"", **members: object
) -> bytes:
    """Return a JSON frame; ``members`` are more fields of the header, or replace the common ones."""
    header = {"code": code, "flag": 0, "language": "JAVA", "opaque": 7, "version": 401} | members
    if ext is not None:
        header["extFields"] = ext
    return frame(header, body if isinstance(body, bytes) else body.encode())


async def play_all(cases: Iterable[BadInput], server: Server) -> dict[str, Reaction]:
    """Send all cases to one server and return its reactions, by case."""
    lanes: dict[str, list[BadInput]] = defaultdict(list)
    for case in cases:
        lanes[case.group or case.name].append(case)
    reactions: dict[str, Reaction] = {}
    few = asyncio.Semaphore(_AT_A_TIME)

    async def play_lane(lane: list[BadInput]) -> None:
        for case in lane:
            async with few if not case.is_quiet else nullcontext():
                reactions[case.name] = await _play(case, server)

    await asyncio.gather(*(play_lane(lane) for lane in lanes.values()))
    return reactions


async def _play(case: BadInput, server: Server) -> Reaction:
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
    """Return what the server does after the client has closed its sending side."""
    answer = await connection.answer(QUIET_SECONDS)
    return "answers" if answer is not None else "closed" if connection.is_closed else "silence"


async def _afterwards(connection: RawConnection) -> str:
    """Return whether the connection still serves requests."""
    connection.send(request(105, {"topic": "TBW102"}, opaque=_PROBE_OPAQUE))
    answer = await connection.answer(ANSWER_SECONDS)
    if answer is None:
        return "closed" if connection.is_closed else "unresponsive"
    return "serves" if answer.opaque == _PROBE_OPAQUE else "answers twice"


def _told(answer: RemotingCommand, case: BadInput, server: Server) -> dict[str, Any]:
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
    """Return a remark's first words, ``(failed)`` for the text of a Java exception, None for no remark."""
    if remark is None:
        return None
    return "(failed)" if _FAILED.match(remark) else _FIRST_WORDS.split(_neutral(remark, server))[0]


def _neutral(text: str, server: Server) -> str:
    for address, name in ((server.namesrv_address, "NAMESRV"), (server.broker_address, "BROKER")):
        text = text.replace(address, name)
    return re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)


def same(rewindmq: Reaction, rocketmq: Reaction) -> bool:
    """True if a client cannot tell the two reactions apart; texts of internal errors may differ."""
    if len(rewindmq) != len(rocketmq):
        return False
    return all(_alike(mine, other) for mine, other in zip(rewindmq, rocketmq, strict=True))


def _alike(mine: Any, other: Any) -> bool:
    if not isinstance(mine, dict) or not isinstance(other, dict):
        return bool(mine == other)
    # RocketMQ's first remark of every answer, which some requests never replace.
    if other["remark"] == _UNSET:
        return mine == other | {"remark": None}
    if other["remark"] == "(failed)" and mine["remark"]:
        return mine | {"remark": ""} == other | {"remark": ""}
    return mine == other


def in_short(reaction: Reaction) -> str:
    """Return the codes of the answers and the end of the connection, as one line."""
    return " ".join(str(step["code"]) if isinstance(step, dict) else step for step in reaction)
