"""The file of a recorded watch: samples of a group in a topic, which can be judged later.

The file is text, a JSON object a line: the heading, then a sample each. A last line that was cut by a crash
is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.sample import QueueSample, Sample

_FORM: Final = "rewindmq watch"
_VERSION: Final = 1
# A recording of 64 queues over an hour has about 150 MB.
MAX_BYTES: Final = 512 << 20


class Heading(msgspec.Struct, frozen=True, rename="camel"):
    """The first line of the file.

    Attributes:
        began_ms: ms since 1970 at the first sample.
    """

    topic: str
    group: str
    began_ms: int
    form: str = _FORM
    version: int = _VERSION


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded watch.

    Attributes:
        samples: in order; there is at least one, and all have the same queues.
    """

    heading: Heading
    samples: list[Sample]


def heading_line(heading: Heading) -> bytes:
    """Return the file's first line."""
    return msgspec.json.encode(heading) + b"\n"


def sample_line(sample: Sample) -> bytes:
    """Return the line of a sample."""
    fields = {field.name: getattr(sample, field.name) for field in dataclasses.fields(sample)}
    fields["queues"] = [(*queue[1:], seen) for queue, seen in sorted(sample.queues.items())]
    return msgspec.json.encode(fields) + b"\n"


def read_recording(data: bytes) -> Recording:
    """Decode a file.

    Raises:
        ClientError: the bytes are no recording, or are damaged; the text names the line.
    """
    if len(data) > MAX_BYTES:
        raise ClientError(f"this recording has more than {MAX_BYTES} bytes: record a shorter time with --for")
    heading, *rest = _lines(data)
    found = _decoded(heading, Heading, 1)
    if found.form != _FORM:
        raise ClientError(f"this is no recording: make one with rewindmq watch record (form {found.form!r})")
    if found.version != _VERSION:
        raise ClientError(f"this recording has version {found.version}: this release reads {_VERSION}")
    samples = list(_samples(found.topic, rest))
    if not samples:
        raise ClientError("this recording has no sample: record until the reset has taken effect")
    return Recording(found, samples)


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    # A whole line ends with a newline.
    if len(lines) < 2:
        raise ClientError("this is no recording: make one with rewindmq watch record")
    return lines[:-1]


def _samples(topic: str, lines: Iterable[bytes]) -> Iterator[Sample]:
    first: Sample | None = None
    for number, line in enumerate(lines, 2):
        fields: dict[str, Any] = _decoded(line, dict[str, Any], number)
        rows = _converted(fields.pop("queues", None), list[tuple[str, int, QueueSample]], number)
        queues = {MessageQueue(topic, broker, queue_id): seen for broker, queue_id, seen in rows}
        sample = dataclasses.replace(_converted({**fields, "queues": {}}, Sample, number), queues=queues)
        if first is not None and (queues.keys() != first.queues.keys() or sample.at < first.at):
            raise ClientError(
                f"line {number} of this recording is damaged: it does not fit the lines before it"
            )
        first = first or sample
        yield sample


def _decoded(line: bytes, kind: Any, number: int) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except DECODE_FAILURES as error:
        raise _damaged(number, error) from None


def _converted(value: Any, kind: Any, number: int) -> Any:
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except DECODE_FAILURES as error:
        raise _damaged(number, error) from None


def _damaged(number: int, error: Exception) -> ClientError:
    what = "this is no recording" if number == 1 else f"line {number} of this recording is damaged"
    return ClientError(f"{what} ({error}): make one with rewindmq watch record")
