"""The official mqadmin of 4.9.8 and 5.5.0 prints the same for a RewindMQ and a RocketMQ cluster.

Titles are equal to the last blank. Cells are equal if both clusters must have the same value, else of the
same type (``mqadmin_text``). The commands of the shared JVMs sign their requests, as with a ``tools.yml``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tools.interop.mqadmin_cases import (
    CHANGING,
    LOOKING,
    RESETTING,
    V4,
    V5,
    V5_CONSUMERS,
    MqadminCase,
    chosen_at,
)
from tools.interop.mqadmin_commands import COMMANDS
from tools.interop.mqadmin_match import KINDS, Match, MatchedCluster
from tools.interop.mqadmin_refusals import REFUSALS, REFUSED, Refusal
from tools.interop.mqadmin_state import IDLE, LOOK, RESET, RESET_ONCE
from tools.interop.mqadmin_tool import (
    ACCESS_KEY,
    OWN_TIMEOUT,
    MqadminTool,
    ToolOutput,
    first_lines,
    run_process,
)
from tools.interop.results import EXPLAINED
from tools.interop.store_command import CommandLine


@pytest.fixture(scope="class")
def match(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Match]:
    with Match(KINDS[request.cls.kind], tmp_path_factory.mktemp("mqadmin")) as match:
        yield match


BROKER_KEYS: Final = {"brokerName", "brokerClusterName", "brokerId", "enablePropertyFilter"}
NAMESRV_KEYS: Final = {"orderMessageEnable"}
_NUMBER: Final = re.compile(r"^\d+(\.\d+)?$")
_SETTING: Final = re.compile(r"(\w+) *=  (.*)")
# What clusterRT prints after three sends, without the time of each.
_RESPONSE_TIMES: Final = [
    ["#Cluster", "Name", "#Broker", "Name", "#RT", "#successCount", "#failCount"],
    ["DefaultCluster", "broker-a", "<ms>", "3", "0"],
]
# A command line, the exit status of its process, and what it prints.
PROCESSES: Final = (
    (f"topicRoute -t {LOOK}", 0, "brokerDatas"),
    ("topicRoute -t nix", 0, "CODE: 17  DESC: No topic route info"),
    ("topicRoute", 1, "usage: mqadmin topicRoute"),
)


_OTHER_RELEASE: Final = pytest.mark.interop(full_only="both releases share most of their code")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.cls is None or not issubclass(metafunc.cls, Prints):
        return
    kind = metafunc.cls.kind

    def marks(place: int, matches: tuple[str, ...]) -> list[pytest.MarkDecorator]:
        return [] if chosen_at(place, matches) == kind else [_OTHER_RELEASE]

    if "case" in metafunc.fixturenames:
        cases = [
            pytest.param(case, id=case.line, marks=marks(place, case.matches))
            for place, case in enumerate(LOOKING + CHANGING + RESETTING)
            if kind in case.matches
        ]
        metafunc.parametrize("case", cases)
    if "refusal" in metafunc.fixturenames:
        refusals = [pytest.param(refusal, id=refusal.line) for refusal in REFUSALS[kind]]
        metafunc.parametrize("refusal", refusals)
    if "status" in metafunc.fixturenames:
        processes = [pytest.param(*one, marks=marks(place, (V4, V5))) for place, one in enumerate(PROCESSES)]
        metafunc.parametrize(("line", "status", "words"), processes)


class Settings(NamedTuple):
    """A printed configuration: its values by key, the other lines, and the first column of a ``=``."""

    values: dict[str, str]
    titles: list[str]
    column: int


def _settings(side: MatchedCluster, printed: ToolOutput) -> Settings:
    text = printed.output
    for name in ("broker", "namesrv"):
        text = text.replace(side.state.names()[name], name)
    lines = [line for line in text.splitlines() if line]
    found = [match for line in lines if (match := _SETTING.fullmatch(line))]
    return Settings(
        {one[1]: one[2] for one in found},
        [line for line in lines if not _SETTING.fullmatch(line)],
        min(one[0].index("=") for one in found),
    )


def _statistics(output: str) -> list[list[str]]:
    """Return the cells of the tests' own topics; a rate or a count of messages in time has only its type."""
    rows = (line.split() for line in output.splitlines() if line.startswith("mq-"))
    return sorted([_NUMBER.sub(_type_of, cell) for cell in row] for row in rows)


