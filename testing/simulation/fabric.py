"""ChosenFabric: a network on which the schedule chooses how late each message arrives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from rewindmq.race.sim.network import Fabric, SimTransport
from rewindmq.testing.simulation.frame_names import FrameNames
from rewindmq.testing.simulation.schedule import SimulatedSchedule

# Virtual seconds that a message takes by default.
LATENCY: Final = 0.0002
# The host of the kit's own client.
KIT_HOST: Final = "10.0.2.1"


class ChosenFabric(Fabric):
    """The network between the hosts of one simulated test.

    Messages of one direction of a connection keep their order: a late message delays those behind it.

    The requests with which the kit prepares and observes the test are never late.

    Args:
        name_of: returns the name of a host.
        now: returns virtual seconds.
    """

    def __init__(
        self, schedule: SimulatedSchedule, name_of: Callable[[str], str], now: Callable[[], float]
    ) -> None:
        super().__init__(random.Random(0), (LATENCY, LATENCY))
        self._schedule = schedule
        self._name_of = name_of
        self._now = now
        self._places: dict[SimTransport, str] = {}
        self._names = FrameNames() if schedule.describes else None

    def delay(self) -> float:
        """Return the latency of connections that are made or broken; the schedule does not change it."""
        return LATENCY

    def carry(self, end: SimTransport) -> None:
        """Schedule the arrival of the message that ``end`` wrote last."""
        data = end.travelling[-1]
        late = 0.0
        if data is not None and not self._is_of_kit(end):
            text = self._names.describe(end, data) if self._names is not None else ""
            late = self._schedule.delay(self._place(end), self._now(), lambda: self._describe(end, text))
        end.arrive_in(LATENCY + late)

    def remove(self, end: SimTransport) -> None:
        super().remove(end)
        self._places.pop(end, None)

    def _is_of_kit(self, end: SimTransport) -> bool:
        return KIT_HOST in (end.local[0], end.remote[0])

    def _place(self, end: SimTransport) -> str:
        place = self._places.get(end)
        if place is None:
            ((local, port), (remote, remote_port)) = (end.local, end.remote)
            place = self._places[end] = f"{local}:{port} to {remote}:{remote_port}"
        return place

    def _describe(self, end: SimTransport, text: str) -> str:
        sender, receiver = self._name_of(end.local[0]), self._name_of(end.remote[0])
        return f"{text} from {sender} to {receiver} was delayed by"
