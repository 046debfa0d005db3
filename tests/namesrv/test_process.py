"""The name server as a process: ready line, exit codes, one-line errors, lifeline."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import (
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    PutKVConfigRequestHeader,
)
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.support.process import TIMEOUT, failing, serving


def fails(*arguments: str) -> tuple[int, str]:
    return failing("namesrv", *arguments)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ready_line_and_orderly_stop(tmp_path: Path, number: signal.Signals) -> None:
    with serving("namesrv", "-p", "0", "--root", str(tmp_path)) as process:
        assert process.ready["ready"] == "namesrv"
        assert process.ready["pid"] == process.pid
        socket.create_connection(process.place, TIMEOUT).close()
        log = [line.split(" ", 4)[-1] for line in process.stop(number)]
    assert (log[0], log[-1]) == (f"namesrv serves at {process.address}", "namesrv stops")


def test_lifeline_of_the_parent(tmp_path: Path) -> None:
    with serving("namesrv", "-p", "0", "--root", str(tmp_path), "--exit-with-parent") as process:
        assert "the parent process is gone" in "\n".join(process.leave())


def test_lifeline_needs_a_pipe() -> None:
    assert fails("-p", "0", "--exit-with-parent") == (
        1,
        "rewindmq namesrv: --exit-with-parent needs a pipe on standard input\n",
    )


def test_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert fails("-p", str(port), "--root", str(tmp_path)) == (
            1,
            f"rewindmq namesrv: cannot listen on 127.0.0.1:{port}: Address already in use\n",
        )


def test_a_host_that_other_machines_reach_needs_permission(tmp_path: Path) -> None:
    """192.0.2.1 is an address that no machine has."""
    place = ("-p", "0", "--host", "192.0.2.1", "--root", str(tmp_path))
    code, errors = fails(*place)
    assert (code, errors.count("\n")) == (1, 1)
    assert errors.startswith("rewindmq namesrv: '192.0.2.1' is not a loopback address")
    assert "cannot listen on 192.0.2.1" in fails(*place, "--allow-open-access")[1]
    settings = tmp_path / "namesrv.properties"
    settings.write_text("allowOpenAccess=true\n")
    assert "cannot listen on 192.0.2.1" in fails(*place, "-c", str(settings))[1]


def test_unusable_files_are_one_line(tmp_path: Path) -> None:
    config = tmp_path / "namesrv.properties"
    assert fails("-c", str(config)) == (1, f"rewindmq namesrv: {config}: No such file or directory\n")
    config.write_text("orderMessageEnable = true\nlistenPort = many\n")
    code, text = fails("-c", str(config))
    assert code == 1
    assert text.startswith(f"rewindmq namesrv: {config}:2: listenPort = 'many': ")
    assert text.count("\n") == 1
    damaged = tmp_path / "namesrv" / "kvConfig.json"
    damaged.parent.mkdir()
    damaged.write_text("{")
    code, text = fails("-p", "0", "--root", str(tmp_path))
    assert code == 1
    assert text.startswith(f"rewindmq namesrv: {damaged}: not a kvConfig.json: ")
    assert text.count("\n") == 1


def test_unknown_keys_are_one_warning(tmp_path: Path) -> None:
    config = tmp_path / "namesrv.properties"
    config.write_text(f"clusterTest=true\nkvConfigPath={tmp_path / 'kv.json'}\nproductEnvName=center\n")
    with serving("namesrv", "-p", "0", "-c", str(config)) as process:
        ignored = [line for line in process.stop() if "ignored unknown keys" in line]
    assert len(ignored) == 1
    assert " WARNING " in ignored[0]
    assert ignored[0].endswith(f"{config}: ignored unknown keys: clusterTest, productEnvName")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-p", "65536"), "argument -p/--port: must be 0 to 65535, not '65536'"),
        (("-p", "x"), "argument -p/--port: must be 0 to 65535, not 'x'"),
        (("--time-scale", "0"), "argument --time-scale: must be a number greater than 0, not '0'"),
        (("--time-scale", "nan"), "argument --time-scale: must be a number greater than 0, not 'nan'"),
        (("--nope",), "unrecognized arguments: --nope"),
    ],
)
def test_wrong_usage_is_2(arguments: tuple[str, ...], complaint: str) -> None:
    code, text = fails(*arguments)
    assert code == 2
    assert text.splitlines()[-1] == f"rewindmq namesrv: error: {complaint}"


def test_garbage_closes_only_its_connection(tmp_path: Path) -> None:
    with serving("namesrv", "-p", "0", "--root", str(tmp_path)) as process:
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(64), b"\0\0\0\x05\x07\0\0\x01x", b"\x7f" * 8):
            with socket.create_connection(process.place, TIMEOUT) as connection:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(TIMEOUT)
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
        assert "Traceback" not in "\n".join(process.stop())


async def test_kv_survives_kill_9(tmp_path: Path) -> None:
    """RocketMQ's ``orderMessageEnable`` reads it after a restart."""
    config = tmp_path / "namesrv.properties"
    config.write_text(f"rocketmqHome={tmp_path}\norderMessageEnable=true\n")
    runtime = system_runtime()
    client = RemotingClient(runtime)
    put = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
    get = GetKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="T")
    with serving("namesrv", "-p", "0", "-c", str(config)) as process:
        command = RemotingCommand(RequestCode.PUT_KV_CONFIG, put)
        (await client.invoke(process.address, command)).require_success()
        process.kill()
    with serving("namesrv", "-p", "0", "-c", str(config)) as process:
        command = RemotingCommand(RequestCode.GET_KV_CONFIG, get)
        answer = await client.invoke(process.address, command)
        assert answer.decode_header(GetKVConfigResponseHeader).value == "broker-a:4"
    await client.close()
