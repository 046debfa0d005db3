"""Frame on its way between two processes, with the fields that identify it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.code import SHORT_NAMED_REQUESTS, RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand
from rewindmq.protocol.errors import FrameError, RewindMQError
from rewindmq.protocol.ext_text import ext_text
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.message.record import decode_records
from rewindmq.race.proxy.pattern import Form

# Longer values, such as message properties, do not identify a frame and are left out.
_MAX_VALUE_LENGTH: Final = 256
# Header fields that name a group; requests differ in them.
GROUP_FIELDS: Final = ("consumerGroup", "producerGroup", "group")
# Header fields that identify a frame, under their wire names.
TEXT_FIELDS: Final = ("consumerGroup", "group", "producerGroup", "topic", "clientID", "resetMode", "isForce")
NUMBER_FIELDS: Final = (
    "queueId",
    "queueOffset",
    "commitOffset",
    "sysFlag",
    "offset",
    "nextBeginOffset",
    "epoch",
    "timestamp",
)
# One-letter field names of the requests in ``SHORT_NAMED_REQUESTS``.
_LETTERS: Final = MappingProxyType({"a": "producerGroup", "b": "topic", "e": "queueId"})
_CODE_NAMES: Final = MappingProxyType({int(code): code.name for code in RequestCode})


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request without a response so far: its code, its ext fields as text, and its identifying fields."""

    code: int
    ext: Mapping[str, str]
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame on its way.

    Attributes:
        id: unique id, the same in all events of this frame.
        source, target: names of processes.
        code: request code; for a response, the code of its request, or None if the request is unknown.
        response_code: None for requests.
        ext: ext fields as text; for a response, those of its request.
        fields: identifying fields for people and for the checker, under their wire names, with numbers as
            int. ``offsets`` are those of the messages in the frame; ``targets`` of a reset are
            ``[broker_name, queue_id, offset]``. A response also has its request's fields.
    """

    id: str
    source: str
    target: str
    code: int | None
    form: Form
    response_code: int | None
    ext: Mapping[str, str]
    fields: Mapping[str, Any]

    @property
    def details(self) -> dict[str, Any]:
        """Details of events about this frame."""
        details: dict[str, Any] = {
            "id": self.id,
            "source": self.source,
            "target": self.target,
            "code": self.code,
            "name": code_name(self.code),
            "form": str(self.form),
            "fields": dict(self.fields),
        }
        if self.response_code is not None:
            details["response_code"] = self.response_code
        return details


def as_refusal(data: bytes, code: int, remark: str) -> bytes:
    """Return the response ``data`` with this response code and remark instead, without fields or body."""
    (answer,) = FrameDecoder().feed(data)
    refusal = RemotingCommand(
        code,
        remark=remark,
        language=answer.language,
        version=answer.version,
        opaque=answer.opaque,
        flag=answer.flag,
    )
    return encode_frame(refusal, answer.serialize_type)


def make_refusal(data: bytes, code: int, remark: str) -> bytes:
    """Return a response to the request ``data``, in its serialization type."""
    (request,) = FrameDecoder().feed(data)
    response = RemotingCommand(code, remark=remark, opaque=request.opaque, flag=FLAG_RESPONSE)
    return encode_frame(response, request.serialize_type)


def code_name(code: int | None) -> str:
    """Return RocketMQ's name of a request code, or its digits if it has none."""
    if code is None:
        return "UNKNOWN"
    return _CODE_NAMES.get(code) or str(code)


def describe_request(command: RemotingCommand) -> PendingRequest:
    """Describe a request by its code and fields."""
    ext = _texts(command)
    fields = _shown(ext, command.code)
    if command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
        _add_targets(fields, command)
    return PendingRequest(command.code, ext, fields)


def describe_response(command: RemotingCommand, request: PendingRequest | None) -> dict[str, Any]:
    """Return the fields that identify a response, including those of its request."""
    fields = dict(request.fields) if request is not None else {}
    code = request.code if request is not None else None
    fields.update(_shown(_texts(command), code))
    if request is not None and command.code == ResponseCode.SUCCESS:
        if code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            body = bytes(command.body) if isinstance(command.body, (bytes, memoryview)) else b""
            fields["offsets"] = [message.queue_offset for message in decode_records(body)]
        elif code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET:
            _add_targets(fields, command)
    return fields


def _texts(command: RemotingCommand) -> dict[str, str]:
    try:
        ext = command.ext
    except RewindMQError:
        return {}
    texts = {}
    for name, value in ext.items():
        try:
            text = ext_text(value)
        except FrameError:
            continue
        if text is not None and len(text) <= _MAX_VALUE_LENGTH:
            texts[name] = text
    return texts


def _shown(ext: Mapping[str, str], code: int | None) -> dict[str, Any]:
    if code in SHORT_NAMED_REQUESTS:
        ext = {_LETTERS.get(name, name): text for name, text in ext.items()}
    fields: dict[str, Any] = {name: ext[name] for name in TEXT_FIELDS if name in ext}
    for name in NUMBER_FIELDS:
        text = ext.get(name)
        if text is not None:
            fields[name] = _number(text)
    return fields


def _number(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _add_targets(fields: dict[str, Any], command: RemotingCommand) -> None:
    for read in (_targets, _targets_for_c):
        try:
            fields["targets"] = read(command)
        except RewindMQError:
            continue
        return


def _targets(command: RemotingCommand) -> list[list[Any]]:
    table = decode_body(command, ResetOffsetBody).offset_table
    return [[queue.broker_name, queue.queue_id, offset] for queue, offset in sorted(table.items())]


def _targets_for_c(command: RemotingCommand) -> list[list[Any]]:
    lines = decode_body(command, ResetOffsetBodyForC).offset_table
    return sorted([line.broker_name, line.queue_id, line.offset] for line in lines)
