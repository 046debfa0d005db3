"""Messages in flight: names them and decides whether the search chooses when they arrive."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import FLAG_ONEWAY, RemotingCommand
from rewindmq.protocol.frame import FrameDecoder
from rewindmq.race.sim.network import Fabric, SimTransport

# Requests whose order can change the outcome of a reset. All others arrive at once: heartbeats, consumer
# lists, routes, sends.
_CHOSEN: Final = frozenset(
    {
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.PULL_MESSAGE,
        RequestCode.NOTIFY_QUEUE_RESET,
    }
)
# Ext fields that distinguish messages, and their names in the names of steps.
_SHOWN: Final = MappingProxyType(
    {
        "timestamp": "timestamp",
        "queueId": "queue",
        "queueOffset": "offset",
        "commitOffset": "commit",
        "offset": "offset",
        "nextBeginOffset": "next",
        "epoch": "epoch",
    }
)


@dataclass(slots=True)
class FlyingWrite:
    """The frames of one write, in flight.

    Attributes:
        name: kind and distinguishing fields: ``response PULL_MESSAGE next=4``. The names of several frames
            are joined by ``+``.
        is_chosen: True if a chooser decides when it arrives; other messages arrive at once.
        born: number of the step that sent it.
    """

    name: str
    is_chosen: bool
    born: int = 0


class FlightLane:
    """One direction of a connection; its messages arrive in the order they were written.

    Attributes:
        name: for example ``broker-a->consumer-A``.
        sender, receiver: hosts.
        late: True if time has passed while its first message was in flight.
    """

    def __init__(self, end: SimTransport, name: str) -> None:
        self._end = end
        self.name = name
        self.sender = end.owner.host
        self.receiver = end.remote[0]
        self.messages: deque[FlyingWrite] = deque()
        self.late = False

    @property
    def is_empty(self) -> bool:
        """True if no message in flight can arrive; broken connections and killed hosts lose messages."""
        return not self._end.travelling or not self._end.peer.owner.is_alive

    def deliver(self) -> None:
        """Deliver the first message."""
        self.messages.popleft()
        self.late = False
        self._end.arrive()


class ExploredFabric(Fabric):
    """Network on which a message arrives only when ``deliver`` is called.

    Args:
        name_of: returns the name of a host.
        topic: the order of requests for other topics is not explored.
    """

    def __init__(self, name_of: Callable[[str], str], topic: str) -> None:
        super().__init__(random.Random(0), (0.0, 0.0))
        self._name_of = name_of
        self._topic = topic
        self._lanes: dict[SimTransport, FlightLane] = {}
        # Requests without a response so far, by sending end and opaque.
        self._asked: dict[tuple[SimTransport, int], FlyingWrite] = {}
        self.in_flight: dict[FlightLane, None] = {}
        # Number of the step being taken.
        self.step_number = 0

    def delay(self) -> float:
        """Return 0: connections are made, and break, at once."""
        return 0.0

    def carry(self, end: SimTransport) -> None:
        """Append the message that ``end`` wrote last to its lane."""
        lane = self._lanes.get(end)
        if lane is None:
            lane = self._lanes[end] = FlightLane(
                end, f"{self._name_of(end.owner.host)}->{self._name_of(end.remote[0])}"
            )
        data = end.travelling[-1]
        message = FlyingWrite("end", False) if data is None else self._describe(end, data)
        message.born = self.step_number
        lane.messages.append(message)
        self.in_flight[lane] = None

    def lanes(self) -> list[FlightLane]:
        """Return the lanes with a message in flight, in the order of their first messages."""
        if not self.in_flight:
            return []
        for lane in [lane for lane in self.in_flight if lane.is_empty]:
            lane.messages.clear()
            lane.late = False
            del self.in_flight[lane]
        return list(self.in_flight)

    def deliver(self, lane: FlightLane) -> None:
        """Deliver the first message of a lane, and move the lane behind the others."""
        del self.in_flight[lane]
        if len(lane.messages) > 1:
            self.in_flight[lane] = None
        lane.deliver()

    def remove(self, end: SimTransport) -> None:
        super().remove(end)
        self._lanes.pop(end, None)

    def _describe(self, end: SimTransport, data: bytes) -> FlyingWrite:
        frames = [self._frame(end, command) for command in FrameDecoder().feed(data)]
        if len(frames) == 1:
            return frames[0]
        return FlyingWrite(
            " + ".join(frame.name for frame in frames), any(frame.is_chosen for frame in frames)
        )

    def _frame(self, end: SimTransport, command: RemotingCommand) -> FlyingWrite:
        if command.is_response:
            asked = self._asked.pop((end.peer, command.opaque), _UNKNOWN)
            # The response to a reset arrives at once, so that its promise is judged from the earliest moment.
            if not asked.is_chosen or asked.name.startswith(_RESET):
                return FlyingWrite("response", False)
            return FlyingWrite(f"response {asked.name.split()[1]}{_code(command)}{_fields(command)}", True)
        if command.code not in _CHOSEN or command.ext.get("topic") != self._topic:
            message = FlyingWrite(f"request {command.code}", False)
        else:
            form = "oneway" if command.flag & FLAG_ONEWAY else "request"
            message = FlyingWrite(f"{form} {RequestCode(command.code).name}{_fields(command)}", True)
        if not command.flag & FLAG_ONEWAY:
            self._asked[end, command.opaque] = message
        return message


def _fields(command: RemotingCommand) -> str:
    ext = command.ext
    return "".join(f" {shown}={ext[name]!s}" for name, shown in _SHOWN.items() if name in ext)


def _code(command: RemotingCommand) -> str:
    return f" code={command.code}" if command.code else ""


_RESET: Final = f"request {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET.name}"
_UNKNOWN: Final = FlyingWrite("response", False)
