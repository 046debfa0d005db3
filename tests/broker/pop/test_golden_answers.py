"""The answers to right and wrong requests are those of RocketMQ 5.5.1 (``golden_answers.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.profile import Profile
from tests.broker.pop.bad_cases import Answer, Script
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

GOLDEN: Final[Mapping[str, Answer]] = json.loads(
    (Path(__file__).parent / "golden_answers.json").read_text(encoding="utf-8")
)
# RocketMQ's remark where it sets none.
_UNSET: Final = "not set any response code"
_TYPED: Final = (
    "RocketMQ takes 0 for a field that is missing or no number; here the request is refused with 1"
)
# Cases with another code here, and why.
DIFFERENCES: Final = MappingProxyType(
    {"pop: no queueId": _TYPED, "pop: queueId is no number": _TYPED, "pop: no invisibleTime": _TYPED}
)


@simulated(profile=Profile.V53)
async def test_the_answers_are_those_of_rocketmq(stage: SimStage) -> None:
    answers = await Script(stage.peer(serialize_type=SerializeType.JSON)).play()
    assert answers.keys() == GOLDEN.keys()
    for name, golden in GOLDEN.items():
        if name not in DIFFERENCES:
            assert (name, comparable(answers[name])) == (name, comparable(golden))
    for name in DIFFERENCES:
        assert answers[name]["code"] == 1 != GOLDEN[name]["code"]


def comparable(answer: Answer) -> dict[str, Any]:
    """Return what must be equal: the fields only of answers that clients read them of."""
    remark = answer.get("remark")
    compared: dict[str, Any] = {"code": answer["code"], "remark": remark}
    if answer["code"] == 1:
        # Of a Java exception, the words that name the fault.
        known = remark is not None and any(
            words in remark for words in ("getBrokerName", "getReviveQid", "Capacity")
        )
        compared["remark"] = remark if known else None
    elif remark == _UNSET or (answer["code"] == 208 and "commit:" not in (remark or "")):
        # RocketMQ says nothing.
        compared["remark"] = None
    if answer["code"] in (0, 19, 210) and "timeout too much" not in (remark or ""):
        compared["ext"] = answer.get("ext")
        compared["messages"] = answer.get("messages")
    return compared
