"""The journals: each process of the soak writes a line for each thing that it does.

Each line is one ``write`` call before its event can have an effect elsewhere: a producer's intent before
the send, a consumer's delivery before the listener returns. So ``kill -9`` loses no line that matters: the
operating system keeps what was written. The reader leaves out a last line that the kill cut short.

Times are µs of CLOCK_MONOTONIC, which all processes of one machine share. A file begins with a header line.
"""

from __future__ import annotations

import heapq
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

SUFFIX: Final = ".journal"


class Header(NamedTuple):
    """The first line of a journal: which process writes it.

    Attributes:
        owner: the process.
        group: the consumer group; "" for producers and the driver.
        producer: the producer's number; -1 for other processes.
    """

    owner: str
    group: str = ""
    producer: int = -1


class Intent(NamedTuple):
    """A producer is about to send a message, which may not be delivered for ``delay_us`` µs."""

    at: int
    number: int
    topic: str
    delay_us: int


class Ack(NamedTuple):
    """A broker has stored a message; ``queue`` is "" if the place is not known yet."""

    at: int
    number: int
    queue: str
    offset: int


class Delivered(NamedTuple):
    """A listener was called with a message.

    Attributes:
        queue: where it was pulled from, see ``queue_token``.
        producer: -1 if the body is not that of a sent message.
        verdict: what the listener returns: ACCEPTED, REFUSED or SUSPENDED.
        chain: the number of the ProcessQueue, in this process.
    """

    at: int
    queue: str
    offset: int
    producer: int
    number: int
    reconsume_times: int
    verdict: str
    chain: int


class Reset(NamedTuple):
    """A reset was requested, or has succeeded.

    Attributes:
        at: when it was requested.
        mode: TRIED if the outcome is unknown, else the mode of the reset.
        targets: queue to offset.
    """

    at: int
    group: str
    mode: str
    targets: dict[str, int]


class DeadLetter(NamedTuple):
    """A message found in the group's dead letter queue at the end."""

    at: int
    group: str
    producer: int
    number: int


class Outage(NamedTuple):
    """A broker (its letter) or the name server (ALL) serves again after an outage that began at ``since``."""

    at: int
    broker: str
    since: int


class Note(NamedTuple):
    """An action of the driver, for people to read."""

    at: int
    what: str


Record = Intent | Ack | Delivered | Reset | DeadLetter | Outage | Note

ACCEPTED: Final = "s"
REFUSED: Final = "l"
SUSPENDED: Final = "p"
TRIED: Final = "tried"
ALL: Final = "*"

_FORMS: Final[dict[str, Callable[[list[str]], Record]]] = {
    "I": lambda f: Intent(int(f[0]), int(f[1]), f[2], int(f[3])),
    "A": lambda f: Ack(int(f[0]), int(f[1]), "" if f[2] == "-" else f[2], int(f[3])),
    "D": lambda f: Delivered(int(f[0]), f[1], int(f[2]), int(f[3]), int(f[4]), int(f[5]), f[6], int(f[7])),
    "R": lambda f: Reset(int(f[0]), f[1], f[2], {key: int(value) for key, value in _pairs(f[3])}),
    "X": lambda f: DeadLetter(int(f[0]), f[1], int(f[2]), int(f[3])),
    "O": lambda f: Outage(int(f[0]), f[1], int(f[2])),
    "N": lambda f: Note(int(f[0]), " ".join(f[1:])),
}


def now_us() -> int:
    """Return the time of the clock that all journals share, µs."""
    return time.monotonic_ns() // 1000


def queue_token(topic: str, broker_name: str, queue_id: int) -> str:
    """Return a queue in four or five characters: the topic's letter, the broker's letter, the queue id."""
    return f"{topic}{broker_name[-1]}{queue_id}"


class JournalWriter:
    """Appends to a new journal.

    Raises:
        FileExistsError: the file exists already.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        os.write(self._file, (json.dumps(header._asdict()) + "\n").encode())

    def intents(self, intents: list[Intent]) -> None:
        """Write the intents of a batch at once."""
        lines = [f"I {i.at} {i.number} {i.topic} {i.delay_us}\n" for i in intents]
        os.write(self._file, "".join(lines).encode())

    def ack(self, number: int, queue: str, offset: int) -> None:
        os.write(self._file, b"A %d %d %b %d\n" % (now_us(), number, queue.encode() or b"-", offset))

    def deliveries(self, deliveries: list[Delivered]) -> None:
        """Write the deliveries of one listener call at once."""
        lines = ["D " + " ".join(map(str, delivery)) + "\n" for delivery in deliveries]
        os.write(self._file, "".join(lines).encode())

    def reset(self, reset: Reset) -> None:
        targets = ",".join(f"{queue}={offset}" for queue, offset in reset.targets.items()) or "-"
        os.write(self._file, f"R {reset.at} {reset.group} {reset.mode} {targets}\n".encode())

    def dead_letter(self, letter: DeadLetter) -> None:
        os.write(self._file, ("X " + " ".join(map(str, letter)) + "\n").encode())

    def outage(self, broker: str, since: int) -> None:
        os.write(self._file, f"O {now_us()} {broker} {since}\n".encode())

    def note(self, what: str) -> None:
        os.write(self._file, f"N {now_us()} {' '.join(what.split())}\n".encode())

    def close(self) -> None:
        os.close(self._file)


def read_journals(directory: Path) -> Iterator[tuple[Header, Record]]:
    """Yield all records of all journals by time; the records of one file keep their order.

    Only one line of each file is in memory.

    Raises:
        ValueError: a complete line is not a record; the text names the file.
    """
    return heapq.merge(
        *(_read(path) for path in sorted(directory.glob(f"*{SUFFIX}"))), key=lambda entry: entry[1].at
    )


def _read(path: Path) -> Iterator[tuple[Header, Record]]:
    with path.open() as lines:
        first = next(lines, "")
        if not first.endswith("\n"):
            return
        header = Header(**json.loads(first))
        for line in lines:
            if not line.endswith("\n"):
                return
            kind, *fields = line.split()
            try:
                yield header, _FORMS[kind](fields)
            except (KeyError, IndexError, ValueError):
                raise ValueError(f"{path}: no record: {line[:100]!r}") from None


def _pairs(text: str) -> list[list[str]]:
    return [] if text == "-" else [pair.split("=") for pair in text.split(",")]
