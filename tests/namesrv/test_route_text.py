"""route_text writes the bytes that encode_body writes, for every route and release."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.namesrv.route_text import route_text
from rewindmq.protocol.body.old_route import OldTopicRouteData
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.codec.body import encode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import BodyError

_NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
_INT32 = st.integers(-(2**31), 2**31 - 1)
_BROKERS = st.builds(
    BrokerData,
    _NAMES,
    _NAMES,
    # The texts of brokers with many addresses are not kept.
    st.dictionaries(st.integers(0, 2**63 - 1), _NAMES, max_size=3)
    | st.dictionaries(st.integers(0, 20), _NAMES, min_size=8, max_size=10),
    st.none() | st.booleans(),
)
_QUEUES = st.builds(QueueData, _NAMES, _INT32, _INT32, _INT32, _INT32)
_ROUTES = st.builds(
    TopicRouteData,
    st.lists(_QUEUES, max_size=3),
    st.lists(_BROKERS, max_size=3),
    st.dictionaries(_NAMES, st.lists(_NAMES, max_size=2), max_size=2),
    st.none() | _NAMES,
)


@given(_ROUTES, st.booleans())
def test_the_bytes_are_those_of_the_whole_route(route: TopicRouteData, standard: bool) -> None:
    whole = encode_body(route, SerializeType.JSON, standard_json=standard)
    assert route_text(route, standard=standard, old=False) == whole


@given(_ROUTES, st.booleans())
def test_4_2_0_s_form_is_never_strict(route: TopicRouteData, standard: bool) -> None:
    whole = encode_body(OldTopicRouteData.of(route), SerializeType.JSON, standard_json=standard)
    assert route_text(route, standard=standard, old=True) == whole


def test_the_texts_of_a_broker_with_many_addresses_are_not_kept() -> None:
    """Each of its registrations changes its text, which may have 300 KB."""
    broker = BrokerData("C", "broker-a", {number: f"10.0.0.1:{number}" for number in range(1_000)})
    route = TopicRouteData([QueueData("broker-a", 4, 4)], [broker], {})
    route_text(route, standard=True, old=False)
    tracemalloc.start()
    try:
        for number in range(1_000, 1_100):
            del broker.broker_addrs[number - 1_000]
            broker.broker_addrs[number] = f"10.0.0.1:{number}"
            route_text(route, standard=True, old=False)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_a_lone_surrogate_is_refused_as_in_the_whole_route(standard: bool, old: bool) -> None:
    """A KV pair in msgpack or JSON may bring it."""
    route = TopicRouteData([QueueData("b", 4, 4)], [BrokerData("C", "b", {0: "h:1"})], {}, "\ud800")
    with pytest.raises(BodyError):
        route_text(route, standard=standard, old=old)
