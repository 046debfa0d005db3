"""One direction of one connection through the proxy."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final, Protocol

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RewindMQError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.cutter import FrameCutter
from rewindmq.race.proxy.frame import Asked, Frame, as_refusal, describe_request, describe_response
from rewindmq.race.proxy.frame_hold import FrameHold
from rewindmq.race.proxy.pattern import Form

# Bytes held or waiting behind held frames above which the sender is read no further.
MAX_KEPT_BYTES: Final = 64 << 20
# Requests without an answer that are remembered; RocketMQ's clients allow as many (65,535 permits).
_MAX_ASKED: Final = 65_536
_NO_RECEIVER: Final = "its receiver is gone"

_log = logging.getLogger(__name__)


class Traffic(Protocol):
    """What lanes ask of the proxy."""

    def next_id(self) -> str:
        """The id of another frame."""

    def record(self, kind: Lab, frame: Frame, **more: object) -> None:
        """Note what happened to a frame."""

    def catch(self, frame: Frame) -> FrameHold | None:
        """The hold that takes this frame."""

    def rewrite(self, asked: Asked, response: RemotingCommand) -> Coroutine[Any, Any, bytes] | None:
        """The frame to pass on instead; None: as it is."""


class Ends(Protocol):
    """What lanes ask of the connection they belong to."""

    def send(self, lane: Lane, data: bytes) -> bool:
        """Write to the target of ``lane``; False when it is gone."""

    def has_room_changed(self, lane: Lane) -> None:
        """Whether ``lane.is_full`` may be another than before."""

    def is_through(self, lane: Lane) -> None:
        """The source of ``lane`` has ended, and everything it sent was passed on."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it as long as the connection lasts."""


