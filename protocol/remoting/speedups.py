"""The native kernels of the optional distribution ``rewindmq-speedups``, as Python uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from mmap import mmap
from typing import Any, Protocol

# A consume queue's part of a run: the queue, its encoded entries, the number of requests, their messages
# beyond one for each request, the bytes of the records, and the log position behind the last of these.
QueueRun = tuple[Any, bytes, int, int, int, int]
# The position behind the last frame, the frames of the responses, the records, and each queue's part.
EncodedRun = tuple[int, bytes, bytes, Sequence[QueueRun]]
# Of a topic and a queue id: the queue, its key among the awaited queues, the topic as in records, and flags
# that each of its messages gets. None if Python must decide about its sends.
ResolveQueue = Callable[[str, int], tuple[Any, tuple[str, int], bytes, int] | None]


class NativeSendKernel(Protocol):
    """Encodes the records and responses of SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320).

    It changes nothing outside itself.

    It encodes only requests that are certain to be stored where they were sent, and whose headers are in
    ASCII and in the form that clients write.
    """

    def encode(
        self,
        code: int,
        data: bytes,
        position: int,
        offset: int,
        room_end: int,
        timestamp: int,
        born_host: bytes,
        awaited: Mapping[tuple[str, int], object],
        /,
    ) -> EncodedRun | None:
        """Encode the leading plain sends of ``data`` from ``position`` on, at most 256; None without any.

        Args:
            code: the request code of the sends.
            offset: log position of the first record.
            room_end: log position up to which records may be written.
            timestamp: their store time, ms.
            born_host: packed as in records.
            awaited: has the key of every queue whose sends Python must handle now.
        """

    def clear(self) -> None:
        """Forget what ``resolve`` has returned."""


# The group, the topic and the further arguments of ``PullMessageRequestHeader``, up to the expression's type.
PullFields = tuple[str, str, int, int, int, int, int, int, int, str | None, str | None]
# The position behind a frame, its serialization type, its opaque and its fields.
PullRequest = tuple[int, int, int, PullFields]


class NativePullKernel(Protocol):
    """Reads PULL_MESSAGE (11) and writes the response, without changing anything outside itself."""

    def parse(self, data: bytes, position: int, /) -> PullRequest | None:
        """Read the frame at ``position``; None if it is incomplete, no pull, or in an unusual form.

        A pull with an ext field that RocketMQ's clients do not write, such as an epoch, is unusual, too.
        """

    def encode(
        self,
        serialize_type: int,
        opaque: int,
        offsets: tuple[int, int, int],
        tag_codes: frozenset[int] | None,
        entries: tuple[mmap, int, int],
        segment: tuple[mmap, int, int],
        limits: tuple[int, int, int, int, int],
        /,
    ) -> tuple[bytes, int, int] | None:
        """Return the frame of the response, the number of its messages and their bytes.

        Args:
            tag_codes: of the wanted messages; None: all.
            offsets, entries, segment, limits: see ``PlainRead`` in ``broker/store/messages/reader.py``.

        Returns:
            None if no message is found, one lies in another segment, or the response is over 1 MiB.
        """


class SpeedupsModule(Protocol):
    """The extension module."""

    def PullKernel(  # noqa: N802 - a class
        self, *, json: Sequence[bytes], rocketmq: Sequence[bytes], msgpack: Sequence[bytes]
    ) -> NativePullKernel:
        """Return the kernel of one broker.

        Args:
            json, rocketmq, msgpack: the pieces of ``split_header``; the values are the next, the minimum
                and the maximum offset.
        """

    def SendKernel(  # noqa: N802 - a class
        self,
        *,
        resolve: ResolveQueue,
        store_host: bytes,
        added: bytes,
        keeps_wait: bool,
        has_transaction: bool,
        special_flags: int,
        max_message_bytes: int,
        entries_per_file: int,
        json: Sequence[bytes],
        rocketmq: Sequence[bytes],
        msgpack: Sequence[bytes],
    ) -> NativeSendKernel:
        """Return the kernel of one broker.

        Args:
            store_host: packed as in records.
            added: properties text that every message gets. If it ends with a separator, so do those of each
                record.
            keeps_wait: records keep the property WAIT.
            has_transaction: a response has the message's UNIQ_KEY, and a send without one is not plain.
            special_flags: sysFlag bits of messages that are not plain.
            max_message_bytes: the longest body.
            entries_per_file: of a consume queue.
            json, rocketmq, msgpack: the pieces of ``SendAnswers.template``.
        """


class FrameKernel(Protocol):
    """Answers frames of a connection before they are decoded.

    Attributes:
        code: the request code of these frames.
    """

    code: int

    def take(self, remote_address: str, data: bytes, position: int) -> tuple[int, bytes] | None:
        """Handle the leading frames of ``data`` from ``position`` on, as many as it can.

        Returns:
            The position behind them, and the frames of the responses, which may be empty; None if it handled
            none.
        """
