"""Typed bodies, named as RocketMQ's Java classes (docs/spec/protocol.md 5)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import msgspec


class RemotingBody(msgspec.Struct, rename="camel"):
    """Base of every structured body and of its parts.

    Fields have snake_case names in Python and RocketMQ's camelCase names in a frame. ``None`` is not written.
    Unknown fields are ignored; absent fields and nulls take the default; a field without default is required.

    Attributes:
        may_be_standard_json: whether Java clients may request the body in strict JSON.
        aliases: field names that only some peers use, each with RocketMQ's name for the field.
    """

    may_be_standard_json: ClassVar[bool] = False
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})
