"""Which topics a broker registers after a change, and so which write permissions a change gives back.

Source: 5.3.3 ``BrokerController#registerIncrementBrokerData``, called for every changed topic, and
``RouteInfoManager#registerBroker``. 4.9.7 registers all topics when a send or a heartbeat creates one.
"""

from __future__ import annotations

import asyncio
import errno

import pytest

from rewindmq.protocol.body.registration import RegisterBrokerBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.header.namesrv import WipeWritePermOfBrokerRequestHeader
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm
from rewindmq.protocol.profile import Profile
from tests.broker.background.test_registration import RecordingNameServer
from tests.support.failing_disk import FailingDisk
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

READ_WRITE, READ = int(PERM_READ_WRITE), int(Perm.READ)


async def permission(asker: Peer, topic: str) -> int:
    (queue,) = (await asker.route(topic)).queue_datas
    return queue.perm


def registered(request: RemotingCommand) -> set[str]:
    body = decode_body(request, RegisterBrokerBody).topic_config_serialize_wrapper
    return set(body.topic_config_table)


async def with_a_recorder(stage: SimStage) -> tuple[Peer, RecordingNameServer]:
    """Start a broker that has registered at a recorder; return a peer of it, in second 1."""
    recorder = RecordingNameServer(stage, "10.0.5.1")
    await stage.start_broker(namesrv_addr=await recorder.start())
    await stage.at(1.0)
    return stage.peer(), recorder


@pytest.mark.parametrize(("profile", "after"), [(Profile.V49, READ_WRITE), (Profile.V53, READ)])
@simulated(brokers=0)
async def test_wiped_permissions_outlast_the_creation_of_other_topics_in_5x(
    stage: SimStage, profile: Profile, after: int
) -> None:
    namesrv = await stage.start_namesrv(profile=profile)
    await stage.start_broker(namesrv_addr=namesrv.address)
    peer, asker = stage.peer(), stage.peer("asker", namesrv.address)
    await peer.create_topic()
    await stage.at(1.0)
    header = WipeWritePermOfBrokerRequestHeader("broker-a")
    (await asker.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)).require_success()
    assert await permission(asker, "T") == READ
    # A consumer's retry topic, a topic of a send, and one of an administrator.
    await peer.heartbeat()
    await stage.at(2.0)
    (await peer.send("New")).require_success()
    await stage.at(3.0)
    assert [await permission(asker, topic) for topic in ("New", "%RETRY%G")] == [READ_WRITE] * 2
    assert await permission(asker, "T") == after
    (await asker.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)).require_success()
    await peer.create_topic("U")
    assert await permission(asker, "U") == READ_WRITE
    if profile is Profile.V53:
        assert await permission(asker, "T") == READ
    # The registrations of the schedule bring nothing back: their data version is known.
    (await asker.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)).require_success()
    await stage.at(75.0)
    assert [await permission(asker, topic) for topic in ("T", "U", "New")] == [READ] * 3
    # Nor does a request that changes nothing; a change of the topic does.
    await peer.create_topic()
    assert await permission(asker, "T") == (READ if profile is Profile.V53 else READ_WRITE)
    await peer.create_topic(write=8)
    assert await permission(asker, "T") == READ_WRITE


@simulated(brokers=0, profile=Profile.V53)
async def test_v53_registers_changed_topics_alone_and_all_on_its_schedule(stage: SimStage) -> None:
    peer, recorder = await with_a_recorder(stage)
    await peer.create_topic()
    await stage.at(2.0)
    await peer.send("N")
    await stage.at(11.0)
    assert recorder.times() == [0.0, 1.0, 2.0, 10.0]
    tables = [registered(request) for _, request in recorder.received]
    assert tables[1:3] == [{"T"}, {"N"}]
    assert tables[3] == tables[0] | {"T", "N"}
    await stage.broker.close()
    await recorder.server.close()


@pytest.mark.parametrize("is_refusing", [False, True])
@simulated(brokers=0, profile=Profile.V53)
async def test_a_name_server_that_was_restarted_gets_all_topics(stage: SimStage, is_refusing: bool) -> None:
    """A name server of 5.x refuses a first registration with one topic."""
    namesrv = await stage.start_namesrv(profile=Profile.V53)
    await stage.start_broker(namesrv_addr=namesrv.address)
    peer = stage.peer()
    await stage.at(1.0)
    port = int(namesrv.address.rpartition(":")[2])
    await namesrv.close()
    if not is_refusing:
        # A registration fails meanwhile.
        await stage.at(15.0)
    namesrv = await stage.start_namesrv(profile=Profile.V53, listen_port=port)
    asker = stage.peer("asker", namesrv.address)
    await peer.create_topic()
    assert await permission(asker, "T") == READ_WRITE
    assert await permission(asker, "BenchmarkTest") == READ_WRITE


