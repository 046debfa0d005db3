"""``rewindmq pipeline``: its output, and its one-line errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rewindmq.__main__ import main
from rewindmq.pipeline.cli import SUB_COMMANDS
from rewindmq.pipeline.commands.summary import command, show_summary, table_lines
from tests.pipeline.logs import GROUP, random_store
from tests.support.file_rights import file_modes_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENT = f"{0:020d}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = main(["pipeline", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli") / "broker-a"
    random_store(root, seed=2, count=60)
    return root


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in a folder: modes, times and contents."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(root.rglob("*"))
    }


# How every command is given a store; the rest of its arguments would be right.
WITH_STORE: dict[str, Callable[[str, str], list[str]]] = {
    "show": lambda store, out: ["show", store],
    "show several": lambda store, out: ["show", store, store],
    "compact": lambda store, out: ["compact", store, out],
    "index": lambda store, out: ["index", store, out],
    "replay-plan": lambda store, out: ["replay-plan", store, "-g", GROUP, "-t", "Orders", "--to", "0"],
    "verify": lambda store, out: ["verify", store],
}


def no_directory(root: Path) -> None:
    pass


def a_file(root: Path) -> None:
    root.write_text("")


def no_store(root: Path) -> None:
    (root / "something").mkdir(parents=True)


def the_log_itself(root: Path) -> None:
    root.mkdir()
    (root / SEGMENT).write_bytes(bytes(1024))


def an_empty_store(root: Path) -> None:
    (root / "commitlog").mkdir(parents=True)


def a_store_without_messages(root: Path) -> None:
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).write_bytes(bytes(65_536))


def a_rocksdb_store(root: Path) -> None:
    an_empty_store(root)
    (root / "consumequeue").mkdir()
    (root / "consumequeue" / "CURRENT").write_text("MANIFEST-000001\n")


def a_raft_store(root: Path) -> None:
    (root / "dledger-broker-a").mkdir(parents=True)


def segments_of_two_sizes(root: Path) -> None:
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).write_bytes(bytes(1024))
    (root / "commitlog" / f"{1024:020d}").write_bytes(bytes(2048))


def a_segment_is_missing(root: Path) -> None:
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).write_bytes(bytes(1024))
    (root / "commitlog" / f"{4096:020d}").write_bytes(bytes(1024))


def a_pipe_among_segments(root: Path) -> None:
    """Skipped without a word, with exit code 0 and rows missing."""
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).write_bytes(bytes(1024))
    os.mkfifo(root / "commitlog" / f"{1024:020d}")


def a_link_to_a_device_among_segments(root: Path) -> None:
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).symlink_to("/dev/zero")


def a_link_to_nothing_among_segments(root: Path) -> None:
    """The whole folder was taken for empty."""
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).write_bytes(bytes(1024))
    (root / "commitlog" / f"{1024:020d}").symlink_to("nowhere")


def a_folder_among_segments(root: Path) -> None:
    an_empty_store(root)
    (root / "commitlog" / SEGMENT).mkdir()


BAD_STORES: dict[Callable[[Path], None], str] = {
    no_directory: "the directory does not exist",
    a_file: "is a file; a store is a directory",
    no_store: "is not a store: it contains no commitlog/",
    the_log_itself: "this looks like the commit log itself: give the directory above it",
    an_empty_store: "has no messages: its commit log is empty",
    a_store_without_messages: "has no messages: its commit log is empty",
    a_rocksdb_store: "RocksDB consume queue, which is not supported",
    a_raft_store: "DLedger (Raft) commit log, which is not supported",
    segments_of_two_sizes: "all segments of a commit log must have one size",
    a_segment_is_missing: "lacks a segment between",
    a_pipe_among_segments: "the store is damaged: ",
    a_link_to_a_device_among_segments: f"{SEGMENT} is no regular file, but a pipe, a device",
    a_link_to_nothing_among_segments: "is no regular file",
    a_folder_among_segments: f"{SEGMENT} is no regular file, but a folder",
}


@pytest.mark.parametrize("make", BAD_STORES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("command", WITH_STORE)
def test_a_path_that_is_no_store_prints_one_line(
    command: str, make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, out = tmp_path / "store", tmp_path / "out"
    make(root)
    before = tree(tmp_path)
    code, text, error = run(capsys, *WITH_STORE[command](str(root), str(out)))
    assert (code, text) == (1, "")
    assert error.startswith("rewindmq pipeline: ")
    assert BAD_STORES[make] in error
    assert error.count("\n") == 1
    assert tree(tmp_path) == before


def test_a_store_that_may_not_be_read(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every command."""
    root, out = shutil.copytree(store, tmp_path / "store"), tmp_path / "out"
    log = root / "commitlog"
    log.chmod(0)
    denied = f"rewindmq pipeline: cannot read {log}: Permission denied\n"
    with file_modes_count():
        for make in WITH_STORE.values():
            assert run(capsys, *make(str(root), str(out))) == (1, "", denied)
    log.chmod(0o700)
    assert not out.exists()


