"""Typed bodies, named as RocketMQ's Java classes (docs/spec/protocol.md 5)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import msgspec


class RemotingBody(msgspec.Struct, rename="camel"):
    """Base of every structured body and of its parts.

    Python names here, RocketMQ's camelCase on the wire. Written: everything but ``None``. Read: unknown
    members are ignored, absent ones and nulls take the default, a member without default is required.

    Attributes:
        may_be_standard_json: whether the body has a form in strict JSON that Java clients ask for.
        aliases: other names under which some peers send a member (wire name there → wire name here).
    """

    may_be_standard_json: ClassVar[bool] = False
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})
