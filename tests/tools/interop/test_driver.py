"""Requests to the driver programs of the interop suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.interop.driver import Driver

_READY = json.dumps({"ready": {"client": "x", "version": "1", "ops": ["o"]}})


async def test_a_field_cannot_replace_the_number_of_the_request(tmp_path: Path) -> None:
    """The driver would answer to that field, and the request would never have an answer."""
    driver = await Driver.start(["sh", "-c", f"echo '{_READY}'; cat >/dev/null"], tmp_path / "log")
    try:
        with pytest.raises(AssertionError, match="id is the request's number"):
            await driver.do("o", id="of a message")
    finally:
        await driver.stop()
