"""Every implemented request is in a golden frame; omitted fields are listed with the reason."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
import pytest

import rewindmq.client
import rewindmq.protocol.body
import rewindmq.protocol.header
from rewindmq.broker.handlers import HANDLERS as BROKER_HANDLERS
from rewindmq.namesrv.handlers import HANDLERS as NAMESRV_HANDLERS
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import CommandHeader, SerializeType
from tests.protocol.golden.compare import differences
from tests.protocol.golden.frames import GoldenFrame, golden
from tests.protocol.golden.left_out import (
    NOT_RECORDED_CLASSES,
    NOT_RECORDED_CODES,
    UNTYPED_FIELDS,
    UNTYPED_MEMBERS,
)
from tests.protocol.golden.shapes import SHAPES, body_of, half_of, header_name

FRAMES, _ = golden()
HALVES: Final = [half for shape in SHAPES.values() for half in shape]


def sent_by_our_client() -> set[int]:
    """Codes that the client's source names."""
    names = set()
    for path in Path(rewindmq.client.__file__).parent.rglob("*.py"):
        names |= set(re.findall(r"\bRequestCode\.([A-Z][A-Z0-9_]+)", path.read_text()))
    return {int(RequestCode[name]) for name in names}


IMPLEMENTED: Final = sorted({*NAMESRV_HANDLERS, *BROKER_HANDLERS, *sent_by_our_client()})


@pytest.mark.parametrize("codec", [SerializeType.JSON, SerializeType.ROCKETMQ], ids=lambda codec: codec.name)
def test_every_implemented_code_has_golden_frames(codec: SerializeType) -> None:
    recorded = {(frame.code, frame.is_response) for frame in FRAMES if frame.codec is codec}
    oneway = {frame.code for frame in FRAMES if frame.form == "oneway"}
    missing = {
        f"{code} {'response' if is_response else 'request'}"
        for code in IMPLEMENTED
        for is_response in (False, True)
        if (code, is_response) not in recorded and not (is_response and code in oneway)
    }
    assert missing == set(NOT_RECORDED_CODES)


@pytest.mark.parametrize("codec", [SerializeType.JSON, SerializeType.ROCKETMQ], ids=lambda codec: codec.name)
def test_every_header_and_body_class_has_golden_frames(codec: SerializeType) -> None:
    seen = set()
    for frame in FRAMES:
        if frame.codec is codec:
            seen |= types_in(frame)
    classes = classes_in(rewindmq.protocol.header, CommandHeader) + classes_in(
        rewindmq.protocol.body, RemotingBody
    )
    assert {each.__name__ for each in classes} - seen == set(NOT_RECORDED_CLASSES)


def types_in(frame: GoldenFrame) -> set[str]:
    command = frame.decoded()
    names = set()
    header_type, body_type = half_of(frame).header, body_of(frame)
    if header_type is not None and command.ext:
        names.add(header_type.__name__)
    if frame.body and isinstance(body_type, type):
        names |= structs_in(decode_body(command, body_type))
    return names


def structs_in(value: Any) -> set[str]:
    if isinstance(value, msgspec.Struct):
        parts = (getattr(value, name) for name in value.__struct_fields__)
        return {type(value).__name__}.union(*map(structs_in, parts))
    if isinstance(value, dict):
        return set().union(*map(structs_in, value.values()))
    if isinstance(value, (list, set)):
        return set().union(*map(structs_in, value))
    return set()


def classes_in(package: ModuleType, base: type) -> list[type]:
    found = {}
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, base) and value is not base:
                found[value.__name__] = value
    return [found[name] for name in sorted(found)]


def test_fields_said_to_be_untyped_are_in_some_frame_and_no_header() -> None:
    seen = {f"{header_name(frame)}.{name}" for frame in FRAMES for name in frame.decoded().ext}
    assert UNTYPED_FIELDS.keys() <= seen
    typed = {
        f"{half.header.__name__}.{name}"
        for half in HALVES
        if half.header
        for name in half.header.__struct_encode_fields__
    }
    assert not UNTYPED_FIELDS.keys() & typed


def test_fields_listed_as_untyped_are_in_some_body_and_in_no_type() -> None:
    found: set[str] = set()
    for frame in FRAMES:
        body_type = body_of(frame)
        if not (frame.body and isinstance(body_type, type)):
            continue
        after = fastjson.loads(encode_body(decode_body(frame.decoded(), body_type), SerializeType.JSON))
        found.update(differences(body_type, fastjson.loads(frame.body), after))
    assert found == UNTYPED_MEMBERS.keys()
