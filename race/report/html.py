"""A run as one HTML file that needs nothing else: no script, no style sheet, no font, no picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from rewindmq.race.checker import Verdict
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.report.drawing import Drawing, small_chart
from rewindmq.race.report.meta import LOSS_TEXTS, ReportMeta, headline
from rewindmq.race.report.scene import make_scene

_MAX_LISTED: Final = 1_000
_FRAMES: Final = frozenset((Lab.FRAME_SENT, Lab.FRAME_ARRIVED))


class Run(NamedTuple):
    """What is reported of one run."""

    history: History
    verdict: Verdict
    meta: ReportMeta


def render_html(history: History, verdict: Verdict, meta: ReportMeta) -> str:
    """The page of one run."""
    return _page(meta.title, _section(Run(history, verdict, meta), 1))


def render_comparison(title: str, runs: Sequence[Run], text: str = "") -> str:
    """The page of several runs: their charts side by side, then each as a whole."""
    cards = "".join(_card(number, run) for number, run in enumerate(runs, 1))
    sections = "".join(
        f'<section id="run-{number}">{_section(run, 2)}</section>' for number, run in enumerate(runs, 1)
    )
    paragraph = f"<p>{escape(text)}</p>" if text else ""
    return _page(title, f'<h1>{escape(title)}</h1>{paragraph}<div class="cards">{cards}</div>{sections}')


def _card(number: int, run: Run) -> str:
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
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _section(run: Run, level: int) -> str:
    scene = make_scene(run.history, run.verdict)
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in run.meta.facts.items()
    )
    text = f"<p>{escape(run.meta.text)}</p>" if run.meta.text else ""
    where = ""
    if scene.broker_name:
        where = f'<p class="where">Shown: queue {scene.queue_id} of {escape(scene.broker_name)}.</p>'
    return (
        f"<h{level}>{escape(run.meta.title)}</h{level}>"
        f'<p class="verdict">{_badge(run.verdict)}</p>{text}<dl class="facts">{facts}</dl>'
        f"{_findings(run.verdict)}{where}{Drawing(scene).html()}{_LEGEND}"
        f"{_event_list(run.history, scene.offending)}"
    )


def _badge(verdict: Verdict) -> str:
    kind = "bad" if verdict.losses else "good"
    return f'<span class="badge {kind}">{escape(headline(verdict))}</span>'


def _first_violation(verdict: Verdict) -> str:
    return f"{verdict.violations[0].text}." if verdict.violations else "Every law holds."


def _findings(verdict: Verdict) -> str:
    if not verdict.violations:
        return "<p>Every law holds: what is stored follows the redelivery, and nobody is left out.</p>"
    items = "".join(
        f"<li><strong>{violation.loss}</strong> <span class=time>{violation.at:.3f} s</span>"
        f" {escape(violation.text)}. <em>{escape(LOSS_TEXTS[violation.loss])}</em></li>"
        for violation in verdict.violations
    )
    return f'<ol class="findings">{items}</ol>'


def _event_list(history: History, offending: int | None) -> str:
    """Everything that was recorded but for frames passed on, for whoever wants to know exactly."""
    shown = [(index, event) for index, event in enumerate(history) if event.kind not in _FRAMES]
    left_out = max(len(shown) - _MAX_LISTED, 0)
    rows = "".join(_row(index, event, index == offending) for index, event in shown[:_MAX_LISTED])
    more = f"<p>{left_out} more are left out.</p>" if left_out else ""
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
        _legend_line("progress", "M1 9H16V3H33", "redelivered and finished up to"),
        _legend_line("target", "M1 6H33", "target of the reset"),
        _legend_line("arrow reset", "M1 6H33", "reset (222, 220)"),
        _legend_line("arrow commit", "M1 6H33", "commit: code(offset); 15, or 11 on a pull"),
        _legend_line("arrow pull", "M1 6H33", "answer to a pull"),
        _legend_line("delivery", "M1 3H33V9H1z", "messages in a listener, with their offsets"),
        _legend_line("gap", "M1 0H33V12H1z", "a quiet stretch, shortened"),
        '<li><svg width="20" height="18"><circle class="offence-point" cx="10" cy="9" r="8"/>',
        '<text class="offence-number" x="10" y="13" text-anchor="middle">1</text></svg>offending step</li>',
        "</ul>",
    )
)

_STYLE: Final = """
:root{--paper:#fff;--card:#f6f7f9;--ink:#1c2330;--soft:#5b6575;--line:#d5dae2;--grid:#e9ecf1;--gap:#eef0f4;
--reset:#a04a00;--commit:#1f5fbf;--pull:#5f6b7d;--end:#6b2d8f;--good:#14713f;--good-back:#dff3e6;--bad:#c01f2b;
--bad-back:#fde4e5;--progress:#0b7f6d;--delivery:#7fc4b8}
@media (prefers-color-scheme:dark){:root{--paper:#12161d;--card:#1a202a;--ink:#e6eaf1;--soft:#9aa6b8;
--line:#39424f;--grid:#2a323e;--gap:#252d3a;--reset:#f0a050;--commit:#74a9ff;--pull:#a3afc0;--end:#cf9bea;--good:#72d79b;
--good-back:#15351f;--bad:#ff7a80;--bad-back:#43191c;--progress:#43c9b2;--delivery:#1f7a6c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1500px;margin:0 auto;padding:20px clamp(12px,3vw,36px) 48px}
h1{font-size:1.5rem;line-height:1.25;margin:.2em 0 .4em;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3;margin:2.2em 0 .4em;padding-top:1em;border-top:1px solid var(--line)}
p{margin:.4em 0;max-width:80ch}
a{color:var(--commit)}
.badge{display:inline-block;padding:.15em .7em;border-radius:1em;font-weight:600}
.badge.good{background:var(--good-back);color:var(--good)}
.badge.bad{background:var(--bad-back);color:var(--bad)}
.facts{display:flex;flex-wrap:wrap;gap:.3em 1.6em;margin:.7em 0}
.facts div{display:flex;gap:.5em}
.facts dt{color:var(--soft)}
.facts dd{margin:0;overflow-wrap:anywhere}
.findings{padding-left:1.4em;margin:.7em 0;max-width:95ch}
.findings li{margin:.3em 0}
.findings strong{color:var(--bad)}
.findings em,.where,.time{color:var(--soft);font-style:normal}
.figure{display:flex;margin:14px 0 6px;background:var(--card);border:1px solid var(--line);border-radius:8px;
overflow:hidden}
.figure .side{flex:none;border-right:1px solid var(--line)}
.figure svg{display:block}
.scroll{overflow-x:auto;min-width:0}
.figure .scroll{flex:1}
svg text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}
svg .name{font:600 12px system-ui,-apple-system,"Segoe UI",sans-serif}
svg .tick{fill:var(--soft);font-size:10px}
.lane{stroke:var(--line);stroke-width:1.5}
.grid{stroke:var(--grid)}
.gap{fill:var(--gap)}
.arrow{fill:none;stroke-width:1.5}
.arrow.lost{stroke-dasharray:4 3}
.mark{stroke:var(--card);stroke-width:1.5}
svg .label{paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.arrow.reset{stroke:var(--reset)}.head.reset,.mark.reset,svg .label.reset{fill:var(--reset)}
.arrow.commit{stroke:var(--commit)}.head.commit,.mark.commit,svg .label.commit{fill:var(--commit)}
.arrow.pull{stroke:var(--pull)}.head.pull,.mark.pull,svg .label.pull{fill:var(--pull)}
.arrow.end{stroke:var(--end)}.head.end,.mark.end,svg .label.end{fill:var(--end)}
.arrow.step{stroke:var(--soft)}.head.step,.mark.step{fill:var(--soft)}svg .label.step{fill:var(--ink)}
.arrow.bad{stroke:var(--bad);stroke-width:2.5}.head.bad,.mark.bad{fill:var(--bad)}
svg .label.bad{fill:var(--bad);font-weight:700}
svg .label.delivered{fill:var(--progress);font-size:10px}
.delivery{fill:var(--delivery)}
.stored{fill:none;stroke:var(--commit);stroke-width:2.5}
.progress{fill:none;stroke:var(--progress);stroke-width:2;stroke-dasharray:5 3}
.target{fill:none;stroke:var(--reset);stroke-width:1.5;stroke-dasharray:2 4}
.offence{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:3 4}
.offence-point{fill:var(--bad)}
svg .offence-number{fill:var(--paper);font-weight:700}
.legend{display:flex;flex-wrap:wrap;gap:.2em 1.5em;list-style:none;padding:0;margin:.5em 0 1em;
color:var(--soft);font-size:.85rem}
.legend li{display:flex;align-items:center;gap:.5em}
table{border-collapse:collapse;font-size:.85rem}
th,td{text-align:left;padding:.25em .8em .25em 0;vertical-align:top;border-bottom:1px solid var(--grid)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(260px,1fr));gap:14px;margin:1em 0}
.card{display:flex;flex-direction:column;gap:.5em;align-items:flex-start;padding:14px;background:var(--card);
border:1px solid var(--line);border-radius:8px}
.card a{font-weight:600}.card p{font-size:.9rem;color:var(--soft)}.card .small{width:100%;height:auto}
.events{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:nowrap}
.events .bad td{color:var(--bad);font-weight:700}
details{margin:.6em 0}summary{cursor:pointer;color:var(--soft)}
"""
