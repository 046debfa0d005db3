"""The command ``rewindmq``: the modules it loads, its help and its exit codes."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rewindmq
from rewindmq.__main__ import COMMANDS, build_parser, main

# Seconds; only a hang takes so long.
TIMEOUT = 60


def rewindmq_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rewindmq", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, **environment},
    )


def test_help_loads_nothing_but_the_parser() -> None:
    """``--help`` is fast because it loads only argparse and a few modules of this package."""
    code = (
        "import sys\n"
        "bare = set(sys.modules)\n"
        "import rewindmq.__main__ as entry\n"
        "assert entry.main(['--help']) == 0\n"
        "print('LOADED', *sorted(set(sys.modules) - bare))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert result.stderr == ""
    loaded = result.stdout.splitlines()[-1].split()[1:]
    heavy = {"asyncio", "msgspec", "msgpack", "uvloop", "rich", "logging", "socket", "json"}
    assert heavy.isdisjoint(loaded)
    # argparse imports gettext, re and their dependencies: 33 modules with Python 3.11.
    assert len(loaded) < 60, loaded


def test_help_names_every_command_with_examples() -> None:
    text = rewindmq_command("--help").stdout
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "examples:" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_each_command(name: str) -> None:
    result = rewindmq_command(name, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"usage: rewindmq {name}")
    assert "example" in result.stdout


@pytest.mark.parametrize("name", ["namesrv", "broker", "up", "demo"])
def test_help_of_a_server_loads_no_event_loop(name: str) -> None:
    code = (
        "import sys, rewindmq.__main__ as entry\n"
        f"entry.build_parser({name!r})\n"
        "print(sorted({'asyncio', 'uvloop'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert (result.stdout, result.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", ["namesrv", "broker", "up", "produce", "consume"])
def test_help_shows_the_defaults(name: str) -> None:
    told = {
        action.dest: (action.default, str(action.help) % vars(action))
        for action in build_parser(name)._actions
        if action.option_strings and isinstance(action.default, (str, int)) and action.default is not False
    }
    del told["help"]
    assert "log_level" in told
    for option, (default, text) in told.items():
        assert any(f"default: {default}{end}" in text for end in "),;"), (option, default, text)


def test_version_says_that_pure_python_was_asked_for() -> None:
    result = rewindmq_command("--version", REWINDMQ_PURE="1")
    expected = f"rewindmq {rewindmq.__version__} (pure Python, because REWINDMQ_PURE is set)\n"
    assert (result.returncode, result.stdout) == (0, expected)


def test_no_command_is_wrong_usage() -> None:
    result = rewindmq_command()
    assert result.returncode == 2
    assert result.stdout.startswith("usage: rewindmq")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("namesvr", " Did you mean 'namesrv'?"), ("brokre", " Did you mean 'broker'?"), ("xyzzy", "")],
)
def test_unknown_command(name: str, hint: str) -> None:
    result = rewindmq_command(name)
    assert result.returncode == 2
    assert result.stderr == f"rewindmq: there is no command {name!r}.{hint} See rewindmq --help.\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(shell: str) -> None:
    if importlib.util.find_spec("shtab") is None:
        pytest.skip("shtab is not installed")
    result = rewindmq_command("completion", shell)
    assert (result.returncode, result.stderr) == (0, "")
    assert "namesrv" in result.stdout
    assert "time-scale" in result.stdout


def test_completion_without_shtab(tmp_path: Path) -> None:
    (tmp_path / "shtab.py").write_text("raise ImportError\n")
    result = rewindmq_command("completion", "bash", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert result.stderr == "rewindmq completion: needs shtab: pip install 'rewindmq[cli]'\n"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "/x"), 1, "rewindmq namesrv: /x: Permission denied\n"),
        (OSError("odd"), 1, "rewindmq namesrv: odd\n"),
    ],
)
def test_an_error_of_a_command_becomes_an_exit_code(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr(importlib.import_module(COMMANDS["namesrv"].module), "run", run)
    assert main(["namesrv"]) == code
    assert capsys.readouterr().err == text


def test_ctrl_c_leaves_no_traceback(tmp_path: Path) -> None:
    code = (
        "import sys, time, rewindmq.namesrv.cli as cli, rewindmq.__main__ as entry\n"
        "def run(arguments):\n"
        "    print('running', flush=True)\n"
        "    time.sleep(60)\n"
        "cli.run = run\n"
        "sys.exit(entry.main(['namesrv']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert process.stderr.read() == ""
