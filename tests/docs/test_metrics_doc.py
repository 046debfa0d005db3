"""docs/metrics.md matches the code, and the Grafana dashboard asks only for what /metrics has."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewindmq.dashboard.metrics.table import METRICS

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "docs" / "grafana" / "rewindmq.json"
NAME = re.compile(r"\b(?:rocketmq|rewindmq)_\w+")


def expressions(value: Any) -> Iterator[str]:
    """Every query of panels and variables."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("expr", "query", "definition") and isinstance(inner, str):
                yield inner
            else:
                yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def test_the_committed_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("metrics_doc", ROOT / "scripts" / "metrics_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text() == module.render(), "run ./scripts/generate_metrics_doc"


def test_every_query_of_the_grafana_dashboard_names_a_metric_and_labels_that_it_has() -> None:
    queries = [query for query in expressions(json.loads(GRAFANA.read_text())) if query != "prometheus"]
    assert len(queries) > 15
    for query in queries:
        names = NAME.findall(query)
        assert names, query
        for name in names:
            assert name in METRICS, query
        known = {label for name in names for label in METRICS[name].labels}
        used = set(re.findall(r"(\w+)=~?\"", query))
        for labels in re.findall(r"by \(([^)]*)\)", query):
            used.update(label.strip() for label in labels.split(","))
        for label in re.findall(r"label_values\([^,]+, (\w+)\)", query):
            used.add(label)
        assert used <= known, query


def test_the_panels_do_not_overlap_and_each_has_its_own_id() -> None:
    panels = json.loads(GRAFANA.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
