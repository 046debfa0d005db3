"""``rewindmq dashboard``: what it refuses, and how it starts and stops."""

import contextlib
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests.support.choice import first_of

_MISSING = """\
import sys
from rewindmq.__main__ import main
sys.modules[{module!r}] = None
sys.exit(main(["dashboard", "-n", "127.0.0.1:1", "--port", "0"]))
"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", ["starlette", "uvicorn", "prometheus_client"])
def test_without_the_extra_one_line_says_what_to_install(module: str) -> None:
    done = _run("-c", _MISSING.format(module=module))
    assert done.returncode == 1
    assert done.stderr == f"rewindmq dashboard: needs {module}: pip install 'rewindmq[dashboard]'\n"


def test_without_a_token_other_machines_cannot_connect() -> None:
    done = _run("-m", "rewindmq", "dashboard", "-n", "127.0.0.1:1", "--host", "0.0.0.0")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "REWINDMQ_DASHBOARD_TOKEN" in done.stderr


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_port_that_does_not_exist_is_a_wrong_use(port: str) -> None:
    done = _run("-m", "rewindmq", "dashboard", f"--port={port}")
    assert done.returncode == 2
    assert f"argument --port: must be 0 to 65535, not {port!r}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("token", ["geheim-\u00e4", "two\nlines"])
def test_a_token_that_fits_into_no_header_is_refused_in_one_line(token: str) -> None:
    done = _run("-m", "rewindmq", "dashboard", "-n", "127.0.0.1:1", "--port", "0", "--token", token)
    assert done.returncode == 1
    assert done.stderr == (
        "rewindmq dashboard: the token must be printable ASCII:"
        " other characters do not fit into an HTTP header\n"
    )


def test_an_empty_token_is_no_wish_for_none() -> None:
    done = _run("-m", "rewindmq", "dashboard", "-n", "127.0.0.1:1", "--port", "0", "--token=")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("rewindmq dashboard: the token is empty")


def test_an_empty_token_of_the_environment_is_no_wish_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWINDMQ_DASHBOARD_TOKEN", "")
    # The name server is missing, so that a command that takes the token for none ends, too.
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    done = _run("-m", "rewindmq", "dashboard", "--port", "0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("rewindmq dashboard: the token is empty")
    assert "REWINDMQ_DASHBOARD_TOKEN" in done.stderr


def test_without_a_name_server_one_line_says_how_to_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    done = _run("-m", "rewindmq", "dashboard", "--port", "0")
    assert done.returncode == 1
    assert done.stderr == "rewindmq dashboard: no name server: give -n HOST:PORT, or set NAMESRV_ADDR\n"


def test_a_port_that_is_taken_is_named_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _run("-m", "rewindmq", "dashboard", "-n", "127.0.0.1:1", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"rewindmq dashboard: cannot listen on 127.0.0.1:{port}: Address already in use;"
        " choose another --port (0: any free one) or --host\n"
    )


def test_the_core_imports_nothing_of_the_extra() -> None:
    extra = {"starlette", "uvicorn", "jinja2", "prometheus_client"}
    code = f"import sys, rewindmq; rewindmq.AdminClient; print(sorted({extra!r} & set(sys.modules)))"
    assert _run("-c", code).stdout == "[]\n"


@pytest.mark.parametrize("number", first_of([signal.SIGTERM, signal.SIGINT]))
def test_it_serves_and_plays_a_race_until_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "rewindmq", "dashboard", "-n", "127.0.0.1:1", "--port", "0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        contextlib.ExitStack() as ended,
    ):
        # A test that fails does not wait for it.
        ended.callback(process.kill)
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().removeprefix("dashboard: ").strip()
        with urllib.request.urlopen(f"{url}/static/dashboard.css", timeout=30) as response:
            assert response.status == 200
        # The command's event loop is uvloop's, which starts processes in its own way.
        with urllib.request.urlopen(f"{url}/races/R1?case=v49/classic&seed=1", timeout=60) as response:
            assert b'id="verdict"' in response.read()
        # A page that is open is live; it must not hold up the stop.
        live = ended.enter_context(urllib.request.urlopen(f"{url}/?live", timeout=30))
        assert live.readline() == b"event: part\n"
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
