"""Which engine runs a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.pipeline.engines.choice import LOCAL_LOG, is_local
from rewindmq.pipeline.errors import PipelineError
from tests.pipeline.logs import random_store


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
