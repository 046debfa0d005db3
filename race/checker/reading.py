"""Translates the events of a history into calls on the cases of their queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.points import Point
from rewindmq.race.checker.case import FOUND, OFFSET_ILLEGAL, QueueCase
from rewindmq.race.checker.chain import Chain
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, Kind, Lab

# Group, broker name, topic, queue id.
Place = tuple[str, str, str, int]

_COMMIT_FLAG: Final = 1
_STATUSES: Final[Mapping[int, str]] = {
    ResponseCode.SUCCESS: FOUND,
    ResponseCode.PULL_NOT_FOUND: "NO_NEW_MSG",
    ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MSG",
    ResponseCode.PULL_OFFSET_MOVED: OFFSET_ILLEGAL,
}
_ON_REQUEST: Final[Mapping[int, str]] = {
    RequestCode.UPDATE_CONSUMER_OFFSET: "a commit",
    RequestCode.PULL_MESSAGE: "a pull",
}
_OBSERVED: Final = ""


class Reading:
    """Reads events and passes them to the cases that they concern.

    For a process that records points, the points count. For a client or broker that records none, the frames
    count: messages in an answer that arrived count as delivered and finished at once. A oneway commit counts
    as stored when it arrives, any other commit when its answer leaves.

    Args:
        started, acknowledged: indexes of the judged reset's events.
    """

    def __init__(self, cases: Mapping[Place, QueueCase], started: int, acknowledged: int) -> None:
        self._cases = cases
        self._started = started
        self._acknowledged = acknowledged
        self._chains: dict[tuple[str, object], Chain] = {}
        self._events: Sequence[Event] = ()
        # Processes that record points; None until it is computed.
        self._recording: frozenset[str] | None = None
        # Brokers that record commits.
        self._recording_brokers: set[str] = set()
        # Of these, the brokers that have restarted, until their next point or observed offset.
        self._restarted_brokers: set[str] = set()
        self._inferred = 0
        self._handlers: dict[Kind, Callable[[int, Event], None]] = {
            Point.PULL_SENT: self._pull_sent,
            Point.PULL_CALLBACK: self._pull_callback,
            Point.LISTENER_CALLED: self._listener_called,
            Point.LISTENER_RETURNED: self._listener_returned,
            Point.QUEUE_DROPPED: self._queue_dropped,
            Point.COMMIT_RECEIVED: self._commit_received,
            Point.OFFSET_RESET: self._offset_reset,
            Point.OFFSET_QUERIED: self._offset_queried,
            Lab.STORED_OFFSET: self._stored_offset,
            Lab.MESSAGE_SENT: self._message_sent,
            Lab.PROCESS_STARTED: self._process_ended,
            Lab.PROCESS_STOPPED: self._process_ended,
            Lab.PROCESS_KILLED: self._process_ended,
            Lab.RESET_STARTED: self._reset_started,
            Lab.RESET_ACKNOWLEDGED: self._reset_acknowledged,
            Lab.FRAME_SENT: self._frame_sent,
            Lab.FRAME_ARRIVED: self._frame_arrived,
            Lab.FRAME_DROPPED: self._frame_dropped,
        }

    def read(self, events: Sequence[Event], until: int, first: int = 0) -> None:
        """Pass the events from index ``first`` to before ``until`` to the cases.

        Raises:
            RaceError: an event lacks a required detail.
        """
        self._events = events
        find = self._handlers.get
        index = first
        try:
            for index in range(first, until):
                event = events[index]
                handler = find(event.kind)
                if handler is not None:
                    handler(index, event)
        except KeyError as error:
            raise RaceError(f"event {index} ({events[index].kind}) lacks {error}") from None

    # Points of consumers.

    def _case(self, details: Mapping[str, Any]) -> QueueCase | None:
        return self._cases.get(
            (details["group"], details["broker_name"], details["topic"], details["queue_id"])
        )

    def _pull_sent(self, index: int, event: Event) -> None:
        details = event.details
        case = self._case(details)
        if case is not None:
            self._pull(index, event, case, details["chain"], details["offset"])

    def _pull(self, index: int, event: Event, case: QueueCase, name: object, offset: int) -> None:
        key = (event.process, name)
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = Chain(event.process, name, offset, event.at)
            case.chains.append(chain)
        case.pull(index, event.at, chain, offset)

    def _pull_callback(self, index: int, event: Event) -> None:
        details = event.details
        case = self._case(details)
        chain = self._chains.get((event.process, details["chain"]))
        if case is not None and chain is not None:
            case.answer(chain, details["status"], details["offset"], details.get("offsets"))

    def _listener_called(self, index: int, event: Event) -> None:
        case = self._case(event.details)
        if case is not None:
            case.call(event.details["offsets"])

    def _listener_returned(self, index: int, event: Event) -> None:
        details = event.details
        case = self._case(details)
        chain = self._chains.get((event.process, details["chain"]))
        if case is not None and chain is not None:
            case.finish(chain, details["offsets"])

    def _queue_dropped(self, index: int, event: Event) -> None:
        chain = self._chains.get((event.process, event.details["chain"]))
        if chain is not None:
            chain.is_alive = False

    # Points of brokers.

    def _record(self, event: Event) -> QueueCase | None:
        """Return the case of a broker's own event; from now on the broker's points count."""
        details, process = event.details, event.process
        self._recording_brokers.add(process)
        if self._restarted_brokers:
            self._restarted_brokers.discard(process)
        return self._cases.get((details["group"], process, details["topic"], details["queue_id"]))

    def _commit_received(self, index: int, event: Event) -> None:
        case = self._record(event)
        if case is not None:
            details = event.details
            before = details.get("stored")
            if before is not None and before >= 0 and before != case.stored and case.stored is not None:
                case.store(index, event.at, before, _OBSERVED)
            case.store(index, event.at, details["offset"], _ON_REQUEST[details["carrier"]])

    def _offset_reset(self, index: int, event: Event) -> None:
        case = self._record(event)
        if case is not None:
            case.store(index, event.at, event.details["offset"], "a reset")

    def _offset_queried(self, index: int, event: Event) -> None:
        case = self._record(event)
        if case is not None and event.details["offset"] >= 0:
            case.store(index, event.at, event.details["offset"], _OBSERVED)

    # Events of the laboratory.

    def _stored_offset(self, index: int, event: Event) -> None:
        broker = event.details["broker_name"]
        # The answer counts only if the broker records no points, or none since its restart. Otherwise its
        # points are newer.
        if broker not in self._recording_brokers or broker in self._restarted_brokers:
            case = self._case(event.details)
            if case is not None:
                self._restarted_brokers.discard(broker)
                case.store(index, event.at, event.details["offset"], _OBSERVED)

    def _message_sent(self, index: int, event: Event) -> None:
        details = event.details
        for place, case in self._cases.items():
            if place[1:] == (details["broker_name"], details["topic"], details["queue_id"]):
                case.end = max(case.end, details["offset"] + 1)

    def _process_ended(self, index: int, event: Event) -> None:
        """End the chains of a process that ended or restarted: chain numbers start again with it."""
        process = event.process
        if process in self._recording_brokers:
            self._restarted_brokers.add(process)
        for key in [key for key in self._chains if key[0] == process]:
            self._chains.pop(key).is_alive = False
        for place, case in self._cases.items():
            if place[1] == process:
                # A dead broker answers no pull; the consumers send each pull again.
                for chain in case.chains:
                    chain.is_waiting = False

    def _reset_started(self, index: int, event: Event) -> None:
        if index == self._started:
            for case in self._cases.values():
                case.start(index, event.at)

    def _reset_acknowledged(self, index: int, event: Event) -> None:
        if index == self._acknowledged:
            for case in self._cases.values():
                case.acknowledge(index, event.at)

    # Frames of processes that record no points.

    def _records_no_points(self, process: str) -> bool:
        if self._recording is None:
            self._recording = frozenset(
                event.process for event in self._events if isinstance(event.kind, Point)
            )
        return process not in self._recording

    def _frame_sent(self, index: int, event: Event) -> None:
        details = event.details
        source, code = details["source"], details["code"]
        if not self._records_no_points(source):
            return
        if details["form"] == "response":
            if (
                code == RequestCode.UPDATE_CONSUMER_OFFSET
                and details["response_code"] == ResponseCode.SUCCESS
            ):
                self._frame_stores(index, event, source, "commitOffset", _ON_REQUEST[code])
            elif code == RequestCode.QUERY_CONSUMER_OFFSET and details["response_code"] == 0:
                self._frame_stores(index, event, source, "offset", _OBSERVED)
        elif code == RequestCode.PULL_MESSAGE:
            case = self._frame_case(details, details["target"])
            if case is not None:
                offset = details["fields"]["queueOffset"]
                self._pull(index, event, case, self._infer_chain(case, source, offset), offset)

    def _frame_arrived(self, index: int, event: Event) -> None:
        details = event.details
        code, source, target = details["code"], details["source"], details["target"]
        if code == RequestCode.PULL_MESSAGE and details["form"] == "response":
            if self._records_no_points(target):
                self._frame_answers(event, target, source)
        elif code in _ON_REQUEST and self._records_no_points(target):
            is_pull = code == RequestCode.PULL_MESSAGE
            if details["fields"]["sysFlag"] & _COMMIT_FLAG if is_pull else details["form"] == "oneway":
                self._frame_stores(index, event, target, "commitOffset", _ON_REQUEST[code])

    def _frame_dropped(self, index: int, event: Event) -> None:
        """Note a lost pull or a lost answer: the consumer pulls again."""
        details = event.details
        source, target = details["source"], details["target"]
        is_answer = details["form"] == "response"
        client, broker = (target, source) if is_answer else (source, target)
        if details["code"] != RequestCode.PULL_MESSAGE or not self._records_no_points(client):
            return
        case = self._frame_case(details, broker)
        for chain in reversed(case.chains) if case is not None else ():
            if chain.process == client and chain.offset == details["fields"]["queueOffset"]:
                chain.is_waiting = False

    def _frame_case(self, details: Mapping[str, Any], broker: str) -> QueueCase | None:
        fields = details["fields"]
        return self._cases.get((fields["consumerGroup"], broker, fields["topic"], fields["queueId"]))

    def _frame_stores(self, index: int, event: Event, broker: str, name: str, writer: str) -> None:
        case = self._frame_case(event.details, broker)
        if case is not None:
            case.store(index, event.at, event.details["fields"][name], writer)

    def _frame_answers(self, event: Event, process: str, broker: str) -> None:
        fields = event.details["fields"]
        case = self._frame_case(event.details, broker)
        status = _STATUSES.get(event.details["response_code"])
        for chain in case.chains if case is not None else ():
            if chain.process == process and chain.is_waiting and chain.offset == fields["queueOffset"]:
                break
        else:
            return
        assert case is not None
        if status is None:
            # Refused: the consumer sends the pull again.
            chain.is_waiting = False
            return
        offsets = fields.get("offsets") or ()
        case.answer(chain, status, fields["nextBeginOffset"], offsets)
        if offsets:
            case.call(offsets)
            case.finish(chain, offsets)

    def _infer_chain(self, case: QueueCase, process: str, offset: int) -> object:
        """Return the name of the chain whose next offset is ``offset``, otherwise a new name."""
        for chain in reversed(case.chains):
            goes_on = chain.is_alive and not chain.is_waiting and chain.offset == offset
            if goes_on and chain.process == process:
                return chain.name
        self._inferred += 1
        return f"seen {self._inferred}"
