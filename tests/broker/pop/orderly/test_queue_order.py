"""Order infos: the states and events of docs/spec/pop.md 10, and RocketMQ's own answers to 400 events.

``golden/`` was recorded at RocketMQ 5.5.1, whose ``QueueLevelConsumerManager`` was called with random events.
POP times are long past or far in the future, so its clock did not matter; the file's ``l`` was replaced.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from rewindmq.broker.pop.orderly import order_info_file
from rewindmq.broker.pop.orderly.hash_order import hash_order
from rewindmq.broker.pop.orderly.order_info_table import OrderInfoTable, OrderKey, order_counts, order_key
from rewindmq.broker.pop.orderly.queue_order import ILLEGAL_OFFSET, NOTHING_TO_COMMIT, OrderInfo
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.errors import RequestError
from tests.support.properties import few_and_all

NOW: Final = 1_700_000_000_000
KEY: Final = order_key("T", "G", 0)
_GOLDEN: Final = Path(__file__).parent / "golden"


def play(table: OrderInfoTable, event: dict[str, Any]) -> object:
    """Pass one recorded event to a table and return its answer."""
    key = order_key(event["topic"], "G", event["queue"])
    match event["op"]:
        case "pop":
            info = table.update(
                key, event["attempt"], event["pop_time"], event["invisible"], event["offsets"], NOW
            )
            return ";".join(order_counts(info, key))
        case "check":
            return table.is_blocked(key, event["attempt"], event["invisible"], NOW)
        case "ack":
            return table.acknowledge(key, event["offset"], event["pop_time"])
        case "change":
            table.change_visible_time(key, event["offset"], event["pop_time"], event["next"])
        case "reset":
            table.remove(key)
    return None


def test_every_event_has_the_answer_of_rocketmq() -> None:
    table = OrderInfoTable()
    events = [json.loads(line) for line in (_GOLDEN / "events.jsonl").read_text().splitlines()]
    assert len(events) == 400
    for number, event in enumerate(events):
        assert play(table, event) == event.get("result"), f"event {number}: {event}"
    stored = order_info_file.parse(fastjson.loads((_GOLDEN / "consumerOrderInfo.json").read_bytes()))
    assert table.copy() == stored


def test_the_file_is_written_as_rocketmq_writes_it() -> None:
    text = (_GOLDEN / "consumerOrderInfo.json").read_text()
    assert order_info_file.text(order_info_file.parse(fastjson.loads(text))) == text


def test_an_empty_table_and_odd_names_are_written_as_rocketmq_writes_them() -> None:
    assert order_info_file.text({}) == (
        '{\n\t"orderInfoCount":0,\n\t"orderedConsumptionLevel":"QUEUE",\n\t"table":{}\n}'
    )
    odd = OrderInfo(1, None, (5,), 2, attempt_id='a"t\\é<&\x01\t')
    assert '\t\t\t\t"a":"a\\"t\\\\é<&\\u0001\\t",\n\t\t\t\t"cm":0,\n' in order_info_file.text({KEY: odd})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{}", {}),
        ('{"table":{}}', {}),
        ('{"table":{"T@G":{0:{"o":[3],"popTime":5}}}}', {KEY: OrderInfo(5, None, (3,), 0)}),
        (
            '{"table":{"T@G":{"0":{"o":[3],"popTime":"5","ot":{"3":7},"zz":1}}},"dataVersion":{}}',
            {KEY: OrderInfo(5, None, (3,), 0, next_visible_times={3: 7})},
        ),
        ('{"table":{"T@G":{0:{"o":[]}}}}', {KEY: OrderInfo(0, None, (), 0)}),
    ],
)
def test_what_rocketmq_reads_is_read(text: str, result: object) -> None:
    assert order_info_file.parse(fastjson.loads(text)) == result


@pytest.mark.parametrize("count", [1, 12, 13, 24, 25, 32])
def test_adjacent_keys_are_listed_from_the_first_multiple_of_the_capacity(count: int) -> None:
    """As in 5.5.1, where 32 messages from 100 are listed from 128 on."""
    capacity = 16 if count <= 12 else 32 if count <= 24 else 64
    keys = range(100, 100 + count)
    listed = hash_order(keys)
    assert sorted(listed) == list(keys)
    assert [key % capacity for key in listed] == sorted(key % capacity for key in keys)


def test_keys_above_four_billion_are_folded_as_by_java() -> None:
    # Long.hashCode(2^32 + 5) is 4, and that of 5 is 5.
    assert hash_order([5, 2**32 + 5, -1]) == [-1, 2**32 + 5, 5]


def entries(info: OrderInfo, key: OrderKey) -> str:
    return ";".join(order_counts(info, key))


def info(attempt: str | None = "a", pop_time: int = NOW, invisible: int = 1_000) -> OrderInfo:
    """Return the state after a POP of the offsets 5, 6 and 9."""
    return OrderInfo.popped(None, attempt, pop_time, invisible, [5, 6, 9], pop_time)


def test_a_queue_is_blocked_until_its_messages_are_acknowledged_or_visible() -> None:
    popped = info()
    assert popped.is_blocking("b", NOW + 999)
    assert not popped.is_blocking("b", NOW + 1_000)
    assert popped.end_ms == NOW + 1_000
    after, committed = popped.acknowledge(5, NOW)
    assert (committed, after.is_blocking("b", NOW)) == (6, True)
    after, committed = after.acknowledge(9, NOW)
    assert (committed, after.is_blocking("b", NOW)) == (6, True)
    after, committed = after.acknowledge(6, NOW)
    assert (committed, after.is_blocking("b", NOW), after.end_ms) == (10, False, None)


def test_only_the_same_attempt_may_pop_a_blocked_queue() -> None:
    assert not info().is_blocking("a", NOW)
    assert info().is_blocking(None, NOW)
    assert info(None).is_blocking(None, NOW)


def test_acks_of_another_delivery_and_of_unknown_messages_change_nothing() -> None:
    popped = info()
    assert popped.acknowledge(5, NOW - 1) == (popped, NOTHING_TO_COMMIT)
    assert popped.acknowledge(7, NOW) == (popped, ILLEGAL_OFFSET)
    assert OrderInfo(NOW, None, (), 0).acknowledge(5, NOW)[1] == ILLEGAL_OFFSET


def test_a_change_moves_the_end_of_one_message_only() -> None:
    changed = info().change_visible_time(6, NOW, NOW + 100)
    assert changed.end_ms == NOW + 1_000
    assert changed.acknowledge(5, NOW)[0].acknowledge(9, NOW)[0].end_ms == NOW + 100
    assert info().change_visible_time(7, NOW, NOW + 9_000) == info()
    assert info().change_visible_time(6, NOW - 1, NOW + 9_000) == info()


def test_a_message_popped_again_counts_one_attempt_except_by_the_same_attempt() -> None:
    again = OrderInfo.popped(info(), "b", NOW + 2_000, 1_000, [5, 6, 9, 10], NOW)
    assert entries(again, KEY) == "0 qo0%5 1;0 qo0%6 1;0 qo0%9 1;0 0 0"
    same = OrderInfo.popped(again, "b", NOW + 2_001, 1_000, [5, 6, 9, 10], NOW)
    assert entries(same, KEY) == "0 qo0%5 1;0 qo0%6 1;0 qo0%9 1;0 0 0"
    third = OrderInfo.popped(same, None, NOW + 4_000, 1_000, [5, 6], NOW)
    assert entries(third, KEY) == "0 qo0%5 2;0 qo0%6 2;0 0 2"


def test_a_pop_without_an_invisible_time_gets_that_of_the_next_attempt() -> None:
    popped = info(invisible=0)
    assert (popped.is_blocking("b", NOW), popped.end_ms) == (False, None)
    given = popped.with_invisible_time("b", 2_000)
    assert (given.is_blocking("b", NOW), given.end_ms) == (True, NOW + 2_000)
    assert popped.with_invisible_time("a", 2_000) == popped
    assert given.with_invisible_time("b", 9_000) == given
    # Nothing has changed, so nothing is saved.
    assert popped.with_invisible_time("b", 0) is popped


def test_a_full_table_forgets_finished_queues_and_then_refuses_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rewindmq.broker.pop.orderly.order_info_table.MAX_ORDER_INFOS", 2)
    table = OrderInfoTable()
    keys = [order_key("T", "G", queue_id) for queue_id in range(3)]
    for key in keys[:2]:
        table.update(key, "a", NOW, 1_000, [5], NOW)
    with pytest.raises(RequestError, match="there are 2 queues that are popped in order already"):
        table.update(keys[2], "a", NOW, 1_000, [5], NOW)
    table.update(keys[0], "a", NOW, 1_000, [5], NOW)
    table.acknowledge(keys[1], 5, NOW)
    table.update(keys[2], "a", NOW, 1_000, [5], NOW)
    assert list(table) == [keys[0], keys[2]]


def test_an_attempt_id_is_no_longer_than_any_client_id() -> None:
    table = OrderInfoTable()
    table.update(KEY, "a" * 1_024, NOW, 1_000, [5], NOW)
    with pytest.raises(RequestError, match="the attempt id has 1025 characters: the limit is 1024"):
        table.update(KEY, "a" * 1_025, NOW, 1_000, [5], NOW)


def test_a_deleted_topic_or_group_is_forgotten() -> None:
    table = OrderInfoTable()
    for topic in ("T", "TT"):
        for group in ("G", "GG"):
            table.update(order_key(topic, group, 0), "a", NOW, 1_000, [5], NOW)
    assert table.remove_all("T", None) == [order_key("T", "G", 0), order_key("T", "GG", 0)]
    assert table.remove_all(None, "G") == [order_key("TT", "G", 0)]
    assert list(table) == [order_key("TT", "GG", 0)]


class Queue(RuleBasedStateMachine):
    """A queue of messages, consumers that pop it in order, and a model that knows who has what.

    A consumer may hold several deliveries, and acknowledges the messages of any of them at any time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = OrderInfoTable()
        self.now = NOW
        self.committed = 0
        # POP time to attempt, offsets, and the time at which each is visible again.
        self.deliveries: dict[int, tuple[str | None, list[int], dict[int, int]]] = {}
        self.acked: set[int] = set()
        self.attempts: dict[int, int] = {}
        # Of the latest POP that was no repetition.
        self.latest = 0

    @property
    def open(self) -> dict[int, int]:
        """The messages in flight of the latest delivery, by their end."""
        if not self.latest:
            return {}
        _, _, ends = self.deliveries[self.latest]
        return {offset: end for offset, end in ends.items() if offset not in self.acked and end > self.now}

    @rule(
        attempt=st.sampled_from([None, "a", "b", "c"]), count=st.integers(1, 4), invisible=st.integers(1, 5)
    )
    def pop(self, attempt: str | None, count: int, invisible: int) -> None:
        self.now += 1
        is_repeated = self.latest != 0 and attempt is not None and self.deliveries[self.latest][0] == attempt
        is_blocked = self.table.is_blocked(KEY, attempt, invisible, self.now)
        assert is_blocked == (bool(self.open) and not is_repeated)
        if is_blocked:
            return
        before = set(self.deliveries[self.latest][1]) if self.latest else set()
        offsets = list(range(self.committed, self.committed + count))
        info = self.table.update(KEY, attempt, self.now, invisible, offsets, self.now)
        for offset in offsets:
            # Nothing before this message is open at another attempt, and nothing is left out.
            assert offset >= self.committed
            assert is_repeated or not any(earlier < offset for earlier in self.open)
            if offset in before and not is_repeated:
                self.attempts[offset] = self.attempts.get(offset, 0) + 1
        counts = info.consumed_counts or {}
        if not is_repeated:
            expected = {offset: self.attempts[offset] for offset in offsets if offset in before}
            assert counts == expected
            self.attempts = {offset: n for offset, n in self.attempts.items() if offset in expected}
        self.acked -= set(offsets)
        self.deliveries[self.now] = attempt, offsets, dict.fromkeys(offsets, self.now + invisible)
        self.latest = self.now

    @rule(pick=st.integers(0, 5), within=st.integers(0, 4))
    def ack(self, pick: int, within: int) -> None:
        """Acknowledge a message of one of the last deliveries, or the one after its last."""
        if not self.deliveries:
            return
        pop_time = list(self.deliveries)[-1 - pick % len(self.deliveries)]
        offsets = self.deliveries[pop_time][1]
        offset = offsets[0] + within
        # The broker answers these before it looks at the order info.
        if offset < self.committed:
            return
        result = self.table.acknowledge(KEY, offset, pop_time)
        if pop_time != self.latest:
            assert result == NOTHING_TO_COMMIT
        elif offset not in offsets:
            assert result == ILLEGAL_OFFSET
        else:
            self.acked.add(offset)
            left = [other for other in offsets if other not in self.acked]
            assert result == (left[0] if left else offsets[-1] + 1)
            assert result >= self.committed
            self.committed = result

    @rule(pick=st.integers(0, 3), seconds=st.integers(0, 6))
    def change(self, pick: int, seconds: int) -> None:
        if not self.latest:
            return
        _, offsets, ends = self.deliveries[self.latest]
        offset = offsets[pick % len(offsets)]
        ends[offset] = self.now + seconds
        self.table.change_visible_time(KEY, offset, self.latest, ends[offset])

    @rule()
    def time_passes(self) -> None:
        self.now += 1

    @rule(offset=st.integers(0, 9))
    def reset(self, offset: int) -> None:
        self.table.remove(KEY)
        self.committed, self.latest = offset, 0
        self.deliveries.clear()
        self.acked.clear()
        self.attempts.clear()

    @rule()
    def restart(self) -> None:
        text = order_info_file.text(self.table.copy())
        self.table.replace_all(order_info_file.parse(fastjson.loads(text)))
        assert order_info_file.text(self.table.copy()) == text

    @invariant()
    def the_block_ends_with_the_last_open_message(self) -> None:
        info = self.table.get(KEY)
        end = None if info is None else info.end_ms
        if self.open:
            assert end == max(self.open.values())
        else:
            assert end is None or end <= self.now


@pytest.mark.parametrize("examples", few_and_all(25, 400))
def test_messages_of_a_queue_are_delivered_in_order(examples: int) -> None:
    steps = settings(stateful_step_count=40, deadline=None, derandomize=True, max_examples=examples)
    run_state_machine_as_test(Queue, settings=steps)
