"""RocketMQ opens RewindMQ's stores and RewindMQ opens RocketMQ's, with every message and offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message.record import decode_records
from tools.interop.store_chain import PROFILES, ChainPlan, ChainResults, Creator, lost_members
from tools.interop.store_fill import BATCH, ENDED_PER_FILL, LARGE_BYTES, RETRIES, TOPICS
from tools.interop.store_view import ENDED, ViewDifference, ended_count
from tools.interop.versions import SERVER_4, SERVER_5

HAND_OVERS: Final[dict[str, Creator]] = {
    "RocketMQ killed, opened by RewindMQ": "RocketMQ",
    "RewindMQ stopped, opened by RocketMQ": "RocketMQ",
    "RocketMQ stopped, opened by RewindMQ": "RocketMQ",
    "RewindMQ killed, opened by RocketMQ": "RocketMQ",
    "created by RewindMQ, killed, opened by RocketMQ": "RewindMQ",
    "created by RewindMQ, stopped by RocketMQ, opened by RewindMQ": "RewindMQ",
}


_OTHER: Final = pytest.mark.interop(full_only="CI has every kind of hand-over between brokers once")


def _marks(link: ChainPlan) -> list[pytest.MarkDecorator]:
    return [] if link.is_chosen else [_OTHER]


of_each_hand_over = pytest.mark.parametrize(
    ("chain", "title"),
    [
        pytest.param(link, title, id=f"{link}-{title}", marks=_marks(link))
        for link, title in ((ChainPlan(r, by), title) for r in PROFILES for title, by in HAND_OVERS.items())
    ],
    indirect=["chain"],
)
# The only queue with more than one file.
LONG_QUEUE = ("batch", 0)


@pytest.fixture
def chain(
    request: pytest.FixtureRequest, store_chains: dict[ChainPlan, ChainResults | BaseException]
) -> ChainResults:
    played = store_chains[request.param]
    if isinstance(played, BaseException):
        raise played
    return played


@of_each_hand_over
def test_the_next_broker_serves_the_same_content(chain: ChainResults, title: str) -> None:
    step = chain.hand_overs[title]
    explained = EXPLAINED.get((chain.release, title), ())
    found = [d for d in step.after - step.before if not any(explains(d) for explains in explained)]
    assert "\n".join(map(str, found)) == ""


def _is_built_in(difference: ViewDifference) -> bool:
    """5.5.0 has more system topics and groups, and 0 for a delay level that delivered nothing.

    One of the topics is that of ended transactions, which can then be pulled from.
    """
    if difference.part in ("topics", "groups"):
        return difference.other is None
    if difference.part == "levels":
        return (difference.this, difference.other) == (0, None)
    if difference.part == "records":
        return bool(difference.other == ResponseCode.TOPIC_NOT_EXIST)
    return difference.part in ("searches", "keys") and bool(difference.key[0] == ENDED[0])


def _goes_by_modification_time(difference: ViewDifference) -> bool:
    """4.9.7 searches a timestamp in the first queue file that was modified then or later.

    After a kill the modification time of a file may be wrong (docs/spec/store.md 12.1).
    """
    return difference.part == "searches" and difference.key == LONG_QUEUE


def _is_no_longer_indexed(difference: ViewDifference) -> bool:
    """After a crash, RocketMQ drops the newest index file and indexes only the segments that it recovers.

    See docs/spec/store.md 5.6. With 5.5.0 it depends on where that file begins: 5.5.0 has more entries for a
    message than RewindMQ, so it depends on how many of its files RewindMQ had to drop after the first kill.
    """
    if difference.part != "keys":
        return False
    lacking = Counter(m.commit_log_offset for m in decode_records(difference.other))
    lacking.subtract(m.commit_log_offset for m in decode_records(difference.this))
    return min(lacking.values(), default=0) >= 0


EXPLAINED: Final[dict[tuple[str, str], tuple[Callable[[ViewDifference], bool], ...]]] = {
    (SERVER_4, "RewindMQ killed, opened by RocketMQ"): (_goes_by_modification_time, _is_no_longer_indexed),
    (SERVER_4, "created by RewindMQ, killed, opened by RocketMQ"): (
        _goes_by_modification_time,
        _is_no_longer_indexed,
    ),
    (SERVER_5, "RewindMQ killed, opened by RocketMQ"): (_is_no_longer_indexed,),
    (SERVER_5, "created by RewindMQ, killed, opened by RocketMQ"): (_is_built_in,),
}


@of_each_hand_over
def test_opening_a_store_changes_no_byte_of_its_messages(chain: ChainResults, title: str) -> None:
    assert chain.hand_overs[title].files_changed == []


@of_each_hand_over
def test_fields_of_config_files_stay_when_the_next_broker_writes_them(
    chain: ChainResults, title: str
) -> None:
    step = chain.hand_overs[title]
    lost = lost_members(step.config_before, step.config_after)
    # 5.x derives these from the offsets whenever it writes the file.
    made = ("/consumerOffset/groupTopicMap", "/consumerOffset/pullOffsetTable")
    assert [path for path in lost if path not in made] == []


@pytest.mark.parametrize(
    "chain",
    [pytest.param(link, id=str(link), marks=_marks(link)) for link in map(ChainPlan, PROFILES)],
    indirect=True,
)
def test_every_kind_of_message_exists_in_the_end(chain: ChainResults) -> None:
    """Messages that both kinds of broker stored, after every change of brokers."""
    bodies = {topic: [bytes(m.body) for m in chain.last.messages(topic)] for topic in TOPICS}
    labels = ("one", "two", "three", "four")
    for label in labels:
        mark = label.encode()
        assert sum(body.startswith(mark) for body in bodies["plain"]) == 5
        assert sum(body.startswith(mark) for body in bodies["batch"]) == BATCH * chain.labels[label]
        assert sum(body.startswith(mark) for body in bodies["ordered"]) == 8
        assert bodies["later"].count(b"%b level 1" % mark) == 1
        assert b"%b packs well " % mark * 4_000 in bodies["large"]
        assert b"%b COMMIT_MESSAGE" % mark in bodies["decided"]
        assert b"%b fails" % mark in bodies["failing"]
        assert chain.last.bounds[f"%RETRY%failing-{label}", 0] == (0, RETRIES)
        assert chain.last.bounds[f"%DLQ%failing-{label}", 0] == (0, 1)
        assert chain.last.offsets[f"batch@readers-{label}"][0] > 0
        assert sum(chain.last.offsets[f"ordered@orderly-{label}"].values()) >= 8
    assert len(bodies["large"]) == 2 * len(labels)
    assert sum(len(body) == LARGE_BYTES for body in bodies["large"]) == len(labels)
    assert len(bodies["decided"]) == len(labels)
    assert chain.last.bounds["RMQ_SYS_TRANS_HALF_TOPIC", 0] == (0, 3 * len(labels))
    ended = chain.last.records[ENDED]
    # If the queue cannot be read, it has one message for each.
    count = chain.last.bounds[ENDED][1] if isinstance(ended, int) else ended_count(ended)
    assert count == ENDED_PER_FILL * len(labels)
    assert chain.last.bounds["SCHEDULE_TOPIC_XXXX", 17] == (0, len(labels))
