"""POP consumption in a handler."""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.pop.build import PopConsumption


def pop_consumption(context: BrokerContext) -> PopConsumption:
    """Return the parts of POP consumption; only brokers that have them serve its requests."""
    assert context.pop is not None, "this release has no POP"
    return context.pop
