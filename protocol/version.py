"""Version ordinals and language codes that travel in every header (``wire.md`` 1.4, 1.5)."""

from __future__ import annotations

from enum import IntEnum


class MQVersion(IntEnum):
    """Ordinals of RocketMQ's ``MQVersion`` that change behaviour; any int may be received."""

    V3_0_0_SNAPSHOT = 0
    V3_0_7_SNAPSHOT = 28
    V3_0_11 = 37
    V3_1_8_SNAPSHOT = 62
    V3_4_9 = 121
    V4_0_0_SNAPSHOT = 212
    V4_1_0_SNAPSHOT = 232
    V4_2_0_SNAPSHOT = 252
    V4_2_0 = 253
    V4_9_3 = 399
    V4_9_4 = 401
    V4_9_8 = 409
    V5_0_0 = 413
    V5_1_4 = 441
    V5_2_0 = 453
    V5_3_1 = 475
    V5_3_3 = 479
    HIGHER_VERSION = 612


# What RewindMQ announces. 401 is the first version whose route replies are strict JSON.
CURRENT_VERSION = int(MQVersion.V4_9_4)


def version_name(ordinal: int) -> str:
    """The name RocketMQ prints for a version ordinal (``MQVersion#getVersionDesc``).

    From 4.0.0 on each release takes two ordinals, SNAPSHOT first; names that this project has no
    table for are given as their number. Ordinals above the last known one read as HIGHER_VERSION.
    """
    if ordinal >= MQVersion.HIGHER_VERSION:
        return MQVersion.HIGHER_VERSION.name
    try:
        return MQVersion(ordinal).name
    except ValueError:
        return f"V{ordinal}"


class LanguageCode(IntEnum):
    """The sender's language. 13 does not exist for 4.x peers and is never sent to them."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13

    @classmethod
    def parse(cls, value: object) -> LanguageCode:
        """Read a language given by name or number; what is unknown becomes OTHER."""
        if isinstance(value, str):
            return cls.__members__.get(value, cls.OTHER)
        if isinstance(value, int) and 0 <= value <= 13:
            return cls(value)
        return cls.OTHER
