"""Any mix of transactions, times and crashes: committed messages are visible, others never.

Specification: docs/spec/broker.md B.14.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.message import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from tests.support.answers import body_of, present
from tests.support.fixtures import RunScenario
from tests.support.stage import Scenario, SimStage

COMMIT, ROLLBACK = 8, 12


@dataclass(frozen=True)
class Transaction:
    """One transaction and its producer's habits.

    Attributes:
        pause: seconds after the previous transaction.
        immunity: requested immunity, seconds.
        ends_after: seconds until the producer says how it ended by itself; None: never.
        answers_from: the first check that the producer answers; 0: none.
    """

    pause: float
    immunity: int | None
    ends_after: float | None
    answers_from: int
    verdict: int

    @property
    def is_settled(self) -> bool:
        return self.ends_after is not None or self.answers_from > 0


transactions = st.lists(
    st.builds(
        Transaction,
        # Close before a tick, which is every 60 or every 30 s.
        st.sampled_from([0.0, 1.0, 25.0, 56.0]),
        st.sampled_from([None, 20, 90, 200]),
        st.sampled_from([None, 0.0, 3.0, 25.0, 45.0]),
        st.integers(0, 3),
        st.sampled_from([COMMIT, ROLLBACK]),
    ),
    min_size=2,
    max_size=8,
)


class Producer:
    """Carries out transactions against whichever broker is the newest."""

    def __init__(self, stage: SimStage) -> None:
        self.stage = stage
        self.halves: dict[str, dict[str, int]] = {}
        self.plans: dict[str, Transaction] = {}
        self.due: list[tuple[float, str]] = []
        self.checked: Counter[str] = Counter()
        self.heard = 0

    async def connect(self) -> None:
        self.peer = self.stage.peer()
        self.heard = 0
        await self.peer.create_topic(write=1, read=1)
        await self.peer.heartbeat("", producers=["PG"])

    async def begin(self, plan: Transaction) -> None:
        key = f"K{len(self.plans)}"
        properties = {"TRAN_MSG": "true", "PGROUP": "PG", "UNIQ_KEY": key}
        if plan.immunity is not None:
            properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] = str(plan.immunity)
        born = self.stage.runtime.clock.now_ms()
        answer = await self.peer.send("T", key.encode(), properties=properties, born_timestamp=born)
        header = answer.require_success().decode_header(SendMessageResponseHeader)
        _, position = parse_offset_message_id(header.msg_id)
        self.halves[key] = {
            "tran_state_table_offset": header.queue_offset,
            "commit_log_offset": position,
        }
        self.plans[key] = plan
        if plan.ends_after is not None:
            self.due.append((self.stage.runtime.clock.monotonic() + plan.ends_after, key))

    async def live(self, seconds: int) -> None:
        """Let time pass in steps of a few seconds, and perform due actions."""
        start = self.stage.runtime.clock.monotonic()
        for second in sorted({*range(5, seconds, 5), seconds}):
            await self.stage.at(start + second)
            if second % 30 == 0:
                await self.peer.heartbeat("", producers=["PG"])
            await self._end_what_is_due()
            await self._answer_checks()

    async def _end_what_is_due(self) -> None:
        now = self.stage.runtime.clock.monotonic()
        due, self.due = self.due, [entry for entry in self.due if entry[0] > now]
        for when, key in due:
            # A transaction that was checked meanwhile is answered there.
            if when <= now and not self.checked[key]:
                await self._end(key, self.halves[key], asked=False)

    async def _answer_checks(self) -> None:
        requests = [request for _, request in self.peer.received if request.code == 39]
        fresh, self.heard = requests[self.heard :], len(requests)
        for request in fresh:
            header = request.decode_header(CheckTransactionStateRequestHeader)
            key = present(header.msg_id)
            self.checked[key] += 1
            plan = self.plans[key]
            if plan.ends_after is not None or 0 < plan.answers_from <= self.checked[key]:
                offsets = {
                    "tran_state_table_offset": header.tran_state_table_offset,
                    "commit_log_offset": header.commit_log_offset,
                }
                await self._end(key, offsets, asked=True)

    async def _end(self, key: str, offsets: dict[str, Any], *, asked: bool) -> None:
        header = EndTransactionRequestHeader(
            producer_group="PG",
            commit_or_rollback=self.plans[key].verdict,
            msg_id=key,
            from_transaction_check=asked,
            **offsets,
        )
        answer = await self.peer.ask(RequestCode.END_TRANSACTION, header)
        # v53 refuses an end after the message's own immunity, and checks first.
        if asked or answer.code != ResponseCode.ILLEGAL_OPERATION:
            answer.require_success()

    async def seen(self) -> Counter[str]:
        """Keys in the real topic, and how often."""
        answer = await self.peer.pull(0, count=32)
        return Counter(message.body.decode() for message in decode_records(body_of(answer) or b""))


@pytest.mark.slow
def test_what_commits_is_seen_once_and_nothing_else_is(simulate: RunScenario, full: bool) -> None:
    """A crash loses up to 5 s of progress; then a message that was checked may be committed twice."""

    @settings(derandomize=True, deadline=None, max_examples=30 if full else 10)
    @given(transactions, st.sampled_from([Profile.V49, Profile.V53]), st.none() | st.integers(0, 7))
    def holds(plans: list[Transaction], profile: Profile, crash_before: int | None) -> None:
        simulate(_scenario(plans, crash_before), profile=profile)

    holds()


def _scenario(plans: list[Transaction], crash_before: int | None) -> Scenario:
    async def scenario(stage: SimStage) -> None:
        producer = Producer(stage)
        await producer.connect()
        crashed = False
        for number, plan in enumerate(plans):
            if number == crash_before:
                crashed = True
                shutil.copytree(stage.root / "broker-a", stage.root / "crashed")
                old = stage.broker
                await stage.start_broker(store_path_root_dir=str(stage.root / "crashed"))
                await producer.peer.client.close()
                await old.close()
                await producer.connect()
            await producer.begin(plan)
            await producer.live(int(plan.pause))
        await producer.live(500)
        expected = {key for key, plan in producer.plans.items() if plan.verdict == COMMIT and plan.is_settled}
        seen = await producer.seen()
        assert seen.keys() == expected
        if not crashed:
            assert all(times == 1 for times in seen.values())
        store, query = stage.broker.context.store, stage.broker.context.offsets.table.query
        if all(plan.is_settled for plan in plans):
            for topic in ("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"):
                assert query("CID_RMQ_SYS_TRANS", topic, 0) == store.max_offset(topic, 0)

    return scenario
