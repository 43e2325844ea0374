"""The Grafana dashboard shows metrics that exist, and docs/monitoring.md describes all of them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from prometheus_client import Counter, Histogram

from chat import metrics
from chat.asgi.monitoring import Queue, _Gauges
from chat.runner import runtime
from chat.runner.runtime import Figures
from tests.commands.process import ROOT
from tests.support.agreement import agree

BOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/parley.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]


@pytest.fixture
def labels(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The names of all metrics of a process, with their labels."""
    figures = Figures(running=1, lease_age=1.0, subscribers={"page": 1}, feeds=1)
    monkeypatch.setattr(runtime, "figures", lambda: figures)
    families = [*metrics.REGISTRY.collect(), *_Gauges(Queue(0, 0.0, 1)).collect()]
    found: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Histogram):
            ends = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}[metric._type]
            for end in ends:
                names = {*metric._labelnames, *(["le"] if end == "_bucket" else [])}
                found.setdefault(metric._name + end, set()).update(names)
    return found


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panel_shows_metrics_and_labels_that_exist(panel: dict[str, Any], labels: dict[str, set[str]]) -> None:
    """OPS-02: the panels use existing metrics, because a panel without data looks like a system without load."""
    for target in panel["targets"]:
        names = re.findall(r"\b((?:parley|process)_\w+)\{", target["expr"])
        assert names
        for name in names:
            assert name in labels
            used = {word for words in re.findall(r"by \(([^)]*)\)", target["expr"]) for word in words.split(", ")}
            used |= set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= labels[name] | {"instance", "job"}


def test_each_metric_is_described(labels: dict[str, set[str]]) -> None:
    """OPS-02: the page describes each metric."""
    page = (ROOT / "docs/monitoring.md").read_text()
    described = set(re.findall(r"`(parley_\w+)`", page))
    shown = [name for name in labels if name.startswith("parley_")]
    agree(
        described,
        [re.sub(r"_(bucket|count|sum)$", "", name) for name in shown],
        missing="Describe `{}` in the table of docs/monitoring.md.",
        extra="Remove `{}` from docs/monitoring.md: no process has that metric.",
    )
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
