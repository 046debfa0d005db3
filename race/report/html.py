"""A run as one self-contained HTML file, without scripts or external files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rewindmq.protocol.text import escape_html as escape
from rewindmq.race.checker import Verdict
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.report.drawing import Drawing, small_chart
from rewindmq.race.report.meta import LOSS_TEXTS, ReportMeta, headline
from rewindmq.race.report.scene import Scene, make_scene
from rewindmq.race.report.style import PAGE, PALETTE, PICTURE

_MAX_LISTED: Final = 1_000
_FRAMES: Final = frozenset((Lab.FRAME_SENT, Lab.FRAME_ARRIVED))


class ReportedRun(NamedTuple):
    """A run to report: its history, its verdict and its description."""

    history: History
    verdict: Verdict
    meta: ReportMeta


def render_html(history: History, verdict: Verdict, meta: ReportMeta) -> str:
    """Return the page of one run."""
    return _page(meta.title, _section(ReportedRun(history, verdict, meta), 1))


def render_comparison(title: str, runs: Sequence[ReportedRun], text: str = "") -> str:
    """Return the page of several runs: their charts side by side, then each run's full section."""
    cards = "".join(_card(number, run) for number, run in enumerate(runs, 1))
    sections = "".join(
        f'<section id="run-{number}">{_section(run, 2)}</section>' for number, run in enumerate(runs, 1)
    )
    paragraph = f"<p>{escape(text)}</p>" if text else ""
    return _page(title, f'<h1>{escape(title)}</h1>{paragraph}<div class="cards">{cards}</div>{sections}')


def _card(number: int, run: ReportedRun) -> str:
    chart = small_chart(make_scene(run.history, run.verdict))
    return (
        f'<div class="card"><a href="#run-{number}">{escape(run.meta.title)}</a>{_badge(run.verdict)}'
        f"{chart}<p>{escape(_first_violation(run.verdict))}</p></div>"
    )


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{PALETTE}{PAGE}{PICTURE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _section(run: ReportedRun, level: int) -> str:
    scene = make_scene(run.history, run.verdict)
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in run.meta.facts.items()
    )
    text = f"<p>{escape(run.meta.text)}</p>" if run.meta.text else ""
    where = ""
    if scene.broker_name:
        where = (
            f'<p class="where">The figure shows queue {scene.queue_id} of {escape(scene.broker_name)}.</p>'
        )
    return (
        f"<h{level}>{escape(run.meta.title)}</h{level}>"
        f'<p class="verdict">{_badge(run.verdict)}</p>{text}<dl class="facts">{facts}</dl>'
        f"{_findings(run.verdict)}{where}{Drawing(scene).html()}{_LEGEND}"
        f"{_event_list(run.history, scene)}"
    )


def _badge(verdict: Verdict) -> str:
    kind = "bad" if verdict.losses else "good"
    return f'<span class="badge {kind}">{escape(headline(verdict))}</span>'


def _first_violation(verdict: Verdict) -> str:
    return f"{verdict.violations[0].text}." if verdict.violations else "Every law holds."


def _findings(verdict: Verdict) -> str:
    if not verdict.violations:
        return "<p>Every law holds: the stored offset follows the redelivery, and no message is left out.</p>"
    items = "".join(
        f"<li><strong>{violation.loss}</strong> <span class=time>{violation.at:.3f} s</span>"
        f" {escape(violation.text)}. <em>{escape(LOSS_TEXTS[violation.loss])}</em></li>"
        for violation in verdict.violations
    )
    return f'<ol class="findings">{items}</ol>'


def _event_list(history: History, scene: Scene) -> str:
    """Return a table of all recorded events, except frames that were sent and arrived."""
    shown = [(index, event) for index, event in enumerate(history) if event.kind not in _FRAMES]
    left_out = max(len(shown) - _MAX_LISTED, 0)
    rows = "".join(_row(index, event, scene.is_offending(index)) for index, event in shown[:_MAX_LISTED])
    more = f"<p>{left_out} further events are not listed.</p>" if left_out else ""
    return (
        f'<details><summary>{len(shown)} events</summary><div class="scroll"><table class="events">'
        f"<tr><th>s</th><th>process</th><th>event</th><th>details</th></tr>{rows}</table></div>{more}</details>"
    )


def _row(index: int, event: Event, is_offending: bool) -> str:
    details = ", ".join(
        f"{name} {value}"
        for name, value in event.details.items()
        if name not in ("topic", "group", "client_id")
    )
    kind = ' class="bad"' if is_offending else ""
    return (
        f"<tr{kind}><td>{event.at:.3f}</td><td>{escape(event.process)}</td><td>{escape(str(event.kind))}</td>"
        f"<td>{escape(details)}</td></tr>"
    )


def _legend_line(kind: str, path: str, text: str) -> str:
    return f'<li><svg width="34" height="12"><path class="{kind}" d="{path}"/></svg>{text}</li>'


_LEGEND: Final = "".join(
    (
        '<ul class="legend">',
        _legend_line("stored", "M1 9H16V3H33", "stored offset"),
        _legend_line("progress", "M1 9H16V3H33", "redelivered and finished up to this offset"),
        _legend_line("target", "M1 6H33", "target of the reset"),
        _legend_line("arrow reset", "M1 6H33", "reset request (222), reset notification (220)"),
        _legend_line("arrow commit", "M1 6H33", "commit of an offset; pull commit: carried by a pull"),
        _legend_line(
            "arrow pull", "M1 6H33", "response to a pull → next offset; late: pulled before the reset"
        ),
        _legend_line("delivery", "M1 3H33V9H1z", "messages in a listener, with their offsets"),
        _legend_line("gap", "M1 0H33V12H1z", "a stretch without events, shortened"),
        '<li><svg width="20" height="18"><circle class="offence-point" cx="10" cy="9" r="8"/>',
        '<text class="offence-number" x="10" y="13" text-anchor="middle">1</text></svg>offending step</li>',
        "</ul>",
    )
)