def _type_of(number: re.Match[str]) -> str:
    return "<rate>" if number[1] else "<count>"


class Prints:
    """Tests for every match of two clusters."""

    kind: str

    def test_prints_the_same(
        self, match: Match, case: MqadminCase, record_property: Callable[[str, object], None]
    ) -> None:
        rewindmq, rocketmq = match.wait(match.compare(case))
        assert rocketmq, "mqadmin printed nothing for RocketMQ"
        assert rewindmq == rocketmq
        if case.why:
            record_property(EXPLAINED, case.why)

    def test_a_reset_group_consumes_again(self, match: Match) -> None:
        """Other tests compare what mqadmin prints of a reset; this one shows its effect."""

        async def rewind(side: MatchedCluster) -> None:
            side.state.delivered[RESET_ONCE].clear()
            printed = await side.ask(f"resetOffsetByTime -g {RESET_ONCE} -t {RESET} -s 0")
            try:
                await side.state.wait_delivered(RESET_ONCE)
            except TimeoutError as error:
                error.add_note(f"mqadmin printed at {side.server.name}: {printed}")
                side.server.note_logs(error)
                raise

        async def both() -> None:
            await asyncio.gather(rewind(match.rewindmq), rewind(match.rocketmq))

        match.wait(both())


class Serves(Prints):
    """Tests that do not depend on whether broker or consumers reset."""

    def test_write_permission_is_removed_and_restored(self, match: Match) -> None:
        """The printed counts are over all topics; the clusters have different system topics."""
        lines = (
            ("wipeWritePerm -b broker-a", f"topicRoute -t {LOOK}"),
            ("addWritePerm -b broker-a", f"topicRoute -t {LOOK}"),
        )
        for line, then in lines:
            rewindmq, rocketmq = match.wait(match.compare(MqadminCase(line, then=then, only_shape=True)))
            assert rewindmq == rocketmq
            perm = 4 if line.startswith("wipe") else 6
            printed = match.wait(match.rewindmq.ask(then))
            assert f'"perm":{perm},' in printed.output

    @pytest.mark.parametrize(
        ("line", "keys"),
        [
            pytest.param(line, keys, id=line)
            for line, keys in (
                ("getBrokerConfig -b {broker}", BROKER_KEYS),
                ("getBrokerConfig -c DefaultCluster", BROKER_KEYS),
                ("getNamesrvConfig", NAMESRV_KEYS),
            )
        ],
    )
    def test_the_configuration_is_printed_in_the_same_columns(
        self, match: Match, line: str, keys: set[str], record_property: Callable[[str, object], None]
    ) -> None:
        """Compare key by key: RewindMQ has fewer keys, and some of its own."""
        printed = match.wait(match.ask_both(line))
        ours, theirs = (
            _settings(side, one) for side, one in zip((match.rewindmq, match.rocketmq), printed, strict=True)
        )
        assert ours.titles == theirs.titles
        assert ours.values.keys() & theirs.values.keys() >= keys
        assert {key: ours.values[key] for key in keys} == {key: theirs.values[key] for key in keys}
        assert ours.column == theirs.column
        record_property(EXPLAINED, "RewindMQ has fewer keys, and some of its own")

    def test_is_refused(
        self, match: Match, refusal: Refusal, record_property: Callable[[str, object], None]
    ) -> None:
        """With an error of the server, not of the tool."""
        rewindmq, rocketmq = match.wait(match.ask_both(refusal.line))
        assert refusal.words in rewindmq.output + rewindmq.errors
        assert rocketmq.output + rocketmq.errors
        record_property(EXPLAINED, f"{REFUSED}{refusal.why}")

    @pytest.mark.parametrize("line", ["clusterRT -a 3 -s 16 -c DefaultCluster -i 1"])
    def test_a_command_without_end_begins_the_same(self, match: Match, line: str, tmp_path: Path) -> None:
        rewindmq, rocketmq = (
            first_lines(
                match.kind.tool,
                tmp_path / side.server.name,
                [*line.split(), "-n", side.server.namesrv_address],
                2,
            )
            for side in (match.rewindmq, match.rocketmq)
        )
        for printed in (rewindmq, rocketmq):
            lines = [re.sub(r"\d+\.\d\d", "<ms>", text).split() for text in printed.output.splitlines()]
            # A new JVM that waits 3 s for the processor gives up; no option of the tool changes that.
            assert lines == _RESPONSE_TIMES or OWN_TIMEOUT in printed.errors, printed

    def test_the_tool_has_the_commands_of_the_page(self, match: Match, tmp_path: Path) -> None:
        listed = run_process(match.kind.tool, tmp_path, []).output
        names = [line.split()[0] for line in listed.splitlines() if line.startswith("   ")]
        assert tuple(names) == COMMANDS[match.kind.tool]

    def test_an_index_beyond_the_queue_is_an_error(self, match: Match) -> None:
        """RocketMQ returns SUCCESS without a body, and its tool fails with a NullPointerException."""
        line = f"queryCq -t {LOOK} -q 0 -i 99 -c 1 -b {{broker}}"
        rewindmq, rocketmq = match.wait(match.ask_both(line))
        assert "NullPointerException" in rocketmq.errors
        assert f"CODE: 1  DESC: Index 99 of 0@{LOOK} is not exist!" in rewindmq.errors

    def test_a_process_for_one_command_ends_with_the_same_status(
        self, match: Match, line: str, status: int, words: str, tmp_path: Path
    ) -> None:
        """Without signed requests, too; the status of a failed command is 0, as always."""
        for side in (match.rewindmq, match.rocketmq):
            arguments = [*line.split(), "-n", side.server.namesrv_address]
            printed = run_process(match.kind.tool, tmp_path / side.server.name, arguments)
            assert printed.status == status
            # A new JVM that waits 3 s for the processor gives up; no option of the tool changes that.
            text = printed.output + printed.errors
            assert words in text or OWN_TIMEOUT in text

    def test_the_shared_tools_sign_their_requests(self, match: Match, tmp_path: Path) -> None:
        """With a ``tools.yml``, as in all comparisons above."""

        async def first_frame() -> bytes:
            heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

            async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    length = int.from_bytes(await reader.readexactly(4), "big")
                    frame = await reader.readexactly(length)
                except asyncio.IncompleteReadError:
                    writer.close()
                    return
                if not heard.done():
                    heard.set_result(frame)
                writer.close()

            async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
                host, port = server.sockets[0].getsockname()
                tool = await MqadminTool.start(match.kind.tool, f"{host}:{port}", tmp_path, signs=True)
                try:
                    # The tool gives up after 3 s, on a busy machine before it has sent the request.
                    while not heard.done():
                        await tool.run("topicList")
                finally:
                    await tool.stop()
            return await heard

        frame = match.wait(first_frame())
        assert f'"AccessKey":"{ACCESS_KEY}"'.encode() in frame
        assert b'"Signature":"' in frame


class Test498(Serves):
    kind = V4


class Test550(Serves):
    kind = V5

    @pytest.mark.parametrize("line", [f"statsAll -t {LOOK}", f"statsAll -a -t {IDLE}", "statsAll"])
    def test_rewindmq_admin_prints_the_statistics_of_rocketmq(
        self, match: Match, line: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """``rewindmq admin`` and mqadmin at the same RocketMQ cluster; the rates change every ten seconds."""
        tool = CommandLine(match.rocketmq.server.namesrv_address, capsys)
        printed = match.wait(match.rocketmq.ask(line)).output
        ran = asyncio.run(tool.admin(*line.split()))
        assert (ran.code, ran.errors) == (0, "")
        assert _statistics(ran.output) == _statistics(printed)


@pytest.mark.interop(full_only="consumers of 5.5.0 reset as those of 4.9.8 do")
class Test550ResetsByConsumers(Prints):
    kind = V5_CONSUMERS
