"""Answers of a name server that tell where brokers are: reading them, and putting other addresses in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgpack
import msgspec

from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.route import BrokerData, TopicRouteData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.frame import encode_frame

ROUTE_CODES: Final = frozenset((RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO))

_MASTER_ID: Final = 0
_ADDRESSES: Final = "brokerAddrs"
# An entry of ``brokerAddrs``, in strict JSON or in fastjson's with its bare keys.
_ENTRY: Final = re.compile(rb'("?-?[0-9]+"?\s*:\s*)"([^"\\]+)"')


def broker_addresses(code: int, response: RemotingCommand) -> dict[str, str]:
    """Names by broker address; a slave is called by its broker's name and its id. Empty where none is told.

    Args:
        code: of the request that ``response`` answers, one of ``ROUTE_CODES``.
    """
    try:
        if code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            brokers: list[BrokerData] = decode_body(response, TopicRouteData).broker_datas
        else:
            brokers = list(decode_body(response, ClusterInfo).broker_addr_table.values())
    except RewindMQError:
        return {}
    return {
        address: broker.broker_name if number == _MASTER_ID else f"{broker.broker_name}-{number}"
        for broker in brokers
        for number, address in sorted(broker.broker_addrs.items())
    }


def with_addresses(response: RemotingCommand, replacements: Mapping[str, str]) -> bytes:
    """The frame of a route answer with other broker addresses; everything else in it stays as it is.

    Texts are changed where the addresses stand, so what this project does not know (fields that RocketMQ 5
    added) and how it is written (bare keys or not) both survive.
    """
    body = bytes(response.body) if isinstance(response.body, (bytes, memoryview)) else b""
    if response.serialize_type is SerializeType.MSGPACK:
        value = msgspec.msgpack.decode(body)
        _replace(value, replacements)
        response.body = msgpack.packb(value)
    else:

        def other(entry: re.Match[bytes]) -> bytes:
            address = entry[2].decode("utf-8", "replace")
            replacement = replacements.get(address)
            return entry[0] if replacement is None else b'%s"%s"' % (entry[1], replacement.encode())

        response.body = _ENTRY.sub(other, body)
    return encode_frame(response, response.serialize_type)


def _replace(value: Any, replacements: Mapping[str, str]) -> None:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, entry in entries:
        if name == _ADDRESSES and isinstance(entry, dict):
            value[name] = {number: replacements.get(address, address) for number, address in entry.items()}
        else:
            _replace(entry, replacements)
