"""The answer to 28 feeds rocketmq-exporter's metrics, at RewindMQ and in RocketMQ's recorded answers."""

from __future__ import annotations

from collections import Counter

import pytest

from rewindmq.dashboard.metrics.runtime_info import RUNTIME_KEYS, runtime_metrics
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.profile import Profile
from tests.broker.handlers.test_exporter import RUNTIME
from tests.protocol.golden.frames import golden
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

NAMES = [f"rocketmq_brokeruntime_{suffix}" for key in RUNTIME_KEYS for suffix in key.suffixes]
PUTS = {name for name in NAMES if "_pmdt_" in name}
# The exporter reads these, and makes labels of them, no metric.
LABELS = {"bootTimestamp", "brokerVersion", "brokerVersionDesc", "runtime"}


def recorded() -> list[dict[str, str]]:
    frames, _ = golden()
    return [
        dict(decode_body(frame.decoded(), KVTable).table)
        for frame in frames
        if frame.code == RequestCode.GET_BROKER_RUNTIME_INFO and frame.outcome == 0
    ]


def test_every_key_that_the_exporter_makes_a_metric_of_feeds_one() -> None:
    assert {key.key for key in RUNTIME_KEYS} == RUNTIME.keys() - LABELS


def test_no_metric_is_fed_twice() -> None:
    assert [name for name, times in Counter(NAMES).items() if times > 1] == []


def test_rocketmqs_recorded_answers_feed_what_they_have() -> None:
    """Only rates and puts may be absent: a broker in its first seconds has none."""
    assert recorded()
    for table in recorded():
        absent = set(NAMES) - runtime_metrics(table).keys() - PUTS
        assert {name for name in absent if "_tps" not in name and table.keys() >= RUNTIME.keys()} == set()


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated()
async def test_a_broker_with_messages_feeds_every_metric(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(2)
    await stage.at(70.5)
    answer = await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
    values = runtime_metrics(decode_body(answer.require_success(), KVTable).table)
    assert set(NAMES) == values.keys()
    assert values["rocketmq_brokeruntime_msg_put_total_today_now"] == 2
    total = values["rocketmq_brokeruntime_commitlogdir_capacity_total"]
    assert 0 <= values["rocketmq_brokeruntime_commitlogdir_capacity_free"] <= total


@pytest.mark.parametrize("text", ["", "null", "abc", "NaN", "1e999", 'x"\n', "Total : . GiB, Free : . GiB."])
@pytest.mark.parametrize("key", [key.key for key in RUNTIME_KEYS])
def test_a_text_in_another_form_costs_its_own_metrics_only(key: str, text: str) -> None:
    table = {"commitLogMaxOffset": "7", "putTps": "1.0 2.0 3.0"}
    lost = {
        name
        for k in RUNTIME_KEYS
        if k.key == key
        for name in map("rocketmq_brokeruntime_".__add__, k.suffixes)
    }
    assert runtime_metrics(table | {key: text}).keys() == runtime_metrics(table).keys() - lost


def test_both_spellings_of_the_transferred_rate_feed_its_metric() -> None:
    for key in ("getTransferedTps", "getTransferredTps"):
        assert runtime_metrics({key: "4.5"}) == {"rocketmq_brokeruntime_gettransfered_tps10": 4.5}
