"""Topic and group rules and subscriptions.

Specification: docs/spec/protocol.md 3.4, 7.2, 7.3, 7.5; docs/spec/broker.md B.1.
"""

import pytest

from rewindmq.protocol import names, text
from rewindmq.protocol.body.heartbeat import EXPRESSION_SQL92
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.subscription import build_subscription_data


@pytest.mark.parametrize("topic", ["T", "a-Z_0|9", "%RETRY%group", "ns%topic", "T" * 127, "TBW102"])
def test_legal_topics(topic: str) -> None:
    names.check_topic(topic)


ILLEGAL = "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("", "The specified topic is blank."),
        (" \t", "The specified topic is blank."),
        ("../../x", ILLEGAL),
        ("a.b", ILLEGAL),
        ("a b", ILLEGAL),
        ("T\n", ILLEGAL),
        ("标", ILLEGAL),
        ("a\0", ILLEGAL),
        ("T" * 128, "The specified topic is longer than topic max length."),
    ],
)
def test_illegal_topics_are_refused_in_rocketmqs_words(topic: str, remark: str) -> None:
    with pytest.raises(RequestError) as refusal:
        names.check_topic(topic)
    assert (refusal.value.code, refusal.value.remark) == (1, remark)


@pytest.mark.parametrize(
    ("group", "remark"),
    [
        ("", "the specified group is blank"),
        ("G" * 256, "the specified group is longer than group max length 255."),
        ("../x", "the specified group[../x] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
    ],
)
def test_illegal_groups_are_refused_in_rocketmqs_words(group: str, remark: str) -> None:
    assert not names.is_valid_group(group)
    with pytest.raises(RequestError) as refusal:
        names.check_group(group)
    assert (refusal.value.code, refusal.value.remark) == (1, remark)
    names.check_group("G" * 255)


@pytest.mark.parametrize(
    "topic",
    [
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    ],
)
def test_topics_the_broker_keeps_for_itself_are_not_sendable(topic: str) -> None:
    with pytest.raises(RequestError) as refusal:
        names.check_sendable(topic)
    assert refusal.value.code == 16
    assert refusal.value.remark == f"Sending message to topic[{topic}] is forbidden."


def test_other_system_topics_are_sendable_but_reserved() -> None:
    for topic in ("TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_anything"):
        names.check_sendable(topic)
        with pytest.raises(RequestError) as refusal:
            names.check_not_system_topic(topic)
        assert refusal.value.remark == f"The topic[{topic}] is conflict with system topic."
    names.check_not_system_topic("%RETRY%g")


def test_derived_names_and_remarks() -> None:
    assert names.retry_topic("g") == "%RETRY%g"
    assert names.dlq_topic("g") == "%DLQ%g"
    suffix = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."
    assert names.topic_not_exist_remark("T") == f"topic[T] not exist, apply first please!{suffix}"


@pytest.mark.parametrize("expression", ["*", "", None])
def test_everything_is_subscribed(expression: str | None) -> None:
    subscription = build_subscription_data("T", expression)
    assert (subscription.sub_string, subscription.tags_set, subscription.code_set) == ("*", set(), set())


def test_tags_are_split_trimmed_and_hashed() -> None:
    subscription = build_subscription_data("T", " TagA || TagB||", sub_version=7)
    assert subscription.sub_string == " TagA || TagB||"
    assert subscription.tags_set == {"TagA", "TagB"}
    assert subscription.code_set == {2598919, 2598920}
    assert (subscription.expression_type, subscription.sub_version) == ("TAG", 7)


def test_an_expression_of_separators_alone_is_code_23() -> None:
    with pytest.raises(RequestError) as refusal:
        build_subscription_data("T", "|| ||")
    assert refusal.value.code == 23


def test_sql92_is_kept_as_it_is() -> None:
    subscription = build_subscription_data("T", "a > 5 || b", EXPRESSION_SQL92)
    assert (subscription.expression_type, subscription.sub_string) == ("SQL92", "a > 5 || b")
    assert subscription.tags_set == set()
    with pytest.raises(RequestError) as refusal:
        build_subscription_data("T", "", EXPRESSION_SQL92)
    assert refusal.value.code == 23


def test_only_hashes_of_short_texts_are_remembered() -> None:
    longest = "t" * text.MAX_REMEMBERED_LENGTH
    for tag in (longest, f"{longest}t"):
        assert text.java_hash(tag) == text.to_int32(text.extend_hash(0, tag))
    assert longest in text.remembered_hashes
    assert f"{longest}t" not in text.remembered_hashes


def test_at_most_so_many_hashes_are_remembered() -> None:
    for number in range(text.MAX_REMEMBERED_HASHES + 1):
        text.java_hash(f"tag {number}")
    assert 0 < len(text.remembered_hashes) <= text.MAX_REMEMBERED_HASHES
