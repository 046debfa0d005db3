"""Requests of other releases: old versions, codes of 5.x, and credentials that the server ignores."""

from __future__ import annotations

import json
from typing import Final

from tests.interop.bad_input import TOPIC, BadInput, named, request

# MQVersion: unset, up to and from 3.0.7, 4.2.0, up to and from 4.9.4, beyond all.
_VERSIONS: Final = (-1, 0, 27, 28, 252, 400, 401, 100_000)

# Codes of 5.x that 4.9 does not know.
_CODES_OF_5: Final = (
    *(18, 47, 60, 61, 225, 343, 345, 351, 352, 353, 354, 355, 361, 370, 400, 401, 402, 513),
    *(901, 902, 903, 904, 905, 906, 907, 908),
    *range(1_001, 1_014),
    *range(2_001, 2_005),
    *range(3_001, 3_011),
    *(200_050, 200_051, 200_052, 200_053, 200_054, 200_055, 200_056, 200_071, 200_151, 200_152),
)
# Codes that are reserved, retired, or served by clients only.
_UNASSIGNED_CODES: Final = (0, 9, 16, 19, 22, 23, 27, 99, 107, 209, 213, 214, 302, 12_345, -1, 2_147_483_647)

_CREDENTIALS: Final = {
    "a wrong signature": {"AccessKey": "somebody", "Signature": "bm90IGEgc2lnbmF0dXJl"},
    "a signature that is no Base64": {"AccessKey": "somebody", "Signature": "?"},
    "an empty access key": {"AccessKey": "", "Signature": "bm90IGEgc2lnbmF0dXJl"},
    "a signature without an access key": {"Signature": "bm90IGEgc2lnbmF0dXJl"},
    "a token": {
        "AccessKey": "somebody",
        "Signature": "eA==",
        "SecurityToken": "token",
        "OnsChannel": "ALIYUN",
    },
}


def heartbeat(group: str, client: str = "127.0.0.1@1") -> str:
    """Return the body of the HEART_BEAT (34) of a push consumer of ``TOPIC``."""
    subscription = {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": "TAG",
        "subString": "*",
        "subVersion": 1_700_000_000_000,
        "tagsSet": [],
        "topic": TOPIC,
    }
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [subscription],
        "unitMode": False,
    }
    data = {"clientID": client, "consumerDataSet": [consumer], "producerDataSet": []}
    return json.dumps(data, separators=(",", ":"))


def pull(group: str, **fields: object) -> dict[str, object]:
    """Return extension fields of a PULL_MESSAGE (11) that needs no heartbeat and is answered at once."""
    return {
        "consumerGroup": group,
        "topic": TOPIC,
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    } | fields


def _of_version(version: int) -> list[BadInput]:
    group = f"version{version}"
    reset_group = f"{group}r"
    commit = {"consumerGroup": reset_group, "topic": TOPIC, "queueId": "0", "commitOffset": "1"}
    reset = {"topic": TOPIC, "group": reset_group, "timestamp": "0", "isForce": "true"}
    return [
        BadInput(
            f"version {version}: {named(105)}",
            "namesrv",
            (request(105, {"topic": "TBW102"}, version=version),),
            shows_body=True,
        ),
        BadInput(f"version {version}: {named(11)}", "broker", (request(11, pull("old"), version=version),)),
        BadInput(
            f"version {version}: {named(34)}, {named(203)}",
            "broker",
            (
                request(34, body=heartbeat(group), version=version),
                request(203, {"consumerGroup": group}, version=version),
            ),
            shows_body=True,
        ),
        BadInput(
            f"version {version}: {named(34)}, {named(15)}, {named(222)}",
            "broker",
            (
                request(34, body=heartbeat(reset_group), version=version),
                request(15, commit, version=version),
                request(222, reset),
            ),
            shows_body=True,
        ),
    ]


def _with_credentials(name: str, fields: dict[str, str]) -> list[BadInput]:
    group = "credentials"
    offset = {"consumerGroup": group, "topic": TOPIC, "queueId": "0"}
    requests = {
        105: request(105, {"topic": "TBW102"} | fields),
        34: request(34, fields, heartbeat(group)),
        15: request(15, offset | {"commitOffset": "0"} | fields),
        25: request(25, fields, "autoCreateTopicEnable=true"),
        30: request(30, {"topic": TOPIC, "queueId": "0"} | fields),
    }
    # One after another, because 5.x commits only for groups that it knows.
    return [
        BadInput(f"{name}: {named(code)}", "namesrv" if code == 105 else "broker", (data,), group=group)
        for code, data in requests.items()
    ]


def _cases() -> list[BadInput]:
    cases = [case for version in _VERSIONS for case in _of_version(version)]
    cases += [BadInput(f"code of 5.x: {code}", "broker", (request(code, {}),)) for code in _CODES_OF_5]
    cases += [
        BadInput(f"unassigned code: {code}", "broker", (request(code, {}),)) for code in _UNASSIGNED_CODES
    ]
    for code in (0, 10, 12_345):
        name = f"unassigned code to the name server: {code}"
        cases.append(BadInput(name, "namesrv", (request(code, {}),), is_quiet=True))
    for name, fields in _CREDENTIALS.items():
        cases += _with_credentials(name, fields)
    return cases


VERSIONS: Final = _cases()
