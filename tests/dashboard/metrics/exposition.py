"""The samples of an exposition, as prometheus-client's own parsers read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families

Exposed: TypeAlias = dict[str, dict[frozenset[tuple[str, str]], float]]
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def exposed(families: Iterable[Family]) -> Exposed:
    """The value of each sample, by its name and its labels; no labels stand twice."""
    found: Exposed = {}
    for family in families:
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            rows = found.setdefault(sample.name, {})
            assert labels not in rows, (sample.name, labels)
            rows[labels] = sample.value
    return found


def total(found: Exposed, name: str, **labels: str) -> float:
    """The sum of the samples that have these labels; there is one."""
    rows = [value for row, value in found.get(name, {}).items() if row >= labels.items()]
    assert rows, f"{name} has no sample with {labels}"
    return sum(rows)


def open_metrics(text: str) -> list[Family]:
    """The metrics of an exposition in OpenMetrics's format, which the parser checks."""
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
