"""Names and sizes of the experiment that both the demo and its worker processes know."""

from __future__ import annotations

from typing import Final

TOPIC: Final = "TopicTest"
TAG: Final = "TagA"
CONSUMER_GROUP: Final = "rewind_demo_consumers"
PRODUCER_GROUP: Final = "rewind_demo_producers"
REPLAY_GROUP: Final = "rewind_demo_replay"
BROKERS: Final = 2
QUEUES_PER_BROKER: Final = 4
QUEUES: Final = BROKERS * QUEUES_PER_BROKER
RESET_WAIT_SECONDS: Final = 10.0
# Messages carry the key of an order each, so that there is something to compact and to look up.
ORDERS: Final = 800
