"""Saving what a request changed, where a disk that refuses has to become that request's answer."""

from __future__ import annotations

from typing import Any

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError


def save_or_refuse(file: ConfigFile, content: dict[str, Any]) -> None:
    """Write the file.

    Raises:
        RequestError: 1, the disk refused; the file is as before.
    """
    try:
        file.save(content)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from error
