"""The example project runs by itself: installed with RewindMQ's wheel in a new environment, with ``-n 2``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.support.repository import ROOT

EXAMPLE: Final = ROOT / "examples" / "order_service"
NEWER: Final = ("3.12", "3.13", "3.14")
# Seconds; only a hang takes so long.
TIMEOUT: Final = 600


def run(*words: object, cwd: Path) -> str:
    """Run a program outside this environment's variables, and return its output."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """RewindMQ's wheel, built from a copy: a build writes into its folder."""
    source = tmp_path_factory.mktemp("source")
    links = [link.readlink() for link in (ROOT / "src" / "rewindmq").iterdir() if link.is_symlink()]
    for name in ("src", *(link.name for link in links)):
        shutil.copytree(
            ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("*.egg-info")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    return build(source)


def build(source: Path) -> Path:
    """Build the wheel of a project with this environment's setuptools, so that nothing is downloaded."""
    target = source / "dist"
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir")
    run(sys.executable, "-m", "pip", "wheel", *options, target, source, cwd=source)
    (built,) = target.glob("*.whl")
    return built


def make_environment(folder: Path, *wheels: Path) -> Path:
    """Make an environment with the wheels; return its interpreter. The rest is this environment's."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    install = (sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", packages)
    run(*install, *wheels, cwd=folder)
    # The path comes last, and Python ignores the .pth files in it, such as that of an editable RewindMQ.
    (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin" / "python"


def copy_of_example(folder: Path) -> Path:
    """Copy the example, without what earlier runs have left there."""
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__", ".pytest_cache", "build")
    return Path(shutil.copytree(EXAMPLE, folder, ignore=ignored))


@pytest.mark.slow
def test_the_example_passes_with_the_installed_wheel_and_two_workers(wheel: Path, tmp_path: Path) -> None:
    example = copy_of_example(tmp_path / "order_service")
    python = make_environment(tmp_path / "environment", wheel, build(example))
    place = run(python, "-c", "import rewindmq; print(rewindmq.__file__)", cwd=tmp_path).strip()
    assert Path(place).is_relative_to(tmp_path)
    # Only the tests, so that the installed package is tested.
    shutil.rmtree(example / "src")
    assert "12 passed" in run(python, "-m", "pytest", "-q", "-n", "2", cwd=example)


@pytest.mark.parametrize("version", [pytest.param(version, marks=pytest.mark.slow) for version in NEWER])
def test_the_example_passes_with_newer_interpreters(version: str, wheel: Path, tmp_path: Path) -> None:
    """The dependencies come from the package index: compiled ones differ between interpreters."""
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version} on PATH")
    example = copy_of_example(tmp_path / "order_service")
    folder = tmp_path / "environment"
    run(python, "-m", "venv", folder, cwd=tmp_path)
    install = (folder / "bin" / "pip", "install", "-q", "--only-binary", ":all:")
    found = subprocess.run(
        [*install, f"{wheel}[testing]", "pytest-xdist", "setuptools"], capture_output=True, text=True
    )
    if found.returncode:
        pytest.skip(f"no wheels for Python {version}: {found.stderr.strip().splitlines()[-1]}")
    run(folder / "bin" / "pip", "install", "-q", "--no-deps", "--no-build-isolation", example, cwd=tmp_path)
    assert "12 passed" in run(folder / "bin" / "python", "-m", "pytest", "-q", "-n", "2", cwd=example)


def test_the_example_waits_only_by_the_kit() -> None:
    texts = [path.read_text() for path in EXAMPLE.rglob("*.py")]
    assert len(texts) >= 6
    assert not [text for text in texts if "sleep" in text]


def test_the_example_depends_on_the_kit() -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    assert "rewindmq[testing]" in project["optional-dependencies"]["test"]
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == own["requires-python"]
