"""Encodes what the broker registers: all topics, or the topics that have changed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from rewindmq.protocol.body.registration import RegisterBrokerBody, TopicConfigSerializeWrapper
from rewindmq.protocol.codec.body import PreparedBody
from rewindmq.protocol.codec.body_slices import prepare
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.protocol.remoting.slices.run import run_slices

# So many topics are encoded at once, because that holds the event loop only shortly.
_SMALL_TOPICS: Final = 500
# So many changes are remembered; a request changes at most 2,000 topics.
_MAX_CHANGES: Final = 5_000


class RegistrationBody(NamedTuple):
    """The body of a registration.

    Attributes:
        number: a body with a larger number has later states of the topics.
        is_part: the body has only the topics that have changed.
    """

    content: PreparedBody
    number: int
    is_part: bool = False


class BodyEncoder:
    """Encodes the broker's topics for name servers.

    Args:
        topics: returns the table to register.
    """

    def __init__(self, timers: Timers, topics: Callable[[], TopicConfigSerializeWrapper]) -> None:
        self._timers = timers
        self._topics = topics
        self._numbers = itertools.count(1)
        # The number of each topic's last change, in the order of the changes.
        self._changes: dict[str, int] = {}
        # A name server whose last body has a smaller number needs all topics.
        self._all_changed = 0
        self._encoding = asyncio.Lock()
        # The serialization types of the name servers.
        self._used_types = {SerializeType.MSGPACK}

    def note_change(self, topics: Iterable[str]) -> None:
        """Note that topics have changed."""
        number = next(self._numbers)
        for name in topics:
            self._changes.pop(name, None)
            self._changes[name] = number
        while len(self._changes) > _MAX_CHANGES:
            self._all_changed = self._changes.pop(next(iter(self._changes)))

    def note_all_changed(self) -> None:
        """Note that all topics have changed, such as by the broker's permission."""
        self._all_changed = next(self._numbers)
        self._changes.clear()

    async def all_topics(self) -> RegistrationBody:
        """Return all topics; many are encoded in slices, because the broker serves others meanwhile."""
        topics = self._topics()
        if len(topics.topic_config_table) <= _SMALL_TOPICS:
            return RegistrationBody(PreparedBody(RegisterBrokerBody(topics)), next(self._numbers))
        # Encode one table at a time, because each takes memory.
        async with self._encoding:
            body, number = RegisterBrokerBody(self._topics()), next(self._numbers)
            prepared = await run_slices(self._timers, prepare(body, sorted(self._used_types)))
            # Encodings that a name server asks for now are prepared from the next time on.
            prepared.used = self._used_types
            return RegistrationBody(prepared, number)

    def part(self, sent: int, changed: Collection[str]) -> RegistrationBody | None:
        """Return the changed topics with the present data version; None if all topics have changed.

        The part has all changes since the last body of the name server, because the name server ignores later
        changes with the same data version.

        Args:
            sent: the number of the last body that the name server was sent.
        """
        if self._all_changed > sent:
            return None
        later = itertools.takewhile(lambda change: change[1] > sent, reversed(self._changes.items()))
        names = dict.fromkeys([*changed, *(name for name, _ in later)])
        topics = self._topics()
        table = {name: config for name in names if (config := topics.topic_config_table.get(name))}
        body = RegisterBrokerBody(TopicConfigSerializeWrapper(table, topics.data_version))
        return RegistrationBody(PreparedBody(body), next(self._numbers), is_part=True)


class RegistrationBodies:
    """The bodies of one registration at all name servers, which share the encoded full table.

    Args:
        changed: the topics that have changed; empty: only the full table may be sent.
    """

    def __init__(self, encoder: BodyEncoder, changed: Collection[str]) -> None:
        self._encoder = encoder
        self._changed = changed
        self._making = asyncio.Lock()
        self._full: RegistrationBody | None = None

    def part(self, sent: int) -> RegistrationBody | None:
        """Return the changed topics; None if the name server needs all topics.

        Args:
            sent: see ``BodyEncoder.part``.
        """
        return self._encoder.part(sent, self._changed) if self._changed else None

    async def all_topics(self, sent: int) -> RegistrationBody:
        """Return all topics.

        Args:
            sent: the number of the last body that the name server was sent; the result is not older.
        """
        async with self._making:
            if self._full is None or self._full.number < sent:
                self._full = await self._encoder.all_topics()
            return self._full
