"""The broker as a process: ready line, exit codes, one-line errors, and the store after a kill."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.peer import Peer
from tests.support.process import TIMEOUT, command, failing, serving
from tests.support.stage import ServerStage

SMALL = "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=60000\nbrokerName=broker-a\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text(f"{SMALL}storePathRootDir={tmp_path / 'store'}\n")
    return path


def fails(*arguments: object) -> tuple[int, str]:
    """The exit code and the last line of a broker that does not start."""
    code, errors = failing("broker", *arguments)
    return code, errors.splitlines()[-1]


def test_ready_line_and_orderly_stop(conf: Path) -> None:
    with serving("broker", "-c", conf, "-p", 0) as process:
        assert process.ready["ready"] == "broker"
        assert process.ready["name"] == "broker-a"
        assert process.ready["pid"] == process.pid
        socket.create_connection(process.place, TIMEOUT).close()
        process.stop()
    assert not (conf.parent / "store/abort").exists()


def test_a_broker_raises_its_limit_of_open_files_to_what_it_may_have(conf: Path) -> None:
    """Each connection takes a file descriptor, and each mapped file of the store."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # By a shell, so that no code runs between fork and exec in this process.
    low = ["sh", "-c", 'ulimit -S -n 256; exec "$@"', "sh"]
    with serving("broker", "-c", conf, "-p", 0, before=low) as process:
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)


def test_name_servers_can_come_as_the_first_line_of_standard_input(conf: Path) -> None:
    with serving("broker", "-c", conf, "-p", 0, "--exit-with-parent", "-n", "127.0.0.1:1") as process:
        assert "not registered at name server 127.0.0.1:1" in "\n".join(process.leave())
    result = subprocess.run(
        command("broker", "-c", conf, "-p", 0, "--exit-with-parent", "-n", "-"),
        input="nowhere\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(
        "rewindmq broker: name server address 'nowhere' is not host:port"
    )


async def test_a_kill_keeps_every_message_and_a_restart_serves_them(conf: Path, stage: ServerStage) -> None:
    with serving("broker", "-c", conf, "-p", 0) as process:
        peer = stage.peer(address=process.address)
        await peer.create_topic("Kept", write=2, read=2)
        await peer.heartbeat("Members")
        for number in range(50):
            (await peer.send("Kept", b"%d" % number, queue_id=number % 2)).require_success()
        process.kill()
    assert (conf.parent / "store/abort").exists()
    with serving("broker", "-c", conf, "-p", 0) as process:
        peer = stage.peer(address=process.address)
        assert (await peer.status(0, topic="Kept", queue_id=1))[2] == 25
        (await peer.send("Kept", queue_id=1)).require_success()
        assert (await peer.status(25, topic="Kept", queue_id=1))[2] == 26
        process.stop(signal.SIGINT)


async def test_a_kill_keeps_a_topic_that_was_deleted_and_created_again(
    conf: Path, stage: ServerStage
) -> None:
    """What was acknowledged is at its offset, and no message of a deleted topic comes back."""

    async def send(peer: Peer, topic: str, body: bytes) -> int:
        stored = (await peer.send(topic, body)).require_success()
        return stored.decode_header(SendMessageResponseHeader).queue_offset

    async def bodies(peer: Peer, topic: str) -> list[bytes]:
        response = await peer.pull(0, topic, group="Members")
        found = response.code == ResponseCode.SUCCESS
        return [message.stored_body for message in decode_records(body_of(response))] if found else []

    with serving("broker", "-c", conf, "-p", 0) as process:
        peer = stage.peer(address=process.address)
        for topic in ("Again", "Gone"):
            await peer.create_topic(topic, write=1, read=1)
            for number in range(5):
                assert await send(peer, topic, b"old%d" % number) == number
            deleted = DeleteTopicRequestHeader(topic)
            (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, deleted)).require_success()
        await peer.create_topic("Again", write=1, read=1)
        for number in range(3):
            assert await send(peer, "Again", b"new%d" % number) == number
        process.kill()
    with serving("broker", "-c", conf, "-p", 0) as process:
        peer = stage.peer(address=process.address)
        await peer.heartbeat("Members", ("Again", "Gone"))
        await peer.create_topic("Gone", write=1, read=1)
        assert await bodies(peer, "Again") == [b"new0", b"new1", b"new2"]
        assert await bodies(peer, "Gone") == []
        assert await send(peer, "Again", b"new3") == 3
        assert await send(peer, "Gone", b"new0") == 0
        process.stop()


