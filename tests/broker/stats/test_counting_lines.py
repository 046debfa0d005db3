"""``./scripts/bench --only statistics`` leaves out the lines that count; it must name them as they are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.statistics_cost import COUNTING, without_counting


@pytest.mark.parametrize("name", COUNTING)
def test_the_benchmark_leaves_out_lines_that_the_module_has(name: str) -> None:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    stripped = without_counting(name, source)
    compile(stripped, spec.origin, "exec")
    lines = sum(part.count("\n") for part in COUNTING[name])
    assert source.count("\n") - stripped.count("\n") == lines


def test_a_module_without_these_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="must name those that count"):
        without_counting("rewindmq.broker.pull.plain_pulls", "pass\n")
