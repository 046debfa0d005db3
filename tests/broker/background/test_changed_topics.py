"""Which topics a broker registers after a change, and so which write permissions a change gives back.

Source: 5.3.3 ``BrokerController#registerIncrementBrokerData``, called for every changed topic, and
``RouteInfoManager#registerBroker``. 4.9.7 registers all topics when a send or a heartbeat creates one.
"""

from __future__ import annotations

import pytest

from rewindmq.protocol.body.registration import RegisterBrokerBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import WipeWritePermOfBrokerRequestHeader
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm
from rewindmq.protocol.profile import Profile
from tests.broker.background.test_registration import Recorder
from tests.support.fixtures import RunScenario
from tests.support.peer import Peer
from tests.support.stage import SimStage

READ_WRITE, READ = int(PERM_READ_WRITE), int(Perm.READ)


async def permission(asker: Peer, topic: str) -> int:
    (queue,) = (await asker.route(topic)).queue_datas
    return queue.perm


def registered(request: RemotingCommand) -> set[str]:
    body = decode_body(request, RegisterBrokerBody).topic_config_serialize_wrapper
    return set(body.topic_config_table)


@pytest.mark.parametrize(("profile", "after"), [(Profile.V49, READ_WRITE), (Profile.V53, READ)])
def test_wiped_permissions_outlast_the_creation_of_other_topics_in_5x(
    simulate: RunScenario, profile: Profile, after: int
) -> None:
    async def scenario(stage: SimStage) -> None:
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

    simulate(scenario, brokers=0, profile=profile)


def test_v53_registers_changed_topics_alone_and_all_on_its_schedule(simulate: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        recorder = Recorder(stage, "10.0.5.1")
        await stage.start_broker(namesrv_addr=await recorder.start())
        peer = stage.peer()
        await stage.at(1.0)
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

    simulate(scenario, brokers=0, profile=Profile.V53)


@pytest.mark.parametrize("is_refusing", [False, True])
def test_a_name_server_that_was_restarted_gets_all_topics(simulate: RunScenario, is_refusing: bool) -> None:
    """A name server of 5.x refuses a first registration with one topic."""

    async def scenario(stage: SimStage) -> None:
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

    simulate(scenario, brokers=0, profile=Profile.V53)
