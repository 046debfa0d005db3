"""Tests that share expensive fixtures run in the same process."""

from __future__ import annotations

from tests.support.repository import ROOT
from tests.support.scheduling import STORES


def test_the_files_that_use_the_store_chains_go_to_one_process() -> None:
    files = (ROOT / "tests" / "interop").glob("test_*.py")
    users = {path.relative_to(ROOT).as_posix() for path in files if "store_chains" in path.read_text()}
    assert users == STORES
