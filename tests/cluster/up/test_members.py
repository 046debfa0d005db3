"""``rewindmq members`` at a running cluster: it answers when the process is gone, paused or serves again."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rewindmq import AdminClient
from rewindmq.__main__ import main
from rewindmq.cluster.up.folder import connect
from rewindmq.protocol.body.registration import TopicConfig
from tests.cluster.up.running_up import RunningUp, running_up


class Shell:
    """Another shell: runs ``rewindmq members`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def members(self, *words: str) -> tuple[int, str, str]:
        """Return exit code, output and errors."""
        code = main(["members", *words])
        out, err = self._capsys.readouterr()
        return code, out, err

    def member(self, *words: str) -> dict[str, Any]:
        """Return the only member of a command's answer."""
        code, out, err = self.members(*words, "--json")
        assert (code, err) == (0, "")
        (member,) = json.loads(out)["members"]
        assert isinstance(member, dict)
        return member

    def refused(self, *words: str) -> str:
        """Return the one line that says why a command failed."""
        code, out, err = self.members(*words)
        assert (code, out) == (1, "")
        (line,) = err.splitlines()
        return line.removeprefix("rewindmq members: ")


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


async def queues(up: RunningUp, topic: str) -> int:
    async with AdminClient(up.namesrv) as admin:
        (queue,) = (await admin.topics.examine_topic_route_info(topic)).queue_datas
        return queue.write_queue_nums


def test_members_of_the_only_cluster_are_listed_killed_paused_and_restarted(
    tmp_path: Path, shell: Shell
) -> None:
    directory = tmp_path / "data"
    with running_up(directory, "-p", "0", "--topic", "orders:3", "--topic", "bills") as up:
        assert asyncio.run(queues(up, "orders")) == 3
        assert asyncio.run(queues(up, "bills")) == 4
        code, out, _ = shell.members()
        rows = [line.split() for line in out.splitlines()]
        assert (code, rows[0]) == (0, ["member", "state", "address", "pid", "log"])
        assert [row[:3] for row in rows[1:]] == [
            [name, "running", address] for name, address in up.addresses.items()
        ]
        pid = int(rows[2][3])

        assert shell.member("pause", "broker-a")["state"] == "paused"
        assert state_of(pid) == "T"
        assert "broker-a is paused already" in shell.refused("pause", "broker-a")
        assert shell.member("resume", "broker-a")["state"] == "running"
        assert shell.refused("resume", "broker-a") == "broker-a is not paused"

        assert shell.member("kill", "broker-a") | {"log": ""} == {
            "name": "broker-a",
            "state": "ended",
            "address": up.addresses["broker-a"],
            "pid": None,
            "log": "",
        }
        assert not exists(pid)
        for action in ("kill", "pause", "resume"):
            assert "rewindmq members restart broker-a" in shell.refused(action, "broker-a")

        again = shell.member("restart", "broker-a", "--dir", str(directory))
        assert (again["state"], again["address"]) == ("running", up.addresses["broker-a"])
        assert asyncio.run(queues(up, "orders")) == 3

        assert shell.refused("kill", "broker-z") == (
            "there is no member 'broker-z'; members: namesrv, broker-a"
        )
        assert stat.filemode((directory / "control.sock").stat().st_mode) == "srw-------"
        with closing(connect(directory)) as connection:
            connection.sendall(b"{" * 10_000 + b"\n")
            assert b"the command is not one line of JSON" in connection.recv(1_000)
        up.stop()
    assert not (directory / "control.sock").exists()
    assert shell.refused() == (
        "no cluster of yours runs: start one with rewindmq up, or name its folder with --dir"
    )
    assert shell.refused("kill", "broker-a", "--dir", str(directory)) == (
        f"no cluster runs in {directory}: start it with rewindmq up --dir {directory}"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["kill"], "the following arguments are required: NAME"),
        (["stop", "broker-a"], "invalid choice: 'stop'"),
        (["list", "broker-a"], "unrecognized arguments: broker-a"),
    ],
)
def test_wrong_usage_of_members_is_exit_code_2(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["members", *words])
    assert refused.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.slow
def test_one_of_several_clusters_is_chosen_by_its_folder_however_long_its_path_is(
    tmp_path: Path, shell: Shell, registry: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / ("long" * 40)
    with running_up(first, "-p", "0") as one, running_up(second, "-p", "0") as two:
        assert shell.refused() == f"several clusters run, choose one with --dir: {first}, {second}"
        (address,) = {shell.member("kill", "broker-a", "--dir", str(second))["address"]}
        assert address == two.addresses["broker-a"]
        one.process.kill()
        one.process.wait()
        # The killed one left its entry in the registry, which is removed at the next look.
        assert len(list((registry / f"rewindmq-{os.getuid()}").iterdir())) == 2
        _, out, _ = shell.members("--json")
        assert json.loads(out)["pid"] == two.process.pid
        assert len(list((registry / f"rewindmq-{os.getuid()}").iterdir())) == 1
        two.stop()


async def set_queues(up: RunningUp, topic: str, count: int) -> None:
    async with AdminClient(up.namesrv) as admin:
        config = TopicConfig(topic, read_queue_nums=count, write_queue_nums=count)
        await admin.topics.create_and_update_topic_config(up.addresses["broker-a"], config)


@pytest.mark.slow
def test_a_topic_is_created_in_a_cluster_of_any_name(tmp_path: Path) -> None:
    with running_up(
        tmp_path / "data", "-p", "0", "--topic", "orders:3", "--set", "brokerClusterName=Other"
    ) as up:
        assert asyncio.run(queues(up, "orders")) == 3
        up.stop()


@pytest.mark.slow
def test_the_next_start_has_the_same_ports_and_keeps_topics_whose_queues_are_not_given(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "data"
    with running_up(directory, "-p", "0", "--topic", "orders") as up:
        first = up.addresses
        asyncio.run(set_queues(up, "orders", 7))
        up.stop()
    with running_up(directory, "--topic", "orders") as up:
        assert up.addresses == first
        assert asyncio.run(queues(up, "orders")) == 7
        up.stop()
    with running_up(directory, "--brokers", "2", "--topic", "orders:5") as up:
        assert {name: up.addresses[name] for name in first} == first
        up.stop()
    with running_up(directory, "--brokers", "2", "-p", "0", "--new-ports") as up:
        assert not set(up.addresses.values()) & set(first.values())
        up.stop()
