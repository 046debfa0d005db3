"""The golden frames as tests see them; ``README.md`` says where they come from."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class GoldenFrame:
    """One frame that a real peer sent.

    Attributes:
        recording: name of the file it is in.
        release: of the sender.
        code: request code; of a response that of its request.
        form: ``request``, ``oneway`` or ``response``.
        outcome: response code; None of a request.
        sender, receiver: ``client``, ``tools``, ``namesrv``, ``broker`` or ``slave``.
    """

    recording: str
    release: str
    code: int
    form: str
    outcome: int | None
    sender: str
    receiver: str
    data: bytes

    @property
    def is_response(self) -> bool:
        return self.form == "response"

    @property
    def codec(self) -> SerializeType:
        return SerializeType(self.data[4])

    @property
    def body(self) -> bytes:
        return self.data[8 + int.from_bytes(self.data[5:8], "big") :]

    @property
    def header(self) -> bytes:
        return self.data[8 : len(self.data) - len(self.body)]

    def decoded(self) -> RemotingCommand:
        """The command, fresh each time."""
        decoder = FrameDecoder()
        commands = decoder.feed(self.data)
        assert decoder.failure is None
        assert decoder.buffered == 0
        (command,) = commands
        return command

    def __str__(self) -> str:
        outcome = "" if self.outcome is None else f"-{self.outcome}"
        return f"{self.recording}-{self.code}-{self.form}{outcome}-{self.sender}-to-{self.receiver}"


@dataclass(frozen=True)
class Replication:
    """The first bytes that a real master or slave sent on the replication port."""

    recording: str
    sender: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.recording}-{self.sender}"


@cache
def golden() -> tuple[tuple[GoldenFrame, ...], tuple[Replication, ...]]:
    """Everything recorded."""
    frames: list[GoldenFrame] = []
    replications: list[Replication] = []
    for path in sorted(_HERE.glob("*.jsonl")):
        releases, *lines = map(json.loads, path.read_text().splitlines())
        for line in lines:
            if "replication" in line:
                data = base64.b64decode(line["bytes"])
                replications.append(Replication(path.stem, line["replication"], data))
                continue
            peer = "client" if line["from"] in ("client", "tools") else "server"
            frames.append(
                GoldenFrame(
                    path.stem,
                    releases[peer],
                    line["code"],
                    line["form"],
                    line.get("outcome"),
                    line["from"],
                    line["to"],
                    base64.b64decode(line["frame"]),
                )
            )
    return tuple(frames), tuple(replications)
