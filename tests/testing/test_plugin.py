"""The pytest plugin, in runs of pytest of their own: options, marker, clean-up, and what a failure shows."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import WAIT_SECONDS

pytestmark = pytest.mark.slow

_INI = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
addopts = -p no:cacheprovider -p rewindmq.testing.plugin -q
"""


class _Project:
    """A folder with tests of an application."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "pytest.ini").write_text(_INI)

    def test(self, text: str) -> None:
        """Write the test file."""
        head = "import pytest\nfrom rewindmq.testing import Rmq\n"
        (self._folder / "test_it.py").write_text(head + text)

    def add_to_ini(self, line: str) -> None:
        (self._folder / "pytest.ini").write_text(_INI + line + "\n")

    def read(self, name: str) -> str:
        return (self._folder / name).read_text()

    def run_program(self, text: str) -> None:
        """Run a program in the project's folder."""
        subprocess.run([sys.executable, "-c", text], cwd=self._folder, check=True, timeout=120)

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run pytest; return its exit code and its output."""
        words = [sys.executable, "-m", "pytest", *arguments]
        done = subprocess.run(words, cwd=self._folder, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> _Project:
    return _Project(tmp_path)


def test_the_first_test_of_the_tutorial_passes(project: _Project) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "testkit" / "README.md").read_text()
    (program,) = [
        text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Balances()" in text
    ]
    project.test(program)
    code, output = project.run()
    assert code == 0, output
    assert "1 passed" in output


def test_the_programs_of_the_page_about_snapshots_pass(project: _Project) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "testkit" / "snapshots.md").read_text()
    fixture, script, marker = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    project.run_program(script)
    project.test(f"{fixture}\n{marker}")
    code, output = project.run()
    assert code == 0, output
    assert "4 passed" in output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_session_that_a_signal_ends_leaves_no_folder(
    project: _Project, tmp_path: Path, number: signal.Signals
) -> None:
    project.test("""
import asyncio
async def test_one(rmq: Rmq):
    print("\\nat work", flush=True)
    await asyncio.Event().wait()
""")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stdout is not None
        while session.stdout.readline() != "at work\n":
            assert session.poll() is None
        assert len(list(scratch.glob("rewindmq-*"))) == 1
        session.send_signal(number)
        output, _ = session.communicate(timeout=WAIT_SECONDS)
    assert f"KeyboardInterrupt: {number.name}" in output
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert list(scratch.glob("rewindmq-*")) == []


def test_tests_share_a_cluster_and_nothing_else(project: _Project) -> None:
    project.test("""
addresses = []
async def test_one(rmq: Rmq):
    addresses.append(rmq.namesrv_address)
    topic = await rmq.topic("orders")
    await topic.send(b"x")
async def test_two(rmq: Rmq):
    assert addresses == [rmq.namesrv_address]
    assert await (await rmq.topic("orders")).read() == []
""")
    assert project.run()[0] == 0


def test_the_marker_chooses_the_cluster(project: _Project) -> None:
    project.test("""
@pytest.mark.rewindmq(brokers=2, profile="v53", broker_config={"messageDelayLevel": "1s 2s"})
async def test_marked(rmq: Rmq):
    info = await rmq.admin.brokers.examine_broker_cluster_info()
    assert sorted(info.broker_addr_table) == ["broker-a", "broker-b"]
    config = await rmq.admin.brokers.get_broker_config(info.broker_addr_table["broker-a"].broker_addrs[0])
    assert config["messageDelayLevel"] == "1s 2s"
async def test_plain(rmq: Rmq):
    assert sorted((await rmq.admin.brokers.examine_broker_cluster_info()).broker_addr_table) == ["broker-a"]
""")
    assert project.run("--strict-markers")[0] == 0


def test_options_come_from_the_command_line_before_the_ini_file(project: _Project) -> None:
    project.add_to_ini("rewindmq_time_scale = 0.5\nrewindmq_brokers = 2")
    project.test("""
async def test_it(rmq: Rmq):
    assert len((await rmq.admin.brokers.examine_broker_cluster_info()).broker_addr_table) == 2
    print("scale", rmq.time_scale)
""")
    assert "scale 0.5" in project.run("-s")[1]
    assert "scale 0.25" in project.run("-s", "--rewindmq-time-scale", "0.25")[1]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("rewindmq_brokers = many", "rewindmq_brokers = many: not a int"),
        ("rewindmq_profile = v1", "profile"),
        ("rewindmq_brokers = 99", "brokers must be 1 to 26, not 99"),
    ],
)
def test_an_option_that_cannot_be_is_named(project: _Project, line: str, text: str) -> None:
    project.add_to_ini(line)
    project.test("async def test_it(rmq: Rmq): pass")
    code, output = project.run()
    assert code == 1
    assert text in output


def test_an_unknown_option_of_the_marker_is_named(project: _Project) -> None:
    project.test("@pytest.mark.rewindmq(broker=2)\nasync def test_it(rmq: Rmq): pass")
    code, output = project.run()
    assert code == 1
    assert "unknown option 'broker'; options: brokers, slaves, profile, time_scale, broker_config" in output


def test_a_running_cluster_is_used_instead_of_an_own_one(project: _Project) -> None:
    project.test("""
