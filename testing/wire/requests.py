"""Requests: names requests or responses, and makes rules for them."""

from __future__ import annotations

from typing import Any, Final, Literal

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


def requests(
    wire: Wire,
    name: str | int,
    *,
    group: str | None,
    topic: str | None,
    queue: object,
    client: str | None,
    server: str | None,
    direction: str,
    times: object,
    default_timeout: float,
) -> Requests:
    """Check the arguments of ``rmq.on``.

    Raises:
        KitError: an argument is wrong; the text says what to write.
    """
    code = request_code(name)
    if direction not in _FORMS:
        raise KitError(f"direction={direction!r}: it must be 'request' or 'response'")
    if times is not None and not (isinstance(times, int) and times >= 1):
        raise KitError(f"times={times!r}: it must be 1 or more, or None for all")
    if queue is not None and topic is None:
        raise KitError(f"queue={queue} needs a topic, because queues of all topics have the same numbers")
    if queue is not None and not (isinstance(queue, int) and queue >= 0):
        raise KitError(f"queue={queue!r}: it must be a queue's number, 0 or more")
    fields: dict[str, Any] = {"group": group, "topic": topic, "queueId": queue}
    pattern = FramePattern(
        code,
        form=_FORMS[direction],
        fields={field: value for field, value in fields.items() if value is not None},
        count=times,
        client=client,
        server=server,
    )
    shown: dict[str, Any] = {
        "group": group,
        "topic": topic,
        "queue": queue,
        "client": client,
        "server": server,
    }
    words = [f"{word}={value!r}" for word, value in shown.items() if value is not None]
    words += [f"direction={direction!r}"] if direction != "request" else []
    words += [f"times={times}"] if times != 1 else []
    return Requests(wire, f"rmq.on({', '.join([repr(code.name), *words])})", pattern, default_timeout)
