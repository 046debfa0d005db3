"""Which code a broker runs: the kernel of its own version, unless the user wants pure Python."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import rewindmq
from rewindmq.protocol.remoting.process.speedups import describe_speedups, load_speedups
from tests.support.fixtures import RunScenario
from tests.support.kernel import VARIABLE
from tests.support.repository import ROOT
from tests.support.stage import SimStage

_NAME = "rewindmq_speedups"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The first folder that modules are imported from; no kernel is loaded yet."""
    monkeypatch.delenv("REWINDMQ_PURE", raising=False)
    monkeypatch.delitem(sys.modules, _NAME, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop(_NAME, None)


def install(folder: Path, source: str) -> None:
    (folder / f"{_NAME}.py").write_text(source)
    importlib.invalidate_caches()


def test_the_kernel_of_the_same_version_is_used(folder: Path) -> None:
    install(folder, f"__version__ = {rewindmq.__version__!r}")
    assert load_speedups() is sys.modules[_NAME]
    assert describe_speedups() == f"with rewindmq-speedups {rewindmq.__version__}"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("__version__ = '9.9'", "rewindmq-speedups has version 9.9"),
        ("", "rewindmq-speedups has version unknown"),
        ("raise ImportError('no such symbol')", "rewindmq-speedups cannot be loaded: no such symbol"),
    ],
)
def test_any_other_kernel_means_pure_python(folder: Path, source: str, why: str) -> None:
    install(folder, source)
    assert load_speedups() is None
    assert describe_speedups() == f"pure Python, because {why}"


@pytest.mark.parametrize("value", ["1", "true"])
def test_REWINDMQ_PURE_means_pure_python(folder: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(folder, f"__version__ = {rewindmq.__version__!r}")
    monkeypatch.setenv("REWINDMQ_PURE", value)
    assert load_speedups() is None
    assert describe_speedups() == "pure Python, because REWINDMQ_PURE is set"


def test_both_distributions_have_one_version() -> None:
    version = f'\nversion = "{rewindmq.__version__}"\n'
    kernel = ROOT / "speedups"
    assert version in (kernel / "Cargo.toml").read_text()
    assert f'\nname = "rewindmq-speedups"{version}' in (kernel / "Cargo.lock").read_text()
    assert metadata.version("rewindmq") == rewindmq.__version__


@pytest.mark.parametrize("is_asked", [False, True])
def test_the_brokers_of_a_stage_have_the_kernels_if_the_run_asks_for_them(
    simulate: RunScenario, library: Path, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    if is_asked:
        monkeypatch.setenv(VARIABLE, "1")
    else:
        monkeypatch.delenv(VARIABLE, raising=False)
    codes: list[int] = []

    async def scenario(stage: SimStage) -> None:
        codes.extend(kernel.code for kernel in stage.broker._server.frame_kernels)

    simulate(scenario)
    assert codes == [310, 320, 11] * is_asked
