"""Lane: one direction of a connection through the proxy."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final, Protocol

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.frame import FrameDecoder
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Lab
from rewindmq.race.proxy.cutter import FrameCutter
from rewindmq.race.proxy.frame import (
    Frame,
    PendingRequest,
    as_refusal,
    describe_request,
    describe_response,
    make_refusal,
)
from rewindmq.race.proxy.frame_rule import FrameRule
from rewindmq.race.proxy.outlet import LinkCondition, Outlet
from rewindmq.race.proxy.pattern import Form

# Above this many bytes, held or waiting behind held frames, the proxy stops reading from the sender.
MAX_KEPT_BYTES: Final = 64 << 20
# Limit of remembered requests without a response; RocketMQ's clients allow as many (65,535 permits).
_MAX_PENDING: Final = 65_536
_NO_RECEIVER: Final = "the connection to its receiver is closed"
_SECOND_RESPONSE: Final = "its request was duplicated, and this is the second response"

_log = logging.getLogger(__name__)


class FrameHooks(Protocol):
    """The proxy's part in handling a frame."""

    def next_id(self) -> str:
        """Return the id of a new frame."""

    def record(self, kind: Lab, frame: Frame, **more: object) -> None:
        """Record an event about a frame."""

    def catch(self, frame: Frame) -> FrameRule | None:
        """Return the rule that catches this frame; None if no rule does."""

    def rewrite(
        self, request: PendingRequest, response: RemotingCommand
    ) -> Coroutine[Any, Any, bytes] | None:
        """Return a coroutine that makes the frame to pass on instead; None to pass on the response itself."""


class LaneOwner(Protocol):
    """The link that a lane belongs to."""

    def send(self, lane: Lane, data: bytes) -> bool:
        """Write to the target of ``lane``; return False if its connection is closed."""

    def room_changed(self, lane: Lane) -> None:
        """Note that ``lane.is_full`` has changed."""

    def lane_finished(self, lane: Lane) -> None:
        """Note that the source of ``lane`` has ended and everything it sent was passed on."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` until it ends or the link closes."""