REPLAY = ("replay-plan", "STORE", "-g", GROUP, "-t", "Orders", "--to")
BAD_ARGUMENTS = {
    ("show", "STORE", "--topic", "Ordres"): "unknown topic 'Ordres'; known: ",
    ("show", "STORE", "--from", "yesterday"): "'yesterday' is not a time",
    ("show", "STORE", "--to", "2026-02-30"): "'2026-02-30' is not a time",
    ("show", "STORE", "--view", "damage", "--topic", "Orders"): "--topic does not apply to the view damage",
    ("show", "STORE", "--view", "offsets", "--key", "k"): "option 'key' does not apply to the view offsets",
    ("show", "ftp://somewhere/store"): "cannot use ftp://somewhere/store",
    ("compact", "STORE", "OUT", "--topic", "Ordres"): "Ordres",
    ("compact", "STORE", "OUT", "--topic", "SCHEDULE_TOPIC_XXXX"): "SCHEDULE_TOPIC_XXXX",
    ("compact", "STORE", "OUT", "--tombstone-grace", "3 days"): "'3 days' is not a duration",
    ("compact", "STORE", "OUT", "--format", "store", "--segment-bytes", "1"): "1 bytes",
    ("index", "STORE", "OUT", "--max-index-num", "1"): "maxIndexNum at least 2",
    ("index", "STORE", "OUT", "--queue-file-bytes", "1001"): "consume queue files of 1001 bytes",
    ("index", "STORE", "OUT", "--delay-levels", "soon"): "soon",
    (*REPLAY, "tomorrow"): "'tomorrow' is not a time",
    (*REPLAY, "0", "--html", "/nowhere/plan.html"): "the directory /nowhere does not exist",
    ("replay-plan", "STORE", "-g", "Nobody", "-t", "Orders", "--to", "0"): "unknown group 'Nobody'",
    ("replay-plan", "STORE", "-g", GROUP, "-t", "Ordres", "--to", "0"): "unknown topic 'Ordres'",
    ("install", "STORE", "STORE"): "is not an index",
    ("verify", "STORE", "OUT"): "OUT",
    ("show", "STORE", "--engine", "local", "--master", "local[1]"): "leave out --master, --memory and --conf",
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS, ids=lambda arguments: " ".join(arguments))
def test_impossible_arguments_print_one_line(
    arguments: tuple[str, ...], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(store)
    names = {"STORE": str(store), "OUT": str(tmp_path / "out")}
    code, text, error = run(capsys, *(names.get(argument, argument) for argument in arguments))
    assert (code, text) == (1, "")
    assert names.get(BAD_ARGUMENTS[arguments], BAD_ARGUMENTS[arguments]) in error
    assert error.count("\n") == 1
    assert tree(store) == before
    assert not (tmp_path / "out").exists()


def out_with_other_things(out: Path, store: Path) -> Path:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    return out


def out_is_a_file(out: Path, store: Path) -> Path:
    out.write_text("mine")
    return out


def out_in_the_store(out: Path, store: Path) -> Path:
    return store / "out"


def out_around_the_store(out: Path, store: Path) -> Path:
    return store.parent


def out_is_the_store(out: Path, store: Path) -> Path:
    return store


def out_of_another_job(out: Path, store: Path) -> Path:
    manifest = {"format": 1, "job": "other", "generation": 1, "options": {}, "source": [], "facts": {}}
    out.mkdir()
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


def out_of_a_later_version(out: Path, store: Path) -> Path:
    out.mkdir()
    (out / "manifest.json").write_text(json.dumps({"format": 99}))
    return out


BAD_OUTPUTS: dict[Callable[[Path, Path], Path], str] = {
    out_with_other_things: "exists and holds other files (thesis.txt)",
    out_is_a_file: "exists and is a file",
    out_in_the_store: "overlap",
    out_around_the_store: "overlap",
    out_is_the_store: "overlap",
    out_of_another_job: "is the output of other; choose another for",
    out_of_a_later_version: "has format 99",
}


@pytest.mark.parametrize("make", BAD_OUTPUTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("command", ["compact", "index"])
def test_an_output_that_is_something_else_is_left_alone(
    command: str,
    make: Callable[[Path, Path], Path],
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = make(tmp_path / "out", store)
    before = tree(tmp_path), tree(store)
    code, text, error = run(capsys, command, str(store), str(out))
    assert (code, text) == (1, "")
    assert BAD_OUTPUTS[make] in error
    assert error.count("\n") == 1
    assert (tree(tmp_path), tree(store)) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "STORE", "--limit", "-1"),
        ("show", "STORE", "--view", "nonsense"),
        ("show", "STORE", "--memory", "lots"),
        ("show", "STORE", "--memory", "16m"),
        ("show", "STORE", "--conf", "nonsense"),
        ("compact", "STORE"),
        ("compact", "STORE", "OUT", "--format", "zip"),
        ("compact", "STORE", "OUT", "--segment-bytes", "-5"),
        ("index", "STORE", "OUT", "--max-index-num", "0"),
        ("replay-plan", "STORE"),
        (),
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["pipeline", *arguments])
    assert raised.value.code == 2
    assert "usage: rewindmq pipeline" in capsys.readouterr().err


def test_help_of_each_command_has_examples_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from rewindmq.__main__ import main\n"
        "for name in sys.argv[1:]:\n"
        "    try: main(['pipeline', name, '--help'])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "    print('LOADED', sorted({'pyspark', 'pyarrow', 'numpy', 'rich', 'asyncio'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, *SUB_COMMANDS]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    *texts, rest = result.stdout.split("LOADED []\n")
    assert rest == ""
    for name, text in zip(SUB_COMMANDS, texts, strict=True):
        assert f"rewindmq pipeline {name} " in text.partition("examples:")[2]


def test_every_command_that_needs_spark_can_be_submitted() -> None:
    folder = Path(__file__).resolve().parents[2] / "pipeline" / "jobs"
    jobs = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--", "submitted"}
    assert jobs == set(SUB_COMMANDS) - {"install"}


def test_a_summary_is_a_table_whose_lists_are_tables_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "outputFolder": "/x",
        "isNew": True,
        "bytesRead": 1_234_567,
        "share": 0.25,
        "nothing": None,
        "names": ["a", "b"],
        "gaps": [],
        "topics": [{"topic": "T", "messagesKept": 12}, {"topic": "Longer", "messagesKept": 3}],
    }
    show_summary(summary, is_json=False)
    assert capsys.readouterr().out == (
        "output folder  /x\n"
        "bytes read     1.2 MiB\n"
        "share          0.250\n"
        "nothing        -\n"
        "names          a, b\n"
        "\n"
        "topics:\n"
        "topic   messages kept\n"
        "T                  12\n"
        "Longer              3\n"
    )
    show_summary(summary, is_json=True)
    assert json.loads(capsys.readouterr().out) == summary
    assert table_lines([{"a": "x", "b": 1}]) == ["a  b", "x  1"]


def test_a_summary_of_nothing_new_is_one_line_and_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {"output": "/x", "isNew": False, "messages": 0}
    show_summary(summary, is_json=False, next_steps=[command("install", "/x", "a store")])
    assert capsys.readouterr().out == (
        "nothing new: /x is unchanged\n\nnext: rewindmq pipeline install /x 'a store'\n"
    )


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine; Spark's is the session of the test run."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


def test_show_prints_rows_as_a_table_as_json_or_their_count(
    engine: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show = ("show", str(store), "--engine", engine)
    code, text, error = run(capsys, *show, "--topic", "Orders", "--limit", "3")
    assert code == 0
    header, *rows = text.splitlines()
    assert header.split()[:4] == ["topic", "queueId", "queueOffset", "storeTimestamp"]
    assert [row.split()[0] for row in rows] == ["Orders"] * 3
    assert error == f"reading {store}\n"
    arguments = (*show, "--topic", "Orders", "--quiet", "--json")
    code, text, error = run(capsys, *arguments, "--limit", "0")
    messages = [json.loads(line) for line in text.splitlines()]
    assert (code, error) == (0, "")
    assert {message["topic"] for message in messages} == {"Orders"}
    assert messages[0]["storeTimestamp"].startswith("2023-11-")
    code, text, _ = run(capsys, *arguments, "--count")
    assert json.loads(text) == {"count": len(messages)}
    code, text, _ = run(capsys, *show, "--view", "offsets", "--quiet", "--topic", "Prices")
    assert {row.split()[2] for row in text.splitlines()[1:]} == {"Prices"}


@pytest.mark.slow
def test_the_jobs_run_by_command(
    spark: SparkSession, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def as_json(*arguments: str) -> dict[str, Any]:
        code, text, error = run(capsys, *arguments, "--json", *() if "install" in arguments else ("--quiet",))
        assert (code, error) == (0, "")
        return dict(json.loads(text))

    before = tree(store)
    compacted = as_json("compact", str(store), str(tmp_path / "compacted"), "--format", "store")
    assert compacted["messagesKept"] <= compacted["messagesRead"]
    indexed = as_json("index", str(store), str(tmp_path / "indexed"))
    assert indexed["messages"] == compacted["messagesRead"]
    page = tmp_path / "plan.html"
    plan = as_json(*REPLAY[:1], str(store), *REPLAY[2:], "0", "--html", str(page))
    assert plan["group"] == GROUP
    assert page.read_text().startswith("<!doctype html>")
    assert tree(store) == before
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    for output in ("compacted", "indexed"):
        assert as_json("verify", str(store), str(tmp_path / output))["isIntact"]
    installed = as_json("install", str(tmp_path / "indexed"), str(copy))
    assert installed["logBehind"] == 0


def test_verify_exits_with_1_when_something_is_wrong(
    spark: SparkSession, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "verify", str(store), "--quiet")[0] == 0
    broken = tmp_path / "broken"
    shutil.copytree(store, broken)
    (queue_file,) = broken.glob("consumequeue/Orders/0/*0000")
    with queue_file.open("r+b") as file:
        file.seek(11)
        file.write(b"\x01")
    code, text, _ = run(capsys, "verify", str(broken), "--quiet", "--json")
    assert code == 1
    assert not json.loads(text)["isIntact"]


@pytest.mark.slow(full_only="tests/pipeline/test_processes.py starts such a process")
def test_a_process_prints_its_steps_and_no_output_of_spark(store: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "rewindmq", "pipeline", "show", str(store)]
    result = subprocess.run([*command, "--count", "--master", "local[1]"], capture_output=True, text=True)
    assert result.stderr == f"starting Spark\nreading {store}\n"
    assert result.returncode == 0
    assert int(result.stdout) > 0
