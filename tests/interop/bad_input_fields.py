"""Extension fields that are missing, of the wrong type or out of range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.interop.bad_input import TOPIC, BadInput, named, request
from tests.interop.bad_input_versions import pull

# A topic of its own, so that no other case sees the stored messages.
_SENT: Final = "BadInputSent"
SEND: Final = {
    "producerGroup": "fields",
    "topic": _SENT,
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "0",
    "properties": "",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}
# The names of these fields in SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320).
_LETTERS: Final = dict(zip(SEND, "abcdefghijkm", strict=True))
_SEND_V2: Final = {_LETTERS[name]: value for name, value in SEND.items()}
_OF_A_QUEUE: Final = {"topic": TOPIC, "queueId": "0"}

_REQUESTS: Final[dict[int, dict[str, str]]] = {
    10: SEND,
    11: {name: str(value) for name, value in pull("fields11").items()},
    12: {"topic": TOPIC, "key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": "1"},
    14: {"consumerGroup": "fields14", **_OF_A_QUEUE},
    15: {"consumerGroup": "fields15", **_OF_A_QUEUE, "commitOffset": "0"},
    29: {**_OF_A_QUEUE, "timestamp": "0"},
    30: _OF_A_QUEUE,
    33: {"offset": "0"},
    36: {
        "offset": "0",
        "group": "fields36",
        "delayLevel": "0",
        "originMsgId": "",
        "originTopic": TOPIC,
        "unitMode": "false",
        "maxReconsumeTimes": "16",
    },
    37: {
        "producerGroup": "fields",
        "tranStateTableOffset": "0",
        "commitLogOffset": "0",
        "commitOrRollback": "8",
        "fromTransactionCheck": "false",
        "msgId": "0",
        "transactionId": "0",
    },
    222: {"topic": TOPIC, "group": "fields222", "timestamp": "0", "isForce": "true"},
    310: _SEND_V2,
    320: _SEND_V2 | {"m": "true"},
}
_BODIES: Final = {
    10: b"body",
    310: b"body",
    # One message of 4 bytes without properties.
    320: bytes.fromhex("0000001a 00000000 00000000 00000000 00000004") + b"body" + b"\0\0",
}
_NUMBERS: Final = {
    "negative": "-1",
    "the greatest of 32 bits": str(2**31 - 1),
    "beyond 64 bits": "9" * 20,
    "no number": "five",
    "a fraction": "0.0",
    "with spaces": " 0",
    "empty": "",
}
_TEXTS: Final = {"empty": "", "impossible": "with space/and\u00e9", "300 characters": "x" * 300}


def _values(code: int, value: str) -> dict[str, str]:
    if code in (310, 320):
        # SEND_MESSAGE (10) covers the rest: only the reading of numbers differs.
        return {"no number": "five", "negative": "-1"} if value.isdigit() else {}
    if value.lstrip("-").isdigit():
        return _NUMBERS
    return {"no boolean": "maybe", "empty": ""} if value in ("true", "false") else _TEXTS


def _cases() -> Iterator[BadInput]:
    for code, fields in _REQUESTS.items():
        body = _BODIES.get(code, b"")
        yield BadInput(f"{named(code)}: as it should be", "broker", (request(code, fields, body),))
        yield BadInput(f"{named(code)}: no fields", "broker", (request(code, None, body),))
        for name, value in fields.items():
            missing = {other: fields[other] for other in fields if other != name}
            yield BadInput(f"{named(code)}: {name} missing", "broker", (request(code, missing, body),))
            for how, wrong in _values(code, value).items():
                changed = fields | {name: wrong}
                yield BadInput(f"{named(code)}: {name} {how}", "broker", (request(code, changed, body),))
    for code in (10, 310, 320):
        yield BadInput(f"{named(code)}: no body", "broker", (request(code, _REQUESTS[code]),))
    batch = _BODIES[320]
    for how, body in {
        "cut off": batch[:-3],
        "of a length too great": b"\0\0\1\0" + batch[4:],
        "of length 0": bytes(4) + batch[4:],
        "of a negative length": b"\xff" * 4 + batch[4:],
        "no batch": b"hello, world",
    }.items():
        yield BadInput(f"{named(320)}: a batch {how}", "broker", (request(320, _REQUESTS[320], body),))


FIELDS: Final = list(_cases())
