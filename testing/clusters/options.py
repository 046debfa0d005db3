"""ClusterOptions: what a test wants of its cluster."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

from rewindmq.testing.errors import KitError

DEFAULT_TIME_SCALE: Final = 0.05


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options of a test's cluster; tests with equal options share one.

    Attributes:
        brokers: number of masters, 1 to 26.
        slaves: number of slaves of each broker, 0 to 3.
        profile: the release to imitate: "v42", "v49" or "v53".
        time_scale: factor on every scheduled wait of servers and clients (docs/time.md).
        broker_config: further keys of ``broker.conf``, as sorted pairs.
        snapshot: path of a saved snapshot, from which each test starts; "": the tests start as the one before
            ended.
    """

    brokers: int = 1
    slaves: int = 0
    profile: str = "v49"
    time_scale: float = DEFAULT_TIME_SCALE
    broker_config: tuple[tuple[str, str], ...] = ()
    snapshot: str = ""

    def with_changes(self, changes: dict[str, Any]) -> ClusterOptions:
        """Return a copy with other values; ``broker_config`` may be a mapping.

        Raises:
            KitError: an unknown option.
        """
        names = [field.name for field in fields(self)]
        if unknown := changes.keys() - set(names):
            raise KitError(f"unknown option {min(unknown)!r}; options: {', '.join(names)}")
        values = {name: getattr(self, name) for name in names} | changes
        if isinstance(values["broker_config"], dict):
            pairs = values["broker_config"].items()
            values["broker_config"] = tuple(sorted((key, _property(value)) for key, value in pairs))
        values["snapshot"] = str(values["snapshot"])
        return ClusterOptions(**values)

    def __str__(self) -> str:
        texts = [f"{self.brokers} {'broker' if self.brokers == 1 else 'brokers'}"]
        if self.slaves:
            texts.append(f"{self.slaves} slaves each")
        texts += [self.profile, f"time scale {self.time_scale:g}"]
        texts += [f"{key}={value}" for key, value in self.broker_config]
        if self.snapshot:
            texts.append(f"snapshot {self.snapshot}")
        return ", ".join(texts)


def _property(value: object) -> str:
    """Return a value as ``broker.conf`` writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
