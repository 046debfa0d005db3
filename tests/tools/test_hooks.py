"""The hooks before a commit run the linters of ``scripts/test``, and no others."""

from __future__ import annotations

import re

from tests.support.repository import ROOT


def test_the_hooks_are_the_linters_of_the_test_script() -> None:
    hooks = re.findall(
        r"entry: \.venv/bin/python -m (.*) --force-exclude", (ROOT / ".pre-commit-config.yaml").read_text()
    )
    script = re.findall(
        r'^"\$PYTHON" -m (ruff .*) \.$', (ROOT / "scripts" / "test").read_text(), re.MULTILINE
    )
    assert hooks == script
    assert len(hooks) == 2