class Lane:
    """Passes frames on in order, but for those held; with one that ``blocks`` held, nothing passes it.

    The end of the source's stream waits for held frames too: it is passed on behind the last of them.

    Args:
        source, target: names of the processes at either end.
    """

    def __init__(self, traffic: Traffic, ends: Ends, source: str, target: str) -> None:
        self._traffic = traffic
        self._ends = ends
        self._source = source
        self._target = target
        self._cutter = FrameCutter()
        self._asked: dict[int, Asked] = {}
        # The first one is held, or something has to be ready before it goes on; the others wait behind it.
        self._queue: deque[_Passage] = deque()
        # Held, but passed by others.
        self._aside: dict[_Passage, None] = {}
        self._kept_bytes = 0
        self._has_ended = False
        self._is_dead = False
        self.opposite: Lane

    @property
    def is_full(self) -> bool:
        """Whether so much is kept that nothing more shall be read."""
        return self._kept_bytes > MAX_KEPT_BYTES

    @property
    def is_through(self) -> bool:
        """Whether the source has ended and nothing is kept."""
        return self._has_ended and not self._queue and not self._aside

    def feed(self, data: bytes) -> None:
        """Take what the source sent."""
        for command_bytes, command in self._cutter.feed(data):
            self._take(command_bytes, command)

    def end(self) -> None:
        """The source sends nothing more."""
        if self._has_ended:
            return
        rest = self._cutter.rest()
        if rest:
            self._take(rest, None)
        self._has_ended = True
        self._settle()

    def die(self) -> None:
        """The target is gone: what is kept and whatever comes is lost."""
        self._is_dead = True
        lost = [*self._queue, *self._aside]
        self._queue.clear()
        self._aside.clear()
        for passage in lost:
            passage.is_queued = False
            if passage.hold is not None:
                passage.hold.forget(passage)
            self._record_loss(passage, _NO_RECEIVER)
        self._count(-self._kept_bytes)
        self._settle()

    def take_asked(self, opaque: int) -> Asked | None:
        """The request with this opaque, once."""
        return self._asked.pop(opaque, None)

    def _take(self, data: bytes, command: RemotingCommand | None) -> None:
        if command is None:
            self._go(_Passage(self, data, None))
            return
        asked, frame = self._describe(command)
        self._traffic.record(Lab.FRAME_SENT, frame)
        passage = _Passage(self, data, frame)
        changed = None
        if frame.form is Form.RESPONSE and asked is not None:
            changed = self._traffic.rewrite(asked, command)
        if changed is None:
            self._admit(passage)
        else:
            self._enqueue(passage)
            self._ends.spawn(self._change(passage, changed))

    def _describe(self, command: RemotingCommand) -> tuple[Asked | None, Frame]:
        asked: Asked | None
        response_code = None
        if command.is_response:
            form, response_code = Form.RESPONSE, int(command.code)
            asked = self.opposite.take_asked(command.opaque)
            fields = describe_response(command, asked)
        else:
            form = Form.ONEWAY if command.is_oneway else Form.REQUEST
            asked = describe_request(command)
            fields = dict(asked.fields)
            if form is Form.REQUEST:
                self._remember(command.opaque, asked)
        code = asked.code if asked is not None else None
        ext = asked.ext if asked is not None else {}
        identity = self._traffic.next_id()
        return asked, Frame(identity, self._source, self._target, code, form, response_code, ext, fields)

    def _remember(self, opaque: int, asked: Asked) -> None:
        if len(self._asked) >= _MAX_ASKED:
            del self._asked[next(iter(self._asked))]
        self._asked[opaque] = asked

    async def _change(self, passage: _Passage, changed: Coroutine[Any, Any, bytes]) -> None:
        try:
            passage.data = await changed
        except RewindMQError as error:
            _log.warning("passing on %s as it is: %s", passage.frame, error)
        if not self._is_dead:
            self._admit(passage)

    def _admit(self, passage: _Passage) -> None:
        """Hold the frame or pass it on; it may be waiting in the queue already."""
        assert passage.frame is not None
        hold = self._traffic.catch(passage.frame)
        if hold is None:
            self._go(passage)
            return
        passage.hold = hold
        if hold.pattern.blocks:
            if not passage.is_queued:
                self._enqueue(passage)
        else:
            if passage.is_queued:
                self._unqueue(passage)
            self._aside[passage] = None
            self._count(passage.size)
        self._traffic.record(Lab.FRAME_HELD, passage.frame)
        hold.keep(passage.frame, passage)
        self._flush()

    def _go(self, passage: _Passage) -> None:
        if passage.is_queued:
            passage.is_ready = True
            self._flush()
        elif self._queue:
            self._enqueue(passage)
            passage.is_ready = True
        else:
            self._write(passage)

    def let_go(self, passage: _Passage) -> None:
        """A held frame is released."""
        assert passage.frame is not None
        passage.hold = None
        self._traffic.record(Lab.FRAME_RELEASED, passage.frame)
        if passage.is_queued:
            passage.is_ready = True
            self._flush()
        else:
            self._unset_aside(passage)
            self._write(passage)
        self._settle()

    def refuse(self, passage: _Passage, code: int, remark: str) -> None:
        """A held answer goes on as a refusal."""
        assert passage.frame is not None
        passage.data = as_refusal(passage.data, code, remark)
        asked = {name: value for name, value in passage.frame.fields.items() if name in passage.frame.ext}
        passage.frame = replace(passage.frame, response_code=code, fields=asked)
        self.let_go(passage)

    def throw_away(self, passage: _Passage, reason: str) -> None:
        """A frame is lost."""
        self._record_loss(passage, reason)
        if passage.is_queued:
            self._unqueue(passage)
            self._flush()
        elif passage in self._aside:
            self._unset_aside(passage)
        self._settle()

    def _write(self, passage: _Passage) -> None:
        if self._is_dead or not self._ends.send(self, passage.data):
            self._record_loss(passage, _NO_RECEIVER)
        elif passage.frame is not None:
            self._traffic.record(Lab.FRAME_ARRIVED, passage.frame)

    def _record_loss(self, passage: _Passage, reason: str) -> None:
        if passage.frame is not None:
            self._traffic.record(Lab.FRAME_DROPPED, passage.frame, reason=reason)

    def _flush(self) -> None:
        while self._queue and self._queue[0].is_ready:
            passage = self._queue[0]
            self._unqueue(passage)
            self._write(passage)

    def _settle(self) -> None:
        if self.is_through:
            self._ends.is_through(self)

    def _enqueue(self, passage: _Passage) -> None:
        passage.is_queued = True
        self._queue.append(passage)
        self._count(passage.size)

    def _unqueue(self, passage: _Passage) -> None:
        passage.is_queued = False
        self._queue.remove(passage)
        self._count(-passage.size)

    def _unset_aside(self, passage: _Passage) -> None:
        del self._aside[passage]
        self._count(-passage.size)

    def _count(self, change: int) -> None:
        was_full = self.is_full
        self._kept_bytes += change
        if self.is_full is not was_full:
            self._ends.has_room_changed(self)


class _Passage:
    """Bytes on their way through a lane; compared by identity. ``frame`` is None for bytes that are none."""

    __slots__ = ("_lane", "data", "frame", "hold", "is_queued", "is_ready", "size")

    def __init__(self, lane: Lane, data: bytes, frame: Frame | None) -> None:
        self._lane = lane
        self.data = data
        self.frame = frame
        self.size = len(data)
        self.hold: FrameHold | None = None
        self.is_queued = False
        self.is_ready = False

    def let_go(self) -> None:
        self._lane.let_go(self)

    def throw_away(self, reason: str) -> None:
        self._lane.throw_away(self, reason)

    def refuse(self, code: int, remark: str) -> None:
        self._lane.refuse(self, code, remark)
