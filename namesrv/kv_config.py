"""The KV configuration, by namespace: the only data that a name server stores on disk (PUT_KV_CONFIG, 100).

File: ``kvConfig.json``, ``{"configTable": {namespace: {key: value}}}`` (docs/spec/store.md 8.7).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ConfigError, RequestError
from rewindmq.protocol.files.private import make_private_folder, open_private

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"

# RocketMQ has no bounds here; without any, one peer could fill memory and disk.
MAX_ENTRIES: Final = 10_000
MAX_NAME_LENGTH: Final = 255
MAX_VALUE_LENGTH: Final = 32_767
# Bytes of all names and values. Every response to REGISTER_BROKER (103) contains the namespace
# ORDER_TOPIC_CONFIG, and must fit into a frame of 16 MiB.
MAX_TABLE_BYTES: Final = 4 << 20

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


class _KVConfigFile(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]]


class KVConfigManager:
    """The key-value table; every change is written to its file at once.

    Args:
        path: the file; the first write creates its directory. None keeps the table in memory only.

    Raises:
        ConfigError: the file exists but cannot be read; starting with an empty table would overwrite it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._table = {} if path is None else _load(path)

    def get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, _EMPTY).get(key)

    def namespace(self, namespace: str) -> Mapping[str, str] | None:
        """Return all pairs of a namespace, or None if it was never written."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value.

        Raises:
            RequestError: SYSTEM_ERROR (1), a limit is exceeded or the file cannot be written; nothing
                changes.
        """
        if not (0 < len(namespace) <= MAX_NAME_LENGTH and 0 < len(key) <= MAX_NAME_LENGTH):
            raise _refusal(f"namespace and key must have 1 to {MAX_NAME_LENGTH} characters")
        if len(value) > MAX_VALUE_LENGTH:
            raise _refusal(f"value has {len(value)} characters, more than {MAX_VALUE_LENGTH}")
        try:
            (namespace + key + value).encode()
        except UnicodeEncodeError:
            raise _refusal("namespace, key and value must be valid Unicode") from None
        if self.get(namespace, key) is None and sum(map(len, self._table.values())) >= MAX_ENTRIES:
            raise _refusal(f"there are {MAX_ENTRIES} config items already")
        table = {**self._table, namespace: {**self._table.get(namespace, _EMPTY), key: value}}
        if _size(table) > MAX_TABLE_BYTES:
            raise _refusal(f"all config items together would have more than {MAX_TABLE_BYTES} bytes")
        self._replace(table)

    def delete(self, namespace: str, key: str) -> None:
        """Remove a value if it exists; the namespace stays.

        Raises:
            RequestError: SYSTEM_ERROR (1), the file cannot be written; nothing changes.
        """
        if self.get(namespace, key) is None:
            return
        pairs = {name: value for name, value in self._table[namespace].items() if name != key}
        self._replace({**self._table, namespace: pairs})

    def _replace(self, table: dict[str, dict[str, str]]) -> None:
        if self._path is not None:
            try:
                _save(self._path, table)
            except OSError as error:
                raise _refusal(f"could not write {self._path.name}: {error.strerror}") from None
        self._table = table


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)


def _size(table: Mapping[str, Mapping[str, str]]) -> int:
    """Return the bytes of all names and values."""
    return sum(
        len(namespace.encode()) + sum(len(key.encode()) + len(value.encode()) for key, value in pairs.items())
        for namespace, pairs in table.items()
    )


def _load(path: Path) -> dict[str, dict[str, str]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    try:
        return msgspec.json.decode(data, type=_KVConfigFile).config_table
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a kvConfig.json: {error}") from None


def _save(path: Path, table: dict[str, dict[str, str]]) -> None:
    """Replace the file in one step, so that a crash leaves the old or the new table."""
    text = json.dumps({"configTable": table}, indent="\t", separators=(",", ":"), ensure_ascii=False)
    make_private_folder(path.parent)
    temporary = path.with_name(path.name + ".tmp")
    with open_private(temporary, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