from rewindmq import LocalCluster
import subprocess, sys, os
def test_outer(pytestconfig):
    with LocalCluster(1, time_scale=0.05) as cluster:
        (pytestconfig.rootpath / "inner_test.py").write_text('''
async def test_inner(rmq):
    assert rmq.namesrv_address == "ADDRESS"
    topic = await rmq.topic("orders")
    await topic.send(b"x")
    async with rmq.push("g", topic) as group:
        await group.caught_up()
'''.replace("ADDRESS", cluster.namesrv_address))
        words = [sys.executable, "-m", "pytest", "inner_test.py"]
        words += ["--rewindmq-namesrv", cluster.namesrv_address, "--rewindmq-time-scale", "0.05"]
        assert subprocess.run(words).returncode == 0
""")
    code, output = project.run()
    assert code == 0, output


def test_a_failed_test_shows_what_the_servers_logged_during_it(project: _Project) -> None:
    project.test("""
async def test_passes(rmq: Rmq):
    async with rmq.push("early", await rmq.topic("orders")): pass
async def test_fails(rmq: Rmq):
    async with rmq.push("billing", await rmq.topic("orders")): pass
    assert False
""")
    code, output = project.run()
    assert code == 1
    log = output.partition("log of broker-a")[2]
    assert "consumer group billing-" in log
    assert "consumer group early-" not in log


def test_a_plain_function_that_asks_for_rmq_is_told_what_to_do(project: _Project) -> None:
    project.test("def test_plain(rmq: Rmq): pass")
    code, output = project.run()
    assert code == 1
    assert "test_plain is not async" in output
    assert "rewindmq.sync" in output


def test_a_test_on_another_event_loop_than_its_fixture_is_told_so(project: _Project) -> None:
    """The kit's connections would belong to a loop that no longer runs when the kit closes them."""
    project.test("""
@pytest.mark.asyncio(loop_scope="module")
async def test_it(rmq: Rmq): await rmq.topic("orders")
""")
    code, output = project.run()
    assert code == 1
    assert "runs on another event loop than the fixture rmq" in output


def test_a_group_that_still_runs_at_the_end_is_stopped_and_named(project: _Project) -> None:
    project.test("""
async def test_forgets(rmq: Rmq):
    await rmq.push("billing", await rmq.topic("orders")).start()
async def test_next(rmq: Rmq):
    await rmq.topic("orders")
""")
    code, output = project.run()
    assert code == 0, output
    assert "KitWarning: the test ended while consumers of billing-" in output


def test_a_cluster_that_cannot_start_shows_the_end_of_its_log(project: _Project) -> None:
    project.test("""
@pytest.mark.rewindmq(broker_config={"noSuchKey": 1})
async def test_it(rmq: Rmq): pass
""")
    code, output = project.run()
    assert code == 1
    assert "noSuchKey" in output
    assert "ClusterError: broker-a did not start" in output


def test_the_plugin_may_be_named_twice(project: _Project) -> None:
    """Its entry point has the name of its module, so pytest loads it once."""
    project.test("async def test_it(rmq: Rmq): await rmq.topic('orders')")
    code, output = project.run("-p", "rewindmq.testing.plugin")
    assert code == 0, output


def test_each_worker_has_a_cluster_of_its_own(project: _Project) -> None:
    project.test("""
@pytest.mark.parametrize("number", range(4))
async def test_it(rmq: Rmq, number, worker_id, pytestconfig):
    with (pytestconfig.rootpath / "seen.txt").open("a") as seen:
        seen.write(f"{worker_id} {rmq.namesrv_address}\\n")
    await (await rmq.topic("orders")).send(b"x")
""")
    code, output = project.run("-n", "2")
    assert code == 0, output
    seen = set(project.read("seen.txt").splitlines())
    workers = {line.split()[0] for line in seen}
    assert len(seen) == len(workers) == 2


def test_help_names_the_options_and_the_marker(project: _Project) -> None:
    project.test("")
    assert "--rewindmq-time-scale" in project.run("--help")[1]
    assert "rewindmq(brokers=1, slaves=0" in project.run("--markers")[1]


def test_a_rule_that_nothing_meets_fails_the_test_at_its_end(project: _Project) -> None:
    project.test("""
@pytest.mark.rewindmq(wire=True)
async def test_unmet(rmq: Rmq):
    await rmq.on("PULL_MESSAGE", group="nobody").hold()
@pytest.mark.rewindmq(wire=True)
async def test_fails_before(rmq: Rmq):
    await rmq.on("PULL_MESSAGE", group="nobody").hold()
    assert 1 == 2
@pytest.mark.rewindmq(wire=True)
async def test_optional(rmq: Rmq):
    await rmq.on("PULL_MESSAGE", group="nobody").hold().optional()
""")
    code, output = project.run()
    assert code == 1
    assert "2 failed, 1 passed" in output
    assert "error" not in output.lower().replace("assertionerror", "")
    assert "rmq.on('PULL_MESSAGE', group='nobody').hold(): nothing met it; nothing passed" in output
    assert "FAILED test_it.py::test_fails_before - assert 1 == 2" in output


def test_the_examples_of_the_page_about_faults_pass(project: _Project) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "testkit" / "faults.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    project.test("\n\n".join(programs))
    code, output = project.run()
    assert code == 0, output
    assert f"{sum(program.count('async def test_') for program in programs)} passed" in output


def test_a_running_cluster_has_no_wire(project: _Project) -> None:
    project.test("""
@pytest.mark.rewindmq(wire=True)
async def test_it(rmq: Rmq): pass
""")
    code, output = project.run("--rewindmq-namesrv", "127.0.0.1:1")
    assert code == 1
    assert "wire=True needs a cluster of the kit's own" in output
    assert "Traceback" not in output
