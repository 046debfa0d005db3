"""The files in docker/: their commands exist, and a broker registers an address for other containers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from rewindmq.__main__ import build_parser
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.up.advertise import resolve_advertised
from tests.cluster.up.running_up import running_up
from tests.support.processes import WAIT_SECONDS
from tests.support.repository import ROOT

DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
COMPOSE = (ROOT / "docker" / "compose.yaml").read_text()


def commands() -> list[list[str]]:
    """Return the commands of both files, without `rewindmq`."""
    found = [json.loads(text) for text in re.findall(r"(?:CMD|command:) (\[.*\])", DOCKERFILE + COMPOSE)]
    found += [shlex.split(text) for text in re.findall(r"^CMD exec (.*)$", DOCKERFILE, re.MULTILINE)]
    assert {words[0] for words in found} == {"rewindmq"}
    return [words[1:] for words in found]


def test_the_files_use_options_that_exist() -> None:
    assert sorted(words[0] for words in commands()) == ["health", "produce", "up", "up"]
    for name, *options in commands():
        build_parser(name).parse_args(options)


def test_the_image_has_what_the_installation_needs_and_nothing_that_tools_make() -> None:
    """An ignored folder of the package would be missing; the caches of tools can have gigabytes."""
    ignored = (ROOT / "docker" / "Dockerfile.dockerignore").read_text().split()
    links = [link.readlink().name for link in (ROOT / "src" / "rewindmq").iterdir() if link.is_symlink()]
    assert len(links) >= 9
    needed = ["pyproject.toml", "README.md", "LICENSE", "src", *links]
    assert [name for name in needed if any(fnmatch(name, pattern) for pattern in ignored)] == []
    made = [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line]
    kept = {pattern.removeprefix("**/") for pattern in ignored}
    assert [name for name in made if not any(fnmatch(name, pattern) for pattern in kept)] == []


def test_the_files_refer_to_each_other() -> None:
    """The compose file builds the Dockerfile from the repository's root."""
    builds = re.findall(r"context: (\S+)\n +dockerfile: (\S+)", COMPOSE)
    assert builds
    for context, dockerfile in builds:
        root = (ROOT / "docker" / context).resolve()
        assert (root, (root / dockerfile).read_text()) == (ROOT, DOCKERFILE)
    assert re.findall(r"^(\w+):$", COMPOSE, re.MULTILINE) == ["services", "volumes"]
    (volume,) = re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)
    (mount,) = re.findall(r"- (\S+):(\S+)$", COMPOSE, re.MULTILINE)
    assert mount[1] == volume
    assert f"\nvolumes:\n  {mount[0]}:" in COMPOSE
    # The name server's address of the other container is the host name, and what the broker registers.
    (hostname,) = re.findall(r"hostname: (\S+)", COMPOSE)
    (address,) = re.findall(r"NAMESRV_ADDR: (\S+)", COMPOSE)
    (up,) = [words for words in commands() if words[0] == "up" and "--topic" in words]
    parsed = build_parser("up").parse_args(up[1:])
    assert (parsed.advertise, f"{hostname}:{parsed.port}") == (hostname, address)


def test_compose_accepts_its_file() -> None:
    """It needs no daemon."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed; the tests above check the files without it")
    command = [docker, "compose", "-f", str(ROOT / "docker" / "compose.yaml"), "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    assert services["application"]["depends_on"]["rewindmq"]["condition"] == "service_healthy"


def test_the_ports_of_the_image_are_those_of_its_commands() -> None:
    (ports,) = re.findall(r"^EXPOSE (\d+) (\d+)$", DOCKERFILE, re.MULTILINE)
    for name, *options in commands():
        if name == "up":
            parsed = build_parser(name).parse_args(options)
            assert (str(parsed.port), str(parsed.broker_port)) == ports


def test_a_name_is_registered_as_its_address() -> None:
    assert resolve_advertised("192.0.2.1") == "192.0.2.1"
    assert resolve_advertised("localhost") == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "no such host.invalid", "x" * 300])
def test_an_address_that_no_client_can_use_is_refused(host: str) -> None:
    with pytest.raises(ClusterError, match=f"^--advertise {re.escape(host)}: "):
        resolve_advertised(host)


def health(*words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "rewindmq", "health", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS, env={**os.environ})
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_cluster_of_all_interfaces_is_healthy_until_a_broker_is_missing(tmp_path: Path) -> None:
    open_to_all = ("--host", "0.0.0.0", "--allow-open-access", "--advertise", "localhost")
    with running_up(tmp_path / "data", "-p", "0", *open_to_all, "--topic", "orders") as up:
        namesrv = "127.0.0.1:" + up.namesrv.rpartition(":")[2]
        assert up.addresses["broker-a"].startswith("127.0.0.1:")
        assert health("-n", namesrv) == (0, "healthy: broker-a\n", "")
        code, out, err = health("-n", namesrv, "--brokers", "2")
        assert (code, out) == (1, "")
        assert err == "rewindmq health: 1 of 2 brokers are registered: broker-a\n"
        up.stop()
    code, out, err = health("-n", namesrv)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
