"""Files of deleted topics and expired segments are open no longer, at a master and at its slave."""

from __future__ import annotations

from pathlib import Path

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.message.record import decode_records
from tests.broker.ha.test_replication import Pair
from tests.broker.store.store_box import drop_segment
from tests.support.answers import body_of
from tests.support.descriptors import open_below
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

TOPICS = [f"Dead{number}" for number in range(10)]
QUEUES = 4


def open_queues(store: Path) -> list[str]:
    """The topics whose queues have a file open below a store."""
    folder = store / "consumequeue"
    return sorted({Path(path).relative_to(folder).parts[0] for path in open_below(folder)})


@simulated(brokers=0)
async def test_queues_of_deleted_topics_are_closed(stage: SimStage) -> None:
    """A slave kept the descriptors of 5,020 queues, also after a restart."""
    pair = await Pair(stage).start()
    peer = pair.at_master
    master, slave = (Path(broker.context.config.store_path_root_dir) for broker in (pair.master, pair.slave))
    for topic in ("Kept", *TOPICS):
        await peer.create_topic(topic, write=QUEUES, read=QUEUES)
        for queue_id in range(QUEUES):
            (await peer.send(topic, b"first", queue_id=queue_id)).require_success()
    await stage.at(20)
    await pair.caught_up()
    assert open_queues(master) == open_queues(slave) == sorted(("Kept", *TOPICS))
    for topic in TOPICS:
        deleted = DeleteTopicRequestHeader(topic)
        (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, deleted)).require_success()
    assert open_queues(master) == ["Kept"]
    await stage.at(40)
    assert open_queues(slave) == ["Kept"]
    await pair.slave.close()
    pair.slave = await pair.start_slave()
    await stage.at(60)
    assert open_queues(slave) == ["Kept"]
    # The topic is made again, and the slave follows.
    await peer.create_topic("Dead0", write=QUEUES, read=QUEUES)
    (await peer.send("Dead0", b"second")).require_success()
    await pair.caught_up()
    assert pair.slave.context.store.max_offset("Dead0", 0) == 1
    await stage.at(80)
    assert open_queues(slave) == open_queues(master) == ["Dead0", "Kept"]
    found = pair.slave.context.store.get_message("Dead0", 0, 0, 32, None)
    assert [message.body for message in decode_records(found.body)] == [b"second"]
    assert body_of(await peer.pull(0, "Dead0")) == found.body


def test_expired_files_are_closed(simulate: RunScenario) -> None:
    small = {"mapped_file_size_commit_log": 65_536, "mapped_file_size_consume_queue": 400}

    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage, store=small).start()
        for _ in range(60):
            (await pair.at_master.send(body=bytes(5_000))).require_success()
        await stage.at(20)
        await pair.caught_up()
        for broker in (pair.master, pair.slave):
            store = broker.context.store
            root = Path(broker.context.config.store_path_root_dir)
            assert len(open_below(root / "commitlog")) == 5
            store.flush_all()
            while drop_segment(store, None):
                pass
            for _ in store.cleaner.expire_queues(ends_idle=False):
                pass
            assert open_below(root / "commitlog") == sorted(map(str, (root / "commitlog").iterdir()))
            assert open_below(root / "consumequeue") == sorted(
                map(str, (root / "consumequeue/T/0").iterdir())
            )

    simulate(scenario, brokers=0)
