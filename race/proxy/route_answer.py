"""Reads and replaces the broker addresses in a name server's responses."""

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
# An entry of ``brokerAddrs``, in strict JSON or in fastjson's form with bare keys.
_ENTRY: Final = re.compile(rb'("?-?[0-9]+"?\s*:\s*)"([^"\\]+)"')


def broker_addresses(code: int, response: RemotingCommand) -> dict[str, str]:
    """Return process names by broker address; a slave's is ``broker-a-s1``, with its broker id.

    The result is empty if the response holds no addresses.

    Args:
        code: code of the request, one of ``ROUTE_CODES``.
    """
    try:
        if code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            brokers: list[BrokerData] = decode_body(response, TopicRouteData).broker_datas
        else:
            brokers = list(decode_body(response, ClusterInfo).broker_addr_table.values())
    except RewindMQError:
        return {}
    return {
        address: broker.broker_name if number == _MASTER_ID else f"{broker.broker_name}-s{number}"
        for broker in brokers
        for number, address in sorted(broker.broker_addrs.items())
    }


def with_addresses(response: RemotingCommand, replacements: Mapping[str, str]) -> bytes:
    """Return the frame of a route response with other broker addresses, and everything else unchanged.

    Only the addresses are replaced, in the body's own text. So unknown fields (added by RocketMQ 5) and the
    JSON style (bare keys or not) stay as they are.
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
