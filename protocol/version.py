"""The version ordinal and language code in every header (docs/spec/protocol.md 1.4, 1.5)."""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import Final


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


# The version that RewindMQ announces. RocketMQ's name server sends routes in strict JSON from this version
# on.
CURRENT_VERSION: Final = int(MQVersion.V4_9_4)

_OLDEST: Final = (
    "V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1", "V3_0_0_BETA1", "V3_0_0_BETA2", "V3_0_0_BETA3", "V3_0_0_BETA4",
    "V3_0_0_BETA5", "V3_0_0_BETA6_SNAPSHOT", "V3_0_0_BETA6", "V3_0_0_BETA7_SNAPSHOT", "V3_0_0_BETA7",
    "V3_0_0_BETA8_SNAPSHOT", "V3_0_0_BETA8", "V3_0_0_BETA9_SNAPSHOT", "V3_0_0_BETA9", "V3_0_0_FINAL",
)  # fmt: skip
# From ordinal 16 on every release has two ordinals, SNAPSHOT first. Each entry is a series: its first
# ordinal, major, minor and first patch number. It ends where the next series starts. 4.x and 5.x have ten
# patch numbers per minor.
_SERIES: Final = (
    (16, 3, 0, 1), (46, 3, 1, 0), (66, 3, 2, 0), (86, 3, 3, 1), (104, 3, 4, 1), (122, 3, 5, 1),
    (140, 3, 6, 1), (158, 3, 7, 1), (176, 3, 8, 1), (194, 3, 9, 1),
    *((212 + 20 * index, 4 + index // 10, index % 10, 0) for index in range(20)),
)  # fmt: skip
_FIRST_ORDINALS: Final = [series[0] for series in _SERIES]


def version_name(ordinal: int) -> str:
    """Return the name RocketMQ prints for a version ordinal (5.3.3 ``MQVersion#getVersionDesc``).

    Ordinals above the last known one give HIGHER_VERSION, negative ones the first name.
    """
    if ordinal >= MQVersion.HIGHER_VERSION:
        return MQVersion.HIGHER_VERSION.name
    if ordinal < len(_OLDEST):
        return _OLDEST[max(ordinal, 0)]
    first, major, minor, first_patch = _SERIES[bisect_right(_FIRST_ORDINALS, ordinal) - 1]
    patch, is_release = divmod(ordinal - first, 2)
    name = f"V{major}_{minor}_{first_patch + patch}"
    return name if is_release else f"{name}_SNAPSHOT"


class LanguageCode(IntEnum):
    """The sender's language. 4.x peers do not know NODE_JS (13); RewindMQ never sends it to them."""

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
        """Parse the name or number of a language; unknown values give OTHER."""
        if isinstance(value, str):
            return cls.__members__.get(value, cls.OTHER)
        if isinstance(value, int) and 0 <= value <= 13:
            return cls(value)
        return cls.OTHER
