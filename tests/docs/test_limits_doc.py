"""docs/limits.md matches the code, and no limit is missing from it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ("protocol", "broker", "namesrv")
# Constants of that name that limit no peer.
OTHERS = {
    "protocol.limits:MAX_MESSAGE_BODY_BYTES": "limits the clients' own messages",
    "protocol.names:MAX_NAME_BYTES": "the file system's limit",
    "protocol.message.properties:MAX_OFFSET": "a property's name",
    "protocol.message.properties:MAX_RECONSUME_TIMES": "a property's name",
    "protocol.remoting.pending:MAX_OPAQUE": "a number range",
    "protocol.remoting.process.property_loader:MAX_FILE_BYTES": "the operator's own file",
    "protocol.remoting.stream:MAX_WRITE_BYTES": "the size of a write",
    "protocol.remoting.traffic.held_bytes:MAX_UNFINISHED_BYTES": "a key's default",
    "protocol.remoting.traffic.held_bytes:MAX_UNREAD_BYTES": "a key's default",
    "broker.background.registration:MAX_PERIOD_MS": "the operator's own setting",
    "broker.store.layout.index:MAX_HASH_SLOT_NUM": "a key's default",
    "broker.store.layout.index:MAX_INDEX_NUM": "a key's default",
}
# Keys of that name that limit no peer.
OTHER_KEYS = {
    "accessMessageInMemoryMaxRatio",
    "diskMaxUsedSpaceRatio",
    "haSlaveFallbehindMax",
    "maxStatsIdleTimeInMinutes",
    "timerMaxDelaySec",
}


@pytest.fixture(scope="module")
def limits_doc() -> ModuleType:
    spec = importlib.util.spec_from_file_location("limits_doc", ROOT / "scripts" / "limits_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def constants(folders: Iterable[str]) -> Iterator[str]:
    """``module:NAME`` of every public constant whose name begins with ``MAX_``."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.parse(path.read_text()).body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id.startswith("MAX_"):
                        yield f"{module}:{target.id}"


def listed(limits_doc: ModuleType) -> set[str]:
    return {limit.source for limits in limits_doc.SECTIONS.values() for limit in limits}


def test_the_committed_document_is_current(limits_doc: ModuleType) -> None:
    assert limits_doc.TARGET.read_text() == limits_doc.render(), "run ./scripts/generate_limits_doc"


def test_every_constant_that_limits_a_peer_is_listed(limits_doc: ModuleType) -> None:
    found = set(constants(SERVERS))
    assert len(found) > 40
    assert found - listed(limits_doc) == OTHERS.keys()


def test_every_key_that_limits_a_peer_is_listed(limits_doc: ModuleType) -> None:
    keys = {
        field.encode_name
        for config in (BrokerConfig, StoreConfig, NamesrvConfig)
        for field in msgspec.structs.fields(config)
    }
    found = {key for key in keys if re.search("[mM]ax", key)}
    assert found - listed(limits_doc) == OTHER_KEYS
    assert {source for source in listed(limits_doc) if ":" not in source} <= keys


def test_the_runtime_info_shows_how_full_each_listed_table_is(
    simulate: RunScenario, limits_doc: ModuleType
) -> None:
    shown = {
        key: limits_doc.value_of(limit.source)
        for limits in limits_doc.SECTIONS.values()
        for limit in limits
        for key in limit.usage.split(", ")
        if key
    }

    async def usage(stage: SimStage) -> dict[str, str]:
        answer = await stage.peer().ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        table = decode_body(answer.require_success(), KVTable).table
        return {key: value for key, value in table.items() if key.startswith("usage")}

    async def scenario(stage: SimStage) -> None:
        before = await usage(stage)
        assert before.keys() == shown.keys()
        for key, value in before.items():
            used, _, limit = value.partition("/")
            assert int(limit) == shown[key], key
            assert int(used) >= 0
        peer = stage.peer("c9")
        await peer.create_topic()
        await peer.heartbeat("G", producers=["P"])
        await peer.commit(0)
        after = await usage(stage)
        grown = {key for key in after if int(after[key].split("/")[0]) > int(before[key].split("/")[0])}
        assert grown >= {
            "usageTopics",
            "usageConsumerGroups",
            "usageConsumerOffsets",
            "usageOnlineConsumers",
            "usageOnlineConsumerGroups",
            "usageOnlineProducers",
            "usageOnlineProducerGroups",
            "usageSubscriptionBytes",
        }
        await peer.client.close()
        await stage.at(1.0)
        closed = await usage(stage)
        # Each look at the usage comes by a connection of its own, which stays.
        for key in grown - {"usageTopics", "usageConsumerGroups", "usageConsumerOffsets", "usageConnections"}:
            assert closed[key] == before[key]

    simulate(scenario)
