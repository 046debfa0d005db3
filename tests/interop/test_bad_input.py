"""Bad input gets the same answer as from RocketMQ's name server and broker, and harms no other client."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

from rewindmq import AdminClient
from rewindmq.protocol.profile import Profile
from tests.interop.bad_input import (
    ANSWER_SECONDS,
    TOPIC,
    BadInput,
    Reaction,
    in_short,
    play_all,
    request,
    same,
)
from tests.interop.bad_input_bodies import BODIES
from tests.interop.bad_input_differences import EXPLAINED
from tests.interop.bad_input_fields import FIELDS, SEND
from tests.interop.bad_input_frames import FRAMES
from tests.interop.bad_input_tools import TOOLS
from tests.interop.bad_input_versions import VERSIONS
from tools.interop.clients import java_command
from tools.interop.driver import DriverProgram
from tools.interop.raw import RawConnection
from tools.interop.scenarios import SCENARIOS, InteropStage
from tools.interop.servers import RewindMQServer, RocketMQServer, Server
from tools.interop.versions import JAVA_CLIENTS, SERVER_4, SERVER_5

_ALL: Final = (*FRAMES, *VERSIONS, *BODIES, *FIELDS, *TOOLS)
CASES: Final[dict[str, BadInput]] = {case.name: case for case in _ALL}
Reactions = dict[str, dict[str, Reaction]]

# RewindMQ and the RocketMQ server it is compared with.
_STARTS: Final[dict[str, Callable[[], Server]]] = {
    f"RewindMQ as {SERVER_4}": lambda: RewindMQServer(Profile.V49),
    f"RewindMQ as {SERVER_5}": lambda: RewindMQServer(Profile.V53),
    SERVER_4: lambda: RocketMQServer(SERVER_4),
    SERVER_5: lambda: RocketMQServer(SERVER_5),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    with ExitStack() as running:
        with ThreadPoolExecutor(len(_STARTS)) as threads:
            starting = {name: threads.submit(start) for name, start in _STARTS.items()}
        started: dict[str, Server] = {}
        failure: BaseException | None = None
        for name, future in starting.items():
            if (error := future.exception()) is not None:
                failure = error
                continue
            started[name] = future.result()
            running.callback(started[name].close)
        if failure is not None:
            raise failure
        yield started


@pytest.fixture(scope="module")
def reactions(servers: dict[str, Server]) -> Reactions:
    """Every server's reaction to every case; all servers run at the same time."""
    assert len(CASES) == len(_ALL), "two cases have the same name"

    async def play() -> Reactions:
        for server in servers.values():
            await _fill(server)
        played = await asyncio.gather(*(play_all(CASES.values(), server) for server in servers.values()))
        return dict(zip(servers, played, strict=True))

    return asyncio.run(play())


async def _fill(server: Server) -> None:
    """Store one message in the topic that the cases use."""
    async with await RawConnection.open(server.broker_address) as connection:
        connection.send(request(10, SEND | {"topic": TOPIC}, b"a message"))
        answer = await connection.answer(ANSWER_SECONDS)
        assert answer is not None
        answer.require_success()


def _explanations(release: str, name: str) -> list[tuple[str, str]]:
    return [key for key in EXPLAINED if key[0] in ("*", release) and fnmatchcase(name, key[1])]


@pytest.mark.parametrize("release", [SERVER_4, SERVER_5])
@pytest.mark.parametrize("name", CASES)
def test_bad_input(reactions: Reactions, name: str, release: str) -> None:
    """RewindMQ answers as RocketMQ does, or the difference is explained."""
    rewindmq, rocketmq = reactions[f"RewindMQ as {release}"][name], reactions[release][name]
    told = f"\nRewindMQ {rewindmq}\nRocketMQ {rocketmq}"
    if same(rewindmq, rocketmq):
        return
    explanations = [EXPLAINED[key] for key in _explanations(release, name)]
    assert explanations, told
    assert in_short(rewindmq) in {answer for one in explanations for answer in one.rewindmq}, told


