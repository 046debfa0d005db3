"""Reports of a run: as one HTML file, as a picture, and as text."""

from rewindmq.race.report.html import ReportedRun, render_comparison, render_html
from rewindmq.race.report.meta import ReportMeta, headline
from rewindmq.race.report.output import write_report
from rewindmq.race.report.picture import render_svg
from rewindmq.race.report.text import render_text

__all__ = [
    "ReportMeta",
    "ReportedRun",
    "headline",
    "render_comparison",
    "render_html",
    "render_svg",
    "render_text",
    "write_report",
]
