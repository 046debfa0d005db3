"""Schedule files: one schedule of one model, as text that can be read and run again.

::

    # a schedule of the race laboratory; run it with: rewindmq race replay FILE
    model: one-reset
    mode: classic
    profile: v49
    late: 1
    fault: none
    code: 1f0c...
    found: stored: queue 0 of broker-a: 2 was stored ...
    steps:
    window opens after 3 s
    deliver admin->broker-a request INVOKE_BROKER_TO_RESET_OFFSET ...

The steps are those taken at states with more than one possible step, up to the last one that differs from the
default order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.explore.model.models import find_model

NO_FAULT: Final = "none"
_TITLE: Final = "# a schedule of the race laboratory; run it with: rewindmq race replay FILE"
_STEPS: Final = "steps:"
_KEYS: Final = ("model", "mode", "profile", "late", "fault", "code", "found")
# The packages whose code a schedule runs.
_PACKAGES: Final = ("protocol", "namesrv", "broker", "client", "race/sim", "race/explore")


@dataclass(frozen=True, slots=True)
class SavedSchedule:
    """Content of a schedule file.

    Attributes:
        late: how many messages may be late.
        fault: name of a deliberate fault, or ``NO_FAULT``.
        code: fingerprint of the code in which the schedule was found.
        found: the law that it breaks and how, one line.
        steps: names of the steps to take.
    """

    model: str
    mode: ResetMode
    profile: Profile
    late: int
    fault: str
    code: str
    found: str
    steps: tuple[str, ...]

    def to_text(self) -> str:
        """Return the content of the file."""
        head = [f"{key}: {getattr(self, key)}" for key in _KEYS]
        return "\n".join([_TITLE, *head, _STEPS, *self.steps]) + "\n"


def read_schedule(path: Path) -> SavedSchedule:
    """Read a schedule file.

    Raises:
        RaceError: the file cannot be read or is no schedule; the text names the reason.
    """
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RaceError(f"cannot read the schedule {path}: {reason}") from None
    lines = [line for line in lines if line and not line.startswith("#")]
    if _STEPS not in lines:
        raise RaceError(f"{path} is no schedule: it has no line {_STEPS!r}")
    at = lines.index(_STEPS)
    fields = dict(_split(path, line) for line in lines[:at])
    missing = [key for key in _KEYS if key not in fields]
    if missing:
        raise RaceError(f"{path} is no schedule: it has no {', '.join(missing)}")
    if not fields["late"].isdecimal():
        raise RaceError(f"{path}: late {fields['late']!r} is not a number")
    try:
        return SavedSchedule(
            find_model(fields["model"]).name,
            ResetMode(_known(fields, "mode", ResetMode)),
            Profile(_known(fields, "profile", Profile)),
            int(fields["late"]),
            fields["fault"],
            fields["code"],
            fields["found"],
            tuple(lines[at + 1 :]),
        )
    except RaceError as error:
        raise RaceError(f"{path}: {error}") from None


def _known(fields: Mapping[str, str], key: str, values: type[StrEnum]) -> str:
    value = fields[key]
    if value not in list(values):
        raise RaceError(f"no such {key}: {value!r} (known: {', '.join(values)})")
    return value


def code_fingerprint() -> str:
    """Return a digest of the source files that a schedule runs."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.blake2b(digest_size=8)
    for path in _sources(root):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(root: Path) -> Sequence[Path]:
    return sorted(path for package in _PACKAGES for path in (root / package).rglob("*.py"))


def _split(path: Path, line: str) -> tuple[str, str]:
    key, separator, value = line.partition(":")
    if not separator:
        raise RaceError(f"{path} is no schedule: {line!r} is not KEY: VALUE")
    return key.strip(), value.strip()
