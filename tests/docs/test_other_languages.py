"""The helpers for other languages on their page are those that the interop group compiles and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from rewindmq.cluster.up.messages import MemberAction
from tools.interop.kit.helpers import HERE

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "testkit" / "other-languages.md").read_text()
SOURCES: Final = sorted([*HERE.rglob("*.java"), *HERE.rglob("*.go")])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_page_shows_the_code_that_is_tested(path: Path) -> None:
    language = path.suffix.removeprefix(".")
    assert f"```{language}\n{path.read_text()}```\n" in PAGE, f"copy {path.name} into the page"


def test_the_page_names_every_action_on_a_member() -> None:
    assert [action for action in MemberAction if f"`{action}" not in PAGE and f"/{action}`" not in PAGE] == [
        MemberAction.LIST
    ]
