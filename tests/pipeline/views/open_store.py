"""A store with timer messages and messages in flight, written by a broker under virtual time."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from rewindmq.broker.store import MessageStore
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.layout.timer import MAGIC_DELETE
from rewindmq.broker.store.timer.index import TimerIndex
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.recall import RecallMessageRequestHeader
from rewindmq.protocol.message.record import decode_record
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.pop.asking import ack_all, batch_ack, change, pop
from tests.broker.timer.box import stored
from tests.support.fixtures import RunScenario
from tests.support.peer import Peer
from tests.support.servers import SMALL_STORE
from tests.support.stage import SimStage

# Small files, and a window of 20 s: later messages are rolled.
STORE: Final[Mapping[str, object]] = MappingProxyType(
    {"timer_wheel_slots": 128, "timer_roll_window_slot": 20, "mapped_file_size_timer_log": 1_000}
)
DELAYS: Final = (2, 3, 25, 26, 40, 55, 70)
END: Final = 33.0


@dataclass
class Facts:
    """What the broker and its clients know at the end.

    Attributes:
        live: copies of the store as a kill would leave it, by the time at which they were made.
        closed: the store after the broker has stopped.
        congestion: ``timerCongestNum`` at the end: messages in slots, less those that delete others.
        counted: messages in flight by topic, group and queue, as the broker counts them.
        in_flight: body, group, POP time and time of visibility of what was popped and is still open, ms.
        delivered_later: unique keys of the timer messages that came after the broker was started again.
        revived_later: bodies of the messages in flight that came again after that.
    """

    live: dict[float, Path] = field(default_factory=dict)
    closed: Path = Path()
    congestion: int = 0
    counted: dict[tuple[str, str, int], int] = field(default_factory=dict)
    in_flight: set[tuple[bytes, str, int, int]] = field(default_factory=set)
    delivered_later: list[str] = field(default_factory=list)
    revived_later: list[bytes] = field(default_factory=list)


async def timed(peer: Peer, key: str, delay: int) -> str:
    """Send a timer message to topic W; return its handle."""
    properties = {"UNIQ_KEY": key, "TIMER_DELAY_SEC": str(delay), "TAGS": "A", "KEYS": f"k {key}"}
    response = await peer.send("W", properties=properties, queue_id=1)
    response.require_success()
    return str(response.ext["recallHandle"])


async def recall(peer: Peer, handle: str) -> None:
    header = RecallMessageRequestHeader("W", handle, "PG")
    (await peer.ask(RequestCode.RECALL_MESSAGE, header)).require_success()


def make_store(root: Path) -> Facts:
    """Play timers that are delivered, rolled and recalled, and POPs with acks, batches, changes, revivals."""
    facts = Facts()
    root.mkdir(exist_ok=True)
    copies = root / "copies"

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await stage.at(0.5)
        for topic in ("T", "W"):
            await peer.create_topic(topic, write=2, read=2)
        handles = [await timed(peer, f"w{delay}", delay) for delay in DELAYS]
        for number in range(24):
            (await peer.send(body=b"m%d" % number, queue_id=number % 2)).require_success()
        await stage.at(1.0)
        early = (await pop(peer, queue_id=0, count=4, invisible=5_000)).messages
        await ack_all(peer, early[:1])
        long = await pop(peer, queue_id=1, count=12, invisible=60_000)
        (await batch_ack(peer, [*long.messages[2:5], long.messages[7]])).require_success()
        await ack_all(peer, long.messages[10:])
        facts.live[1.0] = Path(shutil.copytree(stage.root / "broker-a", copies / "1"))
        await stage.at(2.0)
        _, changed = await change(peer, long.messages[0], 90_000)
        await stage.at(6.3)
        facts.live[6.3] = Path(shutil.copytree(stage.root / "broker-a", copies / "6"))
        # Revived by now: what was popped for 5 s.
        await stage.at(12.0)
        again = (await pop(peer, invisible=40_000)).messages
        other = await pop(peer, group="H", count=3, queue_id=0, invisible=50_000)
        await stage.at(15.0)
        await recall(peer, handles[3])
        await recall(peer, handles[5])
        await stage.at(29.0)
        facts.live[29.0] = Path(shutil.copytree(stage.root / "broker-a", copies / "29"))
        for number in (24, 25):
            (await peer.send(body=b"m%d" % number, queue_id=0)).require_success()
        last = await pop(peer, queue_id=0, count=2, invisible=2_500)
        # Its checkpoint is in the revive topic, but not done.
        await stage.at(END - 0.6)
        fresh = await timed(peer, "fresh", 5)
        assert fresh
        at = EPOCH_MS + 1_000
        open_long = [*long.messages[1:2], *long.messages[5:7], *long.messages[8:10]]
        facts.in_flight = {(lent.body, "G", at, at + 60_000) for lent in open_long}
        facts.in_flight.add((changed.body, "G", at + 1_000, at + 91_000))
        facts.in_flight |= {(lent.body, "G", at + 11_000, at + 51_000) for lent in again}
        facts.in_flight |= {(lent.body, "H", at + 11_000, at + 61_000) for lent in other.messages}
        facts.in_flight |= {(lent.body, "G", at + 28_000, at + 30_500) for lent in last.messages}
        assert (len(early), len(again), len(other.messages), len(last.messages)) == (4, 11, 3, 2)
        context = stage.broker.context
        assert context.timers is not None
        assert context.pop is not None
        await stage.at(END - 0.5)
        facts.congestion = int(context.timers.runtime_info()["timerCongestNum"])
        for key in (("T", "G", 0), ("T", "G", 1), ("%RETRY%G_T", "G", 0), ("T", "H", 0)):
            facts.counted[key] = context.pop.inflight.count(*key)
        before = len(stored(stage.broker, "W", 1))
        await stage.broker.close()
        facts.closed = Path(shutil.copytree(stage.root / "broker-a", copies / "closed"))
        broker = await stage.start_broker(store=STORE, recall_message_enable=True, profile=Profile.V53)
        revived = {name: len(stored(broker, name)) for name in ("%RETRY%G_T", "%RETRY%H_T")}
        await stage.at(150.0)
        facts.delivered_later = [m.properties["UNIQ_KEY"] for m in stored(broker, "W", 1)[before:]]
        facts.revived_later = [
            message.body for name, count in revived.items() for message in stored(broker, name)[count:]
        ]

    RunScenario(root, has_namesrv=False)(
        scenario, profile=Profile.V53, store=STORE, recall_message_enable=True
    )
    return facts


def waiting_in_broker(root: Path) -> tuple[set[int], set[int]]:
    """Return the log positions of the messages that a broker's index has, and of those that delete others.

    The index repairs the files: ``root`` is a copy.
    """
    config = msgspec.structs.replace(SMALL_STORE, **STORE)
    store = MessageStore(root, config, lambda: EPOCH_MS)
    store.open()
    index = TimerIndex(root, config, OsDisk(), store)
    index.open()
    found, deletes = set(), set()
    # Before the slots: finishing them changes what counts as delivered.
    while (entry := index.next_entry()) is not None:
        record = store.look_message(entry[0])
        assert record is not None
        properties = decode_record(record).properties
        if not index.is_delivered(int(properties["TIMER_OUT_MS"]), entry[0]):
            found.add(entry[0])
            if "TIMER_DEL_UNIQKEY" in properties:
                deletes.add(entry[0])
        index.skip()
    while (time_ms := index.next_slot()) is not None:
        for unit in index.units_of(time_ms):
            found.add(unit.position)
            if unit.magic & MAGIC_DELETE:
                deletes.add(unit.position)
        index.finish(time_ms)
    store.close()
    return found, deletes