def test_every_explanation_is_needed(reactions: Reactions) -> None:
    """Each answer that an explanation lists must occur, too."""
    needed: dict[tuple[str, str], set[str]] = {}
    for release in (SERVER_4, SERVER_5):
        for name in CASES:
            rewindmq, rocketmq = reactions[f"RewindMQ as {release}"][name], reactions[release][name]
            if not same(rewindmq, rocketmq):
                for key in _explanations(release, name):
                    needed.setdefault(key, set()).add(in_short(rewindmq))
    needless = sorted(EXPLAINED.keys() - needed)
    assert not needless
    answers: dict[str, set[str]] = {}
    for key, seen in needed.items():
        answers.setdefault(EXPLAINED[key].why, set()).update(seen)
    unseen = {
        (one.why, answer) for one in EXPLAINED.values() for answer in {*one.rewindmq} - answers[one.why]
    }
    assert not unseen


@pytest.mark.parametrize("which", list(_STARTS))
def test_the_next_client_is_served(reactions: Reactions, servers: dict[str, Server], which: str) -> None:
    """Name server and broker serve as before after all bad input."""

    async def ask(address: str, data: bytes) -> int | None:
        async with await RawConnection.open(address) as connection:
            connection.send(data)
            answer = await connection.answer(ANSWER_SECONDS)
            return None if answer is None else answer.code

    assert reactions[which]
    server = servers[which]
    assert asyncio.run(ask(server.namesrv_address, request(105, {"topic": TOPIC}))) == 0
    assert asyncio.run(ask(server.broker_address, request(10, SEND | {"topic": TOPIC}, b"more"))) == 0


@pytest.mark.parametrize("which", list(_STARTS))
def test_tls_on_the_plain_port(servers: dict[str, Server], which: str) -> None:
    """RocketMQ answers TLS on the same port; RewindMQ closes the connection at once (docs/differences.md)."""
    server = servers[which]

    async def greet() -> str | None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        host, port = server.broker_address.split(":")
        async with asyncio.timeout(30.0):
            _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        version: str | None = writer.get_extra_info("ssl_object").version()
        writer.transport.abort()
        return version

    if server.is_real:
        assert asyncio.run(greet()) in ("TLSv1.2", "TLSv1.3")
    else:
        with pytest.raises(ConnectionError):
            asyncio.run(greet())


@pytest.mark.parametrize("which", list(_STARTS))
def test_the_vip_channel_serves_the_same_requests(servers: dict[str, Server], which: str) -> None:
    """Clients before 4.5 send to the VIP channel, whose port is 2 below the broker's."""
    host, port = servers[which].broker_address.split(":")

    async def ask() -> list[int]:
        codes = []
        async with await RawConnection.open(f"{host}:{int(port) - 2}") as connection:
            for data in (
                request(10, SEND, b"by the VIP channel", version=252),
                request(30, {"topic": TOPIC, "queueId": "0"}, version=252),
                request(12_345, version=252),
            ):
                connection.send(data)
                answer = await connection.answer(ANSWER_SECONDS)
                assert answer is not None
                codes.append(answer.code)
        return codes

    assert asyncio.run(ask()) == [0, 0, 3]


def test_a_java_client_sends_by_the_vip_channel(servers: dict[str, Server], tmp_path: Path) -> None:
    """Clients before 4.5 do so by default."""
    server = servers[f"RewindMQ as {SERVER_4}"]
    release = JAVA_CLIENTS[0]
    command = java_command(release, "-Dcom.rocketmq.sendMessageWithVIPChannel=true")
    vip_port = int(server.broker_address.split(":")[1]) - 2

    async def play() -> bool:
        driver = await DriverProgram.start(command, tmp_path / "driver.log")
        async with AdminClient(server.namesrv_address) as admin:
            try:
                await SCENARIOS["send-sync"].play(InteropStage(driver, server, admin, "vip"))
                return _is_connected_to(vip_port)
            finally:
                await driver.stop()

    assert asyncio.run(play())


def _is_connected_to(port: int) -> bool:
    """True if a process of this machine has a connection to a local port."""
    lines = Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines()
    fields = [line.split() for line in lines[1:]]
    return any(line[2].endswith(f":{port:04X}") and line[3] == "01" for line in fields)
