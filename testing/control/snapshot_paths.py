"""SnapshotPaths: snapshots of the cluster, and the files that they are saved to."""

from __future__ import annotations

from http import HTTPStatus

from rewindmq.testing.control.bodies import NoBody, SnapshotBody, SnapshotFileBody, decode
from rewindmq.testing.control.http_request import HttpError
from rewindmq.testing.control.member_control import MemberControl
from rewindmq.testing.control.paths import Handlers, action_of
from rewindmq.testing.control.snapshot_folder import SnapshotFolder


class SnapshotPaths:
    """Answers requests about snapshots."""

    def __init__(self, control: MemberControl, folder: SnapshotFolder) -> None:
        self._control = control
        self._folder = folder

    @property
    def handlers(self) -> Handlers:
        """The paths."""
        return {
            ("GET", "snapshots"): self._list,
            ("POST", "snapshots"): self._take,
            ("POST", "snapshots/*/*"): self._use,
        }

    async def _list(self, values: tuple[str, ...], body: bytes) -> object:
        return {"snapshots": self._control.cluster.snapshots(), "files": self._folder.names()}

    async def _take(self, values: tuple[str, ...], body: bytes) -> object:
        snapshot = decode(body, SnapshotBody)
        await self._control.snapshot(snapshot.name)
        return snapshot

    async def _use(self, values: tuple[str, ...], body: bytes) -> object:
        name, word = values
        actions = {"restore": self._restore, "save": self._save, "load": self._load}
        return await action_of(actions, word, "a snapshot")(name, body)

    async def _restore(self, name: str, body: bytes) -> object:
        decode(body, NoBody)
        self._require(name)
        await self._control.restore_snapshot(name)
        return {"name": name}

    async def _save(self, name: str, body: bytes) -> object:
        path = self._folder.to_write(decode(body, SnapshotFileBody).file)
        self._require(name)
        await self._control.save_snapshot(name, path)
        return {"name": name, "path": str(path)}

    async def _load(self, name: str, body: bytes) -> object:
        path = self._folder.to_read(decode(body, SnapshotFileBody).file)
        await self._control.load_snapshot(name, path)
        return {"name": name, "path": str(path)}

    def _require(self, name: str) -> None:
        known = self._control.cluster.snapshots()
        if name not in known:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"there is no snapshot {name!r}; snapshots: {', '.join(known) or 'none'}",
            )
