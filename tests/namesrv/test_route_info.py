"""The route tables: invariants under any sequence of registrations and removals."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.namesrv import route_info, topic_queue_table
from rewindmq.namesrv.profile import PROFILES
from rewindmq.namesrv.route_info import Registration, RouteInfoManager, copied
from rewindmq.namesrv.topic_queue_table import TopicPart
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.support.properties import few_and_all

NAMES = ["broker-a", "broker-b"]
ADDRESSES = ["h:1", "h:2", "h:3"]
TOPICS = ["T", "U", "V"]


def registration(**changes: Any) -> Registration:
    fields: dict[str, Any] = {
        "cluster": "C",
        "broker_name": "broker-a",
        "broker_id": 0,
        "address": "h:1",
        "ha_address": "",
        "data_version": DataVersion(timestamp=1, counter=1),
        "connection": "connection",
        **changes,
    }
    topics = fields.pop("topics", ("T", "U"))
    queues = {topic: QueueData(broker_name=fields["broker_name"], read_queue_nums=4) for topic in topics}
    return Registration(**fields, queues=queues)


registrations = st.builds(
    registration,
    cluster=st.sampled_from(["C", "D"]),
    broker_name=st.sampled_from(NAMES),
    broker_id=st.integers(0, 2),
    address=st.sampled_from(ADDRESSES),
    data_version=st.builds(DataVersion, timestamp=st.just(1), counter=st.integers(1, 2)),
    connection=st.sampled_from(ADDRESSES),
    topics=st.sets(st.sampled_from(TOPICS)),
    filter_servers=st.lists(st.just("f:1"), max_size=1),
)
steps = st.one_of(
    st.tuples(st.just("register"), registrations),
    st.tuples(
        st.just("unregister"),
        st.tuples(st.sampled_from(NAMES), st.integers(0, 2), st.sampled_from(ADDRESSES)),
    ),
    st.tuples(st.just("remove_connection"), st.sampled_from(ADDRESSES)),
    st.tuples(st.just("remove_expired"), st.just(None)),
    st.tuples(st.just("delete_topic"), st.tuples(st.sampled_from(TOPICS), st.sampled_from([None, "C"]))),
    st.tuples(st.just("sweep"), st.just(None)),
    # A registration whose slices are spread over the following steps.
    st.tuples(st.just("stage"), registrations),
    st.tuples(st.just("hang up"), st.just(None)),
)


@pytest.mark.parametrize("examples", few_and_all(75, 300))
def test_tables_always_agree(examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.sampled_from(RELEASES), st.lists(steps, max_size=30), st.integers(0, 2))
    def run(profile: Profile, sequence: list[tuple[str, Any]], swept: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            # The queues of a removed broker stay in memory for some steps.
            patch.setattr(route_info, "SWEEP_SLICE", swept)
            patch.setattr(topic_queue_table, "_SLICE_TOPICS", 1)
            routes = run_steps(profile, sequence)
        while not routes.sweep():
            pass
        assert routes.queues_in_memory == queues_in_routes(routes)

    run()


def queues_in_routes(routes: RouteInfoManager) -> int:
    found = map(routes.find_route, TOPICS)
    return sum(len(route.queue_datas) for route in found if route is not None)


class Staging:
    """One registration in slices: it takes effect before the next one, unless its connection closes first."""

    def __init__(self, routes: RouteInfoManager) -> None:
        self._routes = routes
        self._registration: Registration | None = None
        self._slices: Generator[None, None, TopicPart | None] | None = None

    def begin(self, registration: Registration) -> None:
        self._registration, self._slices = registration, self._routes.stage(registration)

    def go_on(self, now: float) -> None:
        if self._slices is not None:
            try:
                next(self._slices)
            except StopIteration as end:
                self._register(now, end.value)

    def finish(self, now: float) -> None:
        if self._slices is not None:
            self._register(now, run_at_once(self._slices))

    def _register(self, now: float, staged: TopicPart | None) -> None:
        assert self._registration is not None
        self._slices = None
        self._routes.register(self._registration, now, staged)

    def hang_up(self) -> None:
        if self._slices is not None:
            self._slices.close()
            self._slices = None


def run_steps(profile: Profile, sequence: list[tuple[str, Any]]) -> RouteInfoManager:
    routes = RouteInfoManager(PROFILES[profile])
    staging = Staging(routes)
    for second, (step, argument) in enumerate(sequence):
        now = 10.0 * second
        if step == "register":
            staging.finish(now)
            routes.register(argument, now)
        elif step == "stage":
            staging.finish(now)
            staging.begin(argument)
        elif step == "hang up":
            staging.hang_up()
        elif step == "unregister":
            routes.unregister(*argument)
        elif step == "remove_connection":
            routes.remove_connection(argument)
        elif step == "remove_expired":
            routes.remove_expired(now)
        elif step == "sweep":
            routes.sweep()
        else:
            routes.delete_topic(*argument)
        staging.go_on(now)
        check(routes)
    staging.hang_up()
    return routes


def check(routes: RouteInfoManager) -> None:
    assert sorted(routes.topics()) == [topic for topic in TOPICS if routes.find_route(topic) is not None]
    assert routes.queues_in_memory >= queues_in_routes(routes)
    clusters = routes.cluster_info().cluster_addr_table
    listed = {topic for cluster in clusters for topic in run_at_once(routes.topics_of_cluster(cluster))}
    assert listed == set(routes.topics())
    info = routes.cluster_info()
    brokers = info.broker_addr_table
    assert all(broker.broker_addrs for broker in brokers.values()), "a broker without an address"
    assert all(names and names <= set(brokers) for names in info.cluster_addr_table.values())
    assert set(brokers) == set().union(*info.cluster_addr_table.values())
    for topic in routes.topics():
        route = routes.find_route(topic)
        assert route is not None, "a topic without a broker"
        known = {broker.broker_name for broker in route.broker_datas}
        assert {queue.broker_name for queue in route.queue_datas} == known


def test_a_copied_route_does_not_change() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    found = routes.find_route("T")
    assert found is not None
    before = copied(found)
    routes.register(registration(broker_id=1, address="h:2"), 0.0)
    routes.set_write_permission("broker-a", writable=True)
    assert before.broker_datas[0].broker_addrs == {0: "h:1"}
    assert before.queue_datas[0].perm == 0


def test_permissions_change_for_all_topics_until_the_next_changed_registration() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    for writable, perm in ((True, 6), (False, 4)):
        assert routes.set_write_permission("broker-a", writable) == 2
        assert [queue_of(routes, topic).perm for topic in ("T", "U")] == [perm, perm]
    routes.register(registration(data_version=DataVersion(timestamp=1, counter=2), topics=("U", "V")), 0.0)
    assert [queue_of(routes, topic).perm for topic in TOPICS] == [4, 0, 0]
    assert routes.set_write_permission("broker-b", writable=False) == 0


def queue_of(routes: RouteInfoManager, topic: str) -> QueueData:
    route = routes.find_route(topic)
    assert route is not None
    return route.queue_datas[0]


def test_the_topics_of_a_cluster_are_collected_in_slices() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    for number in range(3):
        names = [f"T{topic}" for topic in range(number * 1_000, number * 1_000 + 3_000)]
        routes.register(registration(broker_name=f"b{number}", address=f"h:{number}", topics=names), 0.0)
    steps = 0

    def counting() -> Generator[None, None, list[str]]:
        nonlocal steps
        collecting = routes.topics_of_cluster("C")
        while True:
            try:
                yield next(collecting)
            except StopIteration as end:
                topics: list[str] = end.value
                return topics
            steps += 1

    assert run_at_once(counting()) == [f"T{topic}" for topic in range(5_000)]
    assert steps == 3


def test_only_a_master_brings_topics() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(broker_id=1), 0.0)
    assert routes.topics() == []
    assert list(routes.cluster_info().broker_addr_table) == ["broker-a"]


def test_a_broker_that_came_back_survives_its_old_connection() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(connection="old"), 0.0)
    routes.register(registration(connection="new"), 1.0)
    assert routes.remove_connection("old") == []
    assert routes.find_route("T") is not None
    assert routes.remove_connection("new") == ["h:1"]
    assert routes.find_route("T") is None


def test_one_connection_may_carry_several_brokers() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    routes.register(registration(broker_name="broker-b", address="h:2"), 0.0)
    assert routes.remove_connection("connection") == ["h:1", "h:2"]
    assert routes.topics() == []


@pytest.mark.parametrize(("now", "gone"), [(120.0, []), (120.001, [("h:1", "connection")])])
def test_expiry_is_strict(now: float, gone: list[tuple[str, str]]) -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    assert routes.remove_expired(now) == gone


@pytest.mark.parametrize(
    ("bound", "changes", "what"),
    [
        ("MAX_TOPICS", {"topics": ("T", "V"), "data_version": DataVersion(counter=2)}, "2 topics"),
        ("MAX_BROKERS", {"broker_name": "broker-b"}, "1 brokers"),
        ("MAX_BROKERS", {"cluster": "D"}, "1 clusters"),
        ("MAX_BROKERS", {"broker_id": 1}, "1 broker ids"),
        ("MAX_BROKERS", {"address": "h:2"}, "1 broker addresses"),
        (
            "MAX_TOPIC_QUEUES",
            {"broker_name": "broker-b", "address": "h:2"},
            "2 pairs of a topic and a broker",
        ),
    ],
)
def test_a_full_table_refuses_what_is_new(
    monkeypatch: pytest.MonkeyPatch, bound: str, changes: dict[str, Any], what: str
) -> None:
    monkeypatch.setattr(route_info, bound, 1 if bound == "MAX_BROKERS" else 2)
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    before = (routes.cluster_info(), routes.topics())
    with pytest.raises(RequestError, match=f"there are {what} already"):
        routes.register(registration(**changes), 1.0)
    assert (routes.cluster_info(), routes.topics()) == before
    routes.register(registration(), 2.0)


def test_one_connection_registers_its_share_of_brokers_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_info, "MAX_BROKERS_PER_CONNECTION", 2)
    routes = RouteInfoManager(PROFILES[Profile.V49])

    def register(number: int, connection: str) -> None:
        routes.register(
            registration(broker_name=f"b{number}", address=f"h:{number}", connection=connection), 0.0
        )

    register(1, "greedy")
    register(2, "greedy")
    register(2, "greedy")
    with pytest.raises(RequestError, match="there are 2 brokers of this connection already"):
        register(3, "greedy")
    assert not routes.is_live("h:3")
    register(3, "other")
    routes.remove_connection("greedy")
    register(4, "greedy")


def test_one_connection_brings_its_share_of_topics_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_info, "MAX_TOPIC_QUEUES_PER_CONNECTION", 3)
    routes = RouteInfoManager(PROFILES[Profile.V49])

    def register(number: int, connection: str, *topics: str, version: int = 1) -> None:
        routes.register(
            registration(
                broker_name=f"b{number}",
                address=f"h:{number}",
                connection=connection,
                topics=topics,
                data_version=DataVersion(counter=version),
            ),
            0.0,
        )

    register(1, "greedy", "A", "B")
    register(2, "greedy", "A")
    # The same topics again are no more of them.
    register(1, "greedy", "A", "B", version=2)
    # Earlier topics of a broker stay, so they count although they are not listed.
    with pytest.raises(RequestError, match="there are 3 pairs of a topic and a broker of this connection"):
        register(1, "greedy", "C", version=3)
    assert routes.topics() == ["A", "B"]
    register(3, "other", "A", "B", "C")
    routes.remove_connection("greedy")
    register(4, "greedy", "D", "E", "F")


@pytest.mark.parametrize(("counter", "gone"), [(1, []), (2, [("h:1", "connection")])])
def test_A2_322_with_an_equal_version_is_a_sign_of_life(counter: int, gone: list[tuple[str, str]]) -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    asked = DataVersion(timestamp=1, counter=counter)
    assert routes.query_data_version("h:1", asked, 100.0) == DataVersion(timestamp=1, counter=1)
    assert routes.remove_expired(121.0) == gone


def test_filter_servers_are_part_of_the_route() -> None:
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(filter_servers=("f:1",)), 0.0)
    route = routes.find_route("T")
    assert route is not None
    assert route.filter_server_table == {"h:1": ["f:1"]}
    routes.register(registration(), 1.0)
    route = routes.find_route("T")
    assert route is not None
    assert route.filter_server_table == {}
