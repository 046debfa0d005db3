"""SET_MESSAGE_REQUEST_MODE (401), and the file that it fills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewindmq.broker.limits import MAX_REQUEST_MODES
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.message_request_mode import MessageRequestModeManager
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.profile import Profile
from tests.support.answers import present, remark_of
from tests.support.fixtures import played
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

FILE = "messageRequestMode.json"


def json_peer(stage: ServerStage) -> Peer:
    return stage.peer(serialize_type=SerializeType.JSON)


async def ask(peer: Peer, **mode: object) -> RemotingCommand:
    fields = {"topic": "T", "consumerGroup": "G", "mode": "PULL", "popShareQueueNum": 0} | mode
    return await peer.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=json.dumps(fields).encode())


def config(stage: ServerStage) -> Path:
    return stage.root / "broker-a/config"


async def test_a_mode_is_stored_by_topic_and_group_before_the_response(stage: ServerStage) -> None:
    await stage.start_broker(profile=Profile.V53)
    peer = json_peer(stage)
    await peer.create_topic("T")
    await peer.create_topic("U")
    (await ask(peer)).require_success()
    (await ask(peer, consumerGroup="H", mode="POP", popShareQueueNum=3)).require_success()
    (await ask(peer, topic="U")).require_success()
    saved = json.loads((config(stage) / FILE).read_text())
    entry = {"topic": "T", "consumerGroup": "G", "mode": "PULL", "popShareQueueNum": 0}
    assert saved == {
        "messageRequestModeMap": {
            "T": {"G": entry, "H": entry | {"consumerGroup": "H", "mode": "POP", "popShareQueueNum": 3}},
            "U": {"G": entry | {"topic": "U"}},
        }
    }


@pytest.mark.parametrize(
    ("mode", "code", "remark"),
    [
        ({"topic": "%RETRY%G"}, ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode"),
        ({"mode": "PUSH"}, ResponseCode.SYSTEM_ERROR, "the mode PUSH is neither PULL nor POP"),
        ({"topic": "U"}, ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"),
        ({"topic": "../x"}, ResponseCode.SYSTEM_ERROR, "the specified topic"),
        ({"topic": ""}, ResponseCode.SYSTEM_ERROR, "the specified topic"),
        ({"consumerGroup": "a b"}, ResponseCode.SYSTEM_ERROR, "the specified group"),
        ({"topic": None}, ResponseCode.SYSTEM_ERROR, "SetMessageRequestModeRequestBody: "),
        ({"popShareQueueNum": "x"}, ResponseCode.SYSTEM_ERROR, "SetMessageRequestModeRequestBody: "),
    ],
)
@played(profile=Profile.V53)
async def test_a_refusal_says_why_and_stores_nothing(
    stage: SimStage, mode: dict[str, object], code: ResponseCode, remark: str
) -> None:
    await stage.peer().create_topic("T")
    response = await ask(json_peer(stage), **mode)
    assert response.code == code
    assert remark_of(response).lower().startswith(remark.lower())
    assert not (config(stage) / FILE).exists()


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@played()
async def test_releases_before_5_do_not_know_the_request(stage: SimStage, profile: Profile) -> None:
    assert (await ask(json_peer(stage))).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def manager(folder: Path) -> MessageRequestModeManager:
    modes = MessageRequestModeManager(ConfigFile(folder / FILE), lambda: 0)
    modes.load()
    return modes


def test_a_file_of_rocketmq_stays_as_it_was_except_for_what_is_set(tmp_path: Path) -> None:
    pop = {"consumerGroup": "G", "mode": "POP", "popShareQueueNum": -1, "topic": "T", "later": [1]}
    content: dict[str, Any] = {"messageRequestModeMap": {"T": {"G": pop}}}
    (tmp_path / FILE).write_text(json.dumps(content))
    modes = manager(tmp_path)
    assert present(modes.get("T", "G")).mode == "POP"
    modes.update(SetMessageRequestModeRequestBody("T", "H"))
    modes.persist()
    saved = json.loads((tmp_path / FILE).read_text())["messageRequestModeMap"]["T"]
    assert saved["G"] == pop
    assert present(manager(tmp_path).get("T", "H")).mode == "PULL"
    assert manager(tmp_path).get("U", "G") is None


@played(profile=Profile.V53)
async def test_a_full_table_refuses_a_new_pair_and_changes_a_known_one(stage: SimStage) -> None:
    modes = stage.broker.context.tables.request_modes
    for number in range(MAX_REQUEST_MODES):
        modes.update(SetMessageRequestModeRequestBody(f"T{number}", "G"))
    peer = json_peer(stage)
    await peer.create_topic("New")
    await peer.create_topic("T0")
    refused = await ask(peer, topic="New")
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(refused) == f"there are {MAX_REQUEST_MODES} message request modes already"
    (await ask(peer, topic="T0", popShareQueueNum=2)).require_success()
    assert present(modes.get("T0", "G")).pop_share_queue_num == 2


@played(profile=Profile.V53, auto_create_subscription_group=False)
async def test_a_group_that_the_broker_may_not_create_has_no_mode(stage: SimStage) -> None:
    await stage.peer().create_topic("T")
    response = await ask(json_peer(stage), consumerGroup="Unknown")
    assert response.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert remark_of(response) == "subscription group does not exist"
    assert not (config(stage) / FILE).exists()
