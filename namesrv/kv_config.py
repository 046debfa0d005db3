"""The KV configuration, by namespace: the only data that a name server stores on disk (PUT_KV_CONFIG, 100).

File: ``kvConfig.json``, ``{"configTable": {namespace: {key: value}}}`` (docs/spec/store.md 8.7).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import msgspec

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import ConfigError, RequestError
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.remoting.runtime import Workers

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"

# RocketMQ has no bounds here; without any, one peer could fill memory and disk.
MAX_ENTRIES: Final = 10_000
MAX_NAME_LENGTH: Final = 255
MAX_VALUE_LENGTH: Final = 32_767
# Bytes of all names and values as JSON text. Every response to REGISTER_BROKER (103) contains the namespace
# ORDER_TOPIC_CONFIG, and must fit into a frame of 16 MiB.
MAX_TABLE_BYTES: Final = 4 << 20

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


class _KVConfigFile(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class _Table:
    """A version of the table; a change makes another one.

    Attributes:
        entries: number of pairs.
        size: bytes of all names and values as JSON text.
    """

    namespaces: Mapping[str, dict[str, str]]
    entries: int
    size: int

    @classmethod
    def of(cls, namespaces: Mapping[str, dict[str, str]]) -> Self:
        size = sum(map(_size, namespaces)) + sum(map(_size_of_pairs, namespaces.values()))
        return cls(namespaces, sum(map(len, namespaces.values())), size)

    def get(self, namespace: str, key: str) -> str | None:
        return self.namespaces.get(namespace, _EMPTY).get(key)

    def put(self, namespace: str, key: str, value: str) -> _Table:
        """Return a table with this pair. Raise UnicodeEncodeError for a lone surrogate."""
        old = self.get(namespace, key)
        size = self.size + _size(value)
        size += _size(key) if old is None else -_size(old)
        if namespace not in self.namespaces:
            size += _size(namespace)
        pairs = {**self.namespaces.get(namespace, _EMPTY), key: value}
        return _Table({**self.namespaces, namespace: pairs}, self.entries + (old is None), size)

    def delete(self, namespace: str, key: str) -> _Table:
        """Return a table without this pair, which exists; the namespace stays."""
        pairs = dict(self.namespaces[namespace])
        size = self.size - _size(key) - _size(pairs.pop(key))
        return _Table({**self.namespaces, namespace: pairs}, self.entries - 1, size)


class KVConfigManager:
    """The key-value table. A change counts when a worker thread has written it to the file.

    The changes made during one write share the next write. If a write fails, its changes and those that
    wait for the next write are refused.

    Args:
        path: the file; the first write creates its directory. None keeps the table in memory only.

    Raises:
        ConfigError: the file exists but cannot be read; starting with an empty table would overwrite it.
    """

    def __init__(self, path: Path | None, workers: Workers) -> None:
        self._path = path
        self._workers = workers
        # What requests see, and the file contains.
        self._table = _Table.of({} if path is None else _load(path))
        # With the changes that are not in the file yet.
        self._changed = self._table
        self._writing: asyncio.Future[None] | None = None
        # Requests that wait for the running write, and those that wait for the next one.
        self._waiting: list[asyncio.Future[None]] = []
        self._later: list[asyncio.Future[None]] = []

    @property
    def size(self) -> int:
        """Bytes of all names and values."""
        return self._table.size

    def get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return all pairs of a namespace, or None if it was never written.

        The caller must not change them; nor does a later change, which makes other pairs.
        """
        return self._table.namespaces.get(namespace)

    async def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value, and wait until it is in the file. If the caller stops waiting, it is set all the same.

        Raises:
            RequestError: SYSTEM_ERROR (1), a limit is exceeded or the file cannot be written; nothing
                changes.
        """
        if not (0 < len(namespace) <= MAX_NAME_LENGTH and 0 < len(key) <= MAX_NAME_LENGTH):
            raise _refusal(f"namespace and key must have 1 to {MAX_NAME_LENGTH} characters")
        if len(value) > MAX_VALUE_LENGTH:
            raise _refusal(f"value has {len(value)} characters, more than {MAX_VALUE_LENGTH}")
        before = self._changed
        try:
            table = before.put(namespace, key, value)
        except UnicodeEncodeError:
            raise _refusal("namespace, key and value must be valid Unicode") from None
        if table.entries > max(before.entries, MAX_ENTRIES):
            raise _refusal(f"there are {MAX_ENTRIES} config items already")
        if table.size > MAX_TABLE_BYTES:
            raise _refusal(f"all config items together would have more than {MAX_TABLE_BYTES} bytes")
        await self._change(table)

    async def delete(self, namespace: str, key: str) -> None:
        """Remove a value if it exists, and wait until the file is without it; the namespace stays.

        If the caller stops waiting, the value is removed all the same.

        Raises:
            RequestError: SYSTEM_ERROR (1), the file cannot be written; nothing changes.
        """
        if self._changed.get(namespace, key) is not None:
            await self._change(self._changed.delete(namespace, key))
        elif self._changed is not self._table:
            # The change that removes it may not be in the file yet.
            await self._change(self._changed)

    async def close(self) -> None:
        """Wait for the running write and the one after it."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))

    async def _change(self, table: _Table) -> None:
        if self._path is None:
            self._table = self._changed = table
            return
        self._changed = table
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._later.append(done)
        self._write(self._path)
        await done

    def _write(self, path: Path) -> None:
        if self._writing is None and self._later:
            self._waiting, self._later = self._later, []
            table = self._changed
            self._writing = asyncio.ensure_future(self._workers.run(_save, path, table.namespaces))
            self._writing.add_done_callback(partial(self._written, path, table))

    def _written(self, path: Path, table: _Table, writing: asyncio.Future[None]) -> None:
        self._writing = None
        if writing.cancelled():
            error: BaseException | None = asyncio.CancelledError()
        else:
            error = writing.exception()
        if error is None:
            self._table = table
        else:
            # The changes of the requests in ``_later`` contain those that failed.
            self._changed = self._table
            self._waiting += self._later
            self._later = []
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            if not done.done():
                _settle(done, path, error)
        self._write(path)


def _settle(done: asyncio.Future[None], path: Path, error: BaseException | None) -> None:
    if error is None:
        done.set_result(None)
    elif isinstance(error, OSError):
        done.set_exception(_refusal(f"could not write {path.name}: {error.strerror}"))
    elif isinstance(error, asyncio.CancelledError):
        done.cancel()
    else:
        done.set_exception(error)


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)


def _size(text: str) -> int:
    """Return the bytes of a name or value as JSON text, in which a control character takes six."""
    return len(msgspec.json.encode(text)) - len('""')


def _size_of_pairs(pairs: Mapping[str, str]) -> int:
    return sum(map(_size, pairs)) + sum(map(_size, pairs.values()))


def _load(path: Path) -> dict[str, dict[str, str]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    try:
        return msgspec.json.decode(data, type=_KVConfigFile).config_table
    except DECODE_FAILURES as error:
        raise ConfigError(f"{path}: not a kvConfig.json: {error}") from None


def _save(path: Path, table: Mapping[str, dict[str, str]]) -> None:
    """Replace the file in one step, so that a crash leaves the old or the new table. Runs on a worker."""
    text = json.dumps({"configTable": table}, indent="\t", separators=(",", ":"), ensure_ascii=False)
    make_private_folder(path.parent)
    temporary = path.with_name(path.name + ".tmp")
    with open_private(temporary, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
