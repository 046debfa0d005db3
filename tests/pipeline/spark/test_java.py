"""The Java for Spark, and the error without one; with real programs called java."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.spark.java import Java, find_java, java_version
from tests.support.repository import ROOT

SCRIPTS = ROOT / "scripts"
TEXTS = {
    8: 'java version "1.8.0_392"',
    11: 'openjdk version "11.0.22" 2024-01-16',
    17: 'openjdk version "17.0.15" 2025-04-15',
    21: 'openjdk version "21" 2023-09-19',
    25: 'openjdk version "25-ea" 2025-09-16',
}


def fake_java(home: Path, version: int) -> Path:
    return fake_program(home / "bin" / "java", f"echo '{TEXTS[version]}' >&2").parent.parent


def fake_program(path: Path, line: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", TEXTS)
def test_the_version_is_read(version: int, tmp_path: Path) -> None:
    assert java_version(fake_java(tmp_path, version)) == version


def test_a_program_that_prints_no_version_is_not_java(tmp_path: Path) -> None:
    fake_program(tmp_path / "bin/java", "exit 3")
    assert java_version(tmp_path) is None
    assert java_version(tmp_path / "nowhere") is None


def test_java_home_comes_first_then_the_path_then_the_systems_folders(tmp_path: Path) -> None:
    home, on_path = fake_java(tmp_path / "home", 21), fake_java(tmp_path / "path", 17)
    installed = fake_java(tmp_path / "jvm" / "java-25", 25)
    everything = {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}
    folders = (tmp_path / "jvm",)
    assert find_java(everything, folders) == Java(home, 21)
    assert find_java({"PATH": everything["PATH"]}, folders) == Java(on_path, 17)
    assert find_java({}, folders) == Java(installed, 25)


def test_a_link_on_the_path_leads_to_the_real_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jvm" / "java-17", 17)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, ()) == Java(home, 17)


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", 11), fake_java(tmp_path / "new", 17)
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, ()) == Java(new, 17)


@pytest.mark.parametrize(
    ("version", "said"), [(8, "/old is Java 8:"), (11, "/old is Java 11:"), (None, "and none was found:")]
)
def test_without_a_java_one_line_says_what_was_found_and_what_to_install(
    version: int | None, said: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "empty")
    if version is not None:
        path = str(fake_java(tmp_path / "old", version) / "bin")
    with pytest.raises(PipelineError) as raised:
        find_java({"PATH": path}, ())
    text = str(raised.value)
    assert text.startswith("Spark needs Java 17 or newer")
    assert said in text
    assert "apt-get install openjdk-17-jre-headless" in text
    assert "\n" not in text


def run_find_java(path: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run the scripts' function with only ``path`` as the search path."""
    script = f'. {SCRIPTS}/env.sh; PYTHON={python}; find_java; echo "JAVA_HOME=${{JAVA_HOME-unset}}"'
    return subprocess.run(
        ["/bin/bash", "-euc", script, "scripts/test"],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_scripts_find_java(tmp_path: Path) -> None:
    home = fake_java(tmp_path, 17)
    result = run_find_java(home / "bin")
    assert (result.returncode, result.stdout) == (0, f"JAVA_HOME={home}\n"), result.stderr


def machine_without_java(folder: Path, user: int) -> Path:
    """Programs of a machine whose ``apt-get`` knows only one of the packages; ``python`` looks for that."""
    fake_program(folder / "id", f"echo {user}")
    # Without sudo's password the script neither prompts nor installs.
    fake_program(folder / "sudo", "exit 1")
    installs = f"case $* in *openjdk-21*) : >{folder}/installed;; *update*) ;; *) exit 100;; esac"
    fake_program(folder / "apt-get", installs)
    fake_program(folder / "env", 'shift; exec "$@"')
    fake_program(
        folder / "python", f"[ -e {folder}/installed ] && echo /java || {{ echo none >&2; exit 1; }}"
    )
    return folder


def test_the_scripts_install_java_as_root(tmp_path: Path) -> None:
    path = machine_without_java(tmp_path, user=0)
    result = run_find_java(path, str(path / "python"))
    assert (result.returncode, result.stdout) == (0, "JAVA_HOME=/java\n"), result.stderr
    assert "apt-get install openjdk-21-jre-headless" in result.stderr


def test_the_scripts_go_on_without_java_where_they_cannot_install_it(tmp_path: Path) -> None:
    """Tests that need it are listed as not run."""
    path = machine_without_java(tmp_path, user=1000)
    result = run_find_java(path, str(path / "python"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "JAVA_HOME=unset\n", "")
