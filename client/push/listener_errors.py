"""Failures of a push consumer's listener, and the check of a listener's signature."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Clock

KEPT_ERRORS: Final = 32
KEPT_ERROR_CHARACTERS: Final = 1_000
KEPT_TRACEBACK_CHARACTERS: Final = 8_000
_FRAMES: Final = 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerError:
    """One failed call of a listener. It has texts only: an exception would keep its messages in memory.

    Attributes:
        at: ms since the epoch.
        queue: the queue of the batch.
        offset: queue offset of the batch's first message.
        count: number of messages in the batch.
        error: type and text of the exception, or a description of the wrong result; at most 1,000
            characters.
        traceback: the end of the traceback, at most 8,000 characters; empty if nothing was raised.
    """

    at: int
    queue: MessageQueue
    offset: int
    count: int
    error: str
    traceback: str


class ListenerErrors:
    """The newest ``KEPT_ERRORS`` failures of one consumer's listener, the oldest of them first.

    Attributes:
        count: number of all failures since the start.
    """

    def __init__(self, group: str, clock: Clock) -> None:
        self.count = 0
        self._group = group
        self._clock = clock
        self._newest: deque[ListenerError] = deque(maxlen=KEPT_ERRORS)

    def __len__(self) -> int:
        return len(self._newest)

    def __iter__(self) -> Iterator[ListenerError]:
        return iter(tuple(self._newest))

    def __getitem__(self, index: int) -> ListenerError:
        return self._newest[index]

    def raised(self, queue: MessageQueue, messages: Sequence[MessageExt], error: BaseException) -> None:
        """Log and keep an exception that the listener raised."""
        _log.warning("consumeMessage exception, group %s, %s", self._group, queue, exc_info=error)
        report = traceback.TracebackException.from_exception(error, limit=-_FRAMES)
        text = "".join(report.format_exception_only()).strip()
        self._keep(queue, messages, text, "".join(report.format())[-KEPT_TRACEBACK_CHARACTERS:])

    def returned(
        self, queue: MessageQueue, messages: Sequence[MessageExt], answer: object, wanted: type
    ) -> None:
        """Log and keep a result of the wrong type."""
        text = f"the listener returned {type(answer).__name__}, not {wanted.__name__}"
        _log.warning("consumeMessage, group %s, %s: %s", self._group, queue, text)
        self._keep(queue, messages, text, "")

    def _keep(self, queue: MessageQueue, messages: Sequence[MessageExt], error: str, where: str) -> None:
        self.count += 1
        self._newest.append(
            ListenerError(
                self._clock.now_ms(),
                queue,
                messages[0].queue_offset,
                len(messages),
                error[:KEPT_ERROR_CHARACTERS],
                where,
            )
        )


def require_listener(listener: Callable[..., Any], *arguments: str) -> None:
    """Refuse a listener whose signature does not fit its calls.

    Args:
        arguments: names of the arguments of each call.

    Raises:
        ClientError: the listener cannot be called, or not with these arguments.
    """
    if not callable(listener):
        raise ClientError(f"the listener must be a function or have __call__, not {type(listener).__name__}")
    # A hand-written `__signature__` may differ from what the object accepts.
    if hasattr(listener, "__signature__"):
        return
    try:
        signature = inspect.signature(listener, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        name = getattr(listener, "__name__", type(listener).__name__)
        bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
        raise ClientError(
            f"the listener is called as {name}({', '.join(arguments)}), but takes {inspect.Signature(bare)}"
        ) from None
