"""GET_BROKER_RUNTIME_INFO (28): key by key the same as RocketMQ's, in formats that its tools parse."""

from __future__ import annotations

import re
from typing import Final

import pytest

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.profile import Profile
from tests.protocol.golden.frames import GoldenFrame, golden
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

CODE: Final = RequestCode.GET_BROKER_RUNTIME_INFO
# Keys of RewindMQ's own, and both spellings of a key of which each release has one.
OWN = re.compile("usage[A-Z]|eventLoop|popRevive_|getTransferr?edTps$")
# RocketMQ 5.5, of which the frames are, has no brokerVersion any more; 5.3.3 has it.
GONE = {"brokerVersion"}


def recorded(profile: Profile) -> list[GoldenFrame]:
    """What RocketMQ's brokers answered to 28."""
    name = "rocketmq-4" if profile is Profile.V49 else "rocketmq-5"
    frames, _ = golden()
    return [
        frame
        for frame in frames
        if (frame.code, frame.outcome) == (CODE, 0) and frame.recording.startswith(name)
    ]


def named(key: str) -> str:
    """A key without the path or delay level in it."""
    return re.sub("(_/.*|_[0-9]+)$", "_", key)


def shape(key: str, value: str) -> str:
    """The format of a value: N an integer, F a fraction, U a unit of bytes."""
    if key.endswith("Tps"):
        # RocketMQ writes a rate after its window has passed.
        return " ".join("F" for _ in value.split()) and "rates"
    if key == "putMessageDistributeTime" and value == "null":
        return "intervals"
    if key == "putMessageDistributeTime":
        assert value.count(":") == 13
        return "intervals"
    if key in ("earliestMessageTimeStamp", "startAcceptSendRequestTimeStamp"):
        return "N" if re.fullmatch("-?[0-9]+", value) else value
    if key == "brokerActive":
        return "B" if value in ("true", "false") else value
    if key == "brokerVersionDesc":
        return "V" if value.startswith("V") else value
    value = re.sub(r"[0-9.]+ (B|[KMGT]iB)\b", "U", value)
    value = re.sub(r"[0-9]+\.[0-9]+(E-?[0-9]+)?", "F", value)
    return re.sub("[0-9]+", "N", value)


async def ask(peer: Peer) -> dict[str, str]:
    return dict(decode_body((await peer.ask(CODE)).require_success(), KVTable).table)


async def use(stage: SimStage) -> dict[str, str]:
    """What a broker answers after sends, pulls and a delivered delayed message, in the second minute."""
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(3)
    (await peer.send(properties={"DELAY": "1"})).require_success()
    await peer.pull(0)
    await stage.at(70.5)
    return await ask(peer)


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
def test_every_key_of_rocketmq_is_there_in_its_format(simulate: RunScenario, profile: Profile) -> None:
    frames = recorded(profile)
    assert len(frames) >= 2

    async def scenario(stage: SimStage) -> None:
        found = {named(key): shape(key, value) for key, value in (await use(stage)).items()}
        theirs: dict[str, str] = {}
        for frame in frames:
            table = decode_body(frame.decoded(), KVTable).table
            theirs |= {named(key): shape(key, value) for key, value in table.items()}
        wrong = {key: (value, found.get(key)) for key, value in theirs.items() if found.get(key) != value}
        assert wrong == {}
        assert {key for key in found.keys() - theirs.keys() if not OWN.match(key)} <= GONE

    simulate(scenario, profile=profile)


@simulated()
async def test_28_before_the_first_message(stage: SimStage) -> None:
    table = await ask(stage.peer())
    assert table["putMessageDistributeTime"] == "null"
    assert (table["putMessageEntireTimeMax"], table["getMessageEntireTimeMax"]) == ("0", "0")
    assert (table["putLatency99"], table["putMessageAverageSize"]) == ("0.00", "0.0")
    assert not any(key.startswith("scheduleMessageOffset") for key in table)


@simulated()
async def test_28_shows_puts_by_duration_and_the_progress_of_delay_levels(stage: SimStage) -> None:
    table = await use(stage)
    # Three sends, a delayed one, and its delivery.
    assert table["putMessageDistributeTime"].startswith("[<=0ms]:5 [0~10ms]:0 ")
    assert (table["putMessageTimesTotal"], table["putMessageFailedTimes"]) == ("5", "0")
    assert table["scheduleMessageOffset_1"] == "1,1"
    assert table["putLatency99"] == "0.80"
    path = stage.broker.context.store.commit_log_folder
    assert table[f"commitLogDiskRatio_{path}"] == table["commitLogDiskRatio"]


@simulated()
async def test_28_tells_how_long_the_broker_runs_whatever_its_wall_clock_says(stage: SimStage) -> None:
    stage.world.wall_ahead_ms -= 7_200_000
    await stage.at(3_723.0)
    assert (await ask(stage.peer()))["runtime"] == "[ 0 days, 1 hours, 2 minutes, 3 seconds ]"


@simulated()
async def test_28_counts_failed_puts(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    assert (await peer.send(properties="x" * 40_000)).code != 0
    assert (await ask(peer))["putMessageFailedTimes"] == "1"
