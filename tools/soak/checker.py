"""The accounting checker: reads the records in order of time and finds broken promises.

It is a plain class over records. Its memory grows by bits for each message (see ``ledger``), and by an entry
for each open reset, refused message and delayed message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from tools.soak.journal import ALL, TRIED, Ack, DeadLetter, Delivered, Header, Intent, Outage, Record, Reset
from tools.soak.ledger import Receipts, SendLedger
from tools.soak.message import RETRY, TRANSACTION, MessageId
from tools.soak.order import QueueOrder
from tools.soak.replay import Replay
from tools.soak.retries import Retries
from tools.soak.rules import GroupRules, kind_of
from tools.soak.verdict import SoakVerdict, ViolationKind

# Tolerance for the rounding of the two clock readings between which a delay is measured.
_DELAY_SLACK_US: Final = 5_000


class Waits(NamedTuple):
    """The longest times that things may take in this soak, µs, scaled.

    Attributes:
        commit: until a message that a living consumer accepted is committed and on the broker's disk.
        register: until a new name server knows all brokers, and the clients have learned of them from it.
        reset: how long before and after a classic or server reset its known races may lose a message.
    """

    commit: int
    register: int
    reset: int


class _Group:
    """The accounts of one group."""

    def __init__(self, rules: GroupRules, verdict: SoakVerdict) -> None:
        self.rules = rules
        self.receipts = Receipts()
        self.repeated = 0
        self.resets: list[int] = []
        self.replays: defaultdict[str, list[Replay]] = defaultdict(list)
        self.queues: dict[str, QueueOrder] = {}
        self.retry_places = SendLedger()
        limit = rules.max_reconsume_times
        self.retries = None if limit is None else Retries(rules.name, limit, verdict)


class Checker:
    """Checks a history: ``feed`` takes every record, then ``finish`` returns the verdict."""

    def __init__(self, groups: Sequence[GroupRules], waits: Waits) -> None:
        self.verdict = SoakVerdict()
        self._waits = waits
        self._ledger = SendLedger()
        self._groups = {rules.name: _Group(rules, self.verdict) for rules in groups}
        # Undelivered delayed messages, and their delivery times.
        self._due: dict[MessageId, int] = {}
        # (queue, producer that sends to it in order) to the last number seen there and its offset.
        self._sent_in_order: dict[tuple[str, int], tuple[int, int]] = {}

    def feed(self, header: Header, record: Record) -> None:
        """Take the next record in order of time."""
        match record:
            case Delivered():
                self._delivery(header, record)
            case Intent():
                self._intent(MessageId(header.producer, record.number), record)
            case Ack():
                self._ack(MessageId(header.producer, record.number), record)
            case Reset():
                self._reset(record)
            case DeadLetter():
                self._dead_letter(record)
            case Outage():
                self._outage(record)

    # Producers.

    def _intent(self, message: MessageId, record: Intent) -> None:
        self._ledger.sent(message, kind_of(record.topic, message))
        if record.delay_us:
            self._due[message] = record.at + record.delay_us

    def _ack(self, message: MessageId, record: Ack) -> None:
        self._ledger.acked(message)
        if record.queue:
            self._place(message, record.queue, record.offset, record.at)

    def _place(self, message: MessageId, queue: str, offset: int, at: int) -> None:
        other = self._ledger.record_place(message, queue, offset, at)
        if other is not None:
            self.verdict.add(ViolationKind.TWO_IN_ONE_PLACE, f"{queue} {offset}: {other}, then {message}")

    # Consumers.

    def _delivery(self, header: Header, record: Delivered) -> None:
        group = self._groups[header.group]
        self.verdict.counts["deliveries"] += 1
        message = MessageId(record.producer, record.number)
        where = f"{header.group}: {record.queue} {record.offset}"
        topic = self._topic_of(message, record)
        if topic is None:
            self.verdict.add(
                ViolationKind.INVENTED, f"{where}: {message if record.producer >= 0 else 'a damaged body'}"
            )
            return
        kind = kind_of(topic, message)
        if not group.rules.wants(kind):
            violation = ViolationKind.ROLLED_BACK if topic == TRANSACTION else ViolationKind.WRONG_QUEUE
            self.verdict.add(violation, f"{where}: {message}, {kind}")
            return
        if not group.receipts.add(message):
            group.repeated += 1
        elif topic == TRANSACTION:
            self.verdict.counts["committed transactions"] += 1
        if group.retries is not None:
            group.retries.delivered(message, record)
        self._check_due(where, message, record)
        if record.queue[0] == RETRY:
            other = group.retry_places.record_place(message, record.queue, record.offset, record.at)
            if other is not None:
                self.verdict.add(ViolationKind.TWO_IN_ONE_PLACE, f"{where}: {other}, then {message}")
            return
        self._place(message, record.queue, record.offset, record.at)
        self._check_replays(group, record)
        if group.rules.is_orderly:
            self._check_order(group, header, record)

    def _topic_of(self, message: MessageId, record: Delivered) -> str | None:
        """Return the topic that the message was sent to, None if it was not sent."""
        candidates = self._all_topics if record.queue[0] == RETRY else record.queue[0]
        for topic in candidates:
            if self._ledger.knows(message, kind_of(topic, message)):
                return topic
        return None

    @property
    def _all_topics(self) -> str:
        return "".join(sorted({topic for group in self._groups.values() for topic in group.rules.topics}))

    def _check_due(self, where: str, message: MessageId, record: Delivered) -> None:
        due = self._due.get(message)
        if due is not None and record.at < due - _DELAY_SLACK_US:
            self.verdict.add(
                ViolationKind.TOO_EARLY, f"{where}: {message} came {(due - record.at) / 1000:.0f} ms early"
            )
        elif due is not None:
            late = (record.at - due) // 1000
            self.verdict.counts["delayed messages"] += 1
            self.verdict.counts["latest delayed message, ms"] = max(
                self.verdict.counts["latest delayed message, ms"], late
            )
            del self._due[message]

    def _check_replays(self, group: _Group, record: Delivered) -> None:
        open_replays = group.replays.get(record.queue)
        if not open_replays:
            return
        for replay in open_replays:
            replay.delivered(record)
        whole = [replay for replay in open_replays if replay.is_whole]
        for replay in whole:
            open_replays.remove(replay)
            self._count_replay(group, replay)

    def _count_replay(self, group: _Group, replay: Replay) -> None:
        how = "whole" if replay.is_whole else "lost"
        self.verdict.counts[f"{group.rules.name}: {replay.mode} rewinds of a queue, {how}"] += 1

    def _check_order(self, group: _Group, header: Header, record: Delivered) -> None:
        order = group.queues.get(record.queue)
        if order is None:
            name = f"{header.group} {record.queue}"
            order = group.queues[record.queue] = QueueOrder(name, self._waits.commit, self.verdict)
        order.delivered(header.owner, record)
        key = record.queue, record.producer
        number, offset = self._sent_in_order.get(key, (-1, -1))
        if record.offset > offset:
            if record.number < number:
                self.verdict.add(
                    ViolationKind.SENT_IN_ORDER,
                    f"{record.queue}: number {number} of producer {record.producer} is at {offset},"
                    f" number {record.number} at {record.offset}",
                )
            self._sent_in_order[key] = record.number, record.offset

    # The driver.

    def _reset(self, record: Reset) -> None:
        group = self._groups[record.group]
        group.resets.append(record.at)
        for queue, target in record.targets.items():
            if queue in group.queues:
                group.queues[queue].reset(target)
            end = self._ledger.end_of(queue)
            if record.mode != TRIED and target < end:
                group.replays[queue].append(Replay(queue, record.mode, target, end))

    def _outage(self, record: Outage) -> None:
        # A new name server, and so a client, knows a broker only after the broker has registered again.
        until = record.at + (self._waits.register if record.broker == ALL else 0)
        for group in self._groups.values():
            for queue, order in group.queues.items():
                if record.broker in (queue[1], ALL):
                    order.broker_was_down(record.since, until)

    def _dead_letter(self, record: DeadLetter) -> None:
        message = MessageId(record.producer, record.number)
        group = self._groups[record.group]
        if group.retries is None:
            self.verdict.add(
                ViolationKind.DEAD_LETTER, f"{record.group}: {message}, but this group refuses no message"
            )
            return
        group.retries.dead_letter(message)

    # The end.

    def finish(self) -> SoakVerdict:
        """Count every message that is still missing as lost, and return the verdict."""
        verdict = self.verdict
        verdict.counts["sent"] = self._ledger.count_sent()
        verdict.counts["acknowledged"] = self._ledger.count_acked()
        for name, group in self._groups.items():
            self._finish_deliveries(name, group)
            for replays in group.replays.values():
                for replay in replays:
                    self._finish_replay(name, group, replay)
            if group.retries is not None:
                group.retries.finish()
            verdict.counts[f"{name}: messages"] = group.receipts.count()
            verdict.counts[f"{name}: delivered again"] = group.repeated
        return verdict

    def _finish_deliveries(self, name: str, group: _Group) -> None:
        missing = frozenset(
            message
            for producer in self._ledger.producers
            for message in group.receipts.missing(producer, self._ledger.owed(producer, group.rules))
        )
        if not missing:
            return
        places = self._ledger.places_of(missing)
        for message in sorted(missing):
            place = places.get(message)
            if place is not None and group.rules.is_lossy and self._is_near_reset(group, place.at_s):
                self.verdict.counts[f"{name}: lost to the known races of its resets"] += 1
                continue
            where = "" if place is None else f", {place.queue} {place.offset}"
            self.verdict.add(ViolationKind.LOST, f"{name}: {message}{where}")

    def _is_near_reset(self, group: _Group, second: int) -> bool:
        """True if a message stored in that second may have been pending when a reset came."""
        return any(abs(at - second * 1_000_000) <= self._waits.reset for at in group.resets)

    def _finish_replay(self, name: str, group: _Group, replay: Replay) -> None:
        self._count_replay(group, replay)
        if replay.mode == "fenced":
            self.verdict.add(
                ViolationKind.NOT_REPLAYED,
                f"{name}: {replay.queue} was reset to {replay.begin}; of the {replay.end - replay.begin}"
                f" messages before {replay.end}, {replay.missing} were not delivered again",
            )
