"""route_text writes the bytes that encode_body writes, for every route and release."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rewindmq.namesrv.route_text import route_text
from rewindmq.protocol.body.old_route import OldTopicRouteData
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.codec.body import encode_body
from rewindmq.protocol.command import SerializeType

_NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
_INT32 = st.integers(-(2**31), 2**31 - 1)
_BROKERS = st.builds(
    BrokerData,
    _NAMES,
    _NAMES,
    st.dictionaries(st.integers(0, 2**63 - 1), _NAMES, max_size=3),
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
