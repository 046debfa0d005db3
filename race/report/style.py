"""Style sheets of reports, for light and dark backgrounds."""

from __future__ import annotations

from typing import Final

PALETTE: Final = """
:root{--paper:#fff;--card:#f6f7f9;--ink:#1c2330;--soft:#5b6575;--line:#d5dae2;--grid:#e9ecf1;--gap:#eef0f4;
--reset:#a04a00;--commit:#1f5fbf;--pull:#5f6b7d;--end:#6b2d8f;--good:#14713f;--good-back:#dff3e6;--bad:#c01f2b;
--bad-back:#fde4e5;--progress:#0b7f6d;--delivery:#7fc4b8}
@media (prefers-color-scheme:dark){:root{--paper:#12161d;--card:#1a202a;--ink:#e6eaf1;--soft:#9aa6b8;
--line:#39424f;--grid:#2a323e;--gap:#252d3a;--reset:#f0a050;--commit:#74a9ff;--pull:#a3afc0;--end:#cf9bea;--good:#72d79b;
--good-back:#15351f;--bad:#ff7a80;--bad-back:#43191c;--progress:#43c9b2;--delivery:#1f7a6c}}
"""

# Style of the page around the pictures.
PAGE: Final = """
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

# Style of the pictures.
PICTURE: Final = """
svg text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}
svg .name{font:600 12px system-ui,-apple-system,"Segoe UI",sans-serif}
svg .title{font:600 14px system-ui,-apple-system,"Segoe UI",sans-serif}
.paper{fill:var(--card)}
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
"""
