"""Reads RocketMQ's property files from disk; ``protocol.config.property_file`` parses them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from rewindmq.protocol.config.property_file import LoadedConfig, convert_properties, parse_properties_file
from rewindmq.protocol.errors import ConfigError

MAX_FILE_BYTES: Final = 1_048_576


def load_properties(config_type: type[msgspec.Struct], path: Path) -> LoadedConfig:
    """Read and convert a file.

    Raises:
        ConfigError: the file cannot be read, is not UTF-8 or too large, or has an invalid value.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    return convert_properties(config_type, parse_properties_file(text), str(path))
