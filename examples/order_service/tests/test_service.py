"""The whole service, from tests without asyncio."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue

import pytest

from order_service import Ledger, Order, OrderListener, OrderService, place_order
from order_service.service import GROUP, TOPIC
from rewindmq.sync import LocalCluster

# Seconds; only a failure waits so long.
LIMIT = 60
# 10 s of the cluster take half a second.
TIME_SCALE = 0.05


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster:
        yield cluster


def test_orders_are_booked_and_a_rewind_books_them_once(cluster: LocalCluster, ledger: Ledger) -> None:
    booked: Queue[Order] = Queue()
    orders = [Order(number, "ann", 100) for number in range(10)]
    with cluster.producer("shop") as shop:
        for order in orders:
            place_order(shop, order)
    service = OrderService(cluster.namesrv_address, OrderListener(ledger, booked.put), time_scale=TIME_SCALE)
    with service, cluster.admin() as admin:
        first = {booked.get(timeout=LIMIT).number for _ in orders}
        admin.resets.reset(TOPIC, GROUP, 0, mode="fenced")
        again = {booked.get(timeout=LIMIT).number for _ in orders}
    assert first == again == set(range(10))
    assert ledger.balances() == {"ann": 1_000}
