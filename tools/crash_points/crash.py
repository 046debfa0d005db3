"""One power failure: cuts the disk, restarts the broker and applies the law."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerRole
from rewindmq.broker.store import PutStatus, StoredMessage, StoreError
from rewindmq.race.sim import World
from tools.crash_points.image import DiskState, Image
from tools.crash_points.journal import JournalDisk
from tools.crash_points.law import (
    LawError,
    check_ended,
    check_keys,
    check_promises,
    check_store,
    check_timers,
    check_versions,
)
from tools.crash_points.ledger import Known
from tools.crash_points.recording import HOST, WorkloadRecording, slave_config
from tools.crash_points.versions import TableVersions

# One in this many restarts loses power, too.
_AGAIN = 6
# The clock of the restart begins where that of the workload began.
_ALL_DUE_SECONDS = 30.0


@dataclass(slots=True)
class CrashPoint:
    """The state of a recording's run after some of its operations."""

    recording: WorkloadRecording
    state: DiskState
    known: Known
    versions: TableVersions
    number: int = 0
    facts: int = 0

    @classmethod
    def begin(cls, recording: WorkloadRecording) -> CrashPoint:
        """Return the state before the first operation."""
        return cls(recording, DiskState(recording.image), Known(), TableVersions())

    def go_to(self, number: int) -> None:
        """Continue until ``number`` operations have happened."""
        recording = self.recording
        while self.number < number:
            operation = recording.journal[self.number]
            self.state.apply(operation)
            self.versions.apply(operation)
            self.number += 1
        while self.facts < len(recording.facts) and recording.facts[self.facts][0] <= number:
            self.known.learn(recording.facts[self.facts][1])
            self.facts += 1


def crash(point: CrashPoint, chance: Random) -> None:
    """Cut the power, restart and check.

    Raises:
        LawError: a rule is broken.
    """
    image = point.state.cut(chance)
    if not chance.randrange(_AGAIN):
        image = _cut_restart(point, image, chance)
    disk = JournalDisk(lambda: 0, image)
    loaded = point.versions.loaded(disk)
    if not point.recording.workload.is_replicated:
        check_versions(loaded, point.versions.allowed())
    _restart(point, disk, is_checked=True)


def _cut_restart(point: CrashPoint, image: Image, chance: Random) -> Image:
    """Restart, and cut the power again at some point of the restart."""
    disk = JournalDisk(lambda: 0, image)
    _restart(point, disk, is_checked=False)
    disk.note()
    state = DiskState(disk.image)
    for operation in disk.journal[: chance.randint(0, len(disk.journal))]:
        state.apply(operation)
    return state.cut(chance)


def _restart(point: CrashPoint, disk: JournalDisk, *, is_checked: bool) -> None:
    world = World()
    workload = point.recording.workload
    config = point.recording.config
    if workload.is_replicated:
        config = slave_config(config)

    async def main() -> None:
        broker = Broker(world.runtime(HOST), config, disk)
        try:
            await broker.start()
        except StoreError as error:
            raise LawError(f"the broker does not start: {error}") from None
        if is_checked:
            _judge(point, broker)
            if point.known.timed:
                await world.sleep(_ALL_DUE_SECONDS)
                check_timers(broker, point.known)
            if config.broker_role is not BrokerRole.SLAVE:
                _use(point, broker)
        await broker.close()

    world.run(main())


def _judge(point: CrashPoint, broker: Broker) -> None:
    recording = point.recording
    is_durable = recording.workload.is_acknowledged_durably and not recording.workload.is_replicated
    known = point.known
    rebuilt = check_store(broker, known, is_durable=is_durable)
    if recording.workload.is_replicated:
        if not recording.log.startswith(rebuilt.log):
            raise LawError("the slave's log is not the beginning of its master's")
        return
    check_ended(broker, known, rebuilt)
    check_promises(broker, known, rebuilt, is_durable=is_durable)
    if recording.workload.is_indexed:
        check_keys(broker, known, rebuilt)


def _use(point: CrashPoint, broker: Broker) -> None:
    """Store and read one message: the store must be usable."""
    store = broker.context.store
    end = store.max_offset("T", 0)
    result = store.put_message(StoredMessage("T", 0, b"after the crash", b"KEYS\x01after"))
    if result.status is not PutStatus.PUT_OK or result.queue_offset != end:
        raise LawError(f"a message sent after the restart: {result}, expected offset {end}")
    if b"after the crash" not in store.get_message("T", 0, end, 1, None).body:
        raise LawError("a message sent after the restart cannot be read")
