"""Requests to the driver programs of the interop suite."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tools.interop.driver import DriverProgram

_READY = json.dumps({"ready": {"client": "x", "version": "1", "ops": ["o"]}})


async def test_a_field_cannot_replace_the_number_of_the_request(tmp_path: Path) -> None:
    """The driver would answer to that field, and the request would never have an answer."""
    driver = await DriverProgram.start(["sh", "-c", f"echo '{_READY}'; cat >/dev/null"], tmp_path / "log")
    try:
        with pytest.raises(AssertionError, match="id is the request's number"):
            await driver.do("o", id="of a message")
    finally:
        await driver.stop()


async def test_a_client_yields_the_processor_to_the_server_it_asks(tmp_path: Path) -> None:
    driver = await DriverProgram.start(["sh", "-c", f"echo '{_READY}'; cat >/dev/null"], tmp_path / "log")
    try:
        client = os.getpriority(os.PRIO_PROCESS, driver.pid)
    finally:
        await driver.stop()
    server = os.getpriority(os.PRIO_PROCESS, 0)
    assert client > server or server == 19
