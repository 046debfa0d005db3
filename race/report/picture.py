"""A run as one SVG picture, to embed in another page."""

from __future__ import annotations

from rewindmq.race.checker import Verdict
from rewindmq.race.history import History
from rewindmq.race.report.drawing import Drawing
from rewindmq.race.report.meta import ReportMeta
from rewindmq.race.report.scene import make_scene


def render_svg(history: History, verdict: Verdict, meta: ReportMeta) -> str:
    """Return lanes, arrows and the chart of offsets below the title, for light and dark backgrounds."""
    return Drawing(make_scene(history, verdict)).svg(meta.title)
