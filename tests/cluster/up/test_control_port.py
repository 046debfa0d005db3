"""``rewindmq up --control-port``: where it is, who may read its token, and wrong options."""

from __future__ import annotations

import json
import os
import stat
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rewindmq.__main__ import main
from tests.cluster.up.running_up import running_up


def test_the_ready_line_and_members_say_where_the_port_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_up(tmp_path / "data", "-p", "0", "--control-port", "0") as up:
        entrances = up.ready["entrances"]
        token_file = Path(entrances["token_file"])
        assert token_file == tmp_path / "data" / "control.token"
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        assert main(["members", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["entrances"] == entrances
        url = f"{entrances['control']}/v1/cluster"
        headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            shown = json.load(response)
        assert (shown["namesrv"], shown["wire"]) == (up.namesrv, entrances["wire"])
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url)
        up.stop()


@pytest.mark.parametrize(
    "words", [("--wire-port", "0"), ("--control-token-file", "x"), ("--control-snapshot-dir", "x")]
)
def test_options_of_the_port_need_it(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", *words]) == 2
    assert f"{words[0]} needs --control-port" in capsys.readouterr().err


def test_a_pipe_as_token_file_ends_the_command_before_a_server_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, directory = tmp_path / "pipe", tmp_path / "data"
    os.mkfifo(pipe, 0o600)
    words = ["--dir", str(directory), "-p", "0", "--control-port", "0", "--control-token-file", str(pipe)]
    assert main(["up", *words]) == 1
    assert f"{pipe} is no regular file: name another --control-token-file" in capsys.readouterr().err
    assert not directory.exists()
