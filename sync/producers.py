"""Synchronous producers."""

from __future__ import annotations

from typing import Any

from rewindmq.client.produce.producer import Producer as AsyncProducer
from rewindmq.client.produce.transaction_producer import TransactionProducer as AsyncTransactionProducer
from rewindmq.sync.blocking import GroupClient, blocking, takes_options_of


class Producer(GroupClient):
    """Sends messages; see ``rewindmq.Producer`` for the options and methods."""

    @takes_options_of(AsyncProducer)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncProducer, *args, **options)

    send = blocking(AsyncProducer.send)
    send_with_selector = blocking(AsyncProducer.send_with_selector)
    send_oneway = blocking(AsyncProducer.send_oneway)
    send_batch = blocking(AsyncProducer.send_batch)
    recall = blocking(AsyncProducer.recall)
    request = blocking(AsyncProducer.request)
    request_with_selector = blocking(AsyncProducer.request_with_selector)
    fetch_publish_message_queues = blocking(AsyncProducer.fetch_publish_message_queues)


class TransactionProducer(Producer):
    """Sends messages that depend on a local transaction; see ``rewindmq.TransactionProducer``."""

    @takes_options_of(AsyncTransactionProducer)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncTransactionProducer, *args, **options)

    send_message_in_transaction = blocking(AsyncTransactionProducer.send_message_in_transaction)
