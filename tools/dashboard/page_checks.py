"""Checks of a page in the browser: names, structure, contrast, and that nothing is wider than the screen."""

from __future__ import annotations

from playwright.async_api import Page

# Returns a sentence for each fault. WCAG 2.2 asks for a contrast of 4.5, of 3 for large text.
_SCRIPT = r"""
() => {
  const faults = [];
  const say = (element, text) => faults.push(`${text}: ${element.outerHTML.slice(0, 120)}`);
  const visible = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const named = (element) => (element.getAttribute("aria-label") || element.textContent).trim() !== "";
  for (const each of document.querySelectorAll("input:not([type=hidden]), select, textarea, meter"))
    if (!each.labels?.length && !each.getAttribute("aria-label")) say(each, "no label");
  for (const each of document.querySelectorAll("a, button, [role=region], nav, svg[role=img]"))
    if (!named(each)) say(each, "no name");
  for (const each of document.querySelectorAll("nav, [role=region]"))
    if (!each.getAttribute("aria-label")) say(each, "a landmark without a name");
  for (const each of document.querySelectorAll("th")) if (!each.scope) say(each, "no scope");
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  if (!document.documentElement.lang || !document.title.trim()) faults.push("no language or title");
  let level = 1;
  for (const each of document.querySelectorAll("h1, h2, h3, h4")) {
    const now = Number(each.tagName[1]);
    if (now > level + 1) say(each, "skips a level");
    level = now;
  }
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`two elements are #${id}`);
  for (const each of document.querySelectorAll("*"))
    if (each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX)
        && each.tabIndex < 0 && !each.querySelector("a, button")) say(each, "scrolls, but not by keyboard");
  if (document.documentElement.scrollWidth > innerWidth) faults.push("wider than the screen");

  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => {
    const mix = (one, other) => one * top.a + other * (1 - top.a);
    return { r: mix(top.r, under.r), g: mix(top.g, under.g), b: mix(top.b, under.b), a: 1 };
  };
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      layers.push(parse(getComputedStyle(each).backgroundColor));
      if (layers.at(-1).a === 1) break;
    }
    return layers.reduceRight((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  const light = ({ r, g, b }) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !visible(element)) continue;
    texts += 1;
    const style = getComputedStyle(element);
    const under = ground(element);
    const [low, high] = [light(over(parse(style.color), under)), light(under)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) say(element, `contrast ${ratio.toFixed(2)}`);
  }
  if (texts < 5) faults.push(`only ${texts} texts on the page`);
  return faults;
}
"""


async def faults_of(page: Page) -> list[str]:
    """Return a sentence for each fault of the page as it is shown."""
    faults: list[str] = await page.evaluate(_SCRIPT)
    return faults
