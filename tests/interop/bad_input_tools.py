"""What tools and requesters ask for in vain: attributes of topics, message types, statistics, replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.interop.bad_input import TOPIC, BadInput, request
from tests.interop.bad_input_fields import SEND

_CREATE, _STATISTICS = 17, 315
# Names of the case to the attributes of one request after the other, all for one topic of the case.
_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "of no such name": ("+colour=red",),
    "of a type that is none": ("+message.type=WRONG",),
    "of a type in lower case": ("+message.type=fifo",),
    "of an empty type": ("+message.type=",),
    "without a value": ("+message.type",),
    "without a sign": ("message.type=FIFO",),
    "twice": ("+message.type=FIFO,+message.type=FIFO",),
    "to remove from a new topic": ("-message.type",),
    "of a type that changes": ("+message.type=FIFO", "+message.type=DELAY"),
    "of a type that is removed twice": ("+message.type=FIFO", "-message.type", "-message.type"),
    "of a queue type that changes": ("+queue.type=SimpleCQ", "-queue.type"),
    "of a queue type that is none": ("+queue.type=Other",),
    "of a clean-up policy that changes": ("+cleanup.policy=DELETE", "+cleanup.policy=COMPACTION"),
    "of a time that is none": ("+reserve.time=x",),
    "of a time out of range": ("+reserve.time=-2",),
    "of signs only": ("++a=b",),
}
# By type of the topic, the properties of a message of another type.
_WRONG_TYPES: Final = {
    "NORMAL": "DELAY\x011\x02",
    "FIFO": "KEYS\x01k\x02",
    "DELAY": "KEYS\x01k\x02",
    "TRANSACTION": "KEYS\x01k\x02",
}
_STATISTIC_FIELDS: Final[dict[str, dict[str, str]]] = {
    "without name and key": {},
    "without a name": {"statsKey": TOPIC},
    "without a key": {"statsName": "TOPIC_PUT_NUMS"},
    "with an empty key": {"statsName": "TOPIC_PUT_NUMS", "statsKey": ""},
    "of no such name": {"statsName": "TOPIC_PUT_NUMBERS", "statsKey": TOPIC},
    "of a topic that does not exist": {"statsName": "TOPIC_PUT_NUMS", "statsKey": "nix"},
    "of a group that does not exist": {"statsName": "GROUP_GET_NUMS", "statsKey": f"{TOPIC}@nix"},
}
_REPLIES: Final = {
    "to nobody": "CORRELATION_ID\x011\x02",
    "to a client that is not there": "CORRELATION_ID\x011\x02REPLY_TO_CLIENT\x01127.0.0.1@nobody\x02",
    "without properties": "",
}
_LETTERS: Final = dict(zip(SEND, "abcdefghijkm", strict=True))


def _create(topic: str, attributes: str) -> bytes:
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": "1",
        "writeQueueNums": "1",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "attributes": attributes,
    }
    return request(_CREATE, fields)


def _cases() -> Iterator[BadInput]:
    for number, (what, each) in enumerate(_ATTRIBUTES.items()):
        topic = f"BadInputAttributes{number}"
        steps = [_create(topic, attributes) for attributes in each]
        yield BadInput(f"attributes {what}", "broker", tuple(steps))
    for kind, properties in _WRONG_TYPES.items():
        topic = f"BadInput{kind.title()}"
        send = request(10, SEND | {"topic": topic, "properties": properties}, b"of another type")
        name = f"a message of another type in a topic of type {kind}"
        yield BadInput(name, "broker", (_create(topic, f"+message.type={kind}"), send))
    for what, fields in _STATISTIC_FIELDS.items():
        yield BadInput(f"a statistic {what}", "broker", (request(_STATISTICS, fields),))
    for what, properties in _REPLIES.items():
        reply = SEND | {"topic": "DefaultCluster_REPLY_TOPIC", "properties": properties}
        letters = {_LETTERS[name]: value for name, value in reply.items()}
        # One after the other, because the first reply creates its topic.
        yield BadInput(f"a reply {what}", "broker", (request(324, reply, b"reply"),), group="replies")
        yield BadInput(f"a short reply {what}", "broker", (request(325, letters, b"reply"),), group="replies")


TOOLS: Final = list(_cases())
