"""The ledger: orders and balances in a SQLite database."""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import asdict, dataclass
from pathlib import Path


class InvalidOrderError(ValueError):
    """A message is no order."""


@dataclass(frozen=True)
class Order:
    """An order of a customer; ``number`` is unique, ``cents`` is the price."""

    number: int
    customer: str
    cents: int

    def to_body(self) -> bytes:
        """Return the order as the body of a message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_body(cls, body: bytes) -> Order:
        """Read the body of a message.

        Raises:
            InvalidOrderError: it is no order.
        """
        try:
            order = cls(**json.loads(body))
        except (ValueError, TypeError) as error:
            raise InvalidOrderError(f"not an order: {body[:80]!r}") from error
        if (type(order.number), type(order.customer), type(order.cents)) != (int, str, int):
            raise InvalidOrderError(f"not an order, a field has a wrong type: {body[:80]!r}")
        return order


class Ledger:
    """The orders that were booked. Any thread may use it."""

    def __init__(self, path: Path) -> None:
        # Listeners run on several threads; the lock lets one of them at a time use the connection.
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._lock = threading.Lock()
        with self._database:
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS orders"
                " (number INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL)"
            )

    def book(self, order: Order) -> bool:
        """Store an order; return False if it was stored before."""
        row = (order.number, order.customer, order.cents)
        with self._lock, self._database:
            cursor = self._database.execute(
                "INSERT INTO orders VALUES (?, ?, ?) ON CONFLICT (number) DO NOTHING", row
            )
            return cursor.rowcount == 1

    def balances(self) -> dict[str, int]:
        """Return the sum of each customer's orders, in cents."""
        with self._lock:
            rows = self._database.execute("SELECT customer, SUM(cents) FROM orders GROUP BY customer")
            return dict(rows.fetchall())

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()
