"""An order service: it consumes orders, and keeps the balance of each customer in SQLite."""

from order_service.ledger import InvalidOrderError, Ledger, Order
from order_service.service import OrderListener, OrderService, place_order

__all__ = ["InvalidOrderError", "Ledger", "Order", "OrderListener", "OrderService", "place_order"]
