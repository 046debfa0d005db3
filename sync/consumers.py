"""Synchronous consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewindmq.client.consume.selector import MessageSelector
from rewindmq.client.lite.lite_pull_consumer import LitePullConsumer as AsyncLitePullConsumer
from rewindmq.client.pull.pull_consumer import PullConsumer as AsyncPullConsumer
from rewindmq.client.push.listener_errors import ListenerErrors
from rewindmq.client.push.push_consumer import PushConsumer as AsyncPushConsumer
from rewindmq.protocol.message import MessageExt
from rewindmq.sync.blocking import GroupClient, blocking, on_loop, takes_options_of


class PushConsumer(GroupClient):
    """Calls a listener with messages; see ``rewindmq.PushConsumer``.

    A listener that is a plain function runs on a worker thread, and may call synchronous clients. An async
    listener runs on the background loop, and may not.
    """

    @takes_options_of(AsyncPushConsumer)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncPushConsumer, *args, **options)

    subscribe = on_loop(AsyncPushConsumer.subscribe)
    unsubscribe = on_loop(AsyncPushConsumer.unsubscribe)
    register_message_listener = on_loop(AsyncPushConsumer.register_message_listener)
    register_orderly_listener = on_loop(AsyncPushConsumer.register_orderly_listener)
    suspend = on_loop(AsyncPushConsumer.suspend)
    resume = blocking(AsyncPushConsumer.resume)
    reset_offset_by_timestamp = blocking(AsyncPushConsumer.reset_offset_by_timestamp)
    running_info = blocking(AsyncPushConsumer.running_info)

    @property
    def errors(self) -> ListenerErrors:
        """The newest failures of the listener, and their count."""
        errors: ListenerErrors = self.client.errors
        return errors


class PullConsumer(GroupClient):
    """Pulls messages when the application asks; see ``rewindmq.PullConsumer``."""

    @takes_options_of(AsyncPullConsumer)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncPullConsumer, *args, **options)

    register_topic = on_loop(AsyncPullConsumer.register_topic)
    pull = blocking(AsyncPullConsumer.pull)
    pull_block_if_not_found = blocking(AsyncPullConsumer.pull_block_if_not_found)
    update_consume_offset = on_loop(AsyncPullConsumer.update_consume_offset)
    fetch_consume_offset = blocking(AsyncPullConsumer.fetch_consume_offset)
    persist_consume_offset = blocking(AsyncPullConsumer.persist_consume_offset)
    fetch_subscribe_message_queues = blocking(AsyncPullConsumer.fetch_subscribe_message_queues)
    min_offset = blocking(AsyncPullConsumer.min_offset)
    max_offset = blocking(AsyncPullConsumer.max_offset)
    search_offset = blocking(AsyncPullConsumer.search_offset)

    def replay(
        self, topic: str, begin_ms: int, end_ms: int, expression: str | MessageSelector = "*"
    ) -> Iterator[MessageExt]:
        """Iterate over messages stored in ``[begin_ms, end_ms]``, queue after queue (docs/manual-pull.md)."""
        messages: Any = self._loop.call(self.client.replay, topic, begin_ms, end_ms, expression)
        done = object()
        try:
            while (message := self._loop.wait_for(_next(messages, done))) is not done:
                yield message
        finally:
            self._loop.wait_for(messages.aclose())


class LitePullConsumer(GroupClient):
    """Pulls ahead; the application polls; see ``rewindmq.LitePullConsumer``."""

    @takes_options_of(AsyncLitePullConsumer)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncLitePullConsumer, *args, **options)

    subscribe = on_loop(AsyncLitePullConsumer.subscribe)
    unsubscribe = on_loop(AsyncLitePullConsumer.unsubscribe)
    assign = on_loop(AsyncLitePullConsumer.assign)
    assignment = on_loop(AsyncLitePullConsumer.assignment)
    register_topic_message_queue_change_listener = on_loop(
        AsyncLitePullConsumer.register_topic_message_queue_change_listener
    )
    poll = blocking(AsyncLitePullConsumer.poll)
    pause = on_loop(AsyncLitePullConsumer.pause)
    resume = on_loop(AsyncLitePullConsumer.resume)
    seek = blocking(AsyncLitePullConsumer.seek)
    seek_to_begin = blocking(AsyncLitePullConsumer.seek_to_begin)
    seek_to_end = blocking(AsyncLitePullConsumer.seek_to_end)
    offset_for_timestamp = blocking(AsyncLitePullConsumer.offset_for_timestamp)
    fetch_subscribe_message_queues = blocking(AsyncLitePullConsumer.fetch_subscribe_message_queues)
    fetch_message_queues = blocking(AsyncLitePullConsumer.fetch_message_queues)
    commit_sync = on_loop(AsyncLitePullConsumer.commit_sync)
    commit = blocking(AsyncLitePullConsumer.commit)
    committed = blocking(AsyncLitePullConsumer.committed)


async def _next(messages: Any, done: object) -> Any:
    """Return the next message, or ``done``: StopAsyncIteration cannot leave a future."""
    return await anext(messages, done)