@pytest.mark.parametrize("is_oneway", [False, True])
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated(brokers=0, profile=Profile.V53)
async def test_a_name_server_that_was_restarted_between_two_registrations_gets_all_topics(
    stage: SimStage, profile: Profile, is_oneway: bool
) -> None:
    """A name server of 4.x accepts a single topic, and then ignores the full table with the same version."""
    namesrv = await stage.start_namesrv(profile=profile)
    await stage.start_broker(namesrv_addr=namesrv.address)
    peer = stage.peer()
    await stage.at(1.0)
    await peer.create_topic("Before")
    port = int(namesrv.address.rpartition(":")[2])
    await namesrv.close()
    await stage.at(2.0)
    namesrv = await stage.start_namesrv(profile=profile, listen_port=port)
    if is_oneway:
        (await peer.send("New")).require_success()
    else:
        await peer.create_topic("New")
    asker = stage.peer("asker", namesrv.address)
    # Before the schedule's next registration, and after it.
    for seconds in (4.0, 11.0):
        await stage.at(seconds)
        topics = ("New", "Before", "BenchmarkTest")
        assert [await permission(asker, topic) for topic in topics] == [READ_WRITE] * 3


@simulated(brokers=0, profile=Profile.V53)
async def test_a_change_waits_for_a_silent_name_server_once(stage: SimStage) -> None:
    peer, recorder = await with_a_recorder(stage)
    recorder.delay = 100.0
    await peer.create_topic()
    # ``registerBrokerTimeoutMills`` is 6 s.
    assert stage.world.now < 7.5
    assert recorder.times() == [0.0, 1.0]
    recorder.delay = 0.0
    await peer.create_topic("U")
    tables = [registered(request) for _, request in recorder.received]
    assert tables[1] == {"T"}
    assert tables[2] == tables[0] | {"T", "U"}
    await stage.broker.close()
    await recorder.server.close()


@simulated(brokers=0, profile=Profile.V53)
async def test_changes_at_once_wait_for_a_silent_name_server_together(stage: SimStage) -> None:
    """Each would otherwise wait in turn for a connection over which nothing comes."""
    peer, recorder = await with_a_recorder(stage)
    await recorder.server.close()
    recorder = RecordingNameServer(stage, "10.0.5.1")
    await recorder.start()
    recorder.delay = 100.0
    await asyncio.gather(*(peer.create_topic(f"T{number}") for number in range(20)))
    # ``registerBrokerTimeoutMills`` is 6 s.
    assert stage.world.now < 7.5
    recorder.delay = 0.0
    await peer.create_topic("U")
    assert {"T0", "T19", "U"} <= registered(recorder.received[-1][1])
    await stage.broker.close()
    await recorder.server.close()


@simulated(brokers=0, profile=Profile.V53)
async def test_a_change_waits_for_the_request_that_opens_the_connection(stage: SimStage) -> None:
    """It could pass that request otherwise, whose body is older."""
    peer, recorder = await with_a_recorder(stage)
    await recorder.server.close()
    recorder = RecordingNameServer(stage, "10.0.5.1")
    await recorder.start()
    recorder.delay = 3.0
    first = asyncio.ensure_future(peer.create_topic("T"))
    await stage.at(2.0)
    await peer.create_topic("U")
    await first
    assert recorder.times() == [1.0, 4.0]
    assert [registered(request) & {"T", "U"} for _, request in recorder.received] == [{"T"}, {"U"}]
    await stage.broker.close()
    await recorder.server.close()


@simulated(brokers=0, profile=Profile.V53)
async def test_a_change_brings_no_full_table_after_a_failed_change(stage: SimStage) -> None:
    """Only the answer to a full table shows that a name server has all topics."""
    peer, recorder = await with_a_recorder(stage)
    recorder.delay = 7.0
    await peer.create_topic("T")
    recorder.delay = 0.0
    await peer.send("N")
    await peer.send("M")
    await stage.at(9.0)
    tables = [registered(request) for _, request in recorder.received]
    assert tables[1] == {"T"}
    # Oneway requests have no response.
    assert tables[2] >= tables[0] | {"T", "N"}
    assert tables[3] == tables[0] | {"T", "N", "M"}
    await stage.at(11.0)
    await peer.send("O")
    await stage.at(12.0)
    assert registered(recorder.received[-1][1]) == {"O"}
    await stage.broker.close()
    await recorder.server.close()


@pytest.mark.parametrize("is_saved_before", [False, True])
@simulated(brokers=0, profile=Profile.V53)
async def test_a_topic_that_was_not_saved_is_saved_and_registered_by_the_same_request(
    stage: SimStage, is_saved_before: bool
) -> None:
    disk = FailingDisk(stage.runtime.clock.now_ms)
    recorder = RecordingNameServer(stage, "10.0.5.1")
    await stage.start_broker(disk=disk.disk, namesrv_addr=await recorder.start())
    peer = stage.peer()
    header = CreateTopicRequestHeader("T", "TBW102", 1, 1, READ_WRITE, "SINGLE_TAG")
    await stage.at(11.0)
    disk.fail(errno.ENOSPC, "write")
    for _ in range(2):
        response = await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        assert response.code == ResponseCode.SYSTEM_ERROR
    assert recorder.times() == [0.0, 10.0]
    disk.mend()
    if is_saved_before:
        await stage.until(lambda: stage.broker.context.tables.flush.is_saved)
    for _ in range(2):
        (await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).require_success()
    assert [registered(request) for _, request in recorder.received[2:]] == [{"T"}]
    await stage.broker.close()
    await stage.start_broker(disk=disk.after_power_failure())
    assert "T" in stage.broker.context.tables.topics.names
    await recorder.server.close()
