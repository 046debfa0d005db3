"""What RocketMQ's brokers count of a group: the messages that it fetched from a topic within a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.asking import ask_each
from rewindmq.protocol.body.stats import BrokerStatsItem
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.watch.evidence.sample import Fetched
from rewindmq.watch.rules.minute import COUNTED_EVERY, CountSpan

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# The statistic of the messages that a group pulls from a topic, and protocol seconds for which it is used:
# that of an idle group, of others, and in the moments in which the broker counts.
_FETCHED: Final = "GROUP_GET_NUMS"
_IDLE_AGE: Final = 3.0
_BUSY_AGE: Final = 0.4
_CLOSE_AGE: Final = 0.03


class Counts:
    """Asks brokers for their count, which changes every 10 s. A broker is its name and an address.

    Args:
        note_failure: called with the address of a broker that does not answer.
    """

    def __init__(self, admin: AdminClient, note_failure: Callable[[str, RewindMQError], None]) -> None:
        self._admin = admin
        self._note_failure = note_failure
        self._told: dict[str, Fetched] = {}

    async def fetched(self, group: str, topic: str, brokers: Iterable[tuple[str, str]]) -> dict[str, Fetched]:
        """Return what the brokers tell, by name, without brokers that do not answer.

        A broker is asked every 3 s, or each time if the group is not idle.
        """

        async def ask(broker: tuple[str, str]) -> None:
            await self._ask(group, topic, broker)

        now = self._now()
        due = [each for each in brokers if self._is_due(each[0], now)]
        await ask_each(due, ask)
        return {name: told for name, told in self._told.items() if now - told.asked < 2 * _IDLE_AGE}

    async def closely(self, group: str, topic: str, broker: tuple[str, str], span: CountSpan) -> None:
        """Ask again and again until the broker has counted, and then for the ends of its queues."""
        name, address = broker
        await self._admin.runtime.timers.sleep(max(0.0, span.earliest - self._now()))
        while self._now() < span.latest:
            before = self._told.get(name)
            told = await self._ask(group, topic, broker)
            if told is None:
                return
            if before is not None and told.after == before.asked:
                await self._note_ends(group, topic, name, address)
                if told.asked - before.asked < COUNTED_EVERY / 2:
                    return
            await self._admin.runtime.timers.sleep(_CLOSE_AGE)

    async def _note_ends(self, group: str, topic: str, name: str, address: str) -> None:
        try:
            stats = await self._admin.groups.broker_group_stats(address, group, topic)
        except RewindMQError as error:
            self._note_failure(address, error)
            return
        ends = {queue.queue_id: entry.broker_offset for queue, entry in stats.offset_table.items()}
        self._told[name] = self._told[name]._replace(ends=ends)

    async def _ask(self, group: str, topic: str, broker: tuple[str, str]) -> Fetched | None:
        """Return what the broker tells; None if it does not."""
        name, address = broker
        now = self._now()
        try:
            stats = await self._admin.brokers.view_broker_stats_data(address, _FETCHED, f"{topic}@{group}")
        except ResponseError as error:
            if error.code != ResponseCode.SYSTEM_ERROR:
                return None
            # The broker has no such statistic: the group has fetched nothing.
            minute = BrokerStatsItem()
        except RewindMQError as error:
            self._note_failure(address, error)
            return None
        else:
            minute = stats.stats_minute
        told = Fetched(now, minute.sum, seconds=_length(minute))
        before = self._told.get(name)
        if before is not None:
            is_same = (before.messages, before.seconds) == (told.messages, told.seconds)
            told = told._replace(
                ends=before.ends if is_same else None, after=before.after if is_same else before.asked
            )
        self._told[name] = told
        return told

    def _is_due(self, name: str, now: float) -> bool:
        told = self._told.get(name)
        return told is None or now - told.asked >= (_BUSY_AGE if told.messages else _IDLE_AGE)

    def _now(self) -> float:
        return self._admin.runtime.clock.monotonic()


def _length(minute: BrokerStatsItem) -> float | None:
    """Return the seconds from the first to the last count of a broker's minute; None if it tells none.

    The broker divides its sum by them (``StatsItem#computeStatsData``), and counts in ms.
    """
    return round(minute.sum / minute.tps, 3) if minute.sum > 0 and minute.tps > 0 else None
