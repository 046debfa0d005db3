"""Checks of a page in the browser: names, structure, contrast, focus, width."""

from __future__ import annotations

from typing import Final, Literal

from playwright.async_api import Page

# Returns a sentence for each fault. WCAG 2.2 asks for a contrast of 4.5, of 3 for large text.
_SCRIPT = r"""
(fewest) => {
  const faults = [];
  const say = (element, text) => faults.push(`${text}: ${element.outerHTML.slice(0, 120)}`);
  const visible = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const named = (element) => (element.getAttribute("aria-label") || element.textContent).trim() !== "";
  for (const each of document.querySelectorAll("input:not([type=hidden]), select, textarea, meter"))
    if (![...(each.labels ?? [])].some(named) && !each.getAttribute("aria-label")) say(each, "no label");
  for (const each of document.querySelectorAll("a, button, [role=region], nav, svg[role=img]"))
    if (!named(each)) say(each, "no name");
  for (const each of document.querySelectorAll("nav, [role=region]"))
    if (!each.getAttribute("aria-label")) say(each, "a landmark without a name");
  const landmarks = [...document.querySelectorAll("nav, [role=region]")];
  const names = landmarks.map((each) => each.getAttribute("aria-label"));
  for (const name of new Set(names))
    if (names.indexOf(name) !== names.lastIndexOf(name)) faults.push(`two landmarks are named ${name}`);
  if (!document.querySelector("main")) faults.push("no main");
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
  for (const each of document.querySelectorAll("th, td")) {
    const isLong = each.textContent.trim().length > 6 && !each.querySelector(".sr");
    if (isLong && visible(each) && each.clientWidth < 48) say(each, "squeezed");
  }
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
  // In a drawing, a text may stand on a shape.
  const drawn = (text) => {
    const { left, top, width, height } = text.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    const under = ground(text);
    const shapes = [...text.ownerSVGElement.querySelectorAll("circle, rect, polygon")].filter((each) => {
      const box = each.getBoundingClientRect();
      return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
    });
    const styles = shapes.map((each) => getComputedStyle(each));
    const filled = styles.filter((style) => style.fill.startsWith("rgb"));
    return filled.reduce((below, style) => {
      const fill = parse(style.fill);
      return over({ ...fill, a: fill.a * Number(style.fillOpacity) * Number(style.opacity) }, below);
    }, under);
  };
  const light = ({ r, g, b }) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const opacity = (element) => {
    let share = 1;
    for (let each = element; each; each = each.parentElement) share *= Number(getComputedStyle(each).opacity);
    return share;
  };
  // As it is seen on its ground, which is that of the element or, for a frame around it, of its parent.
  const seen = (text, element, under) => {
    const color = parse(text);
    return over({ ...color, a: color.a * opacity(element) }, under);
  };
  const needs = (ratio, least, element, what) => {
    if (ratio < least) say(element, `${what} ${ratio.toFixed(2)}`);
  };
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !visible(element)) continue;
    texts += 1;
    const style = getComputedStyle(element);
    const under = element instanceof SVGElement ? drawn(element) : ground(element);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const color = element instanceof SVGElement ? style.fill : style.color;
    needs(contrast(seen(color, element, under), under), isLarge ? 3 : 4.5, element, "contrast");
  }
  if (texts < fewest) faults.push(`only ${texts} texts on the page`);
  // The frame of a field tells where it is; a box to tick is drawn by the browser.
  const fields = "input:not([type=hidden], [type=checkbox]), select, textarea";
  for (const each of document.querySelectorAll(fields)) {
    if (!visible(each)) continue;
    const under = ground(each.parentElement);
    const frame = seen(getComputedStyle(each).borderTopColor, each, under);
    needs(contrast(frame, under), 3, each, "frame's contrast");
    if (!each.placeholder) continue;
    const hint = seen(getComputedStyle(each, "::placeholder").color, each, ground(each));
    needs(contrast(hint, ground(each)), 4.5, each, "placeholder's contrast");
  }
  const reachable = "a[href], button, input:not([type=hidden]), select, textarea, [tabindex='0']";
  for (const each of document.querySelectorAll(reachable)) {
    if (!visible(each)) continue;
    each.focus();
    const style = getComputedStyle(each);
    if (document.activeElement !== each) say(each, "takes no focus");
    else if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) say(each, "shows no focus");
    else {
      const under = ground(each.parentElement);
      needs(contrast(seen(style.outlineColor, each, under), under), 3, each, "focus's contrast");
    }
    const box = each.getClientRects()[0];
    const x = box.left + Math.min(box.width, innerWidth) / 2;
    const top = document.elementFromPoint(x, box.top + Math.min(box.height / 2, 8));
    const header = top?.closest("header");
    // A box that is taller than the screen cannot be seen as a whole.
    if (header && !each.closest("header") && box.bottom <= header.getBoundingClientRect().bottom)
      say(each, "is behind the header");
  }
  document.activeElement?.blur();
  scrollTo(0, 0);
  return faults;
}
"""


Scheme = Literal["light", "dark"]
# 320 px is the narrowest screen on which WCAG 2.2 asks for a page without scrolling sideways.
VIEWS: Final[tuple[tuple[Scheme, int], ...]] = (
    ("light", 1200),
    ("dark", 1200),
    ("light", 320),
    ("dark", 320),
)


async def faults_of(page: Page, fewest_texts: int = 5) -> list[str]:
    """Return a sentence for each fault of the page as it is shown.

    Args:
        fewest_texts: a page with fewer was not shown at all.
    """
    # A page may be there before its styles.
    await page.wait_for_load_state()
    # Browsers show the focus to those who use the keyboard.
    await page.keyboard.press("Shift")
    faults: list[str] = await page.evaluate(_SCRIPT, fewest_texts)
    return faults


async def faults_in_every_view(page: Page, fewest_texts: int = 5) -> list[str]:
    """Return the faults of the page in light and dark, on a wide and on a narrow screen."""
    size = page.viewport_size
    faults = []
    for scheme, width in VIEWS:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await page.set_viewport_size({"width": width, "height": 800})
        faults += [f"{scheme}, {width} px: {fault}" for fault in await faults_of(page, fewest_texts)]
    if size is not None:
        await page.set_viewport_size(size)
    return faults
