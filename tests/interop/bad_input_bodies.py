"""Request bodies: JSON, the deviations from JSON that fastjson accepts, and unreadable bodies."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from tests.interop.bad_input import TOPIC, BadInput, request
from tests.interop.bad_input_versions import heartbeat

Change = Callable[[str], str]


def _swap(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text, f"{old} is not in {text}"
        return text.replace(old, new, 1)

    return change


_GROUPS: Final = 8

# Changes to any body.
_ANY: Final[dict[str, Change]] = {
    "as written": lambda text: text,
    "single quotes": lambda text: text.replace('"', "'"),
    "bare member names": lambda text: re.sub(r'"(\w+)":', r"\1:", text),
    "trailing commas": lambda text: (
        re.sub(r"([}\]])", r",\1", text).replace("[,]", "[]").replace("{,}", "{}")
    ),
    "doubled commas": lambda text: text.replace(",", ",,"),
    "a comment": lambda text: text.replace("{", "{/* who */", 1),
    "space everywhere": lambda text: re.sub(r"([{}\[\],:])", " \\1\n\t", text),
    "a byte order mark": lambda text: "\ufeff" + text,
    "a zero byte behind": lambda text: text + "\0",
    "something behind": lambda text: text + "}",
    "cut off": lambda text: text[:-1],
    "an unknown member": lambda text: '{"hello":[{"a":null},1.5e3],' + text[1:],
    "an unknown member NaN": lambda text: '{"hello":NaN,' + text[1:],
    "an unknown member Infinity": lambda text: '{"hello":Infinity,' + text[1:],
    "an unknown member with bare numbers": lambda text: '{"hello":{0:1,-7:"x"},' + text[1:],
    "an unknown member with object keys": lambda text: '{"hello":{{"a":1}:2},' + text[1:],
    "a class's name": lambda text: '{"@type":"java.net.Inet4Address",' + text[1:],
    "nested 1,000 deep": lambda text: '{"hello":' + "[" * 1_000 + "]" * 1_000 + "," + text[1:],
    "empty": lambda text: "",
    "an empty object": lambda text: "{}",
    "null": lambda text: "null",
    "a list": lambda text: "[]",
    "a number": lambda text: "5",
    "no JSON": lambda text: "nonsense",
}
_HEARTBEAT: Final[dict[str, Change]] = {
    "a member twice": _swap("{", '{"clientID":"other",'),
    "clientID missing": _swap('"clientID":"127.0.0.1@1",', ""),
    "clientID null": _swap('"127.0.0.1@1"', "null"),
    "clientID a number": _swap('"127.0.0.1@1"', "17"),
    "clientID empty": _swap('"127.0.0.1@1"', '""'),
    "consumerDataSet null": lambda text: re.sub(
        r'"consumerDataSet":.*,"prod', '"consumerDataSet":null,"prod', text
    ),
    "consumerDataSet an object": lambda text: text.replace(
        'Set":[{"consumeFrom', 'Set":{"consumeFrom'
    ).replace('}],"producer', '},"producer'),
    "producerDataSet null": _swap('"producerDataSet":[]', '"producerDataSet":null'),
    "a producer without name": _swap('"producerDataSet":[]', '"producerDataSet":[{}]'),
    "a producer null": _swap('"producerDataSet":[]', '"producerDataSet":[null]'),
    "consumeType unknown": _swap("CONSUME_PASSIVELY", "CONSUME_BY_MAGIC"),
    "consumeType a number": _swap('"CONSUME_PASSIVELY"', "1"),
    "consumeType in small letters": _swap("CONSUME_PASSIVELY", "consume_passively"),
    "consumeType missing": _swap('"consumeType":"CONSUME_PASSIVELY",', ""),
    "messageModel missing": _swap('"messageModel":"CLUSTERING",', ""),
    "consumeFromWhere unknown": _swap("CONSUME_FROM_LAST_OFFSET", "ANYWHERE"),
    "groupName missing": lambda text: re.sub(r'"groupName":"[^"]*",', "", text),
    "groupName null": lambda text: re.sub(r'"groupName":"[^"]*"', '"groupName":null', text),
    "groupName empty": lambda text: re.sub(r'"groupName":"[^"]*"', '"groupName":""', text),
    "groupName impossible": lambda text: re.sub(r'"groupName":"([^"]*)"', '"groupName":"\\1 and more"', text),
    "subscriptionDataSet null": lambda text: re.sub(r'(DataSet":)\[\{"class.*?\}\]', r"\1null", text),
    "subscriptionDataSet empty": lambda text: re.sub(r'(DataSet":)\[\{"class.*?\}\]', r"\1[]", text),
    "subVersion as text": _swap("1700000000000", '"1700000000000"'),
    "subVersion null": _swap("1700000000000", "null"),
    "subVersion NaN": _swap("1700000000000", "NaN"),
    "subVersion Infinity": _swap("1700000000000", "Infinity"),
    "subVersion with a fraction": _swap("1700000000000", "1700000000000.5"),
    "subVersion with an exponent": _swap("1700000000000", "1.7e12"),
    "subVersion beyond 64 bits": _swap("1700000000000", "99999999999999999999"),
    "subVersion no number": _swap("1700000000000", '"now"'),
    "codeSet null": _swap('"codeSet":[]', '"codeSet":null'),
    "codeSet of texts": _swap('"codeSet":[]', '"codeSet":["2598919"]'),
    "codeSet beyond 32 bits": _swap('"codeSet":[]', '"codeSet":[9999999999]'),
    "tagsSet of numbers": _swap('"tagsSet":[]', '"tagsSet":[5]'),
    "tagsSet a text": _swap('"tagsSet":[]', '"tagsSet":"TagA"'),
    "subString null": _swap('"subString":"*"', '"subString":null'),
    "subString a number": _swap('"subString":"*"', '"subString":5'),
    "expressionType unknown": _swap('"expressionType":"TAG"', '"expressionType":"XPATH"'),
    "expressionType SQL92 that cannot be read": lambda text: _swap('"subString":"*"', '"subString":"a >"')(
        _swap('"TAG"', '"SQL92"')(text)
    ),
    "topic null": _swap(f'"topic":"{TOPIC}"', '"topic":null'),
    "topic missing": _swap(f',"topic":"{TOPIC}"', ""),
    "unitMode as text": _swap('"unitMode":false', '"unitMode":"true"'),
    "unitMode a number": _swap('"unitMode":false', '"unitMode":1'),
    "unitMode no boolean": _swap('"unitMode":false', '"unitMode":"maybe"'),
}
_LOCK: Final = (
    '{"clientId":"127.0.0.1@1","consumerGroup":"GROUP",'
    f'"mqSet":[{{"brokerName":"broker-a","queueId":0,"topic":"{TOPIC}"}}]}}'
)
_LOCK_CHANGES: Final[dict[str, Change]] = {
    "clientId missing": _swap('"clientId":"127.0.0.1@1",', ""),
    "consumerGroup missing": lambda text: re.sub(r'"consumerGroup":"[^"]*",', "", text),
    "mqSet missing": lambda text: re.sub(r',"mqSet":.*', "}", text),
    "mqSet null": lambda text: re.sub(r'"mqSet":.*', '"mqSet":null}', text),
    "mqSet empty": lambda text: re.sub(r'"mqSet":.*', '"mqSet":[]}', text),
    "mqSet with null": lambda text: re.sub(r'"mqSet":.*', '"mqSet":[null]}', text),
    "mqSet of texts": lambda text: re.sub(r'"mqSet":.*', '"mqSet":["a"]}', text),
    "queueId as text": _swap('"queueId":0', '"queueId":"0"'),
    "queueId null": _swap('"queueId":0', '"queueId":null'),
    "queueId NaN": _swap('"queueId":0', '"queueId":NaN'),
    "queueId beyond 32 bits": _swap('"queueId":0', '"queueId":4294967296'),
    "queueId missing": _swap('"queueId":0,', ""),
    "topic null": _swap(f'"{TOPIC}"', "null"),
    "brokerName missing": _swap('"brokerName":"broker-a",', ""),
    "the same queue twice": lambda text: re.sub(r"\[(.*)\]", r"[\1,\1]", text),
}
_REGISTRATION: Final = (
    '{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":1700000000000},'
    '"topicConfigTable":{"NAME":{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
    '"topicName":"NAME","topicSysFlag":0,"writeQueueNums":4}}}}'
)
_REGISTRATION_CHANGES: Final[dict[str, Change]] = {
    "numbers as text": lambda text: text.replace("4", '"4"').replace('"perm":6', '"perm":"6"'),
    "perm null": _swap('"perm":6', '"perm":null'),
    "perm NaN": _swap('"perm":6', '"perm":NaN'),
    "perm beyond 32 bits": _swap('"perm":6', '"perm":4294967302'),
    "perm with a fraction": _swap('"perm":6', '"perm":6.7'),
    "perm missing": _swap('"perm":6,', ""),
    "topicFilterType unknown": _swap("SINGLE_TAG", "NO_TAG"),
    "topicFilterType missing": _swap('"topicFilterType":"SINGLE_TAG",', ""),
    "topicName missing": lambda text: re.sub(r'"topicName":"\w*",', "", text),
    "order as text": _swap('"order":false', '"order":"true"'),
    "readQueueNums negative": _swap('"readQueueNums":4', '"readQueueNums":-4'),
    "topicConfigTable null": lambda text: re.sub(r'"topicConfigTable":.*', '"topicConfigTable":null}}', text),
    "a topic null": lambda text: re.sub(r'("topicConfigTable":\{"\w*":).*', r"\1null}}}", text),
    "dataVersion null": lambda text: re.sub(r'"dataVersion":\{[^}]*\}', '"dataVersion":null', text),
    "dataVersion missing": lambda text: re.sub(r'"dataVersion":\{[^}]*\},', "", text),
    "counter NaN": _swap('"counter":1', '"counter":NaN'),
    "filterServerList null": _swap('"filterServerList":[]', '"filterServerList":null'),
    "the wrapper alone": lambda text: re.sub(r'.*"topicConfigSerializeWrapper":(.*)\}', r"\1", text),
    "the wrapper null": lambda text: '{"filterServerList":[],"topicConfigSerializeWrapper":null}',
}


def _heartbeats() -> Iterator[BadInput]:
    # A new group creates a topic and writes a file, so a few groups are shared.
    for number, (name, change) in enumerate((_ANY | _HEARTBEAT).items()):
        group = f"heartbeat{number % _GROUPS}"
        leave = {"clientID": "127.0.0.1@1", "consumerGroup": group}
        steps = (
            request(34, body=change(heartbeat(group))),
            request(203, {"consumerGroup": group}),
            request(35, leave),
        )
        yield BadInput(f"HEART_BEAT (34): {name}", "broker", steps, shows_body=True, group=group)


def _locks() -> Iterator[BadInput]:
    for number, (name, change) in enumerate((_ANY | _LOCK_CHANGES).items()):
        body = change(_LOCK.replace("GROUP", f"lock{number}"))
        yield BadInput(f"LOCK_BATCH_MQ (41): {name}", "broker", (request(41, body=body),), shows_body=True)
    for name in ("as written", "single quotes", "empty", "null", "no JSON"):
        body = _ANY[name](_LOCK.replace("GROUP", "lock"))
        yield BadInput(f"UNLOCK_BATCH_MQ (42): {name}", "broker", (request(42, body=body),), shows_body=True)


def _registration(name: str, number: int, body: bytes, **fields: object) -> BadInput:
    """Return a case that registers a broker and then asks for the route of the broker's topic."""
    broker = f"stranger-{number}"
    header = {
        "brokerName": broker,
        "brokerAddr": f"127.0.0.1:{1_000 + number}",
        "clusterName": "Strangers",
        "haServerAddr": f"127.0.0.1:{3_000 + number}",
        "brokerId": "0",
    } | {key: value for key, value in fields.items() if key != "version"}
    version = {"version": fields["version"]} if "version" in fields else {}
    steps = (request(103, header, body, **version), request(105, {"topic": f"Strange{number}"}))
    return BadInput(f"REGISTER_BROKER (103): {name}", "namesrv", steps, shows_body=True)


