"""A run as one SVG picture, for a page of its own making."""

from __future__ import annotations

from rewindmq.race.checker import Verdict
from rewindmq.race.history import History
from rewindmq.race.report.drawing import Drawing
from rewindmq.race.report.meta import ReportMeta
from rewindmq.race.report.scene import make_scene


def render_svg(history: History, verdict: Verdict, meta: ReportMeta) -> str:
    """Lanes, arrows and the chart of offsets, in light and dark, with the title above."""
    return Drawing(make_scene(history, verdict)).svg(meta.title)
