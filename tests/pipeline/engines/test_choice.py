"""Which engine runs a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.__main__ import main
from rewindmq.pipeline.engines.choice import LOCAL_LOG, is_local, size_warning
from rewindmq.pipeline.errors import PipelineError
from tests.pipeline.logs import LogWriter, random_store


def test_auto_is_local_up_to_the_limit_unless_the_caller_set_spark_up() -> None:
    assert is_local("auto", LOCAL_LOG, has_options=False, has_session=False)
    assert not is_local("auto", LOCAL_LOG + 1, has_options=False, has_session=False)
    assert not is_local("auto", 1, has_options=True, has_session=False)
    assert not is_local("auto", 1, has_options=False, has_session=True)


def test_a_named_engine_is_used_whatever_the_size() -> None:
    assert is_local("local", LOCAL_LOG + 1, has_options=False, has_session=True)
    assert not is_local("spark", 1, has_options=False, has_session=False)
    with pytest.raises(PipelineError, match="leave out --master, --memory and --conf"):
        is_local("local", 1, has_options=True, has_session=False)


def test_a_large_store_that_the_local_engine_is_named_for_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = LogWriter(tmp_path / "store", segment_bytes=LOCAL_LOG)
    for number in range(17):
        writer.put("Orders", number, bytes(4_000_000))
    writer.finish()
    command = ["pipeline", "show", str(tmp_path / "store"), "--topic", "Orders", "--count", "--quiet"]
    assert main([*command, "--engine", "local"]) == 0
    warning = (
        "rewindmq pipeline: the stores have 67 MiB of commit log, and --engine local, which uses one core and"
        " sorts in memory, is meant for at most 64 MiB: --engine spark uses all cores\n"
    )
    assert capsys.readouterr() == ("17\n", warning)


def test_only_the_named_local_engine_and_a_size_above_the_limit_bring_the_warning() -> None:
    assert size_warning("local", LOCAL_LOG) is None
    assert size_warning("auto", LOCAL_LOG + 1) is None
    assert size_warning("spark", LOCAL_LOG + 1) is None


def test_a_small_store_is_shown_without_java(tmp_path: Path) -> None:
    random_store(tmp_path / "store", seed=2, count=30)
    # A Java that cannot start anything: a session would fail.
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-m", "rewindmq", "pipeline", "show", str(tmp_path / "store")]
    result = subprocess.run(
        [*command, "--count", "--json"], capture_output=True, text=True, check=False, env=environment
    )
    assert (result.returncode, result.stderr) == (0, f"reading {tmp_path / 'store'}\n")
    assert json.loads(result.stdout)["count"] >= 30
