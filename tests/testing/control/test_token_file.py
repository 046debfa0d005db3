"""The file with the token: made for its owner only, and refused if others may read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from rewindmq.cluster.errors import ClusterError
from rewindmq.testing.control.token_file import check_token_file, read_or_make_token


def test_a_new_token_is_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = read_or_make_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_make_token(path) == token
    assert read_or_make_token(tmp_path / "other") != token


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("a-token-of-this-test")
    path.chmod(0o644)
    with pytest.raises(ClusterError, match="chmod 600"):
        read_or_make_token(path)


@pytest.mark.parametrize("text", ["", "short", "two words of a token", "x" * 600, "tökentökentöken12"])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(ClusterError, match="has no token"):
        read_or_make_token(path)


@pytest.mark.parametrize("use", [read_or_make_token, check_token_file])
def test_a_pipe_or_a_folder_is_refused_without_waiting_for_a_writer(
    tmp_path: Path, use: Callable[[Path], object]
) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe, 0o600)
    folder.mkdir()
    for path in (pipe, folder):
        with pytest.raises(ClusterError, match="is no regular file: name another"):
            use(path)


def test_the_check_before_the_start_makes_no_file(tmp_path: Path) -> None:
    check_token_file(tmp_path / "token")
    assert not (tmp_path / "token").exists()
