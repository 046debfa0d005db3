"""The service: a listener that books orders, and the clients around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from order_service.ledger import Ledger, Order
from rewindmq import ConsumeConcurrentlyStatus, Message, MessageExt, select_queue_by_hash
from rewindmq.sync import Producer, PushConsumer

TOPIC = "orders"
GROUP = "order-service"


def _ignore(order: Order) -> None:
    pass


class OrderListener:
    """Books each order of a batch; an exception lets the broker deliver the batch again.

    Args:
        on_booked: called after each order, also after one that was booked before.
    """

    def __init__(self, ledger: Ledger, on_booked: Callable[[Order], object] = _ignore) -> None:
        self._ledger = ledger
        self._on_booked = on_booked

    def __call__(self, messages: Sequence[MessageExt]) -> None:
        for message in messages:
            order = Order.from_body(message.body)
            self._ledger.book(order)
            self._on_booked(order)


class OrderService:
    """Consumes orders until it is closed.

    Args:
        namesrv: ``host:port`` of the name servers.
        options: further options of the consumer.
    """

    def __init__(self, namesrv: str, listener: OrderListener, **options: Any) -> None:
        self._consumer = PushConsumer(GROUP, namesrv, consume_from="first", **options)
        self._consumer.subscribe(TOPIC)

        def consume(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            listener(messages)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        self._consumer.register_message_listener(consume)

    def __enter__(self) -> Self:
        self._consumer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._consumer.shutdown()


def place_order(producer: Producer, order: Order) -> None:
    """Send an order; the orders of a customer stay in one queue."""
    message = Message(TOPIC, order.to_body(), keys=str(order.number))
    producer.send_with_selector(message, select_queue_by_hash, order.customer)
