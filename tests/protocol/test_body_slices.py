"""Large bodies are encoded in slices, with the bytes of those that are encoded at once."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.lock import LockBatchResponseBody
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.body.stats import ConsumeStats, ConsumeStatsList, OffsetWrapper
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.codec.body import encode_body
from rewindmq.protocol.codec.body_slices import SLICE_VALUES, encode_in_slices, prepare
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.support.choice import first_of
from tests.support.work import lines_run


def stats(queues: int, topic: str = "T") -> ConsumeStats:
    table = {
        MessageQueue(topic, "b", number): OffsetWrapper(number, 1, 2, None if number % 2 else 3)
        for number in reversed(range(queues))
    }
    return ConsumeStats(table, 1.5)


def topics(count: int) -> TopicConfigSerializeWrapper:
    table = {
        f"T{number}": TopicConfig(f"T{number}", attributes={"+a": "标"} if number % 3 else None)
        for number in reversed(range(count))
    }
    return TopicConfigSerializeWrapper(table)


BODIES: dict[str, msgspec.Struct] = {
    "empty": TopicList(),
    "few": topics(3),
    "topics": topics(7_000),
    "groups": SubscriptionGroupWrapper({f"G{n}": SubscriptionGroupConfig(f"G{n}") for n in range(3_000)}),
    "offsets": ConsumerOffsetSerializeWrapper({f"T{n}@G": {n: n, 0: 1} for n in range(6_000)}, None),
    "one large entry": ConsumerOffsetSerializeWrapper(
        {"T@G": dict.fromkeys(range(9_000), 7)}, {"T@G": {1: 2}}
    ),
    "stats": stats(2_500),
    "stats of groups": ConsumeStatsList(
        [{f"G{n}": [stats(70, f"T{n}"), ConsumeStats(), stats(300)]} for n in range(20)] + [{"none": []}],
        "h:1",
    ),
    "names": TopicList([f"topic-{n}" for n in range(12_000)]),
    "route": TopicRouteData(
        [QueueData(f"b{n}") for n in range(2_000)],
        [BrokerData("C", f"b{n}", {0: "h:1", 1: "标"}) for n in range(2_000)],
        {"h:1": ["f:1"]},
    ),
    "cluster": ClusterInfo({}, {"C": {f"b{n}" for n in range(6_000)}, "D": {"b1"}}),
    "set of queues": LockBatchResponseBody({MessageQueue("T", "b", n) for n in range(3_000)}),
}


def drained(slices: Generator[None, None, Any]) -> tuple[Any, list[int]]:
    """The result, and the work of each slice."""
    work: list[int] = []
    result: list[Any] = []

    def step() -> None:
        try:
            next(slices)
        except StopIteration as end:
            result.append(end.value)

    while not result:
        work.append(lines_run(step))
    return result[0], work


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("serialize_type", list(SerializeType))
@pytest.mark.parametrize("name", BODIES)
def test_slices_give_the_bytes_of_the_whole(name: str, serialize_type: SerializeType, standard: bool) -> None:
    body = BODIES[name]
    encoded = run_at_once(encode_in_slices(body, serialize_type, standard_json=standard))
    assert encoded == encode_body(body, serialize_type, standard_json=standard)


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.MSGPACK])
@pytest.mark.parametrize(
    "make", first_of([topics, stats, lambda count: TopicList([f"T{n}" for n in range(8 * count)])])
)
def test_a_slice_does_not_grow_with_the_body(make: Any, serialize_type: SerializeType) -> None:
    _, few = drained(encode_in_slices(make(1_000), serialize_type))
    _, many = drained(encode_in_slices(make(4_000), serialize_type))
    assert len(many) > 3 * len(few) > 3
    # Sorting and filtering the keys is one line each, whatever their number.
    assert max(many) < 1.2 * max(few)
    assert max(many) < 100 * SLICE_VALUES


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.MSGPACK])
def test_text_that_cannot_be_encoded_is_a_body_error(serialize_type: SerializeType) -> None:
    names = [f"T{number}" for number in range(2_000)]
    with pytest.raises(BodyError):
        drained(encode_in_slices(TopicList([*names, "\ud800"]), serialize_type))


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.MSGPACK])
def test_a_body_that_fits_into_no_frame_is_given_up_soon(serialize_type: SerializeType) -> None:
    slices = encode_in_slices(TopicList(["x" * 100_000] * 100_000), serialize_type)
    with pytest.raises(BodyError, match="does not fit into a frame of 16777216 bytes"):
        drained(slices)


def test_a_prepared_body_takes_no_work_to_encode_in_the_types_that_it_has() -> None:
    body = topics(2_000)
    prepared, _ = drained(prepare(body, [SerializeType.MSGPACK]))
    assert lines_run(lambda: encode_body(prepared, SerializeType.MSGPACK)) < 10
    for serialize_type in SerializeType:
        assert encode_body(prepared, serialize_type) == encode_body(body, serialize_type)
    assert prepared.used == set(SerializeType)
