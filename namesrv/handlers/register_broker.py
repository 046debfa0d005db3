"""REGISTER_BROKER (103): store a broker's addresses and topics.

Kept: steps 1 to 7 of ``RouteInfoManager#registerBroker``. The response gives a slave its master's address;
the body is the namespace ORDER_TOPIC_CONFIG, if that exists. 4.2.0 ignores the checksum. 5.x adds unknown
topics even if the data version has not changed.
Changed: registrations take effect in order of arrival; in RocketMQ, two may overtake each other.
Refused with 1, and nothing changes: a body that does not match its checksum or does not decode; invalid names
and addresses; more entries than the tables may hold; in 5.3.3, a first registration of exactly one topic.
Not kept: registrations of brokers before 3.0.11, which had another body; 5.x's comparison of state versions
when an id changes its address; 5.x's static topics and zones.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.namesrv.kv_config import ORDER_TOPIC_CONFIG
from rewindmq.namesrv.kv_response import pairs_response
from rewindmq.namesrv.registration_body import decode_register_broker_body
from rewindmq.namesrv.route_info import Registration
from rewindmq.namesrv.topic_queue_table import TopicPart
from rewindmq.protocol.body.registration import RegisterBrokerBody
from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.namesrv import RegisterBrokerRequestHeader, RegisterBrokerResponseHeader
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.REGISTER_BROKER

# RocketMQ has no bound; a client builds one object per queue of a route.
MAX_QUEUE_NUMS: Final = 65_536

# A name may contain dots: a broker is named after its host by default, and a topic after each broker. It must
# not start with a dot, because it could then be a path.
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-][%|a-zA-Z0-9_.-]{0,126}", re.ASCII)
MAX_ADDRESS_LENGTH: Final = 262

# A larger body is decoded on a worker thread: about 400 topics.
_SMALL_BODY_BYTES: Final = 65_536

_log = logging.getLogger(__name__)


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(RegisterBrokerRequestHeader)
    _check_identity(header)
    if len(_bytes(request)) <= _SMALL_BODY_BYTES and context.registrations.is_empty:
        return _register(context, request, _decode(context, connection, request, header))
    return _register_later(context, connection, request, header)


async def _register_later(
    context: NamesrvContext,
    connection: Connection,
    request: RemotingCommand,
    header: RegisterBrokerRequestHeader,
) -> RemotingCommand | None:
    decode = partial(_decode, context, connection, request, header)
    async with context.registrations.turn():
        registration = await context.registrations.decode(decode)
        with closing(context.routes.stage(registration)) as slices:
            staged = await context.large_responses.run(slices)
        reply = _register(context, request, registration, staged)
    return reply if reply is None or isinstance(reply, RemotingCommand) else await reply


def _decode(
    context: NamesrvContext,
    connection: Connection,
    request: RemotingCommand,
    header: RegisterBrokerRequestHeader,
) -> Registration:
    """Decode and check the request; may run on a worker thread."""
    if context.profile.checks_body_crc:
        _check_crc(request, header.body_crc32)
    body = decode_register_broker_body(request, compressed=header.compressed)
    return _registration(header, body, connection, context.routes.shared_name)


def _register(
    context: NamesrvContext,
    request: RemotingCommand,
    registration: Registration,
    staged: TopicPart | None = None,
) -> Reply:
    known = context.routes.is_live(registration.address)
    result = context.routes.register(registration, context.clock.monotonic(), staged)
    if result is None:
        raise _refusal("register broker failed")
    if not known:
        _log.info(
            "broker %s id %d at %s joined",
            registration.broker_name,
            registration.broker_id,
            registration.address,
        )
    response_header = RegisterBrokerResponseHeader(
        ha_server_addr=result.ha_address or None, master_addr=result.master_address or None
    )
    return pairs_response(context, request, ORDER_TOPIC_CONFIG, response_header)


def _check_crc(request: RemotingCommand, expected: int) -> None:
    if expected and zlib.crc32(_bytes(request)) & 0x7FFFFFFF != expected:
        raise _refusal("crc32 not match")


def _bytes(request: RemotingCommand) -> bytes | memoryview:
    assert request.body is None or isinstance(request.body, bytes | memoryview)
    return request.body or b""


def _check_identity(header: RegisterBrokerRequestHeader) -> None:
    _check_name(header.cluster_name)
    _check_name(header.broker_name)
    _check_address(header.broker_addr)
    if header.ha_server_addr:
        _check_address(header.ha_server_addr)
    if header.broker_id < 0:
        raise _refusal(f"not a broker id: {header.broker_id}")


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise _refusal(f"not a name of a cluster, broker or topic: {name[:128]!r}")


def _check_address(address: str) -> None:
    try:
        if len(address) > MAX_ADDRESS_LENGTH or not address.isprintable() or " " in address:
            raise ValueError(f"not an address: {address[:128]!r}")
        parse_address(address)
    except ValueError as error:
        raise _refusal(str(error)) from None


def _registration(
    header: RegisterBrokerRequestHeader,
    body: RegisterBrokerBody,
    connection: Connection,
    shared_name: Callable[[str], str],
) -> Registration:
    queues = {}
    # Most topics of a broker have the same numbers: one object for all of them.
    alike: dict[tuple[int, int, int, int], QueueData] = {}
    for topic, config in body.topic_config_serialize_wrapper.topic_config_table.items():
        _check_name(topic)
        if not (
            0 <= config.read_queue_nums <= MAX_QUEUE_NUMS and 0 <= config.write_queue_nums <= MAX_QUEUE_NUMS
        ):
            raise _refusal(f"topic {topic}: queue numbers must be 0 to {MAX_QUEUE_NUMS}")
        numbers = (config.read_queue_nums, config.write_queue_nums, config.perm, config.topic_sys_flag)
        queue = alike.get(numbers)
        if queue is None:
            queue = alike[numbers] = QueueData(header.broker_name, *numbers)
        queues[shared_name(topic)] = queue
    for filter_server in body.filter_server_list:
        _check_address(filter_server)
    expiry = header.heartbeat_timeout_millis
    return Registration(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr,
        data_version=body.topic_config_serialize_wrapper.data_version,
        queues=queues,
        connection=connection,
        filter_servers=body.filter_server_list,
        expiry_seconds=expiry / 1_000 if expiry is not None and expiry > 0 else None,
        acting_master=bool(header.enable_acting_master),
    )


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
