"""Resets of the soak's groups, in the mode that each group has.

A reset only goes back. A target beyond a group's committed offset would make the group skip messages, which
is no error of the cluster. So the soak reads committed offsets first, and runs one reset at a time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode
from tools.soak.journal import TRIED, JournalWriter, Reset, now_us, queue_token
from tools.soak.message import TOPICS
from tools.soak.options import SoakGroup
from tools.soak.pauses import wall_clock_ms

_LETTERS: Final = {name: letter for letter, name in TOPICS.items()}
_MOST_SECONDS: Final = 20.0
_MOST_MESSAGES: Final = 200


class Rewinder:
    """Resets groups, and journals every reset before the request and again after a success."""

    def __init__(self, admin: AdminClient, journal: JournalWriter, chance: random.Random) -> None:
        self._admin = admin
        self._journal = journal
        self._chance = chance

    async def rewind(self, group: SoakGroup, addresses: dict[str, str]) -> str:
        """Carry out one reset in one of the group's topics; return what was done.

        Args:
            addresses: broker addresses, by broker name.

        Raises:
            RewindMQError: the broker refused the reset or did not answer; it may have carried it out
                nevertheless.
        """
        assert group.reset_mode is not None
        letter = self._chance.choice(group.rules.topics)
        mode = ResetMode(group.reset_mode)
        stats = await self._admin.groups.examine_consume_stats(group.name, TOPICS[letter])
        stored = {queue: entry.consumer_offset for queue, entry in stats.offset_table.items()}
        if mode is not ResetMode.CLASSIC and self._chance.random() < 0.4:
            return await self._one_queue(group, letter, mode, stored, addresses)
        seconds = self._chance.uniform(1, _MOST_SECONDS)
        timestamp = wall_clock_ms() - int(seconds * 1000)
        targets: dict[MessageQueue, int] = {}
        for queue, offset in stored.items():
            targets[queue] = await self._admin.messages.search_offset(queue, timestamp)
            if targets[queue] > offset:
                return (
                    f"{group.name} is not rewound by {seconds:.1f} s in {TOPICS[letter]}:"
                    " the group has not consumed that far yet"
                )
        asked = self._note(now_us(), group, TRIED, targets)
        result = await self._admin.resets.reset(TOPICS[letter], group.name, timestamp, mode=mode, write=False)
        self._note(asked, group, mode, result.offset_table)
        return f"{group.name} was rewound by {seconds:.1f} s in {TOPICS[letter]} ({mode})"

    async def _one_queue(
        self,
        group: SoakGroup,
        letter: str,
        mode: ResetMode,
        stored: dict[MessageQueue, int],
        addresses: dict[str, str],
    ) -> str:
        candidates = sorted(queue for queue, offset in stored.items() if offset > 0)
        if not candidates:
            return f"{group.name} is not rewound in {TOPICS[letter]}: its committed offsets are 0"
        queue = self._chance.choice(candidates)
        count = min(stored[queue], self._chance.randint(1, _MOST_MESSAGES))
        target = stored[queue] - count
        asked = self._note(now_us(), group, TRIED, {queue: target})
        result = await self._admin.resets.reset_queue(
            addresses[queue.broker_name],
            TOPICS[letter],
            group.name,
            queue.queue_id,
            offset=target,
            mode=mode,
        )
        self._note(asked, group, mode, result.offset_table)
        where = f"{TOPICS[letter]} {queue.broker_name} {queue.queue_id}"
        return f"{group.name} was rewound by {count} messages in {where}"

    def _note(self, asked: int, group: SoakGroup, mode: str, targets: Mapping[MessageQueue, int]) -> int:
        tokens = {
            queue_token(_LETTERS[queue.topic], queue.broker_name, queue.queue_id): offset
            for queue, offset in targets.items()
        }
        self._journal.reset(Reset(asked, group.name, mode, tokens))
        return asked