class Lane:
    """Passes frames on in order, except held ones.

    Later frames overtake a held frame, unless its pattern ``blocks``. The lane passes on the end of the
    source's stream after the last held frame.

    Args:
        runtime: clock and timers of a slow link.
        hooks: the proxy.
        owner: the link.
        source, target: names of the processes at the two ends.

    Attributes:
        opposite: the lane of the other direction.
    """

    def __init__(
        self, runtime: Runtime, hooks: FrameHooks, owner: LaneOwner, source: str, target: str
    ) -> None:
        self._hooks = hooks
        self._outlet = Outlet[_LaneItem](runtime, self._send)
        self._owner = owner
        self._source = source
        self._target = target
        self._cutter = FrameCutter()
        self._pending: dict[int, PendingRequest] = {}
        # Requests that were passed on twice, until the second response.
        self._duplicated: dict[int, PendingRequest] = {}
        # The first item is held, or is being rewritten; the others wait behind it.
        self._queue: deque[_LaneItem] = deque()
        # Held items that later frames overtake.
        self._bypassed: dict[_LaneItem, None] = {}
        self._kept_bytes = 0
        self._has_ended = False
        self._is_target_lost = False
        self.opposite: Lane

    @property
    def is_full(self) -> bool:
        """True if the lane holds so much that no more should be read from the source."""
        return self._kept_bytes > MAX_KEPT_BYTES

    @property
    def is_finished(self) -> bool:
        """True if the source has ended and the lane holds nothing."""
        return self._has_ended and not self._queue and not self._bypassed and self._outlet.is_clear

    def feed(self, data: bytes) -> None:
        """Handle bytes that the source sent."""
        for command_bytes, command in self._cutter.feed(data):
            self._receive(command_bytes, command)

    def end(self) -> None:
        """Handle the end of the source's stream."""
        if self._has_ended:
            return
        rest = self._cutter.rest()
        if rest:
            self._receive(rest, None)
        self._has_ended = True
        self._check_finished()

    def target_lost(self) -> None:
        """Drop everything held: the connection to the target is closed. Later frames are lost too."""
        self._is_target_lost = True
        lost = [*self._outlet.clear(), *self._queue, *self._bypassed]
        self._queue.clear()
        self._bypassed.clear()
        for item in lost:
            item.is_queued = False
            if item.rule is not None:
                item.rule.remove(item)
            self._record_loss(item, _NO_RECEIVER)
        self._add_kept_bytes(-self._kept_bytes)
        self._check_finished()

    def set_condition(self, condition: LinkCondition) -> None:
        """Pass frames on as this condition allows."""
        self._outlet.set_condition(condition)
        self._check_finished()

    def pop_request(self, opaque: int) -> PendingRequest | None:
        """Remove and return the request with this opaque; None if it is unknown."""
        return self._pending.pop(opaque, None)

    def pop_duplicated(self, opaque: int) -> PendingRequest | None:
        """Do the same for a request whose second response is expected."""
        return self._duplicated.pop(opaque, None)

    def _receive(self, data: bytes, command: RemotingCommand | None) -> None:
        if command is None:
            self._pass_on(_LaneItem(self, data, None))
            return
        request, frame = self._describe(command)
        self._hooks.record(Lab.FRAME_SENT, frame)
        item = _LaneItem(self, data, frame)
        if command.is_response and request is None and self._is_second_response(command, item):
            return
        changed = None
        if frame.form is Form.RESPONSE and request is not None:
            changed = self._hooks.rewrite(request, command)
        if changed is None:
            self._hold_or_pass_on(item)
        else:
            self._enqueue(item)
            self._owner.spawn(self._change(item, changed))

    def _describe(self, command: RemotingCommand) -> tuple[PendingRequest | None, Frame]:
        request: PendingRequest | None
        response_code = None
        if command.is_response:
            form, response_code = Form.RESPONSE, int(command.code)
            request = self.opposite.pop_request(command.opaque)
            fields = describe_response(command, request)
        else:
            form = Form.ONEWAY if command.is_oneway else Form.REQUEST
            request = describe_request(command)
            fields = dict(request.fields)
            if form is Form.REQUEST:
                _remember(self._pending, command.opaque, request)
        code = request.code if request is not None else None
        ext = request.ext if request is not None else {}
        identity = self._hooks.next_id()
        return request, Frame(identity, self._source, self._target, code, form, response_code, ext, fields)

    def _is_second_response(self, command: RemotingCommand, item: _LaneItem) -> bool:
        """Drop the second response to a duplicated request, which its sender does not expect."""
        request = self.opposite.pop_duplicated(command.opaque)
        if request is None:
            return False
        assert item.frame is not None
        fields = describe_response(command, request)
        item.frame = replace(item.frame, code=request.code, ext=request.ext, fields=fields)
        self._record_loss(item, _SECOND_RESPONSE)
        return True

    async def _change(self, item: _LaneItem, changed: Coroutine[Any, Any, bytes]) -> None:
        try:
            item.data = await changed
        except RewindMQError as error:
            _log.warning("passing on %s as it is: %s", item.frame, error)
        if not self._is_target_lost:
            self._hold_or_pass_on(item)

    def _hold_or_pass_on(self, item: _LaneItem) -> None:
        """Give the frame to the rule that catches it, else pass it on; it may be in the queue already."""
        assert item.frame is not None
        rule = self._hooks.catch(item.frame)
        if rule is None:
            self._pass_on(item)
            return
        if rule.pattern.blocks:
            if not item.is_queued:
                self._enqueue(item)
        else:
            if item.is_queued:
                self._unqueue(item)
            self._bypassed[item] = None
            self._add_kept_bytes(item.size)
        if rule.keeps_frames:
            item.rule = rule
            self._hooks.record(Lab.FRAME_HELD, item.frame)
        rule.add(item.frame, item)
        self._write_ready()

    def _pass_on(self, item: _LaneItem) -> None:
        if item.is_queued:
            item.is_ready = True
            self._write_ready()
        elif self._queue:
            self._enqueue(item)
            item.is_ready = True
        else:
            self._write(item)

    def release(self, item: _LaneItem) -> None:
        """Pass on a held frame."""
        assert item.frame is not None
        item.rule = None
        self._hooks.record(Lab.FRAME_RELEASED, item.frame)
        self._let_go(item)

    def refuse(self, item: _LaneItem, code: int, remark: str) -> None:
        """Pass on a caught response as a refusal, or answer a caught request with it."""
        assert item.frame is not None
        if item.frame.form is not Form.RESPONSE:
            self._answer(item, code, remark)
            return
        item.data = as_refusal(item.data, code, remark)
        fields = {name: value for name, value in item.frame.fields.items() if name in item.frame.ext}
        item.frame = replace(item.frame, response_code=code, fields=fields)
        if item.rule is not None:
            self.release(item)
        else:
            self._let_go(item)

    def duplicate(self, item: _LaneItem) -> None:
        """Pass on a caught frame twice."""
        assert item.frame is not None
        item.copies = 2
        if item.frame.form is Form.REQUEST:
            opaque = _opaque(item.data)
            if opaque in self._pending:
                _remember(self._duplicated, opaque, self._pending[opaque])
        self._let_go(item)

    def _answer(self, item: _LaneItem, code: int, remark: str) -> None:
        assert item.frame is not None
        self.pop_request(_opaque(item.data))
        request = item.frame
        response = replace(
            request,
            id=self._hooks.next_id(),
            source=request.target,
            target=request.source,
            form=Form.RESPONSE,
            response_code=code,
        )
        self.drop(item, f"the proxy answers it with {code}")
        self.opposite.pass_on(make_refusal(item.data, code, remark), response)

    def pass_on(self, data: bytes, frame: Frame) -> None:
        """Pass on a frame that the proxy has made; no rule catches it."""
        self._pass_on(_LaneItem(self, data, frame))

    def _let_go(self, item: _LaneItem) -> None:
        if item.is_queued:
            item.is_ready = True
            self._write_ready()
        else:
            self._remove_bypassed(item)
            self._write(item)
        self._check_finished()

    def drop(self, item: _LaneItem, reason: str) -> None:
        """Drop a held frame."""
        self._record_loss(item, reason)
        if item.is_queued:
            self._unqueue(item)
            self._write_ready()
        elif item in self._bypassed:
            self._remove_bypassed(item)
        self._check_finished()

    def _write(self, item: _LaneItem) -> None:
        if self._is_target_lost:
            self._record_loss(item, _NO_RECEIVER)
        elif self._outlet.put(item):
            item.is_waiting = True
            self._add_kept_bytes(item.size)

    def _send(self, item: _LaneItem) -> None:
        """Write to the target, when the outlet lets the item go."""
        for copy in range(item.copies):
            if not self._owner.send(self, item.data):
                self._record_loss(item, _NO_RECEIVER)
                break
            if item.frame is not None:
                self._hooks.record(Lab.FRAME_ARRIVED, item.frame, **({"copy": copy} if copy else {}))
        if item.is_waiting:
            self._add_kept_bytes(-item.size)
            self._check_finished()

    def _record_loss(self, item: _LaneItem, reason: str) -> None:
        if item.frame is not None:
            self._hooks.record(Lab.FRAME_DROPPED, item.frame, reason=reason)

    def _write_ready(self) -> None:
        while self._queue and self._queue[0].is_ready:
            item = self._queue[0]
            self._unqueue(item)
            self._write(item)

    def _check_finished(self) -> None:
        if self.is_finished:
            self._owner.lane_finished(self)

    def _enqueue(self, item: _LaneItem) -> None:
        item.is_queued = True
        self._queue.append(item)
        self._add_kept_bytes(item.size)

    def _unqueue(self, item: _LaneItem) -> None:
        item.is_queued = False
        self._queue.remove(item)
        self._add_kept_bytes(-item.size)

    def _remove_bypassed(self, item: _LaneItem) -> None:
        del self._bypassed[item]
        self._add_kept_bytes(-item.size)

    def _add_kept_bytes(self, change: int) -> None:
        was_full = self.is_full
        self._kept_bytes += change
        if self.is_full is not was_full:
            self._owner.room_changed(self)


