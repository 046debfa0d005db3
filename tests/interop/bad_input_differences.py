"""Differences between RewindMQ's and RocketMQ's answers to bad input, each with its reason.

A row of ``EXPLAINED`` is keyed by the real release (``*``: both) and a pattern of cases' names. Each reason
stands in docs/differences.md, too. A difference that no pattern names fails the suite, and so does a pattern
that no difference needs, and an answer of rewindmq that is none of those given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tools.interop.versions import SERVER_4, SERVER_5

_BOTH: Final = "*"


class Explanation(NamedTuple):
    """One difference of RewindMQ's answer, and its reason.

    Attributes:
        rewindmq: see ``in_short``; one of them.
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
        "4.x reads it, 5.x does not; read under every profile, since any client may come",
        ("0 serves", "0 0 0 serves", "1 serves", "3 serves"),
        [
            (
                SERVER_5,
                (
                    *("header: bare member names", "header: two commas", "header: a byte order mark"),
                    *("header: NaN", "ext fields: NaN", "ext fields: a bare name"),
                    *("34: bare member names", "41: bare member names", "200: bare member names"),
                    *("34: doubled commas", "41: doubled commas", "200: doubled commas"),
                    *("34: a byte order mark", "41: a byte order mark", "200: a byte order mark"),
                    *("34: an unknown member NaN", "41: an unknown member NaN", "200: an unknown member NaN"),
                    "*: an unknown member with bare numbers",
                    "*: an unknown member with object keys",
                    *("34: single quotes", "34: subVersion NaN"),
                ),
            )
        ],
    ),
    **_explained(
        "a header that cannot be read as text or has bytes to spare ends the connection",
        ("closed",),
        [(_BOTH, ("frame: binary: no UTF-8", "frame: binary: bytes behind the ext fields"))],
    ),
    **_explained(
        "a request without opaque is answered as 0, not as a number of the server's own",
        ("3 serves",),
        [(SERVER_4, ("header: opaque null",))],
    ),
    **_explained(
        "numbers have no + before them, true is none, names are spelled exactly, any language will do",
        ("closed", "1 serves", "3 serves"),
        [
            (
                _BOTH,
                (
                    *("header: code true", "ext fields: a text for a number with a sign"),
                    *("header: members in capitals", "header: language a number that nobody has"),
                ),
            )
        ],
    ),
    **_explained(
        "a member that names a Java class is a member like any other",
        ("0 serves", "0 0 serves", "0 0 0 serves", "3 serves"),
        [
            (
                SERVER_4,
                ("header: a class's name", "header: ext fields with a class's name", "*: a class's name"),
            )
        ],
    ),
    **_explained(
        "5.x looks at 12 bytes before it says anything",
        ("closed",),
        [(SERVER_5, ("frame: four zero bytes and no more",))],
    ),
    **_explained(
        "what 5.x alone serves is answered 3",
        ("3 serves",),
        [(SERVER_5, ("code of 5.x: *",))],
    ),
    **_explained(
        "4.x leaves a code that its name server does not know unanswered",
        ("3 serves",),
        [(SERVER_4, ("code of nobody to the name server: *",))],
    ),
    **_explained(
        "some keys of the configuration may change while the broker runs, others are refused",
        ("1 serves",),
        [(_BOTH, ("25: *",))],
    ),
    **_explained(
        "clients of a reset group are told by its members' versions; 5.x moves the group by itself",
        ("0 0 0 serves",),
        [(SERVER_5, ("version *: 34, 15, 222",))],
    ),
    **_explained(
        "a number, flag or name that is missing or cannot be read is refused with 1 before all else",
        ("1 serves",),
        [
            (
                _BOTH,
                (
                    *("10: no fields", "10: * missing", "10: * beyond 64 bits", "10: * no number"),
                    *("10: * with spaces", "10: * empty", "10: * no boolean"),
                    *("310: no fields", "310: ? missing", "310: ? no number"),
                    *("320: no fields", "320: ? missing", "320: ? no number"),
                    *(
                        "11: commitOffset missing",
                        "11: suspendTimeoutMillis missing",
                        "11: subVersion missing",
                    ),
                    *("12: topic missing", "12: key missing", "14: consumerGroup missing"),
                    "15: * missing",
                    *("36: unitMode *", "36: maxReconsumeTimes *"),
                    *("222: * missing", "222: timestamp *", "222: isForce *"),
                ),
            ),
            (SERVER_5, ("15: * beyond 64 bits", "15: * no number", "15: * with spaces", "15: * empty")),
        ],
    ),
    **_explained(
        "0.0 for a whole number is read",
        ("0 serves", "22 serves", "24 serves", "silence serves"),
        [
            (_BOTH, ("1[0124]: * a fraction", "29: * a fraction", "3[0367]: * a fraction")),
            (SERVER_4, ("15: * a fraction",)),
        ],
    ),
    **_explained(
        "in a body, too, nothing is taken for what it is not, and nothing is cut",
        ("1 serves", "1 17 serves", "1 206 0 serves"),
        [
            (
                _BOTH,
                (
                    *(
                        "34: clientID a number",
                        "34: consumerDataSet an object",
                        "34: consumeFromWhere unknown",
                    ),
                    *("34: consumeType unknown", "34: consumeType a number", "34: tagsSet of numbers"),
                    *("34: consumeType in small letters", "34: subVersion with a fraction"),
                    "34: subString a number",
                    *("41: queueId null", "41: queueId missing", "41: topic null", "41: brokerName missing"),
                    *("103: perm with a fraction", "103: topicFilterType unknown", "103: topicName missing"),
                    "103: readQueueNums negative",
                    *("34: clientID null", "34: clientID missing", "34: an empty object"),
                    *("41: an empty object", "46: an empty object"),
                    *("34: a producer without name", "34: a producer null"),
                ),
            ),
            (SERVER_4, ("41: queueId NaN", "200: a list", "34: subVersion beyond 64 bits")),
            (SERVER_5, ("200: an empty object", "34: tagsSet a text")),
        ],
    ),
    **_explained(
        "no body, or null, is refused with 1",
        ("1 serves",),
        [
            (_BOTH, ("46: null", "200: null", "322: null")),
            (SERVER_5, ("46: empty", "200: empty", "322: empty")),
        ],
    ),
    **_explained(
        "a member that is null, or missing where it need not be there, has its default",
        ("0 serves", "0 0 0 serves", "0 206 0 serves"),
        [
            (
                _BOTH,
                (
                    *("34: consumerDataSet null", "34: producerDataSet null", "34: subscriptionDataSet null"),
                    *("34: consumeType missing", "34: messageModel missing", "34: codeSet null"),
                    *("34: subString null", "34: topic null", "34: topic missing", "41: mqSet null"),
                ),
            ),
            (SERVER_4, ("34: subVersion null", "34: subVersion NaN")),
        ],
    ),
    **_explained(
        "bodies may be nested 32 deep",
        ("1 serves", "1 17 serves", "1 206 0 serves"),
        [(SERVER_5, ("*: nested 1,000 deep",))],
    ),
    **_explained(
        "impossible names are refused, since they would be kept in files",
        ("1 serves", "26 serves", "1 206 0 serves"),
        [
            (_BOTH, ("34: groupName empty", "34: groupName impossible")),
            (SERVER_4, ("11: consumerGroup *", "36: group *")),
            (SERVER_4, ("15: topic empty", "15: topic impossible", "15: topic 300 characters")),
            (SERVER_4, ("15: consumerGroup empty", "15: consumerGroup impossible")),
            (SERVER_4, ("15: consumerGroup 300 characters", "15: * negative")),
        ],
    ),
    **_explained(
        "the same code in other words",
        ("13 serves", "29 serves"),
        [
            (SERVER_5, ("10: topic impossible", "10: topic 300 characters")),
            (_BOTH, ("320: f negative",)),
        ],
    ),
    **_explained(
        "a message whose flags would keep it from everybody is refused with 13",
        ("13 serves",),
        [(_BOTH, ("10: sysFlag negative", "10: sysFlag the greatest of 32 bits", "310: f negative"))],
    ),
    **_explained(
        "whoever asks for fewer than one message, or for more than there can be, gets as many as may be",
        ("0 serves", "22 serves"),
        [
            (_BOTH, ("12: maxNum negative",)),
            (SERVER_4, ("11: maxMsgNums negative", "11: maxMsgNums the greatest of 32 bits")),
            (SERVER_4, ("12: maxNum the greatest of 32 bits",)),
        ],
    ),
    **_explained(
        "a body that is no batch is refused with 13, and nothing of it is stored",
        ("13 serves",),
        [(_BOTH, ("320: no body", "320: a batch *"))],
    ),
    **_explained(
        "320 is a batch, whatever its field m says",
        ("0 serves",),
        [(SERVER_5, ("320: m missing",))],
    ),
    **_explained(
        "a message without body is stored, as by 4.x: a tombstone of a compaction topic is one",
        ("0 serves",),
        [(SERVER_5, ("10: no body", "310: no body"))],
    ),
    **_explained(
        "brokers before 3.0.11 are not served: their body is read as everybody's",
        ("0 0 serves", "0 17 serves", "1 17 serves"),
        [(_BOTH, ("103: version 0", "103: version 36", "103: version 0, *", "103: version 36, *"))],
    ),
    **_explained(
        "what newer tools ask is answered under every profile",
        ("1 serves",),
        [(_BOTH, ("code of 5.x: 352",))],
    ),
}
