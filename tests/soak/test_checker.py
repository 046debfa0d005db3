"""The soak's checker finds every kind of violation: each test breaks one promise in a small history."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tools.soak.checker import Checker, Waits
from tools.soak.driver import judge_log
from tools.soak.journal import (
    ACCEPTED,
    REFUSED,
    SUSPENDED,
    TRIED,
    Ack,
    DeadLetter,
    Delivered,
    Header,
    Intent,
    JournalWriter,
    Outage,
    Record,
    Reset,
    read_journals,
)
from tools.soak.memory import Life, MemoryWatch, judge_memory, rss_anon_kib
from tools.soak.message import MessageId, is_committed, is_doomed, make_body, read_body
from tools.soak.rules import GroupRules
from tools.soak.verdict import SoakVerdict, ViolationKind

SECOND = 1_000_000
WAITS = Waits(commit=5 * SECOND, register=5 * SECOND, reset=5 * SECOND)
FENCED = GroupRules("F", "cdt", max_reconsume_times=3)
CLASSIC = GroupRules("C", "c", is_lossy=True)
ORDERLY = GroupRules("O", "o", is_orderly=True)
COMMITTED, ROLLED_BACK = (
    next(n for n in range(1000) if is_committed(MessageId(0, n)) is outcome) for outcome in (True, False)
)
DOOMED, HEALTHY = (
    next(n for n in range(9000) if is_doomed(MessageId(0, n), 3) is fate) for fate in (True, False)
)
PRODUCER = Header("producer-0.0", producer=0)


def sent(at: int, number: int, topic: str = "c", offset: int | None = None, delay: int = 0) -> list[Record]:
    """Return the records of an acknowledged message in queue ``<topic>a0``, by default at its number."""
    place = number if offset is None else offset
    queue = "" if topic in "dt" else f"{topic}a0"
    return [
        Intent(at * SECOND, number, topic, delay * SECOND),
        Ack(at * SECOND, number, queue, place if queue else 0),
    ]


def came(
    at: int, number: int, topic: str = "c", offset: int | None = None, verdict: str = ACCEPTED, **rest: int
) -> Delivered:
    place = number if offset is None else offset
    return Delivered(
        at * SECOND, f"{topic}a0", place, 0, number, rest.get("times", 0), verdict, rest.get("chain", 1)
    )


def judge(rules: GroupRules, records: Iterable[Record | list[Record]]) -> SoakVerdict:
    """Return the verdict on a history of one producer and one consumer."""
    checker = Checker([rules], WAITS)
    consumer = Header("consumer", rules.name)
    for entry in records:
        for record in entry if isinstance(entry, list) else [entry]:
            header = PRODUCER if isinstance(record, Intent | Ack) else consumer
            checker.feed(header, record)
    return checker.finish()


def violations(rules: GroupRules, *records: Record | list[Record]) -> set[ViolationKind]:
    return set(judge(rules, records).totals)


# At least once, and nothing else.


def test_a_correct_history_has_no_violation() -> None:
    verdict = judge(CLASSIC, [sent(1, 0), sent(1, 1), came(2, 0), came(2, 1), came(3, 1)])
    assert verdict.is_ok
    assert verdict.counts["acknowledged"] == 2
    assert verdict.counts["C: delivered again"] == 1


def test_a_lost_message_is_found() -> None:
    verdict = judge(CLASSIC, [sent(1, 0), sent(1, 1), sent(1, 2), came(2, 0), came(2, 2)])
    assert verdict.totals == {ViolationKind.LOST: 1}
    assert "number=1" in verdict.violations[0].text


def test_a_message_whose_acknowledgement_was_lost_may_come_or_not() -> None:
    assert violations(CLASSIC, Intent(1, 0, "c", 0), Intent(1, 1, "c", 0), came(2, 1)) == set()


def test_an_invented_message_is_found() -> None:
    assert violations(CLASSIC, sent(1, 0), came(2, 0), came(2, 1)) == {ViolationKind.INVENTED}


def test_a_message_of_another_topic_is_found() -> None:
    assert violations(CLASSIC, sent(1, 0, "o"), came(2, 0, "c")) == {ViolationKind.INVENTED}
    assert violations(CLASSIC, sent(1, 0, "o"), came(2, 0, "o")) == {ViolationKind.WRONG_QUEUE}


def test_a_damaged_body_is_found() -> None:
    body = make_body(MessageId(7, 12))
    assert read_body(body) == MessageId(7, 12)
    assert read_body(body[:-1] + bytes([body[-1] ^ 1])) is None
    assert read_body(body[:-1]) is None
    assert read_body(b"") is None
    damaged = Delivered(2 * SECOND, "ca0", 0, -1, -1, 0, ACCEPTED, 1)
    assert violations(CLASSIC, sent(1, 0), came(2, 0), damaged) == {ViolationKind.INVENTED}


def test_two_messages_in_one_place_are_found() -> None:
    assert violations(CLASSIC, sent(1, 0), sent(1, 1, offset=0), came(2, 0), came(2, 1, offset=1)) == {
        ViolationKind.TWO_IN_ONE_PLACE
    }


def test_a_loss_is_attributed_to_a_lossy_reset_only_if_the_reset_was_near() -> None:
    near: list[Record | list[Record]] = [sent(10, 0), Reset(12 * SECOND, "C", "classic", {})]
    verdict = judge(CLASSIC, near)
    assert verdict.is_ok
    assert verdict.counts["C: lost to the known races of its resets"] == 1
    assert violations(CLASSIC, sent(10, 0), Reset(20 * SECOND, "C", "classic", {})) == {ViolationKind.LOST}
    assert violations(GroupRules("C", "c"), *near) == {ViolationKind.LOST}


# Order.


def orderly(*deliveries: Record) -> set[ViolationKind]:
    messages = [sent(0, number, "o") for number in range(100)]
    verdict = judge(ORDERLY, [*messages, *deliveries])
    # Most messages are not delivered here; these tests do not look at that.
    return set(verdict.totals) - {ViolationKind.LOST}


def run(start: int, first: int, last: int, chain: int) -> list[Record]:
    """Return the deliveries of one chain, a message a second."""
    return [came(start + n - first, n, "o", chain=chain) for n in range(first, last + 1)]


def test_an_orderly_queue_in_order_has_no_violation() -> None:
    assert orderly(*run(1, 0, 3, chain=1), *run(10, 4, 5, chain=2)) == set()


def test_a_gap_and_a_step_back_within_one_chain_are_found() -> None:
    assert orderly(came(1, 0, "o"), came(2, 2, "o")) == {ViolationKind.OUT_OF_ORDER}
    assert orderly(came(1, 0, "o"), came(2, 1, "o"), came(3, 0, "o")) == {ViolationKind.OUT_OF_ORDER}
    assert orderly(came(1, 0, "o"), came(2, 0, "o")) == {ViolationKind.OUT_OF_ORDER}


def test_a_suspended_message_comes_again_before_the_next() -> None:
    again = came(1, 0, "o", verdict=SUSPENDED)
    assert orderly(again, came(2, 0, "o"), came(3, 1, "o")) == set()
    assert orderly(again, came(2, 1, "o")) == {ViolationKind.OUT_OF_ORDER}


def test_a_new_owner_may_not_begin_beyond_what_was_delivered() -> None:
    assert orderly(*run(1, 0, 3, chain=1), came(5, 5, "o", chain=2)) == {ViolationKind.OUT_OF_ORDER}


def test_a_new_owner_may_go_back_only_to_what_may_not_be_committed_yet() -> None:
    assert orderly(*run(1, 0, 20, chain=1), came(22, 18, "o", chain=2)) == set()
    assert orderly(*run(1, 0, 20, chain=1), came(22, 2, "o", chain=2)) == {ViolationKind.WENT_BACK}


def test_a_reset_may_set_an_owner_back_even_if_its_answer_was_lost() -> None:
    reset = Reset(22 * SECOND, "O", TRIED, {"oa0": 2})
    assert orderly(*run(1, 0, 20, chain=1), reset, came(22, 2, "o", chain=2)) == set()
    replayed = [*run(1, 0, 20, chain=1), reset, *run(22, 2, 12, chain=2)]
    assert orderly(*replayed, came(34, 11, "o", chain=3)) == set()
    assert orderly(*replayed, came(34, 2, "o", chain=3)) == {ViolationKind.WENT_BACK}


def test_while_the_broker_is_down_nothing_can_be_committed() -> None:
    for who in ("a", "*"):
        down = Outage(21 * SECOND, who, 2 * SECOND)
        assert orderly(*run(1, 0, 20, chain=1), down, came(22, 2, "o", chain=2)) == set()
    other = Outage(21 * SECOND, "b", 2 * SECOND)
    assert orderly(*run(1, 0, 20, chain=1), other, came(22, 2, "o", chain=2)) == {ViolationKind.WENT_BACK}


def test_a_queue_stored_in_another_order_than_it_was_sent_is_found() -> None:
    sends = [sent(0, 0, "o", offset=1), sent(0, 1, "o", offset=0)]
    deliveries = [came(1, 1, "o", offset=0), came(2, 0, "o", offset=1)]
    assert violations(ORDERLY, *sends, *deliveries) == {ViolationKind.SENT_IN_ORDER}


# Rewinds.


def rewound(mode: str, *numbers: int) -> SoakVerdict:
    rules = FENCED if mode == "fenced" else CLASSIC
    sends = [sent(1, number) for number in range(4)]
    first = [came(2, number) for number in range(4)]
    reset = Reset(3 * SECOND, rules.name, mode, {"ca0": 1})
    return judge(rules, [*sends, *first, reset, *(came(4, number) for number in numbers)])


def test_a_fenced_rewind_that_was_lost_is_found() -> None:
    assert rewound("fenced", 3, 2, 1).is_ok
    assert set(rewound("fenced", 1, 3).totals) == {ViolationKind.NOT_REPLAYED}
    assert set(rewound("fenced").totals) == {ViolationKind.NOT_REPLAYED}


def test_a_classic_rewind_that_was_lost_is_counted() -> None:
    verdict = rewound("classic", 1)
    assert verdict.is_ok
    assert verdict.counts["C: classic rewinds of a queue, lost"] == 1
    assert rewound("classic", 1, 2, 3).counts["C: classic rewinds of a queue, whole"] == 1


# Retries, delays, transactions.


def test_a_refused_message_has_to_come_again() -> None:
    refused = came(2, HEALTHY, verdict=REFUSED)
    assert violations(FENCED, sent(1, HEALTHY), refused) == {ViolationKind.NOT_RETRIED}
    assert violations(FENCED, sent(1, HEALTHY), refused, came(3, HEALTHY, "r", 0, times=1)) == set()


def test_a_message_refused_for_good_has_to_be_a_dead_letter() -> None:
    refused = [came(2 + n, DOOMED, "r", n, REFUSED, times=n) for n in range(4)]
    letter = DeadLetter(9 * SECOND, "F", 0, DOOMED)
    assert violations(FENCED, sent(1, DOOMED), *refused) == {ViolationKind.NOT_RETRIED}
    assert violations(FENCED, sent(1, DOOMED), *refused, letter) == set()


def test_a_wrong_dead_letter_is_found() -> None:
    letter = DeadLetter(9 * SECOND, "F", 0, HEALTHY)
    assert violations(FENCED, sent(1, HEALTHY), came(2, HEALTHY), letter) == {ViolationKind.DEAD_LETTER}
    assert violations(CLASSIC, sent(1, 0), came(2, 0), DeadLetter(9, "C", 0, 0)) == {
        ViolationKind.DEAD_LETTER
    }


def test_a_delayed_message_that_comes_early_is_found() -> None:
    assert violations(FENCED, sent(1, 0, "d", delay=3), came(3, 0, "d")) == {ViolationKind.TOO_EARLY}
    assert violations(FENCED, sent(1, 0, "d", delay=3), came(4, 0, "d")) == set()


def test_a_rolled_back_message_may_not_come_and_a_committed_one_must() -> None:
    assert violations(FENCED, sent(1, ROLLED_BACK, "t")) == set()
    assert violations(FENCED, sent(1, ROLLED_BACK, "t"), came(2, ROLLED_BACK, "t")) == {
        ViolationKind.ROLLED_BACK
    }
    assert violations(FENCED, sent(1, COMMITTED, "t")) == {ViolationKind.LOST}
    assert violations(FENCED, sent(1, COMMITTED, "t"), came(2, COMMITTED, "t")) == set()


# Journals.


def test_a_journal_is_read_as_it_was_written_and_without_the_line_that_a_kill_has_cut(tmp_path: Path) -> None:
    producer = JournalWriter(tmp_path / "p.journal", PRODUCER)
    producer.intents([Intent(1, 0, "c", 0), Intent(2, 1, "d", 5)])
    producer.ack(0, "ca0", 17)
    producer.ack(1, "", 0)
    producer.note("two\nlines")
    producer.close()
    consumer = JournalWriter(tmp_path / "c.journal", Header("consumer", "F"))
    delivery = Delivered(3, "ca0", 17, 0, 0, 0, ACCEPTED, 4)
    consumer.deliveries([delivery, delivery._replace(at=4, offset=18)])
    consumer.reset(Reset(5, "F", "fenced", {"ca0": 1, "cb3": 22}))
    consumer.reset(Reset(6, "F", TRIED, {}))
    consumer.close()
    with (tmp_path / "c.journal").open("a") as cut:
        cut.write("D 7 ca0 19 0")
    records = [record for header, record in read_journals(tmp_path) if header.group == "F"]
    assert records == [
        delivery,
        delivery._replace(at=4, offset=18),
        Reset(5, "F", "fenced", {"ca0": 1, "cb3": 22}),
        Reset(6, "F", TRIED, {}),
    ]
    assert [type(record).__name__ for _, record in read_journals(tmp_path)][:2] == ["Intent", "Intent"]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    JournalWriter(tmp_path / "p.journal", PRODUCER).close()
    with (tmp_path / "p.journal").open("a") as damaged:
        damaged.write("Q 1 2\n")
    with pytest.raises(ValueError, match=r"p\.journal: no record"):
        list(read_journals(tmp_path))


# Memory and logs.


def memory(*kib: int) -> SoakVerdict:
    watch = MemoryWatch()
    watch.lives[1] = Life("broker-b", [(float(at), size) for at, size in enumerate(kib)])
    verdict = SoakVerdict()
    judge_memory(watch, settled=60, end=len(kib), needed=frozenset({"broker-b"}), verdict=verdict)
    return verdict


def test_memory_that_grows_is_found_and_warming_up_is_not() -> None:
    warm_up = [10_000 + 100 * at for at in range(60)]
    assert memory(*warm_up, *([16_000] * 240)).is_ok
    assert memory(*warm_up, *([16_000] * 200), *([17_500] * 40)).is_ok
    assert set(memory(*warm_up, *(16_000 + 20 * at for at in range(240))).totals) == {ViolationKind.MEMORY}


def test_a_short_run_may_grow_more_while_its_tables_fill() -> None:
    warm_up = [10_000] * 60
    assert memory(*warm_up, *([16_000] * 60), *([18_000] * 60)).is_ok
    grown = memory(*warm_up, *([16_000] * 60), *([21_000] * 60))
    assert set(grown.totals) == {ViolationKind.MEMORY}


def test_a_process_that_did_not_live_long_enough_was_not_judged() -> None:
    watch, verdict = MemoryWatch(), SoakVerdict()
    watch.lives[1] = Life("broker-b", [(float(at), 16_000) for at in range(100)])
    judge_memory(watch, settled=60, end=300, needed=frozenset({"broker-b"}), verdict=verdict)
    assert set(verdict.totals) == {ViolationKind.EMPTY}


def test_only_memory_that_the_process_allocated_is_measured() -> None:
    before = rss_anon_kib(os.getpid())
    # New pages, because memory from malloc may have been resident before.
    with mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as taken:
        taken.write(b"x" * len(taken))
        after = rss_anon_kib(os.getpid())
        assert before is not None
        assert after is not None
        assert len(taken) >> 10 <= after - before + 1024


def test_a_traceback_in_a_log_is_found(tmp_path: Path) -> None:
    log = tmp_path / "broker-a.log"
    log.write_text("2026 INFO rewindmq.broker fine\n")
    verdict = SoakVerdict()
    judge_log(log, verdict)
    assert verdict.is_ok
    log.write_text("2026 ERROR asyncio task failed | Traceback (most recent call last): | ValueError\n")
    judge_log(log, verdict)
    assert set(verdict.totals) == {ViolationKind.LOG}
