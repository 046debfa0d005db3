"""The options of a push consumer, and the checks at its start."""

from __future__ import annotations

import pytest

from rewindmq import ClientError, ConsumeFromWhere, PushConsumer
from rewindmq.race.sim import World

ADDRESS = "127.0.0.1:9876"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"consume_thread_max": 0}, "consume_thread_max Out of range"),
        ({"consume_message_batch_max_size": 1025}, "consume_message_batch_max_size Out of range"),
        ({"pull_batch_size": 0}, "pull_batch_size Out of range"),
        ({"consume_concurrently_max_span": 65_536}, "consume_concurrently_max_span Out of range"),
        ({"consume_timestamp": "yesterday"}, "yyyyMMddHHmmss"),
        ({"message_model": "CHAOS"}, "CHAOS"),
        ({"profile": "v1"}, "profile 'v1'"),
        ({"client_ip": "here"}, "not an IP address"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ClientError, match=words):
        PushConsumer("G", ADDRESS, **options)  # type: ignore[arg-type]


def test_what_a_consumer_refuses_at_its_start() -> None:
    world = World()

    async def main() -> None:
        consumer = PushConsumer("G", ADDRESS, runtime=world.runtime())
        with pytest.raises(ClientError, match="messageListener is null"):
            await consumer.start()
        with pytest.raises(ClientError, match="started once"):
            await consumer.start()
        with pytest.raises(ClientError, match="illegal characters"):
            consumer.subscribe("a/b")
        with pytest.raises(ClientError, match="subscription exception"):
            consumer.subscribe("T", "||")

    world.run(main())


def test_retired_start_names_mean_the_last_offset() -> None:
    consumer = PushConsumer("G", ADDRESS, consume_from_where="CONSUME_FROM_MIN_OFFSET")
    assert consumer.options.consume_from_where is ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET
