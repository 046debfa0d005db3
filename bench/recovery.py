"""Time that a store and a broker need to open a commit log after a clean stop and after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rewindmq.broker.store import BatchEntry, MessageStore, StoreConfig, StoredMessage
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import system_runtime

GIB = 1 << 30
_TOPIC = "RecoveryTopic"
_QUEUES = 4
_BATCH = 64
_SEGMENT_BYTES = 1 << 28
# The store's clock while a log is filled: 6,400 messages a second, so the checkpoint covers most of them.
_BATCH_MS = 10
_SECONDS = 30.0


def _config() -> StoreConfig:
    return StoreConfig(mapped_file_size_commit_log=_SEGMENT_BYTES)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _fill(root: Path, size: int, body_bytes: int, tail: int) -> None:
    """Fill a log and end without closing it, as a killed broker; ``tail`` messages follow the checkpoint."""
    now = _now_ms() - 3_600_000
    store = MessageStore(root, _config(), lambda: now)
    store.open()
    batch = [BatchEntry(os.urandom(body_bytes), b"KEYS\x01order-4711\x02TAGS\x01blue", 0, 0)] * _BATCH
    number = 0
    while store.max_commit_log_offset < size:
        store.put_batch(StoredMessage(_TOPIC, number % _QUEUES, b""), batch)
        number += 1
        now += _BATCH_MS
    store.flush_all()
    for _ in range(0, tail, _BATCH):
        store.put_batch(StoredMessage(_TOPIC, number % _QUEUES, b""), batch)
        now += _BATCH_MS
    # What follows a crash or a clean stop must not wait for the disk.
    store.flush()


@contextlib.contextmanager
def killed_store(size: int, body_bytes: int, tail: int) -> Iterator[Path]:
    """Make the store of a killed broker.

    Args:
        size: bytes of commit log before the checkpoint.
        tail: messages behind the checkpoint.
    """
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as folder:
        root = Path(folder) / "store"
        child = os.fork()
        if not child:
            try:
                _fill(root, size, body_bytes, tail)
                os._exit(0)
            except BaseException:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit("bench: the store cannot be filled")
        yield root


def open_seconds(root: Path, *, is_clean: bool, has_checkpoint: bool = True) -> tuple[float, int]:
    """Open a store; return the processor time in seconds, and the bytes of its log.

    The page cache is warm, so other work on the machine does not change the figure much.

    Args:
        is_clean: open it as after a clean stop, else as after a crash.
        has_checkpoint: False if the crash lost the checkpoint, so that every record is read.
    """
    checkpoint = (root / "checkpoint").read_bytes()
    if is_clean:
        (root / "abort").unlink(missing_ok=True)
    else:
        (root / "abort").touch()
    if not has_checkpoint:
        (root / "checkpoint").unlink()
    store = MessageStore(root, _config(), _now_ms)
    started = time.process_time()
    store.open()
    seconds = time.process_time() - started
    size = store.max_commit_log_offset
    store.close()
    # The next crash has the same messages behind its checkpoint.
    (root / "checkpoint").write_bytes(checkpoint)
    return seconds, size


def serve_seconds(root: Path, *, is_clean: bool) -> float:
    """Start a broker process over a store.

    Returns:
        Seconds from the command until the broker has answered a send, and a pull of this message.
    """
    if is_clean:
        (root / "abort").unlink(missing_ok=True)
    else:
        (root / "abort").touch()
    checkpoint = (root / "checkpoint").read_bytes()
    conf = root.parent / "broker.conf"
    conf.write_text(f"storePathRootDir={root}\nmappedFileSizeCommitLog={_SEGMENT_BYTES}\n")
    command = [sys.executable, "-m", "rewindmq", "broker", "-c", str(conf), "-p", "0"]
    started = time.perf_counter()
    # The log on standard error tells of each recovery; the table says it better.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as broker:
        try:
            assert broker.stdout is not None
            ready = broker.stdout.readline()
            if not ready:
                raise SystemExit("bench: the broker does not start")
            asyncio.run(_send_and_pull(json.loads(ready)["address"]))
            seconds = time.perf_counter() - started
        finally:
            broker.send_signal(signal.SIGKILL)
    (root / "checkpoint").write_bytes(checkpoint)
    return seconds


async def _send_and_pull(address: str) -> None:
    client = RemotingClient(system_runtime())
    try:
        send = SendMessageRequestHeaderV2(
            producer_group="P",
            topic=_TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=_QUEUES,
            queue_id=0,
            sys_flag=0,
            born_timestamp=_now_ms(),
            flag=0,
        )
        command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, send, b"after the restart")
        response = (await client.invoke(address, command, _SECONDS)).require_success()
        offset = response.decode_header(SendMessageResponseHeader).queue_offset
        pull = PullMessageRequestHeader(
            "G", _TOPIC, 0, offset, 1, int(PullSysFlag.SUBSCRIPTION), 0, 0, 0, "*"
        )
        command = RemotingCommand(RequestCode.PULL_MESSAGE, pull)
        found = (await client.invoke(address, command, _SECONDS)).require_success()
        if not isinstance(found.body, bytes) or b"after the restart" not in found.body:
            raise SystemExit("bench: the broker does not return the message it has stored")
    finally:
        await client.close()
