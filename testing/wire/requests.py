"""Requests: names requests or responses, and makes rules for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from rewindmq.protocol.code import RequestCode
from rewindmq.race.proxy.action import Action, Delay, Drop, Duplicate, Fail, Hold
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.testing.errors import KitError
from rewindmq.testing.wire.names import failure_code, request_code
from rewindmq.testing.wire.request_rule import RequestRule
from rewindmq.testing.wire.wire import Wire

Direction = Literal["request", "response"]

_FORMS: Final[dict[str, Form | None]] = {"request": None, "response": Form.RESPONSE}


class Requests:
    """The requests of one name, or the responses to them; made by ``rmq.on``.

    Each method returns a rule that is in force as soon as it is awaited.
    """

    def __init__(self, wire: Wire, text: str, pattern: FramePattern, default_timeout: float) -> None:
        self._wire = wire
        self._text = text
        self._pattern = pattern
        self._default_timeout = default_timeout

    def hold(self) -> RequestRule:
        """Hold the frame until ``release()``; later frames of its connection overtake it."""
        return self._rule("hold()", Hold())

    def delay(self, seconds: float) -> RequestRule:
        """Pass the frame on after ``seconds`` of the cluster's time; later frames overtake it.

        Raises:
            KitError: ``seconds`` is not positive.
        """
        if not seconds > 0:
            raise KitError(f"delay({seconds}): the seconds must be more than 0")
        return self._rule(f"delay({seconds:g})", Delay(seconds))

    def drop(self) -> RequestRule:
        """Drop the frame: its receiver never gets it, and its sender is not told."""
        return self._rule("drop()", Drop())

    def fail(self, code: str | int, remark: str = "failed by the test") -> RequestRule:
        """Answer the request with a response code; the server never gets it.

        With ``direction="response"``, the server does, and its response is replaced. Oneway requests have no
        response, so this rule does not meet them.

        Args:
            code: RocketMQ's name or number, as in "SYSTEM_BUSY".

        Raises:
            KitError: there is no such response code, or it is SUCCESS.
        """
        found = failure_code(code)
        return self._rule(f"fail({found.name!r})", Fail(int(found), remark))

    def duplicate(self) -> RequestRule:
        """Pass the frame on twice; of two responses, the sender gets the first."""
        return self._rule("duplicate()", Duplicate())

    def _rule(self, call: str, action: Action) -> RequestRule:
        return RequestRule(self._wire, f"{self._text}.{call}", self._pattern, action, self._default_timeout)


@dataclass(frozen=True, slots=True)
class RequestSelection:
    """Which requests or responses ``rmq.on`` selects; None selects any.

    Raises:
        KitError: a value is wrong; the text says what to write.
    """

    group: str | None
    topic: str | None
    # A test may give anything.
    queue: Any
    client: str | None
    server: str | None
    direction: str
    times: Any

    def __post_init__(self) -> None:
        queue, times = self.queue, self.times
        if self.direction not in _FORMS:
            raise KitError(f"direction={self.direction!r}: it must be 'request' or 'response'")
        if times is not None and not (isinstance(times, int) and times >= 1):
            raise KitError(f"times={times!r}: it must be 1 or more, or None for all")
        if queue is not None and self.topic is None:
            raise KitError(f"queue={queue} needs a topic, because queues of all topics have the same numbers")
        if queue is not None and not (isinstance(queue, int) and queue >= 0):
            raise KitError(f"queue={queue!r}: it must be a queue's number, 0 or more")

    def pattern(self, code: RequestCode) -> FramePattern:
        """Return the pattern of the frames."""
        fields = {"group": self.group, "topic": self.topic, "queueId": self.queue}
        return FramePattern(
            code,
            form=_FORMS[self.direction],
            fields={name: value for name, value in fields.items() if value is not None},
            count=self.times,
            client=self.client,
            server=self.server,
        )

    def call(self, code: RequestCode) -> str:
        """Return the call of ``rmq.on`` with the arguments that differ from their defaults."""
        names = ("group", "topic", "queue", "client", "server")
        given = {name: getattr(self, name) for name in names}
        words = [
            repr(code.name),
            *(f"{name}={value!r}" for name, value in given.items() if value is not None),
        ]
        if self.direction != "request":
            words.append(f"direction={self.direction!r}")
        if self.times != 1:
            words.append(f"times={self.times}")
        return f"rmq.on({', '.join(words)})"


def select_requests(
    wire: Wire, name: str | int, selection: RequestSelection, default_timeout: float
) -> Requests:
    """Return the selected requests of a name.

    Args:
        default_timeout: of ``RequestRule.met``, in real seconds.

    Raises:
        KitError: RocketMQ has no such request.
    """
    code = request_code(name)
    return Requests(wire, selection.call(code), selection.pattern(code), default_timeout)
