"""Tests that start brokers pass with the native kernel, too; and what reads a peer's bytes is fuzzed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kernel import FOLDER, NAME, VARIABLE
from tests.support.repository import ROOT

pytestmark = pytest.mark.slow

# Tests that start brokers: of each sub-folder, and of the files beside them. Scenarios that listen to points
# have no kernel (docs/speedups.md), and the others do.
_FOLDERS = tuple(
    str(path.relative_to(ROOT))
    for parent in ("broker", "client")
    for path in sorted((ROOT / "tests" / parent).iterdir())
    if (path / "__init__.py").exists()
)
_PLACES = (*_FOLDERS, "tests/broker/test_*.py", "tests/cluster", "tests/sync", "tests/testing")
# Where the kernel takes part: in plain sends and pulls (docs/speedups.md).
_SENDS_OR_PULLS = (
    *(f"tests/broker/{name}" for name in ("ha", "pull", "send", "test_*.py", "transaction")),
    *(f"tests/client/{name}" for name in ("produce", "pull", "push")),
    "tests/cluster",
    "tests/sync",
)
_OTHER = pytest.mark.slow(full_only="CI repeats the tests that send or pull")
_SECONDS = 600


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=() if place in _SENDS_OR_PULLS else _OTHER) for place in _PLACES],
)
def test_tests_that_start_brokers_pass_with_the_kernel(place: str, library: Path, tmp_path: Path) -> None:
    """Brokers of a stage get the kernel, and so do processes."""
    paths = [str(path) for path in sorted(ROOT.glob(place))]
    site = tmp_path / "site"
    site.mkdir()
    shutil.copy(library, site / f"{NAME}.abi3.so")
    environment = {**os.environ, VARIABLE: "1", "REWINDMQ_PURE": "0", "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "pytest", *paths, "-q", "-p", "no:cacheprovider", "-n", "0"]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout[-8_000:] + ended.stderr[-2_000:]
    assert " passed" in ended.stdout


@pytest.mark.usefixtures("library")
def test_no_bytes_of_a_peer_make_the_kernel_panic() -> None:
    """With checks of overflows and debug assertions, for five seconds after Cargo has built it."""
    if shutil.which("cargo") is None:
        pytest.skip("the kernel was not fuzzed: that needs Rust's cargo")
    environment = {**os.environ, "REWINDMQ_FUZZ_SECONDS": "5"}
    command = ["cargo", "test", "--locked", "--offline", "--quiet", "--test", "fuzz", "--", "--nocapture"]
    ended = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-4_000:]
    assert "plain" in ended.stdout
