"""A slave ends a topic's life where its master does, before the table of topics tells of the deletion."""

from __future__ import annotations

from pathlib import Path

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.message.record import decode_records
from tests.broker.ha.test_replication import Pair
from tests.support.fixtures import simulated
from tests.support.stage import SimStage


@simulated(brokers=0)
async def test_a_slave_ends_a_topic_with_its_master(stage: SimStage) -> None:
    pair = await Pair(stage).start()
    peer = pair.at_master
    for topic in ("Again", "Kept"):
        await peer.create_topic(topic, write=1, read=1)
        for number in range(3):
            (await peer.send(topic, b"old%d" % number)).require_success()
    deleted = DeleteTopicRequestHeader("Again")
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, deleted)).require_success()
    await pair.caught_up()
    store = pair.slave.context.store
    assert (store.max_offset("Again", 0), store.max_offset("Kept", 0)) == (0, 3)
    # The files go with the next run of the cleaning service.
    await stage.at(80)
    root = Path(pair.slave.context.config.store_path_root_dir)
    assert not list((root / "consumequeue/Again").rglob("0" * 20))
    await pair.slave.close()
    pair.slave = await pair.start_slave()
    store = pair.slave.context.store
    assert (store.max_offset("Again", 0), store.max_offset("Kept", 0)) == (0, 3)
    await peer.create_topic("Again", write=1, read=1)
    (await peer.send("Again", b"new0")).require_success()
    await pair.caught_up()
    found = store.get_message("Again", 0, 0, 32, None)
    assert [message.stored_body for message in decode_records(found.body)] == [b"new0"]
