"""Questions: what one scrape asks one broker, bounded in number, in time and at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from rewindmq.dashboard.data.answer import NoAnswer
from rewindmq.dashboard.data.cluster_source import ClusterSource

# Questions of one scrape to one broker.
MAX_QUESTIONS: Final = 2_000
# Questions to one broker at the same time.
AT_ONCE: Final = 16
# Seconds after which a scrape asks nothing new; Prometheus waits 10 s by default, and an answer may take 2 s.
SCRAPE_SECONDS: Final = 7.0

K = TypeVar("K")
T = TypeVar("T")


class Questions:
    """Asks one broker; after the first question without an answer in time, it asks nothing more.

    Attributes:
        unanswered: questions that the broker did not answer, or that were not asked because of a limit.
        unreadable: answers that do not decode; the samples that they feed are missing.
        is_silent: the broker left a question without an answer; refusals and unreadable answers are answers.
    """

    def __init__(self, source: ClusterSource, until: float) -> None:
        """Ask until the monotonic clock shows ``until``, in seconds."""
        self._source = source
        self._until = until
        self._left = MAX_QUESTIONS
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.unanswered = 0
        self.unreadable = 0
        self.is_silent = False

    @property
    def _is_over(self) -> bool:
        return self.is_silent or not self._left or self._source.runtime.clock.monotonic() > self._until

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Return the answer; None: it is none that can be read, or the broker may not be asked any more."""
        async with self._slots:
            if self._is_over:
                self.unanswered += 1
                return None
            self._left -= 1
            answer = await self._source.ask(work())
        if answer.problem is not None and answer.outcome is NoAnswer.UNREADABLE:
            self.unreadable += 1
        elif answer.problem is not None and answer.outcome is not NoAnswer.REFUSED:
            self.unanswered += 1
            self.is_silent = True
        return answer.value

    async def ask_each(self, keys: Iterable[K], work: Callable[[K], Awaitable[T]]) -> dict[K, T]:
        """Return ``work(key)`` of every key that was answered; the order is the keys'."""
        keys = tuple(keys)
        left = iter(keys)
        found: dict[K, T] = {}

        # A task for each of 2,000 keys would hold the event loop while they are made.
        async def ask_some() -> None:
            for key in left:
                if self._is_over:
                    # The broker may be asked nothing more, however many keys are left.
                    self.unanswered += 1 + sum(1 for _ in left)
                    return
                answer = await self.ask(partial(work, key))
                if answer is not None:
                    found[key] = answer

        await asyncio.gather(*(ask_some() for _ in range(AT_ONCE)))
        return {key: found[key] for key in keys if key in found}
