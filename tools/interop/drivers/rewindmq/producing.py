"""The operations of producers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rewindmq import (
    LocalTransactionState,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    RewindMQError,
    SendResult,
    TransactionProducer,
    create_reply_message,
)
from tools.interop.drivers.rewindmq.lines import (
    Fields,
    describe_message,
    describe_result,
    make_message,
    make_received,
    say,
)

# Long, because a busy machine may answer late.
_SECONDS: Final = 30.0
_STATES: Final = {
    "commit": LocalTransactionState.COMMIT_MESSAGE,
    "rollback": LocalTransactionState.ROLLBACK_MESSAGE,
    "unknown": LocalTransactionState.UNKNOW,
}


@dataclass
class _Transactions:
    """Returns the states that the suite named when it sent the message.

    Attributes:
        checks: the state that a transaction check gets, by the message's unique key.
    """

    producer: str
    checks: dict[str | None, str] = field(default_factory=dict)

    async def execute_local_transaction(self, message: Message, arg: Fields) -> LocalTransactionState:
        self.checks[message.unique_key] = arg.get("check", "unknown")
        return _STATES[arg["local"]]

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        say({"event": "checked", "producer": self.producer, "message": describe_message(message)})
        return _STATES[self.checks[message.msg_id]]


class Producers:
    """The producers, by the names that the suite gave them."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._producers: dict[str, Producer] = {}
        self.ops: Final = {
            "producer.start": self.start,
            "producer.stop": self.stop,
            "send.sync": self.send,
            "send.delayed": self.send,
            "send.async": self.send_at_once,
            "send.oneway": self.send_oneway,
            "send.batch": self.send_batch,
            "send.ordered": self.send_ordered,
            "send.transaction": self.send_transaction,
            "send.request": self.send_request,
            "send.reply": self.send_reply,
        }

    async def start(self, fields: Fields) -> Fields:
        name = fields["name"]
        options = dict(self._options, enable_msg_trace=fields.get("trace", False))
        if "compress_over" in fields:
            options["compress_msg_body_over_howmuch"] = fields["compress_over"]
        producer = (
            TransactionProducer(fields["group"], fields["namesrv"], listener=_Transactions(name), **options)
            if fields.get("transactional")
            else Producer(fields["group"], fields["namesrv"], **options)
        )
        await producer.start()
        self._producers[name] = producer
        return {}

    async def stop(self, fields: Fields) -> Fields:
        await self._producers.pop(fields["producer"]).shutdown()
        return {}

    async def shutdown(self) -> None:
        for producer in self._producers.values():
            await producer.shutdown()

    async def send(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        sent = [
            await _outcome(producer.send(make_message(message), _SECONDS)) for message in fields["messages"]
        ]
        return _results(sent)

    async def send_at_once(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        sends = (_outcome(producer.send(make_message(message), _SECONDS)) for message in fields["messages"])
        return _results(await asyncio.gather(*sends))

    async def send_oneway(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        for message in fields["messages"]:
            await producer.send_oneway(make_message(message), timeout=_SECONDS)
        return {}

    async def send_batch(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        messages = [make_message(message) for message in fields["messages"]]
        return _results([await _outcome(producer.send_batch(messages, timeout=_SECONDS))])

    async def send_ordered(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        sent = [
            await _outcome(
                producer.send_with_selector(
                    make_message(message), _by_key, int(message["sharding_key"]), _SECONDS
                )
            )
            for message in fields["messages"]
        ]
        return _results(sent)

    async def send_transaction(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        assert isinstance(producer, TransactionProducer)
        results = []
        for message in fields["messages"]:
            try:
                sent = await producer.send_message_in_transaction(make_message(message), message, _SECONDS)
            except RewindMQError as error:
                results.append(describe_result(error))
            else:
                state = sent.local_transaction_state.name
                results.append(describe_result(sent.send_result) | {"transaction_state": state})
        return {"results": results}

    async def send_request(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        message = make_message(fields["message"])
        reply = await producer.request(message, fields["timeout_ms"] / 1_000)
        return {"message": describe_message(reply)}

    async def send_reply(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        reply = create_reply_message(make_received(fields["request"]), fields["body"].encode())
        return _results([await producer.send(reply, _SECONDS)])


def _by_key(queues: Sequence[MessageQueue], message: Message, key: int) -> MessageQueue:
    return queues[key % len(queues)]


async def _outcome(sending: Awaitable[SendResult]) -> SendResult | RewindMQError:
    try:
        return await sending
    except RewindMQError as error:
        return error


def _results(sent: Sequence[SendResult | RewindMQError]) -> Fields:
    return {"results": [describe_result(result) for result in sent]}
