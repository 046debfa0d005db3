"""Dead letters of a group: read them, and send copies of them to the group again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.resend import UNSENT
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.data.messages import PAGE_MESSAGES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.properties import (
    DELAY,
    MAX_RECONSUME_TIMES,
    PGROUP,
    REAL_QID,
    REAL_TOPIC,
    RECONSUME_TIME,
    RETRY_TOPIC,
    TRAN_MSG,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import dlq_topic, retry_topic

# The most dead letters that one request sends again: those of one page.
MAX_RESENT: Final = PAGE_MESSAGES
# The name under which brokers list the dashboard as a producer.
PRODUCER_GROUP: Final = "REWINDMQ_DASHBOARD"
# What a broker gets to answer a heartbeat of that producer, ms: another broker that hangs must not use up the
# time of a send.
PRODUCER_API_MS: Final = 1000
# What that producer gets to start, and to learn of a topic's route.
PREPARE_SECONDS: Final = 3.0
# Properties that brokers and clients set for one stored copy: with them, the next copy would be delayed, be
# part of a transaction, or count as retried. The last five are those of 5.x for timers and POP.
_OF_ONE_COPY: Final = frozenset(
    {
        DELAY,
        TRAN_MSG,
        PGROUP,
        REAL_TOPIC,
        REAL_QID,
        RECONSUME_TIME,
        MAX_RECONSUME_TIMES,
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
        "TIMER_DELIVER_MS",
        "POP_CK",
        "1ST_POP_TIME",
    }
)


@dataclass(frozen=True)
class Letter:
    """A dead letter's place in the group's dead-letter topic."""

    broker: str
    queue: int
    offset: int

    def __str__(self) -> str:
        return f"{self.broker}/{self.queue}/{self.offset}"


@dataclass(frozen=True)
class Resent:
    """What became of one dead letter that was to be sent again.

    Attributes:
        copy: where the copy is stored in the group's retry topic; None: there is no copy, or it is not known.
        problem: why there is none, one sentence without a full stop; None if there is a copy.
    """

    letter: Letter
    copy: Letter | None
    problem: str | None = None


async def resend(source: ClusterSource, group: str, letters: Sequence[Letter]) -> list[Resent]:
    """Send a copy of each dead letter to the group's retry topic, the oldest first.

    A consumer of the group gets the copy with the topic that the message was first sent to, and with all
    retries again. The dead letter stays. After a send that no broker answered, no further copy is sent.

    Source of the copy's form: RocketMQ 4.9.4 ``DefaultMQPushConsumerImpl#sendMessageBack``, which sends a
    copy as a producer if the broker does not make one.

    Args:
        letters: at most ``MAX_RESENT``, without repeats.

    Returns:
        One entry for each letter, those that could be read in the order of their store times.
    """
    topic = dlq_topic(group)
    read = await source.ask_each(
        letters,
        lambda each: source.admin.messages.message_at(
            MessageQueue(topic, each.broker, each.queue), each.offset
        ),
    )
    unread = [
        Resent(letter, None, f"it could not be read: {answer.problem}")
        for letter, answer in read.items()
        if answer.value is None
    ]
    found = [(letter, answer.value) for letter, answer in read.items() if answer.value is not None]
    found.sort(key=lambda each: each[1].store_timestamp)
    if not found:
        return unread
    route = await source.masters(retry_topic(group))
    if route.value is None:
        refused = f"group {group} has no retry topic to send to: {route.problem}"
        return [*(Resent(letter, None, refused) for letter, _ in found), *unread]
    return [*await _send_all(source, group, found), *unread]


async def _send_all(
    source: ClusterSource, group: str, found: Sequence[tuple[Letter, MessageExt]]
) -> list[Resent]:
    # Not repeated: a visitor who is told of a failure decides.
    producer = Producer(
        PRODUCER_GROUP,
        ";".join(source.admin.namesrv_addresses),
        retry_times_when_send_failed=0,
        mq_client_api_timeout=PRODUCER_API_MS,
        runtime=source.runtime,
    )
    try:
        started = await source.ask(producer.start(), PREPARE_SECONDS)
        if started.problem is not None:
            return [Resent(letter, None, f"it was not sent: {started.problem}") for letter, _ in found]
        results: list[Resent] = []
        is_silent = False
        for letter, message in found:
            if is_silent:
                results.append(Resent(letter, None, "it was not sent, because of the failure before"))
                continue
            result, is_silent = await _send_one(source, producer, group, letter, message)
            results.append(result)
        return results
    finally:
        await source.ask(producer.shutdown())


async def _send_one(
    source: ClusterSource, producer: Producer, group: str, letter: Letter, message: MessageExt
) -> tuple[Resent, bool]:
    """Return what became of the letter, and True if no broker answered."""
    try:
        copy = copy_of(message, group)
    except ClientError as error:
        return Resent(letter, None, str(error)), False
    answer = await source.ask(producer.send(copy))
    if answer.value is None:
        if answer.code is not None:
            return Resent(letter, None, f"the broker refused the copy: {answer.problem}"), False
        if isinstance(answer.error, UNSENT):
            return Resent(letter, None, f"it was not sent: {answer.problem}"), True
        text = (
            f"the copy may be stored or not ({answer.problem}): look at the newest messages of {copy.topic}"
        )
        return Resent(letter, None, text), True
    queue, offset = answer.value.message_queue, answer.value.queue_offset
    # A broker may answer success, and put the copy elsewhere. Its log shows the copy before its queues do.
    stored = await source.ask(source.admin.messages.view_message(answer.value.offset_msg_id))
    if stored.value is None:
        return Resent(letter, None, f"the broker took the copy, but did not show it: {stored.problem}"), False
    if stored.value.topic != copy.topic:
        text = f"the broker put the copy into {stored.value.topic}"
        return Resent(letter, None, f"{text}, as RocketMQ 5.x does while a listener is orderly"), False
    return Resent(letter, Letter(queue.broker_name, queue.queue_id, offset)), False


def copy_of(message: MessageExt, group: str) -> Message:
    """Return the message to send to the group's retry topic: same id, keys and body, no retry yet.

    Raises:
        ClientError: the dead letter does not name the topic that it was first sent to; or its body does not
            inflate.
    """
    if not message.properties.get(RETRY_TOPIC):
        raise ClientError("it does not name its first topic (RETRY_TOPIC), so no consumer would know it")
    properties = {name: value for name, value in message.properties.items() if name not in _OF_ONE_COPY}
    return Message(retry_topic(group), message.body, flag=message.flag, properties=properties)
