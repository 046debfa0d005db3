"""The folder of ``rewindmq up``: it remembers ports, and one ``up`` runs in it at a time."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from rewindmq.__main__ import main
from rewindmq.cluster.up.folder import locked, running_folders
from rewindmq.cluster.up.ports import read_ports, write_ports


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line with which ``up`` ends."""
    assert main(["up", *words]) == 1
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert out == ""
    return line.removeprefix("rewindmq up: ")


def test_ports_are_remembered(tmp_path: Path) -> None:
    assert read_ports(tmp_path) == {}
    write_ports(tmp_path, {"namesrv": 9876, "broker-a": 10911})
    write_ports(tmp_path, {"namesrv": 9877})
    assert read_ports(tmp_path) == {"namesrv": 9877}
    assert [path.name for path in tmp_path.iterdir()] == ["ports.json"]
    assert (tmp_path / "ports.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("words", [(), ("-p", "0")])
def test_a_remembered_port_in_use_names_port_and_folder_and_what_to_do(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_ports(tmp_path, {"namesrv": port})
        assert failure(capsys, "--dir", str(tmp_path), *words) == (
            f"port {port} of namesrv, which {tmp_path} remembers, is in use: stop the program that has it,"
            " or pass --new-ports"
        )
    # It has not forgotten the port.
    assert read_ports(tmp_path) == {"namesrv": port}


@pytest.mark.parametrize("text", ["", "[]", '{"namesrv": 0}', '{"namesrv": 65536}', '{"a": true}', "\ufffd{"])
def test_a_file_of_ports_that_is_none_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ports.json"
    path.write_text(text)
    assert failure(capsys, "--dir", str(tmp_path)) == (
        f"{path} is not a table of ports: delete it, or pass --new-ports"
    )


def test_a_second_up_in_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(tmp_path):
        assert failure(capsys, "-p", "0", "--dir", str(tmp_path)) == (
            f"the rewindmq up with process id {os.getpid()} runs in {tmp_path}: stop it, or choose another"
            " --dir"
        )
    # The lock ends with its process, also by SIGKILL: a file alone refuses nothing.
    assert (tmp_path / "up.lock").exists()
    with locked(tmp_path):
        pass


def test_a_registry_that_another_user_could_write_is_not_used(registry: Path) -> None:
    folder = registry / f"rewindmq-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "1").symlink_to(registry)
    assert running_folders() == []
    assert (folder / "1").is_symlink()


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("orders:", "QUEUES is 1 to 65535"),
        ("orders:0", "QUEUES is 1 to 65535"),
        ("orders:65536", "QUEUES is 1 to 65535"),
        ("orders:4:4", "QUEUES is 1 to 65535"),
        (f"orders:{'9' * 5000}", "QUEUES is 1 to 65535"),
        (":4", "The specified topic is blank."),
        ("or ders", "illegal characters"),
        ("x" * 128, "longer than topic max length"),
        ("SCHEDULE_TOPIC_XXXX", "a topic of the brokers themselves"),
    ],
)
def test_a_bad_topic_is_refused_with_an_example(
    topic: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["up", "-p", "0", "--topic", topic])
    assert refused.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "argument --topic: must be NAME or NAME:QUEUES, such as orders:4, not " in line
    assert reason in line


def test_an_advertised_address_and_a_setting_of_it_exclude_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["up", "-p", "0", "--advertise", "127.0.0.1", "--set", "brokerIP1=127.0.0.2"]) == 1
    assert capsys.readouterr().err == "rewindmq up: --advertise sets brokerIP1: omit one of them\n"


def test_the_help_says_how_a_folder_keeps_its_ports(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "the one that DIR remembers, else 9876" in text
    assert json.dumps("rewindmq members --help").strip('"') in text