async def test_a_broker_reports_what_held_its_event_loop(conf: Path, stage: ServerStage) -> None:
    """The largest message takes long enough to be noted."""
    with serving("broker", "-c", conf, "-p", 0) as process:
        peer = stage.peer(address=process.address)
        (await peer.send("Large", bytes(900_000))).require_success()
        answer = await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        table = decode_body(answer.require_success(), KVTable).table
        assert float(table["eventLoopWorstStallMs"]) >= 0
        assert int(table["eventLoopStallCount"]) >= 0
        assert table.keys() >= {"eventLoopWorstStallRequest", "eventLoopWorstStallTimestamp"}
        process.stop()


def test_port_in_use_leaves_the_disk_alone(conf: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = fails("-c", conf, "-p", port)
    assert code == 1
    assert str(port) in line
    assert "in use" in line
    assert not (conf.parent / "store").exists()


def test_a_store_another_broker_holds(conf: Path) -> None:
    with serving("broker", "-c", conf, "-p", 0):
        before = sorted(conf.parent.rglob("*"))
        code, line = fails("-c", conf, "-p", 0)
        assert code == 1
        assert line.startswith("rewindmq broker: ")
        assert str(conf.parent / "store") in line
        assert sorted(conf.parent.rglob("*")) == before


def test_a_store_directory_that_cannot_be_made(conf: Path) -> None:
    (conf.parent / "store").write_text("a file, not a directory")
    code, line = fails("-c", conf, "-p", 0)
    assert code == 1
    assert str(conf.parent / "store") in line
    assert (conf.parent / "store").read_text() == "a file, not a directory"


@pytest.mark.parametrize("name", ["topics.json", "subscriptionGroup.json", "consumerOffset.json"])
def test_a_configuration_file_that_cannot_be_read(conf: Path, name: str) -> None:
    path = conf.parent / "store/config" / name
    path.parent.mkdir(parents=True)
    path.write_text('{"topicConfigTable":5,"subscriptionGroupTable":5,"offsetTable":5}')
    code, line = fails("-c", conf, "-p", 0)
    assert code == 1
    assert str(path) in line
    assert path.read_text().endswith("5}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "nowhere"], "'nowhere' is not host:port"),
        (["-c", "/does/not/exist.conf"], "/does/not/exist.conf: No such file or directory"),
        (["--host", "0.0.0.0"], "'0.0.0.0' is not a loopback address"),
        (["--host", "192.0.2.1"], "pass --allow-open-access, or set allowOpenAccess=true,"),
        (["--host", "0.0.0.0", "--allow-open-access"], "set brokerIP1"),
        (["--host", "192.0.2.1", "--allow-open-access"], "cannot listen on 192.0.2.1"),
    ],
)
def test_unusable_arguments_print_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    code, line = fails("-p", 0, "--root", tmp_path / "store", *arguments)
    assert code == 1
    assert line.startswith("rewindmq broker: ")
    assert words in line
    assert not (tmp_path / "store").exists()


def test_the_file_can_allow_open_access(conf: Path) -> None:
    """192.0.2.1 is an address that no machine has."""
    conf.write_text(f"{conf.read_text()}bindAddress=192.0.2.1\n")
    assert "'192.0.2.1' is not a loopback address" in fails("-c", conf, "-p", 0)[1]
    conf.write_text(f"{conf.read_text()}allowOpenAccess=true\n")
    assert "cannot listen on 192.0.2.1" in fails("-c", conf, "-p", 0)[1]
