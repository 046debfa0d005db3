"""README and docs: links have targets, commands parse, programs compile, and the README's program runs."""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from rewindmq.__main__ import COMMANDS as SUB_COMMANDS
from rewindmq.__main__ import build_parser
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client.admin.commands.table import COMMANDS as ADMIN_COMMANDS
from rewindmq.namesrv.config import NamesrvConfig

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_COMMAND: Final = re.compile(r"^(?:\$ )?(?:rewindmq|\./scripts/demo) ?(.*)$", re.MULTILINE)


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def _blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text()
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Block(str(page.relative_to(ROOT)), line, match[1], match[2])


def _commands() -> Iterator[tuple[str, str]]:
    """Yield the lines that a user types, not messages of a command (``rewindmq up: ...``)."""
    for block in _blocks():
        if block.language:
            continue
        for match in _COMMAND.finditer(block.text):
            if not match[0].startswith("rewindmq ") or not re.match(r"rewindmq \w+:", match[0]):
                yield f"{block}", match[0].removeprefix("$ ")


def _anchor(heading: str) -> str:
    """The anchor that repository hosts make of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")


COMMANDS: Final = list(_commands())
PROGRAMS: Final = [block for block in _blocks() if block.language == "python"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = _FENCE.sub("", page.read_text())
    for target in _LINK.findall(text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in map(_anchor, _HEADING.findall(file.read_text())), f"{page.name}: {target}"


def test_every_page_is_listed() -> None:
    listed = set(_LINK.findall((ROOT / "docs" / "README.md").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= listed


def _keys(page: str) -> set[str]:
    """The names in back quotes in the first column of a page's tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize(
    ("page", "configs"), [("broker.md", (BrokerConfig, StoreConfig)), ("namesrv.md", (NamesrvConfig,))]
)
def test_every_configuration_key_is_explained(page: str, configs: tuple[type[msgspec.Struct], ...]) -> None:
    known = {field.encode_name for config in configs for field in msgspec.structs.fields(config)} - {"store"}
    explained = {key for key in _keys(page) if not key.startswith("-")}
    assert explained == known


def test_every_command_is_explained() -> None:
    admin = (ROOT / "docs" / "admin.md").read_text()
    assert {command.name for command in ADMIN_COMMANDS} <= set(_HEADING.findall(admin))
    shown = {line.split()[1] for _, line in COMMANDS if line.startswith("rewindmq ")}
    assert set(SUB_COMMANDS) - {"demo", "completion"} <= shown


@cache
def _parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command. The pages have hundreds of lines with the same few commands."""
    return build_parser(name)


@pytest.mark.parametrize(("place", "line"), COMMANDS, ids=[f"{place} {line}" for place, line in COMMANDS])
def test_every_command_parses(place: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    name, *arguments = ["demo", *words[1:]] if words[0] == "./scripts/demo" else words[1:]
    parsed = _parser(name).parse_args(arguments)
    assert callable(parsed._run), place


def test_there_are_commands_and_programs() -> None:
    """The patterns above find commands and programs at all."""
    assert len(COMMANDS) > 30
    assert len(PROGRAMS) > 10


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_every_program_compiles_and_its_imports_exist(block: Block) -> None:
    tree = ast.parse(block.text, str(block))
    imports: list[ast.stmt] = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(imports, type_ignores=[]), str(block), "exec"), {})


def test_the_program_of_the_readme_prints_what_the_readme_says() -> None:
    program = next(block for block in PROGRAMS if block.page == "README.md" and "print(f" in block.text)
    environment = {name: value for name, value in os.environ.items() if name != "NAMESRV_ADDR"}
    outcome = subprocess.run(
        [sys.executable, "-c", program.text], capture_output=True, text=True, timeout=60, env=environment
    )
    assert outcome.returncode == 0, outcome.stderr
    assert f"It prints `{outcome.stdout.strip()}`." in (ROOT / "README.md").read_text()


def test_the_test_of_the_readme_passes() -> None:
    program = next(block for block in PROGRAMS if block.page == "README.md" and "def test_" in block.text)
    names: dict[str, object] = {}
    exec(compile(program.text, str(program), "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    assert callable(test)
    test()


def test_the_world_of_the_time_page_runs() -> None:
    program = next(block for block in PROGRAMS if block.page == "docs/time.md" and "World" in block.text)
    names: dict[str, object] = {}
    exec(compile(program.text, str(program), "exec"), names)
    scenario = names["test_time_passes_without_waiting"]
    assert callable(scenario)
    scenario()