class _LaneItem:
    """Bytes on their way through a lane; ``frame`` is None if they are not a frame. Compared by identity."""

    __slots__ = ("_lane", "copies", "data", "frame", "is_queued", "is_ready", "is_waiting", "rule", "size")

    def __init__(self, lane: Lane, data: bytes, frame: Frame | None) -> None:
        self._lane = lane
        self.data = data
        self.frame = frame
        self.size = len(data)
        self.rule: FrameRule | None = None
        self.copies = 1
        self.is_queued = False
        self.is_ready = False
        # True for an item that the outlet has kept.
        self.is_waiting = False

    def release(self) -> None:
        self._lane.release(self)

    def drop(self, reason: str) -> None:
        self._lane.drop(self, reason)

    def refuse(self, code: int, remark: str) -> None:
        self._lane.refuse(self, code, remark)

    def duplicate(self) -> None:
        self._lane.duplicate(self)


def _opaque(data: bytes) -> int:
    (command,) = FrameDecoder().feed(data)
    return command.opaque


def _remember(requests: dict[int, PendingRequest], opaque: int, request: PendingRequest) -> None:
    """Keep a request whose response is to come; forget the oldest one at the limit."""
    if len(requests) >= _MAX_PENDING:
        del requests[next(iter(requests))]
    requests[opaque] = request
