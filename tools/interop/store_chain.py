"""Opens one store with RocketMQ and RewindMQ brokers in turn; each adds messages of every kind.

A broker either stops cleanly or is killed before the next one opens the store; a kill leaves ``abort``. Each
requested chain runs once in a session, all of them at the same time.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.profile import Profile
from tools.interop.rewindmq_servers import RewindMQBroker, RewindMQNamesrv
from tools.interop.servers import RocketMQBroker
from tools.interop.store_fill import CONFIG, ENDED_PER_FILL, fill
from tools.interop.store_view import (
    StoreView,
    log_digest,
    log_end,
    queue_digest,
    view_store,
    wait_dispatched,
    wait_ended,
    wait_until,
)
from tools.interop.versions import SERVER_4, SERVER_5

# A feature that 5.5.0 has by default and a 4.x store does not; without it 5.5.0 cannot delete a topic.
OF_RELEASE: Final[dict[str, dict[str, object]]] = {
    SERVER_4: {},
    SERVER_5: {"timerWheelEnable": "true", "mappedFileSizeTimerLog": 1 << 20},
}
PROFILES: Final = {SERVER_4: Profile.V49, SERVER_5: Profile.V53}
CONFIG_FILES: Final = ("topics", "subscriptionGroup", "consumerOffset", "delayOffset")
# The group of the transaction check, which a RocketMQ broker runs a last time while it stops.
_CHECKER: Final = "@CID_RMQ_SYS_TRANS"
_BIG, _SMALL = 11, 2

AnyBroker = RocketMQBroker | RewindMQBroker
Creator = Literal["RocketMQ", "RewindMQ"]


@dataclass(frozen=True)
class ChainPlan:
    """One chain: its release, and whose broker creates the store."""

    release: str
    created_by: Creator = "RocketMQ"

    def __str__(self) -> str:
        return self.release

    @property
    def is_chosen(self) -> bool:
        """Whether CI runs it: one chain of each kind, each of another release.

        The chain that RocketMQ creates also feeds the pipeline's tests. It runs with 5.x, because only 5.x
        reads all that the pipeline adds to the store.
        """
        return self in (ChainPlan(SERVER_5, "RocketMQ"), ChainPlan(SERVER_4, "RewindMQ"))


@dataclass
class HandOver:
    """A change of brokers: one ended, the next opened its store.

    Attributes:
        before: what the first broker served at its end.
        after: what the next broker served before messages were added.
        files_changed: the parts of the log and the queues that changed when the store was opened.
        config_before: the configuration files when the first broker had ended.
        config_after: the configuration files after the next broker had ended.
    """

    before: StoreView
    after: StoreView
    files_changed: list[str]
    config_before: dict[str, Any] = field(default_factory=dict)
    config_after: dict[str, Any] = field(default_factory=dict)


@dataclass
class ChainResults:
    """The results of one chain.

    Attributes:
        hand_overs: by their title.
        labels: label to the number of batches sent with it, in order.
        last: what the last broker served.
        real_view: what RocketMQ served before it stopped; ``real_store`` is a copy of its store after that.
    """

    release: str
    directory: Path
    hand_overs: dict[str, HandOver] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    last: StoreView = field(default_factory=StoreView)
    real_view: StoreView = field(default_factory=StoreView)
    rewindmq_log: str = ""

    @property
    def profile(self) -> Profile:
        return PROFILES[self.release]

    @property
    def real_store(self) -> Path:
        return self.directory / "real-stopped"


def play_chains(links: Iterable[ChainPlan], directory: Path) -> dict[ChainPlan, ChainResults | BaseException]:
    """Return the result of each chain, or its error."""
    with ThreadPoolExecutor() as threads:
        played = {
            link: threads.submit(_play, link, directory / f"{link.release}-{link.created_by}")
            for link in dict.fromkeys(links)
        }
    return {link: future.exception() or future.result() for link, future in played.items()}


def _play(link: ChainPlan, directory: Path) -> ChainResults:
    chain = ChainResults(link.release, directory)
    namesrv = RewindMQNamesrv(chain.profile, directory / "namesrv")
    try:
        player = _Player(chain, namesrv.address, link.created_by)
        if link.created_by == "RocketMQ":
            player.play_from_rocketmq()
        else:
            player.play_from_rewindmq()
    finally:
        namesrv.stop()
    return chain


class _Player:
    """Opens one store with one broker after another."""

    def __init__(self, chain: ChainResults, namesrv: str, name: str) -> None:
        self._chain = chain
        self._namesrv = namesrv
        self._directory = chain.directory / name
        self._store = self._directory / "store"
        self._config = CONFIG | OF_RELEASE[chain.release]
        self._view = StoreView()
        self._fills = 0

    def play_from_rocketmq(self) -> None:
        with self._rocketmq() as broker:
            self._fill(broker, "one", _BIG)
            broker.kill()
        with self._hand_over("RocketMQ killed, opened by RewindMQ", self._rewindmq) as broker:
            self._fill(broker, "two", _SMALL)
            broker.stop()
        with self._hand_over("RewindMQ stopped, opened by RocketMQ", self._rocketmq) as broker:
            self._fill(broker, "three", _SMALL)
            broker.stop()
        shutil.copytree(self._store, self._chain.real_store)
        self._chain.real_view = self._view
        with self._hand_over("RocketMQ stopped, opened by RewindMQ", self._rewindmq) as broker:
            self._fill(broker, "four", _SMALL)
            broker.kill()
        with self._hand_over("RewindMQ killed, opened by RocketMQ", self._rocketmq) as broker:
            self._chain.last = view_store(broker.address, self._store)

    def play_from_rewindmq(self) -> None:
        with self._rewindmq() as broker:
            self._fill(broker, "one", _BIG)
            broker.kill()
        with self._hand_over("created by RewindMQ, killed, opened by RocketMQ", self._rocketmq) as broker:
            self._fill(broker, "two", _SMALL)
            broker.stop()
        with self._hand_over("created by RewindMQ, stopped by RocketMQ, opened by RewindMQ", self._rewindmq):
            pass

    def _fill(self, broker: AnyBroker, label: str, batches: int) -> None:
        asyncio.run(fill(self._namesrv, broker.address, label, batches))
        self._chain.labels[label] = batches
        self._fills += 1
        wait_ended(broker.address, ENDED_PER_FILL * self._fills)
        wait_dispatched(broker.address)
        self._view = view_store(broker.address, self._store)
        wait_until("offsets and delay levels are in their files", self._is_persisted)

    def _is_persisted(self) -> bool:
        files = read_config(self._store)
        return all(
            files[name].get("offsetTable") == table
            for name, table in (("consumerOffset", self._view.offsets), ("delayOffset", self._view.levels))
        )

    @contextmanager
    def _hand_over(self, title: str, start: Callable[[], Any]) -> Iterator[AnyBroker]:
        config_before = read_config(self._store)
        offsets = config_before["consumerOffset"]["offsetTable"]
        self._view.offsets.update({key: queues for key, queues in offsets.items() if key.endswith(_CHECKER)})
        before = shutil.copytree(self._store, self._directory / f"before {title}")
        with start() as broker:
            changed = self._changed(before, broker)
            after = view_store(broker.address, self._store)
            step = HandOver(self._view, after, changed, config_before)
            yield broker
        step.config_after = read_config(self._store)
        self._chain.hand_overs[title] = step
        shutil.rmtree(before)

    def _changed(self, before: Path, broker: AnyBroker) -> list[str]:
        end = log_end(broker.address)
        bounds = self._view.bounds.items()
        changed = [] if log_digest(before, end) == log_digest(self._store, end) else [f"the log up to {end}"]
        old, new = queue_digest(before, bounds), queue_digest(self._store, bounds)
        return changed + [f"the entries of {queue}" for queue in old if old[queue] != new[queue]]

    @contextmanager
    def _rocketmq(self) -> Iterator[RocketMQBroker]:
        directory = self._directory / "real"
        directory.mkdir(parents=True, exist_ok=True)
        broker = RocketMQBroker(self._chain.release, self._namesrv, directory, self._store, self._config)
        try:
            yield broker
        finally:
            broker.stop()

    @contextmanager
    def _rewindmq(self) -> Iterator[RewindMQBroker]:
        directory = self._directory / "rewindmq"
        broker = RewindMQBroker(self._chain.profile, self._namesrv, directory, self._store, CONFIG)
        try:
            yield broker
        finally:
            broker.stop()
            self._chain.rewindmq_log += broker.log


def read_config(store: Path) -> dict[str, Any]:
    """Return the parsed configuration files that both kinds of broker have; a missing file is empty."""
    return {name: _read_json(store / "config" / f"{name}.json") for name in CONFIG_FILES}


def _read_json(path: Path) -> Any:
    # A RocketMQ broker overwrites the file in place, so it may be half written; its backup then is complete.
    for candidate in (path, path.with_name(f"{path.name}.bak")):
        try:
            return fastjson.loads(candidate.read_bytes())
        except (RewindMQError, OSError):
            continue
    return {}


def lost_members(before: Any, after: Any, path: str = "") -> list[str]:
    """Return the paths of fields that ``before`` has and ``after`` lacks, at any depth, except empty ones."""
    if not isinstance(before, dict):
        return []
    if not isinstance(after, dict):
        return [path]
    lost = []
    for name, value in before.items():
        inner = f"{path}/{name}"
        if name in after:
            lost += lost_members(value, after[name], inner)
        elif value != {}:
            lost.append(inner)
    return lost
