"""Writes a broker's present tables, for a copy of its store.

The tables in ``config/`` may be seconds old: the broker writes offsets only after the log is durable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.layout.known_end import KNOWN_END_FILE
from rewindmq.protocol.files.private import FOLDER_MODE, open_private
from rewindmq.protocol.files.store_files import FILE_LIST

_CONFIG: Final = "config"


def write_state(context: BrokerContext, folder: Path) -> None:
    """Write tables and ends of log and queues as a store has them, and the list of the store's other files.

    Raises:
        OSError: a file cannot be written.
    """
    texts = {
        f"{_CONFIG}/topics.json": context.tables.topics.text(),
        f"{_CONFIG}/subscriptionGroup.json": context.tables.groups.text(),
        f"{_CONFIG}/consumerOffset.json": context.offsets.table.text(),
        f"{_CONFIG}/delayOffset.json": context.delays.offsets.text(),
    }
    # Brokers before 5.0 have no such file.
    if len(context.tables.request_modes):
        texts[f"{_CONFIG}/messageRequestMode.json"] = context.tables.request_modes.text()
    # The folder itself exists, unless the parent waits no longer.
    (folder / _CONFIG).mkdir(FOLDER_MODE, exist_ok=True)
    for name, text in texts.items():
        _write(folder / name, text.encode())
    snapshot = context.store.snapshot
    _write(folder / KNOWN_END_FILE, msgspec.json.encode(snapshot.known_end()))
    _write(folder / FILE_LIST, msgspec.json.encode(snapshot.files()))


def _write(path: Path, data: bytes) -> None:
    with open_private(path, "wb") as file:
        file.write(data)
