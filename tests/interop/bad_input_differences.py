"""Differences between RewindMQ's and RocketMQ's answers to bad input, each with its reason.

The keys of ``EXPLAINED`` are RocketMQ's release (``*``: both) and a pattern of case names. Each reason is
also in docs/differences.md. The suite fails for a difference without a pattern, for a pattern without a
difference, and for an answer of RewindMQ that its explanation does not list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tools.interop.versions import SERVER_4, SERVER_5

_BOTH: Final = "*"


class Explanation(NamedTuple):
    """A difference of RewindMQ's answer, and its reason.

    Attributes:
        rewindmq: the possible reactions of RewindMQ, see ``in_short``.
    """

    why: str
    rewindmq: tuple[str, ...]


def _explained(
    why: str, rewindmq: tuple[str, ...], rows: Iterable[tuple[str, Iterable[str]]]
) -> dict[tuple[str, str], Explanation]:
    return {
        (release, pattern): Explanation(why, rewindmq) for release, patterns in rows for pattern in patterns
    }


EXPLAINED: Final[dict[tuple[str, str], Explanation]] = {
    **_explained(
        "4.x reads it, 5.x does not; RewindMQ reads it under every profile, since any client may connect",
        ("0 serves", "0 0 0 serves", "1 serves", "3 serves"),
        [
            (
                SERVER_5,
                (
                    *("header: bare member names", "header: two commas", "header: a byte order mark"),
                    *("header: NaN", "ext fields: NaN", "ext fields: a bare name"),
                    *(
                        "HEART_BEAT (34): bare member names",
                        "LOCK_BATCH_MQ (41): bare member names",
                        "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): bare member names",
                    ),
                    *(
                        "HEART_BEAT (34): doubled commas",
                        "LOCK_BATCH_MQ (41): doubled commas",
                        "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): doubled commas",
                    ),
                    *(
                        "HEART_BEAT (34): a byte order mark",
                        "LOCK_BATCH_MQ (41): a byte order mark",
                        "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): a byte order mark",
                    ),
                    *(
                        "HEART_BEAT (34): an unknown member NaN",
                        "LOCK_BATCH_MQ (41): an unknown member NaN",
                        "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): an unknown member NaN",
                    ),
                    "*: an unknown member with bare numbers",
                    "*: an unknown member with object keys",
                    *("HEART_BEAT (34): single quotes", "HEART_BEAT (34): subVersion NaN"),
                ),
            )
        ],
    ),
    **_explained(
        "RewindMQ closes the connection after a header that is no text or has extra bytes",
        ("closed",),
        [(_BOTH, ("frame: binary: no UTF-8", "frame: binary: bytes behind the ext fields"))],
    ),
    **_explained(
        "the answer to a request without opaque has opaque 0, not a number of the server's own",
        ("3 serves",),
        [(SERVER_4, ("header: opaque null",))],
    ),
    **_explained(
        "a number has no plus sign, true is no number, names are spelled exactly, any language is accepted",
        ("closed", "1 serves", "3 serves"),
        [
            (
                _BOTH,
                (
                    *("header: code true", "ext fields: a text for a number with a sign"),
                    *("header: members in capitals", "header: language an unassigned number"),
                ),
            )
        ],
    ),
    **_explained(
        "a field that names a Java class has no special meaning",
        ("0 serves", "0 0 serves", "0 0 0 serves", "3 serves"),
        [
            (
                SERVER_4,
                ("header: a class's name", "header: ext fields with a class's name", "*: a class's name"),
            )
        ],
    ),
    **_explained(
        "5.x waits for 12 bytes before it reacts",
        ("closed",),
        [(SERVER_5, ("frame: four zero bytes and no more",))],
    ),
    **_explained(
        "5.x fails later if fields are missing, and without timers; RewindMQ says what is missing",
        ("0 serves", "1 serves", "208 serves"),
        [(SERVER_5, ("code of 5.x: 60", "code of 5.x: 370", "code of 5.x: 200151"))],
    ),
    **_explained(
        "requests that only 5.x serves get REQUEST_CODE_NOT_SUPPORTED (3)",
        ("3 serves",),
        [(SERVER_5, ("code of 5.x: *",))],
    ),
    **_explained(
        "the name server of 4.x does not answer a code that it does not know",
        ("3 serves",),
        [(SERVER_4, ("unassigned code to the name server: *",))],
    ),
    **_explained(
        "some keys of the configuration may be changed while the broker runs, others are refused",
        ("1 serves",),
        [(_BOTH, ("UPDATE_BROKER_CONFIG (25): *",))],
    ),
    **_explained(
        "RewindMQ resets a group as the versions of its consumers allow; 5.x changes the offsets by itself",
        ("0 0 0 serves",),
        [
            (
                SERVER_5,
                ("version *: HEART_BEAT (34), *, INVOKE_BROKER_TO_RESET_OFFSET (222)",),
            )
        ],
    ),
    **_explained(
        "a missing or unreadable number, flag or name is refused first, with SYSTEM_ERROR (1)",
        ("1 serves",),
        [
            (
                _BOTH,
                (
                    *(
                        "SEND_MESSAGE (10): no fields",
                        "SEND_MESSAGE (10): * missing",
                        "SEND_MESSAGE (10): * beyond 64 bits",
                        "SEND_MESSAGE (10): * no number",
                    ),
                    *(
                        "SEND_MESSAGE (10): * with spaces",
                        "SEND_MESSAGE (10): * empty",
                        "SEND_MESSAGE (10): * no boolean",
                    ),
                    *(
                        "SEND_MESSAGE_V2 (310): no fields",
                        "SEND_MESSAGE_V2 (310): ? missing",
                        "SEND_MESSAGE_V2 (310): ? no number",
                    ),
                    *(
                        "SEND_BATCH_MESSAGE (320): no fields",
                        "SEND_BATCH_MESSAGE (320): ? missing",
                        "SEND_BATCH_MESSAGE (320): ? no number",
                    ),
                    *(
                        "PULL_MESSAGE (11): commitOffset missing",
                        "PULL_MESSAGE (11): suspendTimeoutMillis missing",
                        "PULL_MESSAGE (11): subVersion missing",
                    ),
                    *(
                        "QUERY_MESSAGE (12): topic missing",
                        "QUERY_MESSAGE (12): key missing",
                        "QUERY_CONSUMER_OFFSET (14): consumerGroup missing",
                    ),
                    "UPDATE_CONSUMER_OFFSET (15): * missing",
                    *(
                        "CONSUMER_SEND_MSG_BACK (36): unitMode *",
                        "CONSUMER_SEND_MSG_BACK (36): maxReconsumeTimes *",
                    ),
                    *(
                        "INVOKE_BROKER_TO_RESET_OFFSET (222): * missing",
                        "INVOKE_BROKER_TO_RESET_OFFSET (222): timestamp *",
                        "INVOKE_BROKER_TO_RESET_OFFSET (222): isForce *",
                    ),
                ),
            ),
            (
                SERVER_5,
                (
                    "UPDATE_CONSUMER_OFFSET (15): * beyond 64 bits",
                    "UPDATE_CONSUMER_OFFSET (15): * no number",
                    "UPDATE_CONSUMER_OFFSET (15): * with spaces",
                    "UPDATE_CONSUMER_OFFSET (15): * empty",
                ),
            ),
        ],
    ),
    **_explained(
        "0.0 is accepted for a whole number",
        ("0 serves", "22 serves", "24 serves", "silence serves"),
        [
            (
                _BOTH,
                (
                    "* (1[0124]): * a fraction",
                    "SEARCH_OFFSET_BY_TIMESTAMP (29): * a fraction",
                    "* (3[0367]): * a fraction",
                ),
            ),
            (SERVER_4, ("UPDATE_CONSUMER_OFFSET (15): * a fraction",)),
        ],
    ),
    **_explained(
        "in a body, too, a value of the wrong type is refused and no number is truncated",
        ("1 serves", "1 17 serves", "1 206 0 serves"),
        [
            (
                _BOTH,
                (
                    *(
                        "HEART_BEAT (34): clientID a number",
                        "HEART_BEAT (34): consumerDataSet an object",
                        "HEART_BEAT (34): consumeFromWhere unknown",
                    ),
                    *(
                        "HEART_BEAT (34): consumeType unknown",
                        "HEART_BEAT (34): consumeType a number",
                        "HEART_BEAT (34): tagsSet of numbers",
                    ),
                    *(
                        "HEART_BEAT (34): consumeType in small letters",
                        "HEART_BEAT (34): subVersion with a fraction",
                    ),
                    "HEART_BEAT (34): subString a number",
                    *(
                        "LOCK_BATCH_MQ (41): queueId null",
                        "LOCK_BATCH_MQ (41): queueId missing",
                        "LOCK_BATCH_MQ (41): topic null",
                        "LOCK_BATCH_MQ (41): brokerName missing",
                    ),
                    *(
                        "REGISTER_BROKER (103): perm with a fraction",
                        "REGISTER_BROKER (103): topicFilterType unknown",
                        "REGISTER_BROKER (103): topicName missing",
                    ),
                    "REGISTER_BROKER (103): readQueueNums negative",
                    *(
                        "HEART_BEAT (34): clientID null",
                        "HEART_BEAT (34): clientID missing",
                        "HEART_BEAT (34): an empty object",
                    ),
                    *("LOCK_BATCH_MQ (41): an empty object", "CHECK_CLIENT_CONFIG (46): an empty object"),
                    *("HEART_BEAT (34): a producer without name", "HEART_BEAT (34): a producer null"),
                ),
            ),
            (
                SERVER_4,
                (
                    "LOCK_BATCH_MQ (41): queueId NaN",
                    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): a list",
                    "HEART_BEAT (34): subVersion beyond 64 bits",
                ),
            ),
            (
                SERVER_5,
                (
                    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): an empty object",
                    "HEART_BEAT (34): tagsSet a text",
                ),
            ),
        ],
    ),
    **_explained(
        "a missing or null body is refused with SYSTEM_ERROR (1)",
        ("1 serves",),
        [
            (
                _BOTH,
                (
                    "CHECK_CLIENT_CONFIG (46): null",
                    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): null",
                    "QUERY_DATA_VERSION (322): null",
                ),
            ),
            (
                SERVER_5,
                (
                    "CHECK_CLIENT_CONFIG (46): empty",
                    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): empty",
                    "QUERY_DATA_VERSION (322): empty",
                ),
            ),
        ],
    ),
    **_explained(
        "a null field, or a missing optional field, has its default",
        ("0 serves", "0 0 0 serves", "0 206 0 serves"),
        [
            (
                _BOTH,
                (
                    *(
                        "HEART_BEAT (34): consumerDataSet null",
                        "HEART_BEAT (34): producerDataSet null",
                        "HEART_BEAT (34): subscriptionDataSet null",
                    ),
                    *(
                        "HEART_BEAT (34): consumeType missing",
                        "HEART_BEAT (34): messageModel missing",
                        "HEART_BEAT (34): codeSet null",
                    ),
                    *(
                        "HEART_BEAT (34): subString null",
                        "HEART_BEAT (34): topic null",
                        "HEART_BEAT (34): topic missing",
                        "LOCK_BATCH_MQ (41): mqSet null",
                    ),
                ),
            ),
            (SERVER_4, ("HEART_BEAT (34): subVersion null", "HEART_BEAT (34): subVersion NaN")),
        ],
    ),
    **_explained(
        "a body may be nested 32 levels deep",
        ("1 serves", "1 17 serves", "1 206 0 serves"),
        [(SERVER_5, ("*: nested 1,000 deep",))],
    ),
    **_explained(
        "invalid names are refused, since they would be stored in files",
        ("1 serves", "26 serves", "1 206 0 serves"),
        [
            (_BOTH, ("HEART_BEAT (34): groupName empty", "HEART_BEAT (34): groupName impossible")),
            (SERVER_4, ("PULL_MESSAGE (11): consumerGroup *", "CONSUMER_SEND_MSG_BACK (36): group *")),
            (
                SERVER_4,
                (
                    "UPDATE_CONSUMER_OFFSET (15): topic empty",
                    "UPDATE_CONSUMER_OFFSET (15): topic impossible",
                    "UPDATE_CONSUMER_OFFSET (15): topic 300 characters",
                ),
            ),
            (
                SERVER_4,
                (
                    "UPDATE_CONSUMER_OFFSET (15): consumerGroup empty",
                    "UPDATE_CONSUMER_OFFSET (15): consumerGroup impossible",
                ),
            ),
            (
                SERVER_4,
                (
                    "UPDATE_CONSUMER_OFFSET (15): consumerGroup 300 characters",
                    "UPDATE_CONSUMER_OFFSET (15): * negative",
                ),
            ),
        ],
    ),
    **_explained(
        "the same code with another remark",
        ("13 serves", "29 serves"),
        [
            (SERVER_5, ("SEND_MESSAGE (10): topic impossible", "SEND_MESSAGE (10): topic 300 characters")),
            (_BOTH, ("SEND_BATCH_MESSAGE (320): f negative",)),
        ],
    ),
    **_explained(
        "a message whose flags would hide it from every consumer is refused with MESSAGE_ILLEGAL (13)",
        ("13 serves",),
        [
            (
                _BOTH,
                (
                    "SEND_MESSAGE (10): sysFlag negative",
                    "SEND_MESSAGE (10): sysFlag the greatest of 32 bits",
                    "SEND_MESSAGE_V2 (310): f negative",
                ),
            )
        ],
    ),
    **_explained(
        "a request for fewer than one message or for too many messages gets as many as allowed",
        ("0 serves", "22 serves"),
        [
            (_BOTH, ("QUERY_MESSAGE (12): maxNum negative",)),
            (
                SERVER_4,
                (
                    "PULL_MESSAGE (11): maxMsgNums negative",
                    "PULL_MESSAGE (11): maxMsgNums the greatest of 32 bits",
                ),
            ),
            (SERVER_4, ("QUERY_MESSAGE (12): maxNum the greatest of 32 bits",)),
        ],
    ),
    **_explained(
        "a body that is no batch is refused with MESSAGE_ILLEGAL (13), and nothing of it is stored",
        ("13 serves",),
        [(_BOTH, ("SEND_BATCH_MESSAGE (320): no body", "SEND_BATCH_MESSAGE (320): a batch *"))],
    ),
    **_explained(
        "SEND_BATCH_MESSAGE (320) is a batch, whatever its field m says",
        ("0 serves",),
        [(SERVER_5, ("SEND_BATCH_MESSAGE (320): m missing",))],
    ),
    **_explained(
        "a message without a body is stored, as by 4.x: it is a tombstone of a compaction topic",
        ("0 serves",),
        [(SERVER_5, ("SEND_MESSAGE (10): no body", "SEND_MESSAGE_V2 (310): no body"))],
    ),
    **_explained(
        "brokers before 3.0.11 are not supported: their body is read like any other",
        ("0 0 serves", "0 17 serves", "1 17 serves"),
        [
            (
                _BOTH,
                (
                    "REGISTER_BROKER (103): version 0",
                    "REGISTER_BROKER (103): version 36",
                    "REGISTER_BROKER (103): version 0, *",
                    "REGISTER_BROKER (103): version 36, *",
                ),
            )
        ],
    ),
    **_explained(
        "RewindMQ stores clean-up policies under every profile, and like 5.x it does not change them",
        ("0 1 serves",),
        [(SERVER_4, ("attributes of a clean-up policy that changes",))],
    ),
    **_explained(
        "5.x fails on an empty value with Java's text for an index; RewindMQ says what is wrong",
        ("1 serves",),
        [(SERVER_5, ("attributes of an empty type",))],
    ),
}
