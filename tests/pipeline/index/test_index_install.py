"""An installed index: a broker returns the same results and rebuilds nothing, also after a crash."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.index.install import install_index
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import QueryMessageRequestHeader
from rewindmq.protocol.header.offset import SearchOffsetRequestHeader, SearchOffsetResponseHeader
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.pipeline.index.index_reference import files_below
from tests.pipeline.logs import LogWriter
from tests.pipeline.reference import read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT = 60.0
START = 1_700_000_000_000
# The delayed message (level 2) must not be due: a broker would deliver it a second after its start.
LEVELS = "1s 9999d"
CONFIG = StoreConfig(
    mapped_file_size_commit_log=32_768,
    mapped_file_size_consume_queue=400,
    max_hash_slot_num=50,
    max_index_num=200,
    message_delay_level=LEVELS,
)
OPTIONS = IndexOptions(max_hash_slot_num=50, max_index_num=200, message_delay_level=LEVELS)
END_OF_TIME = (1 << 63) - 1
PARTS = ("consumequeue", "index", "timeindex")


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store of 300 messages, stopped cleanly, and its index."""
    root = tmp_path_factory.mktemp("install")
    writer = LogWriter(root / "store", segment_bytes=32_768, consume_queue_bytes=400)
    _put(writer, 300)
    writer.put_delayed("Orders", 0, b"later", "d", 2, deliver=False)
    writer.finish()
    build_index(spark, root / "store", root / "out", OPTIONS)
    return root / "store", root / "out"


def _put(writer: LogWriter, count: int) -> None:
    for number in range(count):
        writer.now += (0, 700, 40, 5_000)[number % 4]
        writer.put("Orders", number % 3, b"body", keys=f"k{number % 11} all", tag=f"T{number % 2}")