def _registrations() -> Iterator[BadInput]:
    changes = _ANY | _REGISTRATION_CHANGES
    for number, (name, change) in enumerate(changes.items()):
        body = change(_REGISTRATION.replace("NAME", f"Strange{number}")).encode()
        yield _registration(name, number, body)
    whole = _REGISTRATION.replace("NAME", "Strange{}")
    number = len(changes)
    for version in (0, 36, 37):
        body = whole.replace("{}", str(number)).encode()
        yield _registration(f"version {version}", number, body, version=version)
        number += 1
    for version in (0, 36):
        body = changes["the wrapper alone"](whole.replace("{}", str(number))).encode()
        yield _registration(f"version {version}, the wrapper alone", number, body, version=version)
        number += 1
    body = whole.replace("{}", str(number)).encode()
    yield _registration("a wrong checksum", number, body, bodyCrc32="1")
    yield _registration("compressed, but is not", number + 1, body, compressed="true")
    yield _registration("compressed nonsense", number + 2, zlib.compress(b"nonsense"), compressed="true")
    yield _registration("compressed emptiness", number + 3, zlib.compress(b""), compressed="true")


def _others() -> Iterator[BadInput]:
    settings = '{"groupName":"settings","retryMaxTimes":3,"consumeEnable":true,"retryQueueNums":1}'
    for name in _ANY:
        yield BadInput(
            f"UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): {name}",
            "broker",
            (request(200, body=_ANY[name](settings)),),
        )
    version = '{"counter":1,"timestamp":1700000000000}'
    fields = {"brokerName": "x", "brokerAddr": "127.0.0.1:1", "clusterName": "x", "brokerId": "0"}
    for name in ("as written", "single quotes", "empty", "null", "no JSON", "an empty object"):
        yield BadInput(
            f"QUERY_DATA_VERSION (322): {name}", "namesrv", (request(322, fields, _ANY[name](version)),)
        )
    check = (
        '{"clientId":"c","group":"checks","subscriptionData":{"topic":"'
        + TOPIC
        + '","subString":"a = 1","expressionType":"SQL92","subVersion":1}}'
    )
    for name in ("as written", "single quotes", "empty", "null", "no JSON", "an empty object"):
        yield BadInput(f"CHECK_CLIENT_CONFIG (46): {name}", "broker", (request(46, body=_ANY[name](check)),))
    for name, text in {
        "not a line of a property file": "\\",
        "no key": "=5",
        # RocketMQ takes it for false, which is the default, so no other case sees a change.
        "no value": "slaveReadEnable",
        "empty": "",
        "an unknown key": "nobodyKnows=this",
    }.items():
        yield BadInput(f"UPDATE_BROKER_CONFIG (25): {name}", "broker", (request(25, body=text),))


BODIES: Final = [*_heartbeats(), *_locks(), *_registrations(), *_others()]
