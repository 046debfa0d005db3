"""PopGroup: a consumer group whose messages the test pops and acknowledges itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.push.pop.acknowledger import Acknowledger
from rewindmq.client.push.pop.pop_result import decode_pop_response
from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.pop import PopMessageRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.pop.topics import ALL_QUEUES, pop_retry_topic
from rewindmq.testing.errors import KitError
from rewindmq.testing.handles.context import Context
from rewindmq.testing.handles.watched_group import WatchedGroup
from rewindmq.testing.messages.lent_message import LentMessage

# ``ConsumeInitMode``: a group without progress begins at the first message.
_INIT_MIN: Final = 0
# The most that one POP returns.
_MOST: Final = 32
_SECONDS: Final = 10.0
# A broker revives messages 2 s after their invisible time, by timers that are at most a second late; neither
# is scaled.
_REVIVED_AFTER_MS: Final = 3_001


class PopGroup(WatchedGroup):
    """A group that pops one topic; see ``Rmq.pop``.

    ``dead_letters`` waits for those of other consumers of the group: brokers revive a message for ever.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        topic: str,
        *,
        invisible: float,
        expression: str,
        order: bool,
        travel_to: Callable[[int], Awaitable[None]],
    ) -> None:
        if not invisible > 0:
            raise KitError(f"invisible must be more than 0 seconds, not {invisible:g}")
        super().__init__(context, name, topic)
        self._invisible_ms = round(invisible * 1_000)
        self._expression = expression
        self._is_orderly = order
        self._travel_to = travel_to
        self._acks: Acknowledger | None = None

    async def take(self, count: int = 1, timeout: float | None = None) -> list[LentMessage]:
        """Pop until there are ``count`` messages, and return them. It never pops more.

        Args:
            timeout: real seconds; None: 20 s and 60 s of the cluster's time.

        Raises:
            NotSeenError: fewer within the timeout; those stay popped.
            KitError: the brokers have no POP.
        """
        found: list[LentMessage] = []
        faults: list[KitError] = []

        async def condition() -> str | None:
            try:
                found.extend(await self.pop(count - len(found)))
            except KitError as error:
                faults.append(error)
            return None if faults or len(found) >= count else f"{len(found)}: {found}"

        await self._waiter.until(condition, f"group {self.name} pops {count} messages", timeout)
        if faults:
            raise faults[0]
        return found

    async def pop(self, count: int = _MOST) -> list[LentMessage]:
        """Return what the brokers lend now, at most ``count`` messages; none is waited for.

        Raises:
            KitError: the brokers have no POP.
            RewindMQError: a broker refused, or did not answer.
        """
        instance = (await self._context.producer()).instance
        acks = self._acks = self._acks or Acknowledger(instance, self.name)
        await instance.routes.refresh(self.topic)
        route = instance.routes.routes.get(self.topic)
        found: list[LentMessage] = []
        for broker_name in sorted({each.broker_name for each in route.queue_datas} if route else ()):
            while len(found) < count:
                most = min(count - len(found), _MOST)
                lent = await self._pop_at(instance, acks, broker_name, most)
                found += lent
                if not lent:
                    break
        return found

    async def _pop_at(
        self, instance: ClientInstance, acks: Acknowledger, broker_name: str, most: int
    ) -> list[LentMessage]:
        header = PopMessageRequestHeader(
            consumer_group=self.name,
            topic=self.topic,
            queue_id=ALL_QUEUES,
            max_msg_nums=most,
            invisible_time=self._invisible_ms,
            poll_time=0,
            born_time=0,
            init_mode=_INIT_MIN,
            exp_type=EXPRESSION_TAG,
            exp=self._expression,
            order=self._is_orderly,
        )
        address = await instance.routes.find_master_address(self.topic, broker_name)
        command = instance.api.command(RequestCode.POP_MESSAGE, header)
        response = await instance.remoting.invoke(address, command, _SECONDS)
        if response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise KitError(f'{broker_name} has no POP; use a cluster with the option profile="v53"')
        popped = decode_pop_response(response, MessageQueue(self.topic, broker_name, ALL_QUEUES))
        return [LentMessage(each, self.topic, acks) for each in popped.messages]

    async def in_flight(self) -> dict[MessageQueue, int]:
        """Return how many messages of each queue are popped, and neither acknowledged nor revived.

        The queues of retry topics count, too. A broker counts from its start.

        Raises:
            KitError: RocketMQ's brokers do not tell.
        """
        await self._require_counts()
        _, counts = await self._left()
        return counts

    async def acked(self, timeout: float | None = None) -> None:
        """Wait until the group has got every message, and all are acknowledged, those of retry topics too.

        Raises:
            NotSeenError: not within the timeout; the text says what is left.
            KitError: RocketMQ's brokers do not tell.
        """
        await self._require_counts()

        async def condition() -> str | None:
            if behind := await self._behind():
                return behind
            retries, counts = await self._left()
            left = {"in flight": counts, "to be delivered again": retries}
            texts = [
                f"{text} {queue.topic} {queue.broker_name}/{queue.queue_id}: {count}"
                for text, queues in left.items()
                for queue, count in queues.items()
            ]
            return ", ".join(texts) or None

        await self._waiter.until(condition, f"group {self.name} has acknowledged all messages", timeout)

    async def revived(self, *messages: LentMessage, timeout: float | None = None) -> None:
        """Wait until the brokers have stored messages again because nobody acknowledged them.

        They come with the next POP. Brokers revive a message 2 to 4.5 s after its invisible time, in real
        seconds; ``expire`` does not wait for it. Brokers with ``enableRetryTopicV2`` are not supported.

        Raises:
            NotSeenError: not within the timeout; the text has the missing messages.
            KitError: the group pops in order, so nothing is revived.
        """
        if self._is_orderly:
            raise KitError("an orderly POP revives nothing: the messages come with the next POP, call take()")

        async def condition() -> str | None:
            attempts = await self._revivals()
            missing = [each for each in messages if attempts.get(each.message.id, 0) <= each.attempt]
            return f"not revived: {missing}" if missing else None

        await self._waiter.until(condition, f"messages of group {self.name} are revived", timeout)

    async def expire(self, *messages: LentMessage, timeout: float | None = None) -> None:
        """Let the invisible time of messages pass at once: the brokers' clocks travel to its end.

        It waits until the messages that nobody has acknowledged come with the next POP. Everything else that
        is due by then happens, too; see ``Rmq.travel``.

        Raises:
            NotSeenError: not within the timeout.
            KitError: no message, or the cluster is not the kit's own.
        """
        if not messages:
            raise KitError("expire needs the messages whose invisible time is to pass")
        scale = self._context.runtime.clock.scale
        visible_at = max(message.visible_at(scale) for message in messages)
        await self._travel_to(visible_at + (1 if self._is_orderly else _REVIVED_AFTER_MS))
        if not self._is_orderly:
            await self.revived(*messages, timeout=timeout)

    @property
    def _retry_topics(self) -> tuple[str, str]:
        """The two names that the retry topic may have, by the brokers' ``enableRetryTopicV2``."""
        return pop_retry_topic(self.topic, self.name), pop_retry_topic(self.topic, self.name, v2=True)

    async def _left(self) -> tuple[dict[MessageQueue, int], dict[MessageQueue, int]]:
        """Return how many messages of retry queues are not delivered, and what is in flight."""
        try:
            stats = await self._context.admin.groups.examine_consume_stats(self.name)
        except ResponseError as error:
            if error.code not in (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.CONSUMER_NOT_ONLINE):
                raise
            return {}, {}
        retries: dict[MessageQueue, int] = {}
        counts: dict[MessageQueue, int] = {}
        for queue, row in stats.offset_table.items():
            if queue.topic != self.topic and queue.topic not in self._retry_topics:
                continue
            if row.pop_inflight:
                counts[queue] = row.pop_inflight
            if queue.topic != self.topic and row.broker_offset > row.consumer_offset:
                retries[queue] = row.broker_offset - row.consumer_offset
        return retries, counts

    async def _require_counts(self) -> None:
        brokers = self._context.admin.brokers
        for data in (await self._context.admin.topics.examine_topic_route_info(self.topic)).broker_datas:
            stats = await brokers.fetch_broker_runtime_stats(data.broker_addrs[0])
            if not any(key.startswith("popRevive_") for key in stats):
                raise KitError(
                    f"{data.broker_name} does not tell what is in flight: this needs RewindMQ's brokers with"
                    ' the option profile="v53"'
                )

    async def _revivals(self) -> dict[str, int]:
        """Return the latest attempt of each message in the retry topic, by the message's id."""
        attempts: dict[str, int] = {}
        try:
            messages = await self._context.read_whole(pop_retry_topic(self.topic, self.name))
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return attempts
        for message in messages:
            attempts[message.msg_id] = max(message.reconsume_times + 1, attempts.get(message.msg_id, 0))
        return attempts
