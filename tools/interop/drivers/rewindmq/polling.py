"""The operations of lite pull and pull consumers."""

from __future__ import annotations

from typing import Any, Final

from rewindmq import LitePullConsumer, PullConsumer
from tools.interop.drivers.rewindmq.consuming import FROM, make_expression
from tools.interop.drivers.rewindmq.lines import Fields, describe_message, describe_queue, make_queue


class LiteConsumers:
    """The lite pull consumers, by the names that the suite gave them; they commit only when told to."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._consumers: dict[str, LitePullConsumer] = {}
        self.ops: Final = {
            "lite.start": self.start,
            "lite.poll": self.poll,
            "lite.commit": self.commit,
            "lite.stop": self.stop,
        }

    async def start(self, fields: Fields) -> Fields:
        consumer = LitePullConsumer(
            fields["group"],
            fields["namesrv"],
            consume_from_where=FROM[fields.get("from", "last")],
            auto_commit=False,
            **self._options,
        )
        consumer.subscribe(fields["topic"], make_expression(fields))
        await consumer.start()
        self._consumers[fields["name"]] = consumer
        return {}

    async def poll(self, fields: Fields) -> Fields:
        messages = await self._consumers[fields["consumer"]].poll(fields["timeout_ms"])
        return {"messages": [describe_message(message) for message in messages]}

    async def commit(self, fields: Fields) -> Fields:
        self._consumers[fields["consumer"]].commit_sync()
        return {}

    async def stop(self, fields: Fields) -> Fields:
        await self._consumers.pop(fields["consumer"]).shutdown()
        return {}

    async def shutdown(self) -> None:
        for consumer in self._consumers.values():
            await consumer.shutdown()


class PullConsumers:
    """The pull consumers, by the names that the suite gave them."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._consumers: dict[str, PullConsumer] = {}
        self.ops: Final = {
            "pull.start": self.start,
            "pull.queues": self.queues,
            "pull.offsets": self.offsets,
            "pull.pull": self.pull,
            "pull.commit": self.commit,
            "pull.committed": self.committed,
            "pull.stop": self.stop,
        }

    async def start(self, fields: Fields) -> Fields:
        consumer = PullConsumer(fields["group"], fields["namesrv"], **self._options)
        await consumer.start()
        self._consumers[fields["name"]] = consumer
        return {}

    async def queues(self, fields: Fields) -> Fields:
        queues = await self._of(fields).fetch_subscribe_message_queues(fields["topic"])
        return {"queues": [describe_queue(queue) for queue in queues]}

    async def offsets(self, fields: Fields) -> Fields:
        consumer, queue = self._of(fields), make_queue(fields["queue"])
        offsets = {"min": await consumer.min_offset(queue), "max": await consumer.max_offset(queue)}
        if fields.get("timestamp") is not None:
            offsets["searched"] = await consumer.search_offset(queue, fields["timestamp"])
        return offsets

    async def pull(self, fields: Fields) -> Fields:
        result = await self._of(fields).pull(
            make_queue(fields["queue"]), make_expression(fields), fields["offset"], fields["max"]
        )
        return {
            "status": result.status.name,
            "next": result.next_begin_offset,
            "min": result.min_offset,
            "max": result.max_offset,
            "messages": [describe_message(message) for message in result.messages],
        }

    async def commit(self, fields: Fields) -> Fields:
        consumer, queue = self._of(fields), make_queue(fields["queue"])
        consumer.update_consume_offset(queue, fields["offset"])
        await consumer.persist_consume_offset(queue)
        return {}

    async def committed(self, fields: Fields) -> Fields:
        queue = make_queue(fields["queue"])
        return {"offset": await self._of(fields).fetch_consume_offset(queue, from_store=True)}

    async def stop(self, fields: Fields) -> Fields:
        await self._consumers.pop(fields["consumer"]).shutdown()
        return {}

    async def shutdown(self) -> None:
        for consumer in self._consumers.values():
            await consumer.shutdown()

    def _of(self, fields: Fields) -> PullConsumer:
        return self._consumers[fields["consumer"]]
