"""The topics of one broker, which were added in few or in many steps."""

from __future__ import annotations

from rewindmq.namesrv.topic_queue_table import TopicPart, TopicQueueTable
from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.remoting.slices.run import run_at_once

QUEUE = QueueData("broker-a", 4, 4)


class _CountingName(str):
    """A topic's name that counts how often a table looks it up."""

    __slots__ = ("looked_up",)
    looked_up: int

    def __init__(self, _: str) -> None:
        self.looked_up = 0

    __eq__ = str.__eq__

    def __hash__(self) -> int:
        self.looked_up += 1
        return super().__hash__()


def add_part(table: TopicQueueTable, topics: list[str]) -> TopicPart:
    queues = dict.fromkeys(topics, QUEUE)
    part = run_at_once(table.add_part(queues, table.additions("broker-a", queues).unknown))
    table.show("broker-a", part)
    return part


def test_a_topic_is_looked_up_as_often_for_many_parts_as_for_one() -> None:
    """A broker registers every 30 s, and the event loop waits for it."""
    table = TopicQueueTable()
    looked_up = []
    for number in range(20):
        add_part(table, [f"T{number}"])
        known, unknown = _CountingName("T0"), _CountingName("U")
        assert table.additions("broker-a", [known, unknown]).unknown == [unknown]
        looked_up.append((known.looked_up, unknown.looked_up))
    assert set(looked_up) == {looked_up[0]}


def test_an_empty_part_gives_its_number_to_the_next() -> None:
    table = TopicQueueTable()
    kept = add_part(table, ["kept"])
    numbers = set()
    for brokers in (None, ["broker-a"]):
        numbers.add(add_part(table, ["T", "U"]).number)
        for topic in ("T", "U"):
            table.delete_topic(topic, brokers)
    assert numbers == {kept.number + 1}
    assert (table.topics(), table.count_of("broker-a"), table.entries) == (["kept"], 1, 1)


def test_a_broker_without_topics_left_may_add_some_and_leave() -> None:
    table = TopicQueueTable()
    for _ in range(2):
        part = add_part(table, ["T"])
        assert table.find("T") == [QUEUE]
        table.delete_topic("T", None)
        assert (part.number, table.find("T"), table.count_of("broker-a")) == (0, [], 0)
    add_part(table, ["U"])
    table.remove_broker("broker-a")
    assert table.topics() == []
    assert table.sweep(10)
    assert (len(table), table.entries) == (0, 0)
