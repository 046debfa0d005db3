"""Style sheet of the plan's page, for light and dark themes."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{--paper:#fff;--card:#f6f7f9;--ink:#1c2330;--soft:#5b6575;--line:#d5dae2;--grid:#e3e7ed;
--back:#1f5fbf;--ahead:#a04a00;--nearest:#0b7f6d;--warn:#8a5300;--warn-back:#fdf1dc}
@media (prefers-color-scheme:dark){:root{--paper:#12161d;--card:#1a202a;--ink:#e6eaf1;--soft:#9aa6b8;
--line:#39424f;--grid:#2a323e;--back:#74a9ff;--ahead:#f0a050;--nearest:#43c9b2;--warn:#f2c274;
--warn-back:#3a2c12}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1340px;margin:0 auto;padding:24px clamp(12px,3vw,36px) 48px}
h1{font-size:1.5rem;line-height:1.25;margin:.2em 0 .4em;overflow-wrap:anywhere}
h2{font-size:1.15rem;line-height:1.3;margin:1.8em 0 .5em}
p{margin:.4em 0;max-width:85ch}
.facts{display:flex;flex-wrap:wrap;gap:.3em 1.8em;margin:.7em 0 1.2em}
.facts div{display:flex;gap:.5em}.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(280px,1fr));gap:14px;margin:1em 0}
.card{padding:14px 18px;background:var(--card);border:1px solid var(--line);border-radius:8px}
.card h3{margin:0;font-size:.95rem;font-weight:600;color:var(--soft)}
.card .figure{font-size:1.9rem;line-height:1.3;font-weight:650;font-variant-numeric:tabular-nums}
.card .figure small{font-size:1rem;font-weight:400}
.card p{margin:.2em 0;color:var(--soft);font-size:.9rem}
.notes{list-style:none;margin:1em 0;padding:10px 16px;background:var(--warn-back);border-radius:8px;
border-left:4px solid var(--warn)}
.notes li{margin:.25em 0;max-width:95ch}
.plot{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 10px 6px}
.plot svg{display:block;width:100%;height:auto;min-width:560px}
.scroll{overflow-x:auto}
svg text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--soft);
font-variant-numeric:tabular-nums}
.grid{stroke:var(--grid)}.axis{stroke:var(--line)}
.back{fill:var(--back)}.ahead{fill:var(--ahead)}
.nearest{fill:none;stroke:var(--nearest);stroke-width:1.8;stroke-dasharray:5 3;stroke-linejoin:round}
.track{fill:var(--line)}.here{stroke:var(--ink);stroke-width:2}
.legend{display:flex;flex-wrap:wrap;gap:.2em 1.5em;list-style:none;padding:0;margin:.5em 0 0;
color:var(--soft);font-size:.85rem}
.legend li{display:flex;align-items:center;gap:.5em}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{text-align:right;padding:.35em .7em;border-bottom:1px solid var(--grid)}
th{color:var(--soft);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child,th.left,td.left{text-align:left}
thead tr:first-child th[colspan]{text-align:center;border-bottom-color:var(--line)}
tfoot td{font-weight:650;border-bottom:0}
td .gone{color:var(--warn)}
td svg{vertical-align:middle}
"""
