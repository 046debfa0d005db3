"""Names and sizes that the demo and its worker processes share."""

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
# Number of different message keys, so that keys repeat: message i has the key ``order-(i mod ORDERS)``.
ORDERS: Final = 800