@pytest.fixture
def store(made: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the store."""
    return shutil.copytree(made[0], tmp_path / "store")


def _open(root: Path) -> MessageStore:
    opened = MessageStore(root, CONFIG, lambda: START + 10_000_000)
    opened.open()
    return opened


def _strip(root: Path) -> None:
    for part in PARTS:
        shutil.rmtree(root / part, ignore_errors=True)


@contextmanager
def _broker(root: Path, profile: str) -> Iterator[str]:
    """A broker process over a store; gives its address, and stops it cleanly."""
    conf = root.parent / f"{root.name}-{profile}.conf"
    conf.write_text(
        f"storePathRootDir={root}\nmappedFileSizeCommitLog=32768\nmappedFileSizeConsumeQueue=400\n"
        "maxHashSlotNum=50\nmaxIndexNum=200\nbrokerName=broker-a\n"
        f"messageDelayLevel={LEVELS}\n"
    )
    command = [sys.executable, "-m", "rewindmq", "broker", "-c", str(conf), "-p", "0", "--profile", profile]
    environment = {**os.environ, "NAMESRV_ADDR": ""}
    with (
        conf.with_suffix(".log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process,
    ):
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"]
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        finally:
            process.kill()


async def _ask_all(address: str) -> list[tuple[object, ...]]:
    """Return the results of QUERY_MESSAGE (12) and SEARCH_OFFSET_BY_TIMESTAMP (29)."""
    client = RemotingClient(system_runtime())
    answers: list[tuple[object, ...]] = []
    try:
        for key in [*(f"k{number}" for number in range(11)), "all", "none", f"7F0000010A2B18B4AAC2{9:012X}"]:
            for begin, end in ((0, END_OF_TIME), (START + 30_000, START + 90_000)):
                header = QueryMessageRequestHeader(
                    topic="Orders", key=key, max_num=64, begin_timestamp=begin, end_timestamp=end
                )
                command = RemotingCommand(RequestCode.QUERY_MESSAGE, header)
                answer = await client.invoke(address, command, TIMEOUT)
                assert answer.body is None or isinstance(answer.body, bytes | memoryview)
                answers.append((key, begin, answer.code, bytes(answer.body or b"")))
        for queue_id in range(4):
            for time in (0, START, *range(START + 1_000, START + 460_000, 29_990), END_OF_TIME):
                for boundary in (None, "LOWER", "UPPER"):
                    search = SearchOffsetRequestHeader("Orders", queue_id, time, boundary)
                    command = RemotingCommand(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, search)
                    answer = await client.invoke(address, command, TIMEOUT)
                    found = answer.require_success().decode_header(SearchOffsetResponseHeader)
                    answers.append((queue_id, time, boundary, found.offset))
    finally:
        await client.close()
    return answers


@pytest.mark.parametrize("profile", ["v49", "v53"])
def test_a_broker_with_installed_files_answers_queries_like_one_that_built_them(
    made: tuple[Path, Path], tmp_path: Path, profile: str
) -> None:
    own, given = (shutil.copytree(made[0], tmp_path / name) for name in ("own", "given"))
    _strip(own)
    _strip(given)
    install_index(made[1], given)
    answers = []
    for root in (own, given):
        with _broker(root, profile) as address:
            answers.append(asyncio.run(_ask_all(address)))
    assert answers[0] == answers[1]
    assert sum(1 for answer in answers[0] if answer[2] == 0) > 20
    assert files_below(own, "consumequeue") == files_below(given, "consumequeue")
    indexes = [files_below(root, "index") for root in (own, given)]
    assert [index[name] for index in indexes[:1] for name in sorted(index)] == [
        index[name] for index in indexes[1:] for name in sorted(index)
    ]


@pytest.mark.parametrize("clean", [True, False])
def test_a_broker_keeps_the_installed_files_after_a_clean_stop_or_a_crash(
    made: tuple[Path, Path], store: Path, clean: bool
) -> None:
    _strip(store)
    summary = install_index(made[1], store)
    assert (summary.log_behind, summary.log_end) == (0, _end(store))
    if not clean:
        (store / "abort").touch()
    before = files_below(store, *PARTS)
    opened = _open(store)
    # After a crash the broker writes the entries behind the checkpoint again: the same ones.
    assert not clean or opened.rebuilt_entries == 0
    assert opened.update_index(opened.max_commit_log_offset, 1)
    opened.close()
    assert files_below(store, *PARTS) == before
    assert before == files_below(made[1] / "current", *PARTS)


def _end(store: Path) -> int:
    last = read_log(store)[-1]
    return last.commit_log_offset + last.store_size


def test_the_broker_adds_entries_for_later_messages_of_the_log(made: tuple[Path, Path], store: Path) -> None:
    writer = LogWriter(store, segment_bytes=32_768, consume_queue_bytes=400, now=START + 5_000_000)
    _put(writer, 20)
    writer.finish()
    summary = install_index(made[1], store)
    assert summary.log_behind == _end(store) - summary.log_end > 0
    opened = _open(store)
    assert opened.rebuilt_entries == 20
    assert opened.max_offset("Orders", 0) == 107
    while not opened.update_index(opened.max_commit_log_offset, 1_000):
        pass
    found = run_at_once(opened.query_message("Orders", "k0", 64, START + 5_000_000, END_OF_TIME))
    assert len(found.body) > 0
    opened.close()


def _answers(opened: MessageStore) -> list[object]:
    while not opened.update_index(opened.max_commit_log_offset, 1_000):
        pass
    found: list[object] = [
        run_at_once(opened.query_message("Orders", f"k{n}", 64, 0, END_OF_TIME)).body for n in range(11)
    ]
    for queue_id in range(3):
        found += [opened.min_offset("Orders", queue_id), opened.max_offset("Orders", queue_id)]
        found += [opened.get_message("Orders", queue_id, offset, 32, None).body for offset in (0, 40, 99)]
        found += [opened.store_time("Orders", queue_id, offset) for offset in range(0, 100, 9)]
    return found


@pytest.mark.parametrize("clean", [True, False])
def test_an_installation_that_ends_anywhere_leaves_a_store_that_opens_and_can_be_repeated(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: bool
) -> None:
    """Installations that end at each rename in turn, and before the first rename."""
    opened = _open(shutil.copytree(made[0], tmp_path / "plain"))
    expected = _answers(opened)
    opened.close()
    wanted = files_below(made[1] / "current", *PARTS)
    rename, done = Path.rename, 0
    for allowed in range(20):
        left = [allowed]

        def limited(path: Path, target: Path, left: list[int] = left) -> Path:
            if not left[0]:
                raise _EndedError
            left[0] -= 1
            return rename(path, target)

        store = shutil.copytree(made[0], tmp_path / f"store-{allowed}")
        if not clean:
            (store / "abort").touch()
        install_index(made[1], store)
        monkeypatch.setattr(Path, "rename", limited)
        try:
            install_index(made[1], store)
            done += 1
        except _EndedError:
            pass
        monkeypatch.setattr(Path, "rename", rename)
        again = shutil.copytree(store, tmp_path / f"again-{allowed}")
        opened = _open(store)
        assert _answers(opened) == expected, allowed
        opened.close()
        install_index(made[1], again)
        assert files_below(again, *PARTS) == wanted, allowed
        assert not list(again.glob("install-index*"))
        if done:
            break
    # Three parts are moved aside, and three in place.
    assert allowed == 6


class _EndedError(Exception):
    pass


def test_what_does_not_fit_is_refused_and_the_store_left_alone(
    made: tuple[Path, Path], store: Path, tmp_path: Path
) -> None:
    _, out = made
    before = files_below(store, ".")
    opened = _open(store)
    with pytest.raises(PipelineError, match=r"in use by another broker .*: stop it first"):
        install_index(out, store)
    opened.close()
    shutil.rmtree(store)
    other = LogWriter(store, segment_bytes=32_768, consume_queue_bytes=600)
    _put(other, 3)
    other.finish()
    before = files_below(store, ".")
    with pytest.raises(PipelineError, match=r"made from another log .* index this store"):
        install_index(out, store)
    with pytest.raises(PipelineError, match="is not an index; make one with"):
        install_index(tmp_path / "nowhere", store)
    with pytest.raises(PipelineError, match="is not on this machine"):
        install_index(out, "mock:///store")
    with pytest.raises(PipelineError, match="there is no store at"):
        install_index(out, tmp_path / "nowhere")
    assert files_below(store, ".") == before
    assert not (tmp_path / "nowhere").exists()


def test_queue_files_of_another_size_are_refused(made: tuple[Path, Path], store: Path) -> None:
    for path in (store / "consumequeue/Orders/0").iterdir():
        path.unlink()
    (store / "consumequeue/Orders/0" / f"{0:020d}").write_bytes(bytes(600))
    with pytest.raises(PipelineError, match=r"has 600 bytes, consume queue files of .* have 400"):
        install_index(made[1], store)
