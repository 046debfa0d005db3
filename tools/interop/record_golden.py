"""Records the golden frames of ``tests/protocol/golden``; ``scripts/record_golden_frames`` runs it.

For each release and serialization type it runs a RocketMQ name server, master and slave, the official client
and mqadmin (``GoldenTraffic``), with relays between all of them. ``record_golden_choice`` then keeps a part
of the frames. Its rule looks only at frames, so two recordings keep the same ones.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.interop.record_golden_choice import chosen, chosen_replication, write
from tools.interop.record_golden_relay import BROKER, NAMESRV, SLAVE, GoldenRecording, Relays
from tools.interop.servers import RocketMQBroker, RocketMQNamesrv, rocketmq_home
from tools.interop.toolchains import ROOT, BuildFailed, ToolMissing, java_driver, tool
from tools.interop.versions import JAVA_CLIENTS, SERVER_4, SERVER_5

TARGET: Final = ROOT / "tests" / "protocol" / "golden"
_MAIN: Final = "rewindmq.interop.GoldenTraffic"
_TRAFFIC_SECONDS: Final = 400.0
# RocketMQ uses this variable instead of its default, JSON.
_CODEC_VARIABLE: Final = "ROCKETMQ_SERIALIZE_TYPE"
_QUICK: Final = {
    # 5.5.0 cannot delete a topic without the timer wheel.
    "timerWheelEnable": "true",
    "transactionCheckInterval": 1_000,
    "transactionTimeOut": 1_000,
    # The broker sends QUERY_DATA_VERSION (322) to the name server before it registers again.
    "forceRegister": "false",
}
_ACCOUNTS: Final = """\
globalWhiteRemoteAddresses:
- 127.0.0.1
accounts:
- accessKey: golden-tools
  secretKey: "12345678"
  admin: true
"""
_TOOLS: Final = 'accessKey: golden-tools\nsecretKey: "12345678"\n'


@dataclass(frozen=True)
class Session:
    """One recording: a server release, a release of client and tools, and the serialization type of all."""

    server: str
    client: str
    codec: str

    @property
    def name(self) -> str:
        return f"rocketmq-{self.server.partition('.')[0]}-{self.codec.lower()}"

    @property
    def has_accounts(self) -> bool:
        """True if brokers of this release keep accounts in a file (requests 50 to 54)."""
        return self.server.startswith("4.")


SESSIONS: Final = tuple(
    Session(server, client, codec)
    for server, client in zip((SERVER_4, SERVER_5), JAVA_CLIENTS, strict=True)
    for codec in ("JSON", "ROCKETMQ")
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        "record_golden_frames", description="Record golden frames from RocketMQ."
    )
    names = [session.name for session in SESSIONS]
    parser.add_argument("session", nargs="*", help=f"what to record: {', '.join(names)} (default: all)")
    parser.add_argument("--into", type=Path, default=TARGET, help="directory of the files")
    options = parser.parse_args(arguments)
    if unknown := set(options.session) - set(names):
        parser.error(f"no such recording: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for session in SESSIONS:
        if not options.session or session.name in options.session:
            recording = record(session)
            frames = chosen(recording.frames)
            replication = chosen_replication(recording.replication)
            path = options.into / f"{session.name}.jsonl"
            write(path, session.client, session.server, frames, replication)
            print(
                f"{path.name}: {len(frames)} of {len(recording.frames)} frames, {path.stat().st_size} bytes"
            )
    return 0


def record(session: Session) -> GoldenRecording:
    """Record all frames of one session."""
    recording = GoldenRecording()
    with ExitStack() as stack:
        stack.enter_context(_codec(session.codec))
        directory = Path(stack.enter_context(_directory()))
        relays = Relays(recording)
        stack.callback(relays.close)
        namesrv = RocketMQNamesrv(session.server, _made(directory / "namesrv"))
        stack.callback(namesrv.stop)
        master = _broker(session, relays, namesrv.address, directory / "master", BROKER)
        stack.callback(master.stop)
        slave = _broker(session, relays, namesrv.address, directory / "slave", SLAVE)
        stack.callback(slave.stop)
        for work in ("all", "long-names"):
            _make_traffic(session, relays, namesrv.address, master.address, directory, work)
    return recording


def _broker(session: Session, relays: Relays, namesrv: str, directory: Path, role: str) -> RocketMQBroker:
    _made(directory)
    config: dict[str, object] = dict(_QUICK)
    if session.has_accounts:
        (rocketmq_home(directory) / "conf" / "plain_acl.yml").write_text(_ACCOUNTS)
        config["aclEnable"] = "true"
    if role == SLAVE:
        config |= {"brokerRole": "SLAVE", "brokerId": 1}
        # 5.5.0 compresses the body, but its header says that it did not; its own name server refuses that.
        config["compressedRegister"] = str(session.server.startswith("4.")).lower()
    relay = relays.address(role, NAMESRV, namesrv)
    return RocketMQBroker(session.server, relay, directory, config=config)


def _make_traffic(
    session: Session, relays: Relays, namesrv: str, broker: str, directory: Path, work: str
) -> None:
    home = rocketmq_home(_made(directory / "traffic"))
    if session.has_accounts:
        (home / "conf" / "tools.yml").write_text(_TOOLS)
    places = [
        relays.address(role, target, upstream)
        for role in ("client", "tools")
        for target, upstream in ((NAMESRV, namesrv), (BROKER, broker))
    ]
    options = [
        f"-Duser.home={home}",
        f"-Dorg.apache.rocketmq.client.sendSmartMsg={str(work == 'all').lower()}",
    ]
    command = [tool("java"), "-Xmx384m", *options, "-cp", class_path(session.client), _MAIN, work, *places]
    environment = os.environ | {"ROCKETMQ_HOME": str(home)}
    # consumerStatus writes files to its working directory.
    subprocess.run(
        command,
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=_TRAFFIC_SECONDS,
        check=True,
    )


def class_path(version: str) -> str:
    """Return the class path of ``GoldenTraffic`` and the official client of a release."""
    return f"{java_driver(version)}/*"


@contextmanager
def _codec(codec: str) -> Iterator[None]:
    before = os.environ.get(_CODEC_VARIABLE)
    os.environ[_CODEC_VARIABLE] = codec
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CODEC_VARIABLE]
        else:
            os.environ[_CODEC_VARIABLE] = before


@contextmanager
def _directory() -> Iterator[str]:
    directory = tempfile.mkdtemp(prefix="rewindmq-golden-")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    # ``toolchains`` raises these if a tool is missing or a build failed.
    except (ToolMissing, BuildFailed) as error:
        sys.exit(f"record_golden_frames: {error}")
